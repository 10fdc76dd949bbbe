package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	secretPrefix = "whsec_"
	// secretLeast is how long a key is at least, in bytes, as the
	// specification asks.
	secretLeast = 24
)

// ParseSecrets reads the text of a file with secrets, one a line: base64 of at
// least 24 random bytes, with or without whsec_ before it. Empty lines and
// those that begin with '#' do not count. An error names the line, and nothing
// of the secret.
func ParseSecrets(text string) ([][]byte, error) {
	var secrets [][]byte
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, secretPrefix))
		if err != nil {
			return nil, fmt.Errorf("line %d is not base64", number)
		}
		if len(secret) < secretLeast {
			return nil, fmt.Errorf("line %d has %d bytes where %d are the least", number, len(secret), secretLeast)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return nil, errors.New("it has no secret")
	}
	return secrets, nil
}

// sign gives the header's value: a signature for each secret, in their order.
func sign(secrets [][]byte, id, timestamp string, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
