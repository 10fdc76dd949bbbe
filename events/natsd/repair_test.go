package natsd_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events/natsd"
)

func TestStoreTakesMessagesAgainWhenThereIsSpace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a disk of its own needs root")
	}
	disk := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"))
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	s := start(t, natsd.Options{StoreDir: filepath.Join(disk, "store")})
	nc, err := dial(t, "", nats.InProcessServer(s))
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	publish := func(data []byte) (*jetstream.PubAck, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return js.Publish(ctx, "s", data)
	}
	kept := uint64(0)
	for err == nil {
		var ack *jetstream.PubAck
		if ack, err = publish(make([]byte, 256<<10)); err == nil {
			kept = ack.Sequence
		}
	}
	require.Positive(t, kept)

	require.NoError(t, syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	var ack *jetstream.PubAck
	require.Eventually(t, func() bool {
		ack, err = publish([]byte("again"))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, kept+1, ack.Sequence, "nothing that was acknowledged is lost")
	assert.True(t, nc.IsConnected())
	assert.Zero(t, nc.Stats().Reconnects)
}
