package router

import "encoding/binary"

// goingAway is the frame of a server that closes of its own accord:
// status 1001, with a reason.
var goingAway = append([]byte{0x88, 2 + byte(len(goingAwayReason)), 1001 >> 8, 1001 & 0xff}, goingAwayReason...)

const goingAwayReason = "closed by the gateway"

// frames counts the bytes of one direction of a tunnel, and follows the
// frames of a WebSocket (RFC 6455, section 5.2), of which it looks at the
// lengths alone. The zero value is at the beginning.
type frames struct {
	bytes int64
	head  [14]byte
	have  int    // bytes of head
	left  uint64 // bytes of the frame's data that are to come
}

// between reports that a frame has just ended, and none begun.
func (f *frames) between() bool { return f.have == 0 && f.left == 0 }

// pass takes in what goes by.
func (f *frames) pass(p []byte, websocket bool) {
	f.bytes += int64(len(p))
	for websocket && len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, uint64(len(p)))
			f.left -= n
			p = p[n:]
			continue
		}
		f.head[f.have] = p[0]
		f.have++
		p = p[1:]
		if f.have >= 2 && f.have == f.headLength() {
			f.left, f.have = f.dataLength(), 0
		}
	}
}

// headLength is that of the head, whose first two bytes are known.
func (f *frames) headLength() int {
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

// dataLength is that of what follows a whole head.
func (f *frames) dataLength() uint64 {
	switch n := f.head[1] & 0x7f; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		return binary.BigEndian.Uint64(f.head[2:])
	default:
		return uint64(n)
	}
}
