package main

import "golang.org/x/sys/unix"

// roomOf gives the bytes that are free for this user where dir is; an empty
// place if that is not known.
func roomOf(dir string) (place string, free uint64) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", 0
	}
	return dir, s.Bavail * uint64(s.Bsize)
}
