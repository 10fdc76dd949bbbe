package natsd

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// repairEvery is how often a store is tried that could not be written.
	repairEvery = 500 * time.Millisecond
	// repairRoom is what must fit before the store is opened again.
	repairRoom = 1 << 20
)

// writeFailed recognizes what the server says when a stream could not be
// written, of a full disk above all. From then on that stream takes nothing,
// though there be space again, until its store is opened anew.
func writeFailed(format string) bool {
	return strings.Contains(strings.ToLower(format), "critical write error")
}

// repair waits until the store can be written, and opens it anew, which takes
// some milliseconds and cuts no connection. It gives up when the server ends.
func (s *Server) repair(down <-chan struct{}) {
	s.log.Error("nats store cannot be written: it takes nothing until there is space", "dir", s.dir)
	tick := time.NewTicker(repairEvery)
	defer tick.Stop()
	for {
		select {
		case <-down:
			return
		case <-s.stopping:
			return
		case <-tick.C:
		}
		if !s.roomy() {
			continue
		}
		heard(s.failed) // what failed until now is mended by this
		if err := s.reopen(); err != nil {
			s.log.Warn("nats store not opened again", "dir", s.dir, "error", err)
			continue
		}
		s.log.Info("nats store can be written again", "dir", s.dir)
		return
	}
}

// roomy reports whether something fits into the store.
func (s *Server) roomy() bool {
	f, err := os.CreateTemp(s.dir, "rouse.room-*")
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, repairRoom))
	return errors.Join(err, f.Close(), os.Remove(f.Name())) == nil
}

func (s *Server) reopen() error {
	if err := s.inner.ShutdownJetStream(); err != nil {
		return err
	}
	return s.inner.EnableJetStream(&server.JetStreamConfig{StoreDir: s.dir, MaxStore: storeMost})
}

func heard(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}
