// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/actuator/route"
)

// Limits are the thresholds of a decision. Ratios are plain numbers (0.1 = 10 %).
type Limits struct {
	MinGain              float64 `json:"min_gain" yaml:"min_gain"`                               // least median gain of the affected jobs' step time
	MaxOtherSlowdown     float64 `json:"max_other_slowdown" yaml:"max_other_slowdown"`           // most that any job may lose
	BusyUse              float64 `json:"busy_use" yaml:"busy_use"`                               // a link below is not congested
	PeerRatio            float64 `json:"peer_ratio" yaml:"peer_ratio"`                           // nor one below this multiple of its live ECMP peers' mean
	VictimSlowdown       float64 `json:"victim_slowdown" yaml:"victim_slowdown"`                 // step time over baseline from which a job is a victim
	PauseRatio           float64 `json:"pause_ratio" yaml:"pause_ratio"`                         // share of time a NIC may pause its switch
	ZeroWindowsPerSecond float64 `json:"zero_windows_per_second" yaml:"zero_windows_per_second"` // of a node, the same signal for TCP
	StragglerRatio       float64 `json:"straggler_ratio" yaml:"straggler_ratio"`                 // compute time of a rank over its job's median
	StragglerShare       float64 `json:"straggler_share" yaml:"straggler_share"`                 // and the excess must be at least this share of the step
	ErrorsPerSecond      float64 `json:"errors_per_second" yaml:"errors_per_second"`             // above: the link is sick
	Flaps                float64 `json:"flaps" yaml:"flaps"`                                     // more within the flap window: the link is sick
	Efficiency           float64 `json:"efficiency" yaml:"efficiency"`                           // share of a link's speed that can be used
	MaxBlackoutSeconds   float64 `json:"max_blackout_seconds" yaml:"max_blackout_seconds"`       // longest interruption that a step may cause
	MinPathsLeft         int     `json:"min_paths_left" yaml:"min_paths_left"`                   // live paths after the route's own path died
	MaxSteps             int     `json:"max_steps" yaml:"max_steps"`                             // writes of one plan
	MaxRoutesPerSwitch   int     `json:"max_routes_per_switch" yaml:"max_routes_per_switch"`     // routes of ours on one switch
	MaxNextHops          int     `json:"max_next_hops" yaml:"max_next_hops"`                     // of a weighted route
	Samples              int     `json:"samples" yaml:"samples"`                                 // placements that a forecast is made over
	MaxRuns              int     `json:"max_runs" yaml:"max_runs"`                               // simulations of one decision, in units of a small fabric
}

// Default are the limits that hold where the policy says nothing. Busy, peer, victim and pause ratios are what the
// alert uses; 0.97 is the payload that lossless Ethernet with 4 KiB frames was measured to carry; 3 s is the
// hard stop for an interruption against the retry time of collective libraries.
func Default() Limits {
	return Limits{
		MinGain: 0.10, MaxOtherSlowdown: 0.05, BusyUse: 0.8, PeerRatio: 1.3, VictimSlowdown: 1.15, PauseRatio: 0.01,
		ZeroWindowsPerSecond: 5, StragglerRatio: 1.25, StragglerShare: 0.05, ErrorsPerSecond: 1, Flaps: 1, Efficiency: 0.97,
		MaxBlackoutSeconds: 3, MinPathsLeft: 1, MaxSteps: 4, MaxRoutesPerSwitch: 64, MaxNextHops: 16, Samples: 64, MaxRuns: 400,
	}
}

// Validate says what is wrong with the limits.
func (l Limits) Validate() error {
	var errs []error
	share := func(name string, v float64) {
		if !(v >= 0 && v <= 1) {
			errs = append(errs, fmt.Errorf("%s: %v is not between 0 and 1", name, v))
		}
	}
	atLeast := func(name string, v, least float64) {
		if !(v >= least) {
			errs = append(errs, fmt.Errorf("%s: %v, want at least %v", name, v, least))
		}
	}
	share("min_gain", l.MinGain)
	share("max_other_slowdown", l.MaxOtherSlowdown)
	share("busy_use", l.BusyUse)
	share("pause_ratio", l.PauseRatio)
	share("straggler_share", l.StragglerShare)
	share("efficiency", l.Efficiency)
	atLeast("efficiency", l.Efficiency, 0.1)
	atLeast("peer_ratio", l.PeerRatio, 1)
	atLeast("victim_slowdown", l.VictimSlowdown, 1)
	atLeast("straggler_ratio", l.StragglerRatio, 1)
	atLeast("zero_windows_per_second", l.ZeroWindowsPerSecond, 0)
	atLeast("errors_per_second", l.ErrorsPerSecond, 0)
	atLeast("flaps", l.Flaps, 0)
	atLeast("max_blackout_seconds", l.MaxBlackoutSeconds, 0)
	atLeast("min_paths_left", float64(l.MinPathsLeft), 0)
	atLeast("max_steps", float64(l.MaxSteps), 1)
	atLeast("max_routes_per_switch", float64(l.MaxRoutesPerSwitch), 1)
	atLeast("max_next_hops", float64(l.MaxNextHops), 2)
	atLeast("samples", float64(l.Samples), 1)
	atLeast("max_runs", float64(l.MaxRuns), 1)
	return errors.Join(errs...)
}

func (l Limits) budget() route.Budget {
	return route.Budget{MaxSteps: l.MaxSteps, MaxRoutesPerSwitch: l.MaxRoutesPerSwitch, MaxNextHops: l.MaxNextHops, MinPathsLeft: l.MinPathsLeft, MaxAlternatives: 3}
}
