// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/policy"
)

// Deliver makes alerts durable and hands them to flow. When it returns nil, every transition among them is on disk;
// what is no transition is on disk already. An error that wraps ErrJournal or ErrNotRunning means: send them again.
func (l *Loop) Deliver(ctx context.Context, alerts []flow.AlertEvent) error {
	return l.call(ctx, func() error { return l.deliverAlerts(alerts) })
}

// Poll takes everything that Alertmanager shows at this moment. Only transitions are journalled: what fires and was not
// known, and what was known to fire and is not shown any more (contract 4). An incomplete list must not be given.
func (l *Loop) Poll(ctx context.Context, shown []flow.AlertEvent) error {
	return l.call(ctx, func() error {
		alerts := make([]flow.AlertEvent, 0, len(shown))
		for _, a := range shown {
			a.Source = "poll"
			alerts = append(alerts, a)
		}
		return l.deliverAlerts(append(alerts, flow.Missing(l.state, alerts)...))
	})
}

// batch bounds the events of one write.
const batch = 4096

func (l *Loop) deliverAlerts(alerts []flow.AlertEvent) error {
	if l.readOnly != nil {
		return fmt.Errorf("%w: %w", ErrJournal, l.readOnly)
	}
	if l.broken != nil {
		return fmt.Errorf("%w: %w", ErrJournal, l.broken)
	}
	seen := map[string]bool{} // within one delivery the first of a fingerprint must be stepped before the next is judged
	var events []flow.Event
	flush := func() error {
		err := l.apply(events...)
		events, seen = events[:0], map[string]bool{}
		return err
	}
	for _, a := range alerts {
		if seen[a.Fingerprint] || len(events) == batch {
			if err := flush(); err != nil {
				return err
			}
		}
		news, outcome := flow.News(l.state, a)
		if !news {
			l.input(outcome, 1)
			continue
		}
		seen[a.Fingerprint] = true
		events = append(events, flow.Alert{Alert: a})
	}
	return flush()
}

// Views renders every incident that is kept, oldest first.
func (l *Loop) Views() []flow.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return flow.Views(l.state)
}

// View renders one incident.
func (l *Loop) View(id flow.ID) (flow.View, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return flow.ViewOf(l.state, id)
}

// Status says how the loop is.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	if err := errors.Join(l.readOnly, l.broken); err != nil {
		s.ReadOnly = err.Error()
	}
	s.Epoch, s.Seq, s.Stopped, s.StoppedBy, s.Policies, s.Desired = l.epoch, l.seq, l.state.Stopped, l.state.StoppedBy, l.state.Policies.Hash(), len(l.state.Desired)
	for _, in := range l.state.Incidents {
		if !in.State.Terminal() {
			s.Open++
		}
	}
	return s
}

// Policies is the set in force.
func (l *Loop) Policies() policy.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Policies
}

// Approve answers the question of an incident with yes. The plan is made anew before anything is written, and the
// approval holds for the same plan only.
func (l *Loop) Approve(ctx context.Context, id flow.ID, actor string) error {
	return l.answer(ctx, flow.Answered{Incident: id, Approve: true, Actor: actor})
}

// Deny answers the question of an incident with no.
func (l *Loop) Deny(ctx context.Context, id flow.ID, actor string) error {
	return l.answer(ctx, flow.Answered{Incident: id, Actor: actor})
}

func (l *Loop) answer(ctx context.Context, a flow.Answered) error {
	return l.call(ctx, func() error {
		in := l.state.Incidents[a.Incident]
		switch {
		case in == nil:
			return fmt.Errorf("%s: %w", a.Incident, ErrNoIncident)
		case in.State != flow.Asked:
			return fmt.Errorf("%s is %s: %w", a.Incident, in.State, ErrNotAsked)
		}
		return l.apply(a)
	})
}

// LetGo ends the holding of an incident, takes an open one away from the machine, or gives a handed one back.
func (l *Loop) LetGo(ctx context.Context, id flow.ID, actor string) error {
	return l.call(ctx, func() error {
		if l.state.Incidents[id] == nil {
			return fmt.Errorf("%s: %w", id, ErrNoIncident)
		}
		return l.apply(flow.LetGo{Incident: id, Actor: actor})
	})
}

// Stop blocks new steps, never an undo; with withdraw it also takes every route back. It works on a read-only journal,
// too: then only the routes are taken back, and the error says that nothing was recorded.
func (l *Loop) Stop(ctx context.Context, withdraw bool, actor string) error {
	return l.call(ctx, func() error {
		err := l.apply(flow.Stopped{Withdraw: withdraw, Actor: actor})
		if err != nil && withdraw {
			l.withdrawAll()
		}
		return err
	})
}

// Resume lifts a stop. A stop file goes on blocking as long as it is there.
func (l *Loop) Resume(ctx context.Context, actor string) error {
	return l.call(ctx, func() error { return l.apply(flow.Resumed{Actor: actor}) })
}

// SetPolicies puts another policy set in force. Incidents finish under theirs; what the new one weakens binds at once.
func (l *Loop) SetPolicies(ctx context.Context, set policy.Set) error {
	if err := set.Validate(); err != nil {
		return err
	}
	return l.call(ctx, func() error {
		if set.Hash() == l.state.Policies.Hash() {
			return nil
		}
		return l.apply(flow.Policies{Set: set})
	})
}
