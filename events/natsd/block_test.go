package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/minio/highwayhash"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// block makes a block of three messages, the second with headers, and tells
// where each begins.
func block(t testing.TB) (data []byte, begins []int) {
	t.Helper()
	key := sha256.Sum256([]byte("S-1"))
	sum, err := highwayhash.NewDigest64(key[:])
	require.NoError(t, err)
	for i, header := range []string{"", "NATS/1.0\r\na: b\r\n\r\n", ""} {
		begins = append(begins, len(data))
		subject, body := "a.b", bytes.Repeat([]byte{'x'}, 50*i)
		text := []byte(subject)
		size := uint32(recordHead + len(subject) + len(header) + len(body) + recordSum)
		if header != "" {
			size += 4
		}
		head := make([]byte, recordHead)
		binary.LittleEndian.PutUint64(head[4:], uint64(i+1))
		binary.LittleEndian.PutUint16(head[20:], uint16(len(subject)))
		binary.LittleEndian.PutUint32(head, size)
		if header != "" {
			binary.LittleEndian.PutUint32(head, size|recordHeaders)
			text = binary.LittleEndian.AppendUint32(text, uint32(len(header)))
		}
		sum.Reset()
		for _, part := range [][]byte{head[4:20], []byte(subject), []byte(header), body} {
			_, _ = sum.Write(part)
		}
		data = append(append(append(append(append(data, head...), text...), header...), body...), sum.Sum(nil)...)
	}
	return data, begins
}

func check(t testing.TB, data []byte) *blockFault {
	t.Helper()
	file := filepath.Join(t.TempDir(), "1.blk")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	fault, err := checkBlock(file, "S", 1)
	require.NoError(t, err)
	return fault
}

func TestBlockIsReadAsTheServerReadsIt(t *testing.T) {
	data, begins := block(t)
	assert.Nil(t, check(t, data))
	assert.Nil(t, check(t, nil))
	assert.Equal(t, &blockFault{begins[2], len(data) - 1, true}, check(t, data[:len(data)-1]))
	for i, at := range begins {
		flipped := bytes.Clone(data)
		flipped[at+recordHead+1] ^= 1
		assert.Equal(t, &blockFault{at, len(data), i == 2}, check(t, flipped))
	}
}

// Whatever was done to a block: reading it ends, a change is found, and no
// fault is behind the change.
func FuzzBlock(f *testing.F) {
	f.Add(uint16(0), byte(0x55), uint16(1000))
	f.Add(uint16(60), byte(1), uint16(1000))
	f.Add(uint16(3), byte(0x80), uint16(40))
	sound, begins := block(f)
	f.Fuzz(func(t *testing.T, at uint16, mask byte, cut uint16) {
		data := bytes.Clone(sound)
		changed := int(at) < len(data) && mask != 0
		if changed {
			data[at] ^= mask
		}
		if int(cut) < len(data) {
			data = data[:cut]
		}
		fault := check(t, data)
		if changed && int(at) < len(data) && fault == nil && !unsummed(int(at), begins) {
			t.Fatal("a flipped byte was not found")
		}
		if fault != nil && (fault.at > int(at) && changed && fault.at > int(cut) || fault.at >= len(data)) {
			t.Fatalf("found at %d of %d", fault.at, len(data))
		}
	})
}

// unsummed: the length of the subject, and that of the headers, are in no
// checksum.
func unsummed(at int, begins []int) bool {
	for i, begin := range begins {
		if at == begin+20 || at == begin+21 || i == 1 && at >= begin+recordHead+3 && at < begin+recordHead+7 {
			return true
		}
	}
	return false
}
