package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"strings"
)

// placeOf names an address of this machine, in a form that tells nobody about
// the machine. Two processes that are alive never have the same.
func placeOf(a net.Addr) string {
	sum := sha256.Sum256([]byte(machine() + "\x00" + a.String()))
	return hex.EncodeToString(sum[:8])
}

// machine is as near to unique as can be had: hosts may share a name, and
// copies of one installation an ID. A container that is made from nothing has
// only the name, which is its own, and the boot of its host.
func machine() string {
	name, _ := os.Hostname() // without it, the rest has to do
	for _, file := range []string{"/etc/machine-id", "/proc/sys/kernel/random/boot_id"} {
		if id, err := os.ReadFile(file); err == nil {
			return name + "\x00" + strings.TrimSpace(string(id))
		}
	}
	return name
}
