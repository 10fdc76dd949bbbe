package natsd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrStoreInUse is wrapped by Start's error when another server, in this
// process or another, has the store directory.
var ErrStoreInUse = errors.New("nats store directory is in use by another server")

// lockStore makes the directory and takes it: the server itself lets two
// share one, and both then write into it. Closing the file gives it back, and
// so does the end of the process, however it ends.
func lockStore(dir string) (*os.File, error) {
	if dir == "" {
		return nil, unusable(errors.New("it is not set"))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "rouse.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unusable(err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrStoreInUse, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
