// SPDX-License-Identifier: Apache-2.0

// Package plan holds what trainyard means to do, as data: routes, steps with their inverses, and the forecast
// that goes with them. A plan can be printed, simulated, approved, applied and inverted; it does nothing itself.
package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Kind says how a route chooses among paths.
type Kind string

// The kinds of route that a driver can be asked for (field rule 6).
const (
	Pin     Kind = "pin"     // one next hop, recursive: the far end of the last fabric link of the path (field rule 1)
	Weights Kind = "weights" // several direct next hops with small integer weights
)

// NextHop is one next hop of a route. Weight is 0 for a pin and 1..100 for weights.
type NextHop struct {
	Addr   netip.Addr `json:"addr"`
	Weight uint8      `json:"weight,omitempty"`
}

// RouteKey identifies a desired route: no two routes of one switch have the same prefix.
type RouteKey struct {
	Switch string       `json:"switch"`
	Prefix netip.Prefix `json:"prefix"`
}

// String spells the key for people and logs.
func (k RouteKey) String() string { return k.Prefix.String() + " at " + k.Switch }

// Route is one entry of the desired-state table: traffic of Switch to Prefix takes NextHops.
type Route struct {
	Switch   string       `json:"switch"`
	Prefix   netip.Prefix `json:"prefix"`
	Kind     Kind         `json:"kind"`
	NextHops []NextHop    `json:"next_hops"`
}

// Key is the route's identity.
func (r Route) Key() RouteKey { return RouteKey{r.Switch, r.Prefix} }

// String spells the route as one line.
func (r Route) String() string {
	hops := make([]string, len(r.NextHops))
	for i, h := range r.NextHops {
		hops[i] = h.Addr.String()
		if r.Kind == Weights {
			hops[i] += fmt.Sprintf(" weight %d", h.Weight)
		}
	}
	return fmt.Sprintf("%s %s %s via %s", r.Switch, r.Kind, r.Prefix, strings.Join(hops, ", "))
}

// Step is one write to one switch. The inverse is Before, or a withdrawal when Before is nil.
type Step struct {
	Route  Route  `json:"route"`
	Before *Route `json:"before,omitempty"` // our own route that it replaces
	Why    string `json:"why"`
}

// Plan is an ordered list of steps with the reason and the forecast. A plan without steps means "do nothing".
type Plan struct {
	Target   ident.Port `json:"target"`
	Summary  string     `json:"summary"`
	Steps    []Step     `json:"steps"`
	Forecast Forecast   `json:"forecast"`
}

// DoesNothing says that the plan has no steps.
func (p Plan) DoesNothing() bool { return len(p.Steps) == 0 }

// Band is a forecast value with its spread over what is not known (hash decisions, assignments).
type Band struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
}

// LinkForecast is the use of one directed link, as a ratio of its speed, now and after the plan.
type LinkForecast struct {
	Link  ident.Port `json:"link"`
	Now   float64    `json:"now"`   // measured
	Model float64    `json:"model"` // the model's figure for now: must explain the measured one
	After Band       `json:"after"`
}

// JobForecast is what the plan does to one job. Ratios are after / now; below 1 is faster.
type JobForecast struct {
	JobID        string  `json:"job_id"`
	StepSeconds  float64 `json:"step_seconds"` // measured now
	After        Band    `json:"after"`        // seconds
	BaselineStep float64 `json:"baseline_step_seconds"`
	Affected     bool    `json:"affected"` // its flows cross the target link as far as one knows: the plan is meant for it
}

// Forecast is the simulated effect of a plan.
type Forecast struct {
	Regime         string         `json:"regime"` // which model, which assumptions, in words
	Links          []LinkForecast `json:"links"`
	Jobs           []JobForecast  `json:"jobs"`
	Gain           float64        `json:"gain"`             // median over the placements of the median over the jobs on the target of 1 - after/now; 0 for "do nothing"
	PathsLeft      int            `json:"paths_left"`       // least number of live paths of a moved prefix after the pin is dropped
	BlackoutBoundS float64        `json:"blackout_seconds"` // bound on the interruption of a step (field rule 8)
	Assignments    int            `json:"assignments"`      // how many placements of flows on paths explain the present
}
