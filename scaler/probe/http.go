package probe

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
)

// succeeds asks for path and takes an answer of 2xx or 3xx. A redirect is an
// answer and is not followed: it may lead anywhere.
func succeeds(conn net.Conn, host, path string) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return fmt.Errorf("not asked: %w", err)
	}
	if err := ask(conn, req.Host, req.URL.RequestURI()); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	drain(conn, resp.Body)
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("answer to GET %s: %s", path, resp.Status)
	}
	return nil
}
