package natsd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/highwayhash"
	"golang.org/x/sys/unix"
)

var (
	// ErrStoreDamaged is wrapped by Start's error when the server would leave
	// out, or cut off, something that was stored. Nothing was changed.
	ErrStoreDamaged = errors.New("nats store is damaged")
	// ErrStorePlace is wrapped by Start's error when the store directory
	// cannot be used as it is: by its kind, owner or permissions.
	ErrStorePlace = errors.New("nats store directory cannot be used")
)

func damaged(place, what string) error {
	return fmt.Errorf("%w: %s: %s", ErrStoreDamaged, place, what)
}

func unusable(err error) error { return fmt.Errorf("%w: %w", ErrStorePlace, err) }

// jetstream is where the server keeps its files below the store directory.
func jetstream(dir string) string { return filepath.Join(dir, "jetstream") }

// inspect reads what is stored before the server does: it starts with a
// stream left out, or half empty, and may cut off the rest for good, with at
// most a line in its log. warn is told of a last record that was cut short.
func inspect(dir string, warn func(place, what string)) error {
	root := jetstream(dir)
	if info, err := os.Lstat(root); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err == nil && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
		return damaged(root, "it is not a directory")
	}
	if err := accessible(root); err != nil {
		return unusable(err)
	}
	streams, err := storedStreams(root)
	if err != nil {
		return err
	}
	var found []error
	for _, stream := range streams {
		found = append(found, inspectStream(stream, warn))
	}
	return errors.Join(found...)
}

// accessible finds what this user may not read and write.
func accessible(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := uint32(unix.R_OK | unix.W_OK)
		if d.IsDir() {
			mode |= unix.X_OK
		}
		if err := unix.Access(path, mode); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// storedStreams are the directories of all streams of all accounts.
func storedStreams(root string) ([]string, error) {
	accounts, err := os.ReadDir(root)
	if err != nil {
		return nil, unusable(err)
	}
	var streams []string
	for _, account := range accounts {
		dir := filepath.Join(root, account.Name(), "streams")
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, damaged(dir, "it is not a directory")
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") { // being deleted, or restored
				streams = append(streams, filepath.Join(dir, e.Name()))
			}
		}
	}
	return streams, nil
}

func inspectStream(dir string, warn func(place, what string)) error {
	blocks, err := filepath.Glob(filepath.Join(globQuote(dir), "msgs", "*.blk"))
	if err != nil {
		return err
	}
	if !holdsAnything(blocks) {
		return nil // being made when the server ended, or empty
	}
	name := filepath.Base(dir)
	found := []error{inspectMeta(dir, name, false)}
	consumers, err := filepath.Glob(filepath.Join(globQuote(dir), "obs", "*"))
	if err != nil {
		return err
	}
	for _, consumer := range consumers {
		found = append(found, inspectMeta(consumer, name+"/"+filepath.Base(consumer), true))
	}
	for _, block := range blocks {
		found = append(found, inspectBlock(dir, block, warn))
	}
	return errors.Join(found...)
}

func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

func holdsAnything(blocks []string) bool {
	for _, block := range blocks {
		if info, err := os.Stat(block); err != nil || info.Size() > 0 {
			return true
		}
	}
	return false
}

// inspectMeta compares the description of a stream, or of a consumer, with its
// checksum. With a wrong one the server leaves the stream out, or stops it. One
// that is missing altogether costs a consumer, which is made again by whoever
// needs it, or a stream.
func inspectMeta(dir, name string, mayMiss bool) error {
	meta, sumFile := filepath.Join(dir, "meta.inf"), filepath.Join(dir, "meta.sum")
	text, err := os.ReadFile(meta)
	want, sumErr := os.ReadFile(sumFile)
	switch {
	case mayMiss && (errors.Is(err, fs.ErrNotExist) || errors.Is(sumErr, fs.ErrNotExist)):
		return nil
	case err != nil:
		return damaged(meta, "the description cannot be read")
	case sumErr != nil:
		return damaged(sumFile, "the checksum of the description cannot be read")
	}
	key := sha256.Sum256([]byte(name))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return err
	}
	_, _ = sum.Write(text)
	if hex.EncodeToString(sum.Sum(nil)) != string(want) {
		return damaged(meta, "the description does not match its checksum")
	}
	return nil
}

func inspectBlock(dir, file string, warn func(place, what string)) error {
	var index int
	if _, err := fmt.Sscanf(filepath.Base(file), "%d.blk", &index); err != nil {
		return nil // not the server's
	}
	fault, err := checkBlock(file, filepath.Base(dir), index)
	switch {
	case err != nil:
		return damaged(file, err.Error())
	case fault == nil:
		return nil
	case fault.tail:
		warn(file, fmt.Sprintf("the last write was cut short: %d of %d bytes are left out", fault.size-fault.at, fault.size))
		return nil
	}
	return damaged(file, fmt.Sprintf("unreadable at byte %d of %d, with messages behind it", fault.at, fault.size))
}

// moveAside gives a damaged store another name beside the new one, and says
// which.
func moveAside(dir string) (string, error) {
	to := jetstream(dir) + ".broken-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := os.Rename(jetstream(dir), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("move the damaged nats store aside: %w", err)
	}
	if err := os.Remove(manifestFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("move the damaged nats store aside: %w", err)
	}
	return to, nil
}
