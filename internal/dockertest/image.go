package dockertest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

const (
	repository = "rouse-test"
	program    = "github.com/rouse-dev/rouse/cmd/loadtest"
	// Port is the one port that the image exposes.
	Port = 8080
)

// Image returns the name of an image that holds the sample workload and
// nothing else: its entry point is the program, so that a container's command
// begins with a subcommand such as "mimic". It is built at most once per test
// binary, and found again by its content by the next one.
func Image(t testing.TB) string {
	t.Helper()
	c := Client(t)
	name, err := buildOnce(c)
	if err != nil {
		t.Fatalf("image of the sample workload: %v", err)
	}
	return name
}

var built struct {
	once sync.Once
	name string
	err  error
}

func buildOnce(c *client.Client) (string, error) {
	built.once.Do(func() { built.name, built.err = build(context.Background(), c) })
	return built.name, built.err
}

func build(ctx context.Context, c *client.Client) (string, error) {
	binary, err := compile(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(binary)
	name := repository + ":" + hex.EncodeToString(sum[:6])
	if _, err := c.ImageInspect(ctx, name); err == nil {
		return name, nil
	} else if !errdefs.IsNotFound(err) {
		return "", fmt.Errorf("look for %s: %w", name, err)
	}
	return name, load(ctx, c, name, binary)
}

// compile builds the program for a container that has nothing else in it.
// Without the version control stamp the result depends on the source alone.
func compile(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "rouse-test-image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "loadtest")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", program, err, said)
	}
	return os.ReadFile(out)
}

// load makes the image from one layer, which needs no builder in the engine.
func load(ctx context.Context, c *client.Client, name string, binary []byte) error {
	layer, err := pack(binary)
	if err != nil {
		return err
	}
	answer, err := c.ImageImport(ctx, image.ImportSource{Source: layer, SourceName: "-"}, name, image.ImportOptions{
		Changes: []string{`ENTRYPOINT ["/loadtest"]`, fmt.Sprintf("EXPOSE %d", Port)},
	})
	if err != nil {
		return fmt.Errorf("import %s: %w", name, err)
	}
	defer answer.Close()
	return imported(answer)
}

func pack(binary []byte) (io.Reader, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	// /tmp is there for workloads that want to write.
	err := errors.Join(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "loadtest", Mode: 0o755, Size: int64(len(binary))}),
	)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	return &layer, w.Close()
}

// imported reads the engine's messages to their end; an error comes as one.
func imported(messages io.Reader) error {
	for dec := json.NewDecoder(messages); ; {
		var m struct{ Error string }
		switch err := dec.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("import: %w", err)
		case m.Error != "":
			return fmt.Errorf("import: %s", m.Error)
		}
	}
}
