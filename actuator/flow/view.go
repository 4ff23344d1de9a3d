// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"time"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// View is one incident with its whole story, as REST, command line and console show it (contract 10). It shares no
// memory with the State.
type View struct {
	ID           ID               `json:"id"`
	Goal         policy.Goal      `json:"goal"`
	Target       string           `json:"target"`
	State        IncidentState    `json:"state"`
	Over         bool             `json:"over"`
	Mode         policy.Mode      `json:"mode"`
	Policy       string           `json:"policy"`
	PolicyHash   string           `json:"policy_hash"`
	OpenedAt     time.Time        `json:"opened_at"`
	EndedAt      *time.Time       `json:"ended_at,omitempty"`
	Deadline     *time.Time       `json:"deadline,omitempty"`
	Reason       string           `json:"reason"`
	Alerts       []AlertEvent     `json:"alerts"`
	Timeline     []Entry          `json:"timeline"`
	ObservedAt   *time.Time       `json:"observed_at,omitempty"`
	Diagnosis    *fault.Diagnosis `json:"diagnosis,omitempty"`
	MatrixSource string           `json:"matrix_source,omitempty"`
	Explains     bool             `json:"explains"`
	Candidates   []plan.Plan      `json:"candidates,omitempty"`
	Chosen       *plan.Plan       `json:"chosen,omitempty"`
	Choice       string           `json:"choice,omitempty"` // why this one, or none
	Verdict      *guard.Verdict   `json:"verdict,omitempty"`
	ApprovedBy   string           `json:"approved_by,omitempty"`
	Steps        []StepView       `json:"steps,omitempty"`
	Routes       []Desired        `json:"routes,omitempty"` // of this incident, that are desired now
	Verification *Verification    `json:"verification,omitempty"`
	FollowUp     *Verification    `json:"follow_up,omitempty"`
}

// StepView is one step with what became of it.
type StepView struct {
	Step string `json:"step"`
	Why  string `json:"why"`
	StepRecord
}

// ViewOf renders one incident; ok is false if there is none of that ID.
func ViewOf(s State, id ID) (View, bool) {
	in := s.Incidents[id]
	if in == nil {
		return View{}, false
	}
	v := View{
		ID: in.ID, Goal: in.Key.Goal, Target: in.Key.Target.String(), State: in.State, Over: in.State.Terminal(), Mode: in.Mode,
		Policy: in.Policy.Name, PolicyHash: in.PolicyHash, OpenedAt: in.OpenedAt, EndedAt: ptr(in.EndedAt), Deadline: ptr(in.Deadline),
		Reason: in.Reason, Alerts: append([]AlertEvent(nil), in.Alerts...), Timeline: append([]Entry(nil), in.Timeline...),
		ObservedAt: ptr(in.ObservedAt), ApprovedBy: in.ApprovedBy, Verdict: in.Verdict, Verification: in.Checked, FollowUp: in.FollowUp,
	}
	if p := in.Proposal; p != nil { // a proposal, a verdict and a verification are replaced, never changed: they may be shared
		v.Diagnosis, v.MatrixSource, v.Explains, v.Candidates, v.Chosen, v.Choice = &p.Diagnosis, p.MatrixSource, p.Explains, p.Candidates, p.Chosen, p.Reason
		for i, rec := range in.Steps {
			v.Steps = append(v.Steps, StepView{p.Chosen.Steps[i].Route.String(), p.Chosen.Steps[i].Why, rec})
			if d := s.Desired[p.Chosen.Steps[i].Route.Key().String()]; d != nil && d.Incident == id {
				v.Routes = append(v.Routes, *d)
			}
		}
	}
	return v, true
}

// Views renders every incident that is kept, oldest first.
func Views(s State) []View {
	in := s.incidents()
	vs := make([]View, 0, len(in))
	for _, i := range in {
		v, _ := ViewOf(s, i.ID)
		vs = append(vs, v)
	}
	return vs
}

func ptr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
