package main

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

type noWaker struct{}

func (noWaker) Wake(context.Context, workload.Wake) error { return nil }

// A place proves that whoever was there before is dead. So only a gateway has
// one that listens where no other can.
func TestAPlaceIsToldWhereNoOtherGatewayCanBe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	g := &gateway{act: activator.New(activator.Config{}, noWaker{}), listener: l}
	require.Equal(t, placeOf(l.Addr()), g.activity().Place)
	g.leaving.Store(true)
	require.Empty(t, g.activity().Place, "it no longer listens")
	shared := &gateway{act: g.act, listener: l, shared: true}
	require.Empty(t, shared.activity().Place, "another may listen there too")
}
