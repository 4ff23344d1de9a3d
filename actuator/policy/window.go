// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // as time.Weekday counts

// Open says whether t falls into one of the policy's windows. A policy without windows is always open.
func (p Policy) Open(t time.Time) bool {
	if len(p.Windows) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Windows, func(w Window) bool { return w.contains(t.UTC()) })
}

func (w Window) contains(t time.Time) bool {
	from, to, err := w.minutes()
	if err != nil {
		return false // validated when loaded; fail closed
	}
	on := func(d time.Weekday) bool { return slices.Contains(w.Days, days[d]) }
	now := t.Hour()*60 + t.Minute()
	if from < to {
		return on(t.Weekday()) && from <= now && now < to
	}
	// Over midnight: the evening part belongs to today, the morning part to a window that began yesterday.
	return on(t.Weekday()) && now >= from || on((t.Weekday()+6)%7) && now < to
}

func (w Window) minutes() (from, to int, err error) {
	if from, err = clock(w.From); err != nil {
		return 0, 0, fmt.Errorf("from: %w", err)
	}
	if to, err = clock(w.To); err != nil {
		return 0, 0, fmt.Errorf("to: %w", err)
	}
	return from, to, nil
}

func clock(s string) (int, error) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day such as \"22:00\"", s)
	}
	return t.Hour()*60 + t.Minute(), nil
}

func (w Window) validate() error {
	if len(w.Days) == 0 {
		return fmt.Errorf("days: empty, and an empty list never means all")
	}
	for i, d := range w.Days {
		if !slices.Contains(days, d) {
			return fmt.Errorf("days[%d]: %q is not one of %s", i, d, strings.Join(days, " "))
		}
	}
	_, _, err := w.minutes()
	return err
}
