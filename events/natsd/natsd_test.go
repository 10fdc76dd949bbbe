package natsd_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/events/natsd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, opts natsd.Options) *natsd.Server {
	t.Helper()
	if opts.StoreDir == "" {
		opts.StoreDir = t.TempDir()
	}
	s, err := natsd.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	return s
}

func dial(t *testing.T, address string, opts ...nats.Option) (*nats.Conn, error) {
	t.Helper()
	closed := make(chan struct{})
	nc, err := nats.Connect(address, append(opts, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))...)
	if err == nil {
		t.Cleanup(func() { nc.Close(); <-closed })
	}
	return nc, err
}

func TestEmbeddedServerListensOnlyWhenAsked(t *testing.T) {
	s := start(t, natsd.Options{})
	assert.Nil(t, s.Addr())
	assert.Empty(t, s.URL())
	nc, err := dial(t, "", nats.InProcessServer(s))
	require.NoError(t, err)
	assert.NoError(t, nc.Flush())

	s = start(t, natsd.Options{Listen: "127.0.0.1:0"})
	nc, err = dial(t, s.URL())
	require.NoError(t, err)
	assert.NoError(t, nc.Flush())
}

func TestStoreServesOneServerAtATime(t *testing.T) {
	dir := t.TempDir()
	first := start(t, natsd.Options{StoreDir: dir})
	_, err := natsd.Start(t.Context(), natsd.Options{StoreDir: dir})
	require.ErrorIs(t, err, natsd.ErrStoreInUse)
	assert.ErrorContains(t, err, dir)

	first.Shutdown()
	start(t, natsd.Options{StoreDir: dir})
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for name, tc := range map[string]struct {
		opts natsd.Options
		says string
	}{
		"port in use":        {natsd.Options{StoreDir: t.TempDir(), Listen: taken.Addr().String()}, "address already in use"},
		"address malformed":  {natsd.Options{StoreDir: t.TempDir(), Listen: "nowhere"}, `nats listen address "nowhere"`},
		"store is a file":    {natsd.Options{StoreDir: file}, "nats store directory cannot be used"},
		"store below a file": {natsd.Options{StoreDir: filepath.Join(file, "data")}, "nats store directory cannot be used"},
		"no store":           {natsd.Options{}, "nats store directory cannot be used: it is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := natsd.Start(t.Context(), tc.opts)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestFailedStartLeavesTheStoreFree(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	_, err = natsd.Start(t.Context(), natsd.Options{StoreDir: dir, Listen: taken.Addr().String()})
	require.Error(t, err)
	start(t, natsd.Options{StoreDir: dir})
}

func TestRunEndsWithItsContext(t *testing.T) {
	s := start(t, natsd.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	cancel()
	require.NoError(t, <-done)
	_, err := s.InProcessConn()
	assert.Error(t, err)
}

func TestTokenAndUsersAreAsked(t *testing.T) {
	s := start(t, natsd.Options{Listen: "127.0.0.1:0", Token: "open sesame", Users: []natsd.User{
		{Name: "reader", Password: "pw", Publish: []string{}, Subscribe: []string{"news.>"}},
	}})
	addr := s.Addr().String()

	for _, refused := range []string{"nats://" + addr, "nats://wrong@" + addr, "nats://reader:no@" + addr, "nats://nobody:@" + addr} {
		_, err := dial(t, refused)
		assert.ErrorIs(t, err, nats.ErrAuthorization, refused)
	}
	_, err := dial(t, fmt.Sprintf("nats://%s@%s", url.PathEscape("open sesame"), addr))
	assert.NoError(t, err)

	user, password := s.Credentials()
	_, err = dial(t, "", nats.InProcessServer(s), nats.UserInfo(user, password))
	assert.NoError(t, err)
}

func TestUserKeepsToItsSubjects(t *testing.T) {
	s := start(t, natsd.Options{Listen: "127.0.0.1:0", Users: []natsd.User{
		{Name: "reader", Password: "pw", Publish: []string{}, Subscribe: []string{"news.>"}},
	}})
	refused := make(chan error, 2)
	nc, err := dial(t, "nats://reader:pw@"+s.Addr().String(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	_, err = nc.SubscribeSync("news.today")
	require.NoError(t, err)
	require.NoError(t, nc.Publish("news.today", nil))
	require.NoError(t, nc.Flush())
	require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)
}

func ExampleStart() {
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := natsd.Start(context.Background(), natsd.Options{StoreDir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown()
	fmt.Printf("listens: %t\n", s.Addr() != nil)
	// Output: listens: false
}
