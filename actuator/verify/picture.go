// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Job is what one job looked like in a window.
type Job struct {
	StepSeconds    float64 `json:"step_seconds"`
	StepsPerSecond float64 `json:"steps_per_second"`
	// StepsTotal and StepSecondsTotal are the counters behind the means, 0 where they are not known.
	StepsTotal       float64  `json:"steps_total,omitempty"`
	StepSecondsTotal float64  `json:"step_seconds_total,omitempty"`
	BytesPerSecond   float64  `json:"bytes_per_second"` // payload that one rank offers, all rails together
	Missing          []string `json:"missing,omitempty"`
}

// BytesPerStep is the work of one step on the network: it changes when the job changes what it does.
func (j Job) BytesPerStep() float64 {
	if j.StepsPerSecond <= 0 {
		return 0
	}
	return j.BytesPerSecond / j.StepsPerSecond
}

// Picture is what verification looks at: the jobs and the links at one evaluation time. A job or link that was
// not measured is not in it.
type Picture struct {
	At       time.Time              `json:"at"`
	Jobs     map[string]Job         `json:"jobs"`
	Use      map[ident.Port]float64 `json:"use"` // of each link, as a ratio of its speed
	Age      map[ident.Port]float64 `json:"age"` // seconds, of the newest sample of each link
	Problems []string               `json:"problems,omitempty"`
}

// PictureOf takes the picture out of a snapshot. Only links that the plan's forecast names need to be kept; links
// nil keeps all.
func PictureOf(s fleet.Snapshot, links []ident.Port) Picture {
	p := Picture{At: s.At, Jobs: map[string]Job{}, Use: map[ident.Port]float64{}, Age: map[ident.Port]float64{}, Problems: s.Problems}
	for _, j := range traffic.Named(s.Jobs) {
		v := Job{StepSeconds: j.StepSeconds, StepsPerSecond: j.StepsPerSecond, StepsTotal: j.StepsTotal, StepSecondsTotal: j.StepSecondsTotal, Missing: j.Missing}
		for _, b := range j.BytesPerSecondByRail {
			v.BytesPerSecond += b
		}
		p.Jobs[j.ID] = v
	}
	take := func(id ident.Port, l fleet.LinkLoad) {
		if speed := s.Fabric.Links[id].BytesPerSecond; speed > 0 {
			p.Use[id], p.Age[id] = l.BytesPerSecond/speed, l.AgeSeconds
		}
	}
	if links == nil {
		for id, l := range s.Links {
			take(id, l)
		}
		return p
	}
	for _, id := range links {
		if l, ok := s.Links[id]; ok {
			take(id, l)
		}
	}
	return p
}

// since is what a job did after a moment: how many steps, how long they took on average, and whether nothing from
// before the moment is in these figures.
type since struct {
	steps   float64
	seconds float64 // per step
	clean   bool
}

// sinceStart works out what a job did since started. From counters, when both pictures have them: the difference
// of the pictures, less what the job did between the first picture and started, at its pace of then. Else from
// the means of after's window, which may reach back.
func sinceStart(before, after Picture, id string, started time.Time, window time.Duration) since {
	b, a := before.Jobs[id], after.Jobs[id]
	elapsed := after.At.Sub(started).Seconds()
	if a.StepsTotal < b.StepsTotal || b.StepsTotal <= 0 || b.StepSeconds <= 0 {
		return since{steps: max(0, a.StepsPerSecond*elapsed), seconds: a.StepSeconds, clean: elapsed >= window.Seconds()}
	}
	early := max(0, started.Sub(before.At).Seconds())
	steps := a.StepsTotal - b.StepsTotal - early/b.StepSeconds
	took := a.StepSecondsTotal - b.StepSecondsTotal - early
	if steps < 1 || took <= 0 {
		return since{steps: max(0, steps), seconds: a.StepSeconds}
	}
	return since{steps: steps, seconds: took / steps, clean: true}
}
