//go:build linux

package openloop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Served asks a mimic workload how many requests it has served, this one
// not counted. Between two calls it has served one more, the first.
func Served(ctx context.Context, url string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, fmt.Errorf("served by %s: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("served by %s: %w", url, err)
	}
	defer answer.Body.Close()
	var report struct {
		Served *int64 `json:"served"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&report); err != nil {
		return 0, fmt.Errorf("served by %s: %w", url, err)
	}
	if report.Served == nil {
		return 0, fmt.Errorf("served by %s: the answer is no report of a mimic workload", url)
	}
	return *report.Served - 1, nil
}
