//go:build !unix

package router

import "net"

// frugal is not to be had here.
func (b *buffers) frugal(net.Conn) func(to func([]byte) error) error { return nil }
