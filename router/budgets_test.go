package router

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBudgetsForgetWhoWasNotSeenForLongest(t *testing.T) {
	b, now := &budgets{perMinute: 1}, time.Now()
	regular := netip.MustParseAddr("192.0.2.1")
	assert.Zero(t, b.take(regular, now))
	for i := range uint32(3 * maxBudgets) {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], 10<<24+i)
		assert.Zero(t, b.take(netip.AddrFrom4(a), now))
		if i%1000 == 0 {
			assert.Equal(t, time.Minute, b.take(regular, now), "it is seen all the time")
		}
	}
	assert.LessOrEqual(t, len(b.young)+len(b.old), maxBudgets)
	assert.Zero(t, b.take(regular, now.Add(time.Minute)))
	assert.Positive(t, b.take(netip.Addr{}, now)+b.take(netip.Addr{}, now), "nobody knows who it is")
}
