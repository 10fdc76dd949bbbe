package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
)

func TestMistakesInACallExitWithUsage(t *testing.T) {
	quiet(t)
	for _, args := range []string{
		"unknown", "statu", "status a b", "status --unknown", "-o xml status", "wake", "wake a b", "wake a --timeout soon",
		"wake a --timeout 0s", "sleep", "explain", "logs", "logs a -n many", "events a b", "events -n -1", "health now",
		"version now", "config unknown", "completion unknown", "completion bash now", "--admin ftp://host status",
	} {
		got := invoke(t, strings.Fields(args)...)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Empty(t, got.stdout, args)
		assert.Regexp(t, `^rouse: .+\nSee rouse.* --help\.\n$`, got.stderr, args)
	}
	assert.Contains(t, invoke(t, "statu").stderr, "did you mean status?")
}

func TestHelpIsDataAndNoMistake(t *testing.T) {
	quiet(t)
	for _, args := range []string{"", "--help", "help", "status --help", "config", "completion", "completion bash"} {
		got := invoke(t, strings.Fields(args)...)
		assert.Equal(t, exitOK, got.code, args)
		assert.NotEmpty(t, got.stdout, args)
		assert.Empty(t, got.stderr, args)
	}
}

func TestEveryCommandIsDescribed(t *testing.T) {
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		assert.NotEmpty(t, c.Short, c.CommandPath())
		assert.NotNil(t, c.Args, c.CommandPath()+" does not say what it takes")
		for _, child := range c.Commands() {
			if child.Name() != "help" {
				check(child)
			}
		}
	}
	check(newRoot(io.Discard, io.Discard))
}

func TestExitCodeIsTheOutermostOfTheChain(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{fail(exitUsage, nil), exitOK},
		{plain, exitFailure},
		{fail(exitConfig, plain), exitConfig},
		{fmt.Errorf("more: %w", fail(exitRefused, plain)), exitRefused},
		{fail(exitUnreachable, fail(exitRefused, plain)), exitUnreachable},
	} {
		assert.Equal(t, c.want, exitCode(c.err))
	}
	assert.ErrorIs(t, fail(exitConfig, plain), plain)
	assert.Equal(t, "plain", fail(exitConfig, plain).Error())
}

func TestBadConfigurationExitsWithItsOwnCodeAndPlainLines(t *testing.T) {
	quiet(t)
	require.NoError(t, os.WriteFile("bad.yaml", []byte("lisen: 1\nadmin: {listne: x}\n"), 0o600))
	for _, args := range [][]string{{"config", "check"}, {"status"}} {
		got := invoke(t, append(args, "--config", "bad.yaml")...)
		assert.Equal(t, exitConfig, got.code, args)
		for line := range strings.Lines(got.stderr) {
			assert.True(t, strings.HasPrefix(line, "bad.yaml:"), line)
		}
		assert.Equal(t, 2, strings.Count(got.stderr, "\n"))
	}
}

func TestFilesWithoutAnEndAreRefused(t *testing.T) {
	quiet(t)
	for _, args := range [][]string{{"config", "check", "--config", "/dev/zero"}, {"doctor", "--import", "/dev/zero"}, {"status", "--token-file", "/dev/zero"}} {
		got := invoke(t, args...)
		assert.NotEqual(t, exitOK, got.code, args)
		assert.Contains(t, got.stderr, "has more than 16 MiB", args)
	}
	require.NoError(t, os.WriteFile("rouse.yaml", []byte("admin: {token_file: /dev/zero}\nnats: {url: nats://127.0.0.1:1, creds: /dev/zero}\ntls: {cert: /dev/zero, key: /dev/zero}\n"), 0o600))
	got := invoke(t, "config", "check")
	assert.Equal(t, exitConfig, got.code)
	assert.Equal(t, 3, strings.Count(got.stderr, "has more than 16 MiB"), got.stderr)
}

func TestConfigCheckFindsTheFaultsOfATheme(t *testing.T) {
	quiet(t)
	require.NoError(t, os.WriteFile("own.html", []byte("<p>\n{{.Titel}}"), 0o600))
	require.NoError(t, os.WriteFile("rouse.yaml", []byte("waiting_page: {template: own.html}\n"), 0o600))
	got := invoke(t, "config", "check")
	assert.Equal(t, exitConfig, got.code)
	assert.Contains(t, got.stderr, "rouse.yaml:1:")
	assert.Contains(t, got.stderr, "own.html:2:")
	assert.Contains(t, got.stderr, "Titel")

	require.NoError(t, os.WriteFile("own.html", []byte("<p>{{.Title}}"), 0o600))
	assert.Equal(t, exitOK, invoke(t, "config", "check").code)
}

// The address is that of the flag, else of ROUSE_ADMIN, else of the
// configuration; a token of the configuration is for that address alone.
func TestAdminAddressAndTokenAreFound(t *testing.T) {
	quiet(t)
	server := httptest.NewServer(api.New(api.Config{Token: "s3cret"}, &standIn{}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	require.NoError(t, os.WriteFile("rouse.yaml", fmt.Appendf(nil, "admin: {listen: %q, token_file: %q}\n", address, token), 0o600))

	assert.Equal(t, exitOK, invoke(t, "status").code, "address and token of the configuration")
	got := invoke(t, "status", "--admin", address)
	assert.Equal(t, exitFailure, got.code)
	assert.Contains(t, got.stderr, "--token-file")
	assert.Equal(t, exitOK, invoke(t, "status", "--admin", address, "--token-file", token).code)
	assert.Equal(t, exitFailure, invoke(t, "status", "--admin", address, "--token-file", "none").code)

	t.Setenv("ROUSE_ADMIN", "127.0.0.1:1")
	assert.Equal(t, exitUnreachable, invoke(t, "status").code)
	t.Setenv("ROUSE_ADMIN", server.URL)
	t.Setenv("ROUSE_TOKEN", "s3cret")
	assert.Equal(t, exitOK, invoke(t, "status").code)
	t.Setenv("ROUSE_TOKEN", "wrong")
	t.Setenv("ROUSE_TOKEN_FILE", token)
	assert.Equal(t, exitOK, invoke(t, "status").code)

	t.Setenv("ROUSE_ADMIN", "")
	t.Setenv("ROUSE_ADMIN_LISTEN", "127.0.0.1:1")
	assert.Equal(t, exitUnreachable, invoke(t, "status").code)
}

func TestDialableIsALoopbackAddressForAWildcard(t *testing.T) {
	for listen, want := range map[string]string{
		":8081": "http://127.0.0.1:8081", "0.0.0.0:9": "http://127.0.0.1:9", "[::]:9": "http://127.0.0.1:9",
		"[::1]:9": "http://[::1]:9", "10.0.0.5:9": "http://10.0.0.5:9", "admin:9": "http://admin:9", "odd": "odd",
	} {
		assert.Equal(t, want, dialable(listen))
	}
}

func TestInterruptedCommandSaysSo(t *testing.T) {
	quiet(t)
	server := httptest.NewServer(api.New(api.Config{}, &standIn{}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	assert.Equal(t, exitFailure, run(ctx, []string{"status", "--admin", server.URL}, &stdout, &stderr))
	assert.Equal(t, "rouse: interrupted\n", stderr.String())
}

func TestNamesOfWorkloadsAreCompleted(t *testing.T) {
	rouse := cli(t, &standIn{workloads: []api.Workload{blog(), wiki()}})
	got := rouse("__complete", "status", "")
	assert.Contains(t, got.stdout, "blog\nwiki\n")
	assert.NotContains(t, rouse("__complete", "status", "wiki", "").stdout, "blog")
}
