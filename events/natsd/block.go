package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"os"

	"github.com/minio/highwayhash"
)

// The form of a block of messages on disk, which is the server's (its
// filestore.go): records one behind the other, each with a length, a sequence,
// a time, the length of its subject, subject, headers and body, and a checksum.
const (
	recordHead    = 22
	recordSum     = 8
	recordMost    = 32 << 20
	recordHeaders = 1 << 31 // in the length: there are headers
)

// A blockFault says where a block stops being readable. The server cuts it
// off there when it starts, with all that is behind.
type blockFault struct {
	at, size int
	// tail: nothing that can be read is behind it, as after a write that was
	// cut short. Else records that are whole would be lost.
	tail bool
}

// checkBlock reads a block as the server would. nil: all of it is readable.
func checkBlock(file, stream string, index int) (*blockFault, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte("cmp")) {
		return nil, nil // compressed: not by Rouse, and not in this form
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, index))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(data); {
		size := recordAt(data, at, sum)
		if size == 0 {
			return &blockFault{at, len(data), !recordBehind(data, at+1, sum)}, nil
		}
		at += size
	}
	return nil, nil
}

// recordAt is the size of the record that begins there, 0 if there is none.
func recordAt(data []byte, at int, sum hash.Hash64) int {
	if at+recordHead+recordSum > len(data) {
		return 0
	}
	head := data[at : at+recordHead]
	length, subject := binary.LittleEndian.Uint32(head), int(binary.LittleEndian.Uint16(head[20:]))
	size, text := int(length&^recordHeaders), subject
	if length&recordHeaders != 0 {
		text += 4 // the length of the headers
	}
	if size > recordMost || at+size > len(data) || recordHead+text+recordSum > size {
		return 0
	}
	body := data[at+recordHead : at+size]
	sum.Reset()
	_, _ = sum.Write(head[4:20])
	_, _ = sum.Write(body[:subject])
	_, _ = sum.Write(body[text : len(body)-recordSum])
	if !bytes.Equal(sum.Sum(nil), body[len(body)-recordSum:]) {
		return 0
	}
	return size
}

func recordBehind(data []byte, from int, sum hash.Hash64) bool {
	for at := from; at+recordHead+recordSum <= len(data); at++ {
		if recordAt(data, at, sum) > 0 {
			return true
		}
	}
	return false
}
