package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
)

func ExampleClient_Wake() {
	server := httptest.NewServer(api.New(api.Config{}, &backend{})) // a running Rouse
	defer server.Close()

	c, err := client.New(client.Config{Base: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := c.Wake(context.Background(), "wiki", 30*time.Second)
	fmt.Println(w.Name, w.Phase, err)
	_, err = c.Wake(context.Background(), "blog", 0)
	fmt.Println(errors.Is(err, api.ErrNoWorkload))
	// Output:
	// wiki ready <nil>
	// true
}
