package webhook

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The specification's example of a signature.
func TestSignatureOfTheSpecification(t *testing.T) {
	secrets, err := ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		sign(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "0": 0, "soon": 0, "99999999999999999999": 0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		require.Equal(t, want, retryAfter(text), text)
	}
	after := retryAfter(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	require.Greater(t, after, 58*time.Minute)
	require.LessOrEqual(t, after, time.Hour)
}
