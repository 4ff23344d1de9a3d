// SPDX-License-Identifier: Apache-2.0

// Package fault names the causes of a congested link (field rule 3): the cure follows from the cause, and only two
// causes may be cured by moving routes.
package fault

// Cause is why a link is congested or a job is slow.
type Cause string

// The causes, in the order in which they are excluded.
const (
	SickLink           Cause = "sick link"
	SlowReceiver       Cause = "slow receiver"
	Straggler          Cause = "straggler"
	Incast             Cause = "incast"
	LostCapacity       Cause = "lost capacity"
	Oversubscribed     Cause = "oversubscribed" // more traffic than the only way can carry, and nothing is lost
	HashCollision      Cause = "hash collision"
	UnexplainedTraffic Cause = "unexplained traffic"
	NotCongested       Cause = "not congested"
	Unknown            Cause = "unknown" // the target is not in the fabric or not measured, or its switch moves flows by itself
)

// Reroutable says whether moving routes can cure the cause.
func (c Cause) Reroutable() bool { return c == LostCapacity || c == HashCollision }

// Evidence is one observation that speaks for a diagnosis, in words and as a figure.
type Evidence struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Unit  string  `json:"unit"`
}

// Diagnosis is the cause found, why, and on what evidence.
type Diagnosis struct {
	Cause    Cause      `json:"cause"`
	Culprit  string     `json:"culprit,omitempty"` // the link, node or rank that is to blame
	Reason   string     `json:"reason"`
	Evidence []Evidence `json:"evidence"`
}
