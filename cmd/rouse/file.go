package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFile bounds every file that a user names, in bytes: a device or a log
// named by mistake must not take all memory.
const maxFile = 16 << 20

// readFile is os.ReadFile for files that a user names.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("has more than %d MiB, which no file of this kind has", maxFile>>20)}
	}
	return data, nil
}

// loadKeyPair is tls.LoadX509KeyPair for files that a user names.
func loadKeyPair(cert, key string) (tls.Certificate, error) {
	certText, err := readFile(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText, err := readFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certText, keyText)
}
