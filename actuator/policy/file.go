// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// file is the policy file as it is written: durations are Go strings, what is left out has a default.
type file struct {
	Version  int             `yaml:"version"`
	Pools    map[string]pool `yaml:"pools"`
	Policies []entry         `yaml:"policies"`
}

type pool struct {
	Mode Mode `yaml:"mode"`
}

type entry struct {
	Name    string  `yaml:"name"`
	Match   Match   `yaml:"match"`
	Goal    Goal    `yaml:"goal"`
	Mode    Mode    `yaml:"mode"`
	Pool    string  `yaml:"pool"`
	Budgets budgets `yaml:"budgets"`

	Cooldown        *string  `yaml:"cooldown"`
	ApprovalTimeout *string  `yaml:"approval_timeout"`
	Hold            *string  `yaml:"hold"`
	HoldMax         *string  `yaml:"hold_max"`
	DecideDeadline  *string  `yaml:"decide_deadline"`
	StepDeadline    *string  `yaml:"step_deadline"`
	Settle          *string  `yaml:"settle"`
	VerifyDeadline  *string  `yaml:"verify_deadline"`
	MaxDataAge      *string  `yaml:"max_data_age"`
	Windows         []Window `yaml:"windows"`
}

// budgets are Budgets as written: what is left out has a default, and a written 0 is not the same as nothing.
type budgets struct {
	MaxConcurrent *int `yaml:"max_concurrent"`
	PerHour       *int `yaml:"per_hour"`
	MaxSwitches   *int `yaml:"max_switches"`
	MaxRoutes     *int `yaml:"max_routes"`
	MinPathsLeft  *int `yaml:"min_paths_left"`
	Storm         *int `yaml:"storm"`
}

// Default is a policy with every bound at its default. They are careful: one action at a time, four an hour.
func Default() Policy {
	return Policy{
		Goal: RelieveLink, Mode: Watch, Pool: "default",
		Budgets:  Budgets{MaxConcurrent: 1, PerHour: 4, MaxSwitches: 2, MaxRoutes: 8, MinPathsLeft: 1, Storm: 8},
		Cooldown: 10 * time.Minute, ApprovalTimeout: 30 * time.Minute,
		Hold: 15 * time.Minute, HoldMax: 24 * time.Hour,
		DecideDeadline: 60 * time.Second, StepDeadline: 10 * time.Second, Settle: 2 * time.Second, VerifyDeadline: 5 * time.Minute,
		MaxDataAge: 45 * time.Second, // three scrapes of the production profile (field rule 18)
	}
}

// Parse reads a policy file. Unknown keys are refused with their position; every other message carries the YAML path.
func Parse(text []byte) (Set, error) {
	var f file
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return Set{}, fmt.Errorf("parse policy file: %w", err)
	}
	if f.Version != 1 {
		return Set{}, fmt.Errorf("policy file: $.version: %d, this program reads version 1", f.Version)
	}
	s := Set{Pools: map[string]Mode{}}
	for name, p := range f.Pools {
		s.Pools[name] = p.Mode
	}
	var errs []error
	for i, e := range f.Policies {
		p, err := e.policy(fmt.Sprintf("policies[%d]", i))
		s.Policies, errs = append(s.Policies, p), append(errs, err)
	}
	if err := errors.Join(append(errs, s.Validate())...); err != nil {
		return Set{}, err
	}
	return s, nil
}

func (e entry) policy(at string) (Policy, error) {
	p := Default()
	p.Name, p.Match, p.Windows = e.Name, e.Match, e.Windows
	if e.Goal != "" {
		p.Goal = e.Goal
	}
	if e.Mode != "" {
		p.Mode = e.Mode
	}
	if e.Pool != "" {
		p.Pool = e.Pool
	}
	b := e.Budgets
	for _, f := range []struct{ to, from *int }{
		{&p.Budgets.MaxConcurrent, b.MaxConcurrent}, {&p.Budgets.PerHour, b.PerHour}, {&p.Budgets.MaxSwitches, b.MaxSwitches},
		{&p.Budgets.MaxRoutes, b.MaxRoutes}, {&p.Budgets.MinPathsLeft, b.MinPathsLeft}, {&p.Budgets.Storm, b.Storm},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	var errs []error
	for _, f := range []struct {
		name string
		to   *time.Duration
		from *string
	}{
		{"cooldown", &p.Cooldown, e.Cooldown}, {"approval_timeout", &p.ApprovalTimeout, e.ApprovalTimeout}, {"hold", &p.Hold, e.Hold},
		{"hold_max", &p.HoldMax, e.HoldMax}, {"decide_deadline", &p.DecideDeadline, e.DecideDeadline},
		{"step_deadline", &p.StepDeadline, e.StepDeadline}, {"settle", &p.Settle, e.Settle},
		{"verify_deadline", &p.VerifyDeadline, e.VerifyDeadline}, {"max_data_age", &p.MaxDataAge, e.MaxDataAge},
	} {
		if f.from == nil {
			continue
		}
		d, err := time.ParseDuration(*f.from)
		if err != nil {
			errs = append(errs, fmt.Errorf("policy file: $.%s.%s: %q is no duration such as \"90s\"", at, f.name, *f.from))
			continue
		}
		*f.to = d
	}
	return p, errors.Join(errs...)
}

// Validate checks the whole set and names every fault by its YAML path.
func (s Set) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("policy file: $.%s: %s", path, fmt.Sprintf(format, args...)))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		if s.Pools[name].rank() < 0 {
			bad("pools."+name+".mode", "%q is not one of watch, advise, act", s.Pools[name])
		}
	}
	names := map[string]int{}
	for i, p := range s.Policies {
		at := fmt.Sprintf("policies[%d]", i)
		if p.Name == "" {
			bad(at+".name", "empty")
		} else if j, ok := names[p.Name]; ok {
			bad(at+".name", "%q is also the name of policies[%d]", p.Name, j)
		}
		names[p.Name] = i
		for _, l := range []struct {
			name string
			list []string
		}{{"alerts", p.Match.Alerts}, {"clusters", p.Match.Clusters}, {"fabrics", p.Match.Fabrics}} {
			if len(l.list) == 0 {
				bad(at+".match."+l.name, "empty, and an empty selector never means all: say %q", Any)
			}
			for k, v := range l.list {
				if v == "" || v == Any && l.name == "alerts" {
					bad(fmt.Sprintf("%s.match.%s[%d]", at, l.name, k), "%q selects nothing that can be named", v)
				}
			}
		}
		if p.Goal != RelieveLink {
			bad(at+".goal", "%q is not a goal; there is %q", p.Goal, RelieveLink)
		}
		if p.Mode.rank() < 0 {
			bad(at+".mode", "%q is not one of watch, advise, act", p.Mode)
		}
		b := p.Budgets
		for _, f := range []struct {
			name string
			v    int
		}{{"max_concurrent", b.MaxConcurrent}, {"per_hour", b.PerHour}, {"max_switches", b.MaxSwitches}, {"max_routes", b.MaxRoutes},
			{"min_paths_left", b.MinPathsLeft}, {"storm", b.Storm}} {
			if f.v < 1 {
				bad(at+".budgets."+f.name, "%d, want at least 1", f.v)
			}
		}
		for _, f := range []struct {
			name string
			v    time.Duration
		}{{"cooldown", p.Cooldown}, {"approval_timeout", p.ApprovalTimeout}, {"hold", p.Hold}, {"hold_max", p.HoldMax},
			{"decide_deadline", p.DecideDeadline}, {"step_deadline", p.StepDeadline}, {"verify_deadline", p.VerifyDeadline}, {"max_data_age", p.MaxDataAge}} {
			if f.v <= 0 {
				bad(at+"."+f.name, "%v, want more than 0", f.v)
			}
		}
		if p.Settle < 0 || p.Settle >= p.VerifyDeadline {
			bad(at+".settle", "%v, want 0 or more and less than verify_deadline (%v)", p.Settle, p.VerifyDeadline)
		}
		for k, w := range p.Windows {
			if err := w.validate(); err != nil {
				bad(fmt.Sprintf("%s.windows[%d]", at, k), "%v", err)
			}
		}
	}
	return errors.Join(errs...)
}
