package workload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

// monday is the first of a week, in a zone with summer time.
func monday(t *testing.T, hour, minute int) time.Time {
	t.Helper()
	zone := time.FixedZone("CET", 3600)
	return time.Date(2026, 3, 2, hour, minute, 0, 0, zone)
}

func TestAWindowHoldsFromItsFirstMinuteToBeforeItsLast(t *testing.T) {
	ws, err := workload.ParseWindows("Mon-Fri 08:00-18:00, Sat 10:00-14:00")
	require.NoError(t, err)
	day := 24 * time.Hour
	for at, want := range map[time.Time]bool{
		monday(t, 7, 59):                     false,
		monday(t, 8, 0):                      true,
		monday(t, 17, 59):                    true,
		monday(t, 18, 0):                     false,
		monday(t, 12, 0).Add(4 * day):        true,  // Friday
		monday(t, 9, 0).Add(5 * day):         false, // Saturday
		monday(t, 10, 0).Add(5 * day):        true,
		monday(t, 12, 0).Add(6 * day):        false, // Sunday
		monday(t, 12, 0).Add(-1 * day):       false,
		monday(t, 12, 0).Add(-3 * day).UTC(): true,
		monday(t, 8, 30).Add(-3 * day).UTC(): false, // 07:30 there
		monday(t, 12, 0).Add(365 * day):      true,  // a Tuesday
	} {
		_, in := ws.At(at)
		assert.Equal(t, want, in, at)
	}
}

func TestAWindowMayReachIntoTheNextDay(t *testing.T) {
	ws, err := workload.ParseWindows("Sun 22:00-06:00")
	require.NoError(t, err)
	began, in := ws.At(monday(t, 5, 59))
	assert.True(t, in)
	assert.Equal(t, monday(t, 22, 0).AddDate(0, 0, -1), began)
	_, in = ws.At(monday(t, 6, 0))
	assert.False(t, in)
	_, in = ws.At(monday(t, 22, 0))
	assert.False(t, in, "Monday evening")
}

func TestWindowsWithoutDaysAreForEveryDayAndDaysMayWrap(t *testing.T) {
	for text, want := range map[string]bool{
		"08:00-09:00": true, "Sat-Mon 08:00-09:00": true, "tue-sun 08:00-09:00": false,
		"Mon 00:00-24:00": true, "Mon 00:00-00:00": true, "Mon 08:30-08:30": true,
	} {
		ws, err := workload.ParseWindows(text)
		require.NoError(t, err, text)
		_, in := ws.At(monday(t, 8, 45))
		assert.Equal(t, want, in, text)
	}
}

func TestABadWindowIsRefusedWithTheReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "needs days and hours",
		"Mon-Fri":                `"Mon" is not a time`,
		"Mon 08:00":              "has no end",
		"Mon 8:00-9:00":          `"8:00" is not a time like 08:00`,
		"Mon 08:00-24:01":        "not a time of a day",
		"Mon 08:60-09:00":        "not a time of a day",
		"Mon 24:00-01:00":        "use 00:00",
		"Mo-Fr 08:00-18:00":      `"Mo-Fr" is not a day`,
		"Mon 08:00-18:00,":       "needs days and hours",
		"Mon Tue 08:00-18:00":    "needs days and hours",
		"Mon-Tue-Wed 08:00-9:00": "is not a day",
	} {
		_, err := workload.ParseWindows(text)
		assert.ErrorContains(t, err, "is not a window", text)
		assert.ErrorContains(t, err, want, text)
	}
}

func FuzzParseWindows(f *testing.F) {
	for _, s := range []string{"Mon-Fri 08:00-18:00", "22:00-06:00", "Sat-Sun 00:00-24:00,Mon 01:00-02:00", "", ",", "Mon 24:00-00:00"} {
		f.Add(s, int64(0))
	}
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		ws, err := workload.ParseWindows(s)
		if err != nil {
			return
		}
		require.NotEmpty(t, ws)
		at := time.Unix(unix%(1<<33), 0).UTC()
		began, in := ws.At(at)
		if in {
			require.False(t, began.After(at), "a window that is on has begun")
			require.Less(t, at.Sub(began), 24*time.Hour)
		}
		for _, w := range ws {
			again, err := workload.ParseWindows(w.String())
			require.NoError(t, err)
			_, want := workload.Windows{w}.At(at)
			_, got := again.At(at)
			require.Equal(t, want, got, w.String())
		}
	})
}

func ExampleParseWindows() {
	ws, _ := workload.ParseWindows("Mon-Fri 08:00-18:00")
	began, in := ws.At(time.Date(2026, 3, 3, 12, 30, 0, 0, time.UTC))
	fmt.Println(in, began.Format("Mon 15:04"))
	// Output: true Tue 08:00
}
