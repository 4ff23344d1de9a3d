// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Job is what one job looked like in a window.
type Job struct {
	StepSeconds    float64  `json:"step_seconds"`
	StepsPerSecond float64  `json:"steps_per_second"`
	BytesPerSecond float64  `json:"bytes_per_second"` // payload that one rank offers, all rails together
	Missing        []string `json:"missing,omitempty"`
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
	for _, j := range s.Jobs {
		v := Job{StepSeconds: j.StepSeconds, StepsPerSecond: j.StepsPerSecond, Missing: j.Missing}
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
