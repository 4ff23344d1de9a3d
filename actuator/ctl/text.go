// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/trainyard/trainyard/actuator/api/shadow"
	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Times are printed in UTC: switches, journal and Prometheus speak UTC too.
const (
	stamp = "2006-01-02 15:04:05"
	clock = "15:04:05.000"
)

// story writes text and keeps the first error, so that the layout reads as one.
type story struct {
	w      io.Writer
	indent string // of tables
	err    error
}

func (s *story) line(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintln(s.w, clean(fmt.Sprintf(format, args...)))
	}
}

// row joins cells for a tabwriter. A trailing empty cell would leave blanks at the end of a line.
func row(cells []string) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = clean(c)
	}
	return strings.Join(out, "\t")
}

// table writes rows of cells in columns.
func (s *story) table(rows ...[]string) {
	if s.err != nil {
		return
	}
	t := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, s.indent+row(r))
	}
	s.err = t.Flush()
}

// clean takes control characters out of what others wrote, alerts above all: a terminal would obey them.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' {
			return '?'
		}
		return r
	}, s)
}

func incidentTable(w io.Writer, vs []flow.View) error {
	if len(vs) == 0 {
		_, err := fmt.Fprintln(w, "no incidents")
		return err
	}
	s := &story{w: w}
	rows := [][]string{{"ID", "OPENED", "TARGET", "STATE", "MODE", "CAUSE", "WHY"}}
	for _, v := range vs {
		cause := "-"
		if v.Diagnosis != nil {
			cause = string(v.Diagnosis.Cause)
		}
		rows = append(rows, []string{string(v.ID), v.OpenedAt.UTC().Format(stamp), v.Target, string(v.State), dash(string(v.Mode)), cause, dash(cut(v.Reason, 80))})
	}
	s.table(rows...)
	return s.err
}

// explain tells one incident from the alert to where it stands. Each part is there only if the incident got that far.
func explain(w io.Writer, v flow.View) error {
	s := &story{w: w, indent: "  "}
	s.line("%s: %s %s", v.ID, v.Goal, v.Target)
	s.line("")
	state := string(v.State)
	switch {
	case v.EndedAt != nil:
		state += " at " + v.EndedAt.UTC().Format(stamp)
	case v.Deadline != nil:
		state += ", until " + v.Deadline.UTC().Format(stamp) + " at the latest"
	}
	rows := [][]string{
		{"state", state}, {"why", dash(v.Reason)}, {"mode", dash(string(v.Mode))},
		{"policy", fmt.Sprintf("%s (%s)", v.Policy, v.PolicyHash)}, {"opened", v.OpenedAt.UTC().Format(stamp)},
	}
	if v.ApprovedBy != "" {
		rows = append(rows, []string{"approved by", v.ApprovedBy})
	}
	s.table(rows...)
	s.alerts(v.Alerts)
	s.cause(v)
	s.candidates(v)
	s.verdict(v.Verdict)
	s.steps(v)
	s.verification("Verification", v.Verification)
	s.verification("Follow-up, with nothing done", v.FollowUp)
	s.timeline(v.Timeline)
	return s.err
}

func (s *story) title(format string, args ...any) {
	s.line("")
	s.line(format, args...)
}

func (s *story) alerts(alerts []flow.AlertEvent) {
	s.title("Alerts")
	var rows [][]string
	for _, a := range alerts {
		state := "firing since"
		if !a.Firing {
			state = "over, began"
		}
		rows = append(rows, []string{a.Name, state + " " + a.StartsAt.UTC().Format(stamp), "by " + a.Source, a.Summary})
	}
	s.table(rows...)
}

func (s *story) cause(v flow.View) {
	d := v.Diagnosis
	if d == nil {
		s.title("Cause: not looked for")
		return
	}
	s.title("Cause: %s", d.Cause)
	s.table([]string{d.Reason})
	if d.Culprit != "" {
		s.table([]string{"to blame: " + d.Culprit})
	}
	rows := [][]string{{"EVIDENCE", "VALUE", "LIMIT"}}
	for _, e := range d.Evidence {
		rows = append(rows, []string{e.What, quantity(e.Value, e.Unit), quantity(e.Limit, e.Unit)})
	}
	if len(d.Evidence) > 0 {
		s.table(rows...)
	}
	if v.MatrixSource != "" {
		explains := "explains the present load"
		if !v.Explains {
			explains = "does not explain the present load"
		}
		s.table([]string{"traffic: " + v.MatrixSource + "; " + explains})
	}
	if !d.Cause.Reroutable() && d.Cause != fault.NotCongested {
		s.table([]string{"no route cures this"})
	}
}

func (s *story) candidates(v flow.View) {
	if len(v.Candidates) == 0 {
		return
	}
	s.title("Candidates, each simulated")
	head := []string{"", "PLAN", "GAIN", "BUSIEST LINK AFTER", "PATHS LEFT", "INTERRUPTION"}
	jobs := v.Candidates[0].Forecast.Jobs
	for _, j := range jobs {
		head = append(head, "STEP OF "+strings.ToUpper(j.JobID))
	}
	rows := [][]string{head}
	for _, c := range v.Candidates {
		mark := " "
		if v.Chosen != nil && chosen(*v.Chosen, c) {
			mark = "*"
		}
		f := c.Forecast
		cells := []string{mark, c.Summary, percent(f.Gain), busiest(f.Links), "-", "-"}
		if !c.DoesNothing() {
			cells[4], cells[5] = fmt.Sprint(f.PathsLeft), fmt.Sprintf("<= %.2f s", f.BlackoutBoundS)
		}
		for _, j := range jobs {
			cell := "-"
			if i := slices.IndexFunc(f.Jobs, func(x plan.JobForecast) bool { return x.JobID == j.JobID }); i >= 0 {
				x := f.Jobs[i]
				cell = fmt.Sprintf("%s -> %s", seconds(x.StepSeconds), band(x.After))
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	s.table(rows...)
	if v.Chosen == nil || v.Chosen.DoesNothing() {
		s.table([]string{"chosen: to do nothing"})
	}
	if v.Choice != "" {
		s.table([]string{"because: " + v.Choice})
	}
	if r := v.Candidates[0].Forecast.Regime; r != "" {
		s.table([]string{"model: " + r})
	}
}

// chosen says whether two plans have the same steps.
func chosen(a, b plan.Plan) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y plan.Step) bool { return x.Route.String() == y.Route.String() })
}

func busiest(links []plan.LinkForecast) string {
	if len(links) == 0 {
		return "-"
	}
	l := slices.MaxFunc(links, func(a, b plan.LinkForecast) int {
		switch {
		case a.After.P50 < b.After.P50:
			return -1
		case a.After.P50 > b.After.P50:
			return 1
		}
		return b.Link.Compare(a.Link)
	})
	return fmt.Sprintf("%s %s -> %s", l.Link, percent(l.Now), percent(l.After.P50))
}

func (s *story) verdict(v *guard.Verdict) {
	if v == nil {
		return
	}
	s.title("Verdict: %s", v.Decision)
	if v.Would != v.Decision {
		s.table([]string{"in mode act: " + string(v.Would)})
	}
	var rows [][]string
	for _, c := range v.Checks {
		mark := " "
		if c.Decision != guard.Allow {
			mark = "!"
		}
		rows = append(rows, []string{mark, c.Name, string(c.Decision), c.Reason})
	}
	s.table(rows...)
}

func (s *story) steps(v flow.View) {
	if len(v.Steps) == 0 {
		return
	}
	s.title("Steps")
	for i, st := range v.Steps {
		s.line("  %d. %s", i+1, st.Step)
		s.line("     %s", st.Why)
		switch {
		case st.Issued.IsZero():
			s.line("     not begun")
		case st.Outcome == "":
			s.line("     begun at %s", st.Issued.UTC().Format(clock))
		default:
			s.line("     %s at %s, %s: %s", st.Outcome, st.At.UTC().Format(clock), times(st.Attempts), dash(st.Detail))
		}
		if st.Undone {
			s.line("     undone at %s", st.UndoneAt.UTC().Format(clock))
		}
	}
	for _, r := range v.Routes {
		s.line("  desired: %s (%s since %s)", r.Route, r.State, r.Since.UTC().Format(stamp))
	}
}

func (s *story) verification(title string, v *flow.Verification) {
	if v == nil {
		return
	}
	s.title("%s: %s", title, v.Outcome)
	s.table([]string{v.Reason})
	if len(v.Figures) == 0 {
		return
	}
	rows := [][]string{{"FIGURE", "BEFORE", "FORECAST", "AFTER"}}
	for _, f := range v.Figures {
		forecast := "-"
		if f.Forecast != 0 {
			forecast = quantity(f.Forecast, f.Unit)
		}
		rows = append(rows, []string{f.What, quantity(f.Before, f.Unit), forecast, quantity(f.After, f.Unit)})
	}
	s.table(rows...)
}

func (s *story) timeline(entries []flow.Entry) {
	s.title("Timeline (UTC)")
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, []string{e.At.UTC().Format(clock), e.What, e.Why})
	}
	s.table(rows...)
}

func shadowText(w io.Writer, r shadow.Report) error {
	s := &story{w: w, indent: "  "}
	s.line("What watch mode would have done from %s to %s (UTC)", r.Since.UTC().Format(stamp), r.Until.UTC().Format(stamp))
	s.line("")
	s.table(
		[]string{"incidents", fmt.Sprint(r.Incident)},
		[]string{"would have acted", fmt.Sprint(r.Would[shadow.Act])},
		[]string{"would have asked", fmt.Sprint(r.Would[shadow.Ask])},
		[]string{"would have refused", fmt.Sprint(r.Would[shadow.Refuse])},
		[]string{"had nothing to do", fmt.Sprint(r.Would[shadow.Nothing])},
	)
	s.title("Looked at again afterwards, of those that would have acted or asked")
	s.table(
		[]string{"the congestion stayed, as forecast", fmt.Sprint(r.Followed[shadow.Right])},
		[]string{"it went away by itself", fmt.Sprint(r.Followed[shadow.Needless])},
		[]string{"unclear", fmt.Sprint(r.Followed[shadow.Unclear])},
		[]string{"not looked at", fmt.Sprint(r.Followed[shadow.NotLooked])},
	)
	if r.RightRatio != nil {
		s.table([]string{fmt.Sprintf("right in %s of the clear cases", percent(*r.RightRatio))})
	}
	if len(r.Lines) > 0 {
		s.line("")
		rows := [][]string{{"ID", "OPENED", "TARGET", "CAUSE", "WOULD", "GAIN", "AFTERWARDS", "PLAN OR REASON"}}
		for _, l := range r.Lines {
			gain, what := "-", l.Reason
			if l.Plan != "" {
				gain, what = percent(l.Gain), l.Plan
			}
			rows = append(rows, []string{l.ID, l.OpenedAt.UTC().Format(stamp), l.Target, dash(l.Cause), string(l.Would), gain, string(l.Followed), cut(what, 100)})
		}
		s.table(rows...)
	}
	return s.err
}

func dash(s string) string { return or(s, "-") }

// cut shortens s to n characters, marked.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-3]) + "..."
}

func percent(r float64) string { return fmt.Sprintf("%.0f %%", 100*r) }

func seconds(s float64) string {
	return (time.Duration(s*1e6) * time.Microsecond).Round(time.Millisecond).String()
}

// band prints a forecast as its middle and, where it has any spread, its ends.
func band(b plan.Band) string {
	if b.P90-b.P10 < 0.005*b.P50 {
		return seconds(b.P50)
	}
	return fmt.Sprintf("%s (%s..%s)", seconds(b.P50), seconds(b.P10), seconds(b.P90))
}

func quantity(v float64, unit string) string {
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, unit))
}

func times(n int) string {
	if n <= 1 {
		return "first try"
	}
	return fmt.Sprintf("after %d tries", n)
}
