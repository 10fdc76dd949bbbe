package docker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
)

// maxOutput bounds what is read of one container's output, in bytes.
const maxOutput = 16 << 20

// output reads the last lines that the container wrote since the given
// moment, to both of its outputs, each with its time in front.
func (e *engine) output(ctx context.Context, r record, since time.Time, lines int) ([]string, error) {
	within, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	from, err := e.api().ContainerLogs(within, r.ID, container.LogsOptions{
		ShowStdout: true, ShowStderr: true, Timestamps: true,
		Since: engineTime(since), Tail: strconv.Itoa(lines),
	})
	if err != nil {
		return nil, e.tell(ctx, err)
	}
	defer from.Close()
	text, err := plain(io.LimitReader(from, maxOutput), r.tty)
	if err != nil {
		return nil, e.tell(ctx, err)
	}
	return splitLines(text), nil
}

// plain is the text of both outputs in the order of their writing. That of a
// terminal, which has but one, comes as it is; all other in frames.
func plain(from io.Reader, tty bool) ([]byte, error) {
	var text bytes.Buffer
	var err error
	if tty {
		_, err = io.Copy(&text, from)
	} else {
		err = unframe(&text, from)
	}
	return text.Bytes(), err
}

// A frame begins with the output's number, three zeros, and the length of
// what follows.
const (
	frameHeader = 8
	frameLength = 4 // where the length is
	faultFrame  = 3 // the number of the engine's own messages
)

// unframe copies what is in the frames. A last one that is cut off is what
// maxOutput leaves of it, and no error.
func unframe(to io.Writer, from io.Reader) error {
	var header [frameHeader]byte
	for {
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return unlessCut(err)
		}
		into := to
		var fault strings.Builder
		if header[0] == faultFrame {
			into = &fault
		}
		if _, err := io.CopyN(into, from, int64(binary.BigEndian.Uint32(header[frameLength:]))); err != nil {
			return unlessCut(err)
		}
		if header[0] == faultFrame {
			return fmt.Errorf("the engine cannot read the output: %s", fault.String())
		}
	}
}

func unlessCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// splitLines makes lines of text that is valid UTF-8, without their ends.
func splitLines(text []byte) []string {
	whole := strings.TrimSuffix(strings.ToValidUTF8(string(text), "\uFFFD"), "\n")
	if whole == "" {
		return nil
	}
	lines := strings.Split(whole, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r")
	}
	return lines
}
