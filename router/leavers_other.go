//go:build !linux

package router

import "net"

// left cannot tell here: a held client with a body that leaves keeps its
// place until its time is over.
func left(net.Conn) bool { return false }
