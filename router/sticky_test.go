package router_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func TestAClientStaysWithItsReplicaWhileThatServes(t *testing.T) {
	r := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.Sticky, w.Path = true, "/app" }))
	var addresses []string
	for i := range 4 {
		addresses = append(addresses, upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, i) }))
	}
	r.ready("wiki", 1, addresses...)
	first := r.get("wiki.test", "/app/")
	its := body(t, first)
	require.Len(t, first.Cookies(), 1)
	cookie := first.Cookies()[0]
	assert.Equal(t, "rouse_replica", cookie.Name)
	assert.Equal(t, "/app", cookie.Path)
	assert.True(t, cookie.HttpOnly)
	assert.NotContains(t, cookie.Value, "wiki")
	for range 20 {
		res := r.get("wiki.test", "/app/", "Cookie", cookie.String())
		assert.Equal(t, its, body(t, res))
		assert.Empty(t, res.Cookies(), "it has it already")
	}

	r.ready("wiki", 2, addresses...) // the replicas were replaced
	res := r.get("wiki.test", "/app/", "Cookie", cookie.String())
	_ = body(t, res)
	require.Len(t, res.Cookies(), 1)
	assert.NotEqual(t, cookie.Value, res.Cookies()[0].Value)
}

func TestNobodyIsStuckWhoNeedNotBe(t *testing.T) {
	r := newRig(t, rigConfig{}, wiki())
	r.ready("wiki", 1, upstream(t, echo), upstream(t, echo))
	res := r.get("wiki.test", "/")
	_ = body(t, res)
	assert.Empty(t, res.Cookies())
}
