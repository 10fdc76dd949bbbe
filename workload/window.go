package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Windows are the times of the week in which a workload is kept warm.
type Windows []Window

// A Window is one span of the day on some days of the week, in the local time
// of whatever moment it is asked about. One that ends at or before its start
// ends on the next day.
type Window struct {
	// Days are those on which it begins.
	Days [7]bool // by time.Weekday
	// From and To are minutes since midnight, To up to 1440.
	From, To int
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseWindows reads windows like "Mon-Fri 08:00-18:00, Sat 10:00-14:00". The
// days may be one day, a range, or left out for every day.
func ParseWindows(s string) (Windows, error) {
	var ws Windows
	for part := range strings.SplitSeq(s, ",") {
		w, err := parseWindow(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("%q is not a window like \"Mon-Fri 08:00-18:00\": %w", strings.TrimSpace(part), err)
		}
		ws = append(ws, w)
	}
	return ws, nil
}

func parseWindow(fields []string) (w Window, err error) {
	days, hours := "sun-sat", ""
	switch len(fields) {
	case 1:
		hours = fields[0]
	case 2:
		days, hours = fields[0], fields[1]
	default:
		return w, fmt.Errorf("it needs days and hours, separated by a space")
	}
	if w.Days, err = parseDays(days); err != nil {
		return w, err
	}
	from, to, ok := strings.Cut(hours, "-")
	if !ok {
		return w, fmt.Errorf("%q has no end", hours)
	}
	if w.From, err = parseMinute(from); err != nil {
		return w, err
	}
	if w.To, err = parseMinute(to); err != nil {
		return w, err
	}
	if w.From == 24*60 {
		return w, fmt.Errorf("it begins at 24:00: use 00:00")
	}
	return w, nil
}

func parseDays(s string) (days [7]bool, err error) {
	first, last, isRange := strings.Cut(strings.ToLower(s), "-")
	if !isRange {
		last = first
	}
	from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
	if from < 0 || to < 0 {
		return days, fmt.Errorf("%q is not a day: use Mon, Tue, Wed, Thu, Fri, Sat, Sun or a range of two", s)
	}
	for d := from; ; d = (d + 1) % 7 {
		days[d] = true
		if d == to {
			return days, nil
		}
	}
}

func parseMinute(s string) (int, error) {
	if len(s) != len("08:00") || s[2] != ':' {
		return 0, fmt.Errorf("%q is not a time like 08:00", s)
	}
	for _, i := range []int{0, 1, 3, 4} {
		if s[i] < '0' || s[i] > '9' {
			return 0, fmt.Errorf("%q is not a time like 08:00", s)
		}
	}
	hour, minute := int(s[0]-'0')*10+int(s[1]-'0'), int(s[3]-'0')*10+int(s[4]-'0')
	if minute > 59 || hour*60+minute > 24*60 {
		return 0, fmt.Errorf("%q is not a time of a day", s)
	}
	return hour*60 + minute, nil
}

// At reports whether t is in a window, in t's location, and when the one that
// t is in began; where windows overlap, the one that began last.
func (ws Windows) At(t time.Time) (began time.Time, in bool) {
	for _, w := range ws {
		if from, ok := w.at(t); ok && (!in || from.After(began)) {
			began, in = from, true
		}
	}
	return began, in
}

// at looks at the window that begins on t's day, and at yesterday's, which
// may reach into today.
func (w Window) at(t time.Time) (time.Time, bool) {
	minute, today := t.Hour()*60+t.Minute(), t.Weekday()
	overnight := w.To <= w.From
	if w.Days[today] && minute >= w.From && (overnight || minute < w.To) {
		return w.begins(t, 0), true
	}
	if w.Days[(today+6)%7] && overnight && minute < w.To {
		return w.begins(t, -1), true
	}
	return time.Time{}, false
}

func (w Window) begins(t time.Time, days int) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d+days, w.From/60, w.From%60, 0, 0, t.Location())
}

// String gives the form that ParseWindows reads.
func (w Window) String() string {
	var days []string
	for i := range 7 {
		if d := (i + 1) % 7; w.Days[d] { // weeks begin on Monday
			name := weekdays[d]
			days = append(days, fmt.Sprintf("%s%s %02d:%02d-%02d:%02d",
				strings.ToUpper(name[:1]), name[1:], w.From/60, w.From%60, w.To/60, w.To%60))
		}
	}
	return strings.Join(days, ", ")
}
