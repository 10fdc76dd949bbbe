package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const soundSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"

func TestWebhooksAreReadAndShown(t *testing.T) {
	secret := secretFile(t, soundSecret)
	path := configFile(t, `webhooks:
  - url: https://user:hunter2@hooks.example.com/x,y?a=b
    secret_file: `+secret+`
    kinds: [ready, failed]
    workloads: wiki
  - &home
    name: home
    url: http://[::1]:9000/
    secret_file: `+secret+`
`)
	c, err := loadConfig(path, nil, nil)
	require.NoError(t, err)
	require.Len(t, c.Webhooks, 2)
	assert.Equal(t, WebhookConfig{
		Name: "hooks.example.com", URL: "https://user:hunter2@hooks.example.com/x,y?a=b", SecretFile: secret,
		Kinds: []workload.EventKind{workload.EventReady, workload.EventFailed}, Workloads: []string{"wiki"}, place: path + ":2:5",
	}, c.Webhooks[0])
	assert.Equal(t, "home", c.Webhooks[1].Name)

	for _, args := range [][]string{{"show"}, {"show", "--origin"}} {
		shown, err := runConfig(c, nil, args...)
		require.NoError(t, err)
		assert.NotContains(t, shown, "hunter2")
		back, err := loadConfig(configFile(t, shown), nil, nil)
		require.NoError(t, err, shown)
		assert.Equal(t, webhookViews(c.Webhooks), webhookViews(back.Webhooks))
		assert.Empty(t, needRestart(back, back))
	}
	data, err := json.Marshal(c.view())
	require.NoError(t, err)
	assert.Contains(t, string(data), `"url":"https://user:xxxxx@hooks.example.com/x,y?a=b"`)
	assert.NotContains(t, string(data), "hunter2")
	without, err := loadConfig(configFile(t, "listen: \":8080\"\n"), nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"webhooks"}, needRestart(without, c))
}

func TestWebhooksThatCannotBeUsedAreTold(t *testing.T) {
	secret := secretFile(t, soundSecret)
	for text, want := range map[string]string{
		"webhooks: https://a":                                             ":1:11: webhooks is not a list (write - url: … for each webhook)",
		"webhooks: [https://a]":                                           ":1:12: a webhook is not a mapping (write - url: …)",
		"webhooks: [{}]":                                                  ":1:12: a webhook has no url (add url: https://…)",
		"webhooks: [{url: https://a}]":                                    ":1:12: a webhook has no secret_file (add secret_file: with a file that `openssl rand -base64 32` has written)",
		"webhooks: [{uri: https://a}]":                                    `:1:13: unknown key "uri" (did you mean url?)`,
		"webhooks: [{url: 'a:hunter2/b'}]":                                ":1:18: url: it is not the URL of a receiver (write https://host/path or http://host/path)",
		"webhooks: [{url: 'https://a', kinds: [sleept]}]":                 `did you mean slept?`,
		"webhooks: [{url: 'https://a', workloads: ['a/b']}]":              "workloads",
		"webhooks: [{url: 'http://[::1]/', secret_file: " + secret + "}]": ":1:12: the host of url is no name (add name: …)",
		"webhooks: [{url: 'https://a/1', secret_file: " + secret + "}, {url: 'https://a/2', secret_file: " + secret + "}]": "the name a is that of another webhook",
		"webhooks: [{url: 'https://a', secret_file: /does/not/exist}]":                                                     ":1:12: secret_file /does/not/exist: no such file or directory (let `openssl rand -base64 32` write it)",
		"webhooks: [{url: 'https://a', secret_file: " + secretFile(t, "hunter2") + "}]":                                    "is not base64",
		"webhooks: [{url: 'https://a', secret_file: " + secretFile(t, "") + "}]":                                           "it has no secret",
	} {
		path := configFile(t, text+"\n")
		_, err := loadConfig(path, nil, nil)
		require.Error(t, err, text)
		require.Equal(t, exitConfig, exitCode(err))
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Contains(t, err.Error(), want, text)
		assert.True(t, strings.HasPrefix(err.Error(), path+":1:"), err.Error())
	}
	for _, nothing := range []string{"webhooks:\n", "webhooks: []\n"} {
		c, err := loadConfig(configFile(t, nothing), nil, nil)
		require.NoError(t, err)
		assert.Empty(t, c.Webhooks)
	}
}
