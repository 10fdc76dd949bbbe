package coldstart

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// BareTimes are the moments of one start without Rouse.
type BareTimes struct {
	// Start is when the platform was asked, Started when it had returned.
	Start, Started time.Time
	// Listening is the app's own listen(), Answered its first HTTP answer.
	Listening, Answered time.Time
}

// Bare is one start without Rouse, in milliseconds.
type Bare struct {
	// Total is from the start call to the first HTTP answer.
	Total float64 `json:"total_ms"`
	// App is from the start call to the app's own listen().
	App float64 `json:"app_ms"`
	// Call is the platform's start call.
	Call float64 `json:"call_ms"`
	// AfterListen is what polling each millisecond finds out later than the
	// app listens, or than the start call returns.
	AfterListen float64 `json:"after_listen_ms"`
}

func (b BareTimes) bare() *Bare {
	usable := b.Listening
	if b.Started.After(usable) {
		usable = b.Started
	}
	return &Bare{
		Total:       ms(b.Answered.Sub(b.Start)),
		App:         ms(b.Listening.Sub(b.Start)),
		Call:        ms(b.Started.Sub(b.Start)),
		AfterListen: ms(b.Answered.Sub(usable)),
	}
}

// firstAnswer asks the address each millisecond until a mimic answers.
func firstAnswer(ctx context.Context, address string, times *BareTimes) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{Timeout: 250 * time.Millisecond}).DialContext,
	}}
	for {
		report, err := ask(ctx, client, "http://"+address+"/")
		if err == nil {
			times.Answered = time.Now()
			times.Listening = time.Unix(0, report.ListeningAt)
			return nil
		}
		if !pause(ctx, time.Millisecond) {
			return fmt.Errorf("no answer at %s: %w", address, err)
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) (report mimic.Report, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return report, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return report, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return report, err
	}
	return report, decodeReport(body, &report)
}
