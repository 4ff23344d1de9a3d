// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
)

// entry is the payload of a record: the event, and a digest of the commands that followed, per incident.
type entry struct {
	Event    json.RawMessage    `json:"event"`
	Commands map[flow.ID]string `json:"commands,omitempty"`
}

// encodeEntry writes what entry reads. The event is JSON already, and is not parsed once more.
func encodeEntry(event []byte, cmds []flow.Command) ([]byte, error) {
	digests, err := json.Marshal(flow.Digest(cmds))
	if err != nil {
		return nil, err
	}
	payload := make([]byte, 0, len(event)+len(digests)+24)
	payload = append(payload, `{"event":`...)
	payload = append(payload, event...)
	payload = append(payload, `,"commands":`...)
	payload = append(payload, digests...)
	return append(payload, '}'), nil
}

// start replays the journal, takes the lease and begins a new epoch.
func (l *Loop) start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.replay(); err != nil {
		return err
	}
	if l.readOnly != nil {
		l.log.Error("the journal cannot be trusted: read-only, nothing is acted on", "err", l.readOnly)
		return nil
	}
	l.epoch++
	var away time.Duration
	if l.cfg.Lease != nil {
		last, err := l.cfg.Lease.Acquire(l.clock(), l.epoch)
		if err != nil {
			return err
		}
		if !last.IsZero() {
			away = max(l.clock().Sub(last), 0)
		}
	}
	l.cfg.Permit.grant(l.epoch)
	l.prime() // queued first: what is in force is told to the driver before anything else is asked of it

	s, err := l.cfg.StopFile()
	if err == nil {
		l.fileStop = s
	}
	events := []flow.Event{flow.Started{Epoch: l.epoch, Away: away, Grace: l.cfg.Grace, Problem: l.status.Torn}}
	for _, id := range slices.Sorted(maps.Keys(l.diverged)) { // before Started, so that nothing of theirs goes on
		events = append([]flow.Event{flow.Diverged{Incident: id, Why: l.diverged[id]}}, events...)
	}
	if s.Present && (!l.state.Stopped || s.Withdraw) {
		events = append([]flow.Event{flow.Stopped{Withdraw: s.Withdraw, Actor: stopFileActor}}, events...)
	}
	if err == nil && !s.Present && l.state.StoppedBy == stopFileActor {
		events = append(events, flow.Resumed{Actor: stopFileActor})
	}
	if l.cfg.Policies.Hash() != l.state.Policies.Hash() {
		events = append([]flow.Event{flow.Policies{Set: l.cfg.Policies}}, events...)
	}
	err = l.applyLocked(events...)
	l.next()
	return err
}

// replay brings the state to the end of the journal. Damage makes the run read-only; an error ends it.
func (l *Loop) replay() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), time.Minute)
	defer cancel()
	loaded, err := l.cfg.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("load the journal: %w", err)
	}
	state := flow.New()
	if loaded.State != nil {
		if state, err = flow.DecodeState(loaded.State); err != nil {
			loaded.Damage = errors.Join(loaded.Damage, err)
			state = flow.New()
			loaded.Records = nil
		}
	}
	l.diverged = map[flow.ID]string{}
	for _, r := range loaded.Records {
		if state, err = l.replayOne(state, r); err != nil {
			loaded.Damage = errors.Join(loaded.Damage, fmt.Errorf("record %d: %w", r.Seq, err))
			break
		}
	}
	state.Problem = ""
	if loaded.Damage != nil {
		state.Problem = loaded.Damage.Error()
	}
	l.state, l.seq, l.epoch, l.readOnly, l.broken = state, loaded.Seq, loaded.Epoch, loaded.Damage, nil
	l.unsaved = len(loaded.Records)
	l.ended = map[flow.ID]bool{}
	for id, in := range state.Incidents {
		l.ended[id] = in.State.Terminal() // told in an earlier run
	}
	l.status.Torn, l.status.Notes = loaded.Torn, loaded.Notes
	if loaded.Torn != "" {
		l.log.Warn("the journal ended in an unfinished write", "dropped", loaded.Torn)
	}
	for _, n := range loaded.Notes {
		l.log.Warn("journal", "note", n)
	}
	return nil
}

func (l *Loop) replayOne(state flow.State, r journal.Record) (next flow.State, err error) {
	defer func() { // rules of another version may meet a state that they have no word for
		if p := recover(); p != nil {
			err = fmt.Errorf("replay: %v", p)
		}
	}()
	if r.Flow > flow.Version {
		return state, fmt.Errorf("rules of version %d, this program has %d: %w", r.Flow, flow.Version, flow.ErrNewer)
	}
	var e entry
	if err := json.Unmarshal(r.Payload, &e); err != nil {
		return state, fmt.Errorf("payload: %w", err)
	}
	ev, err := flow.DecodeEvent(flow.Kind(r.Type), e.Event)
	if err != nil {
		return state, err
	}
	next, cmds := flow.Step(state, r.Now, ev)
	digests := flow.Digest(cmds)
	for _, id := range union(e.Commands, digests) {
		if id != "" && e.Commands[id] != digests[id] && l.diverged[id] == "" {
			l.diverged[id] = fmt.Sprintf("at record %d (%s)", r.Seq, r.Type)
		}
	}
	return next, nil
}

func union(a, b map[flow.ID]string) []flow.ID {
	var ids []flow.ID
	for id := range a {
		ids = append(ids, id)
	}
	for id := range b {
		if _, ok := a[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// try applies an event and logs a failure; the caller goes on.
func (l *Loop) try(events ...flow.Event) error {
	err := l.apply(events...)
	if err != nil {
		l.log.Error("journal", "err", err)
	}
	return err
}

// apply journals events and carries out what follows. Nothing is carried out, and nobody is told, before the fsync.
func (l *Loop) apply(events ...flow.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applyLocked(events...)
}

func (l *Loop) applyLocked(events ...flow.Event) error {
	switch {
	case l.readOnly != nil:
		return fmt.Errorf("%w: %w", ErrJournal, l.readOnly)
	case l.broken != nil:
		return fmt.Errorf("%w: %w", ErrJournal, l.broken)
	case len(events) == 0:
		return nil
	}
	for _, ev := range events { // before anything is stepped; alerts were checked by intake, and there are many
		if _, ok := ev.(flow.Alert); ok {
			continue
		}
		if err := readable(ev); err != nil {
			return err
		}
	}
	now := l.clock()
	records := make([]journal.Record, 0, len(events))
	var cmds []flow.Command
	for _, ev := range events {
		text, err := flow.EncodeEvent(ev)
		if err != nil {
			l.broken = fmt.Errorf("encode %s: %w", ev.Kind(), err)
			break
		}
		more, err := l.step(now, ev)
		if err != nil {
			l.broken = err
			break
		}
		payload, err := encodeEntry(text, more)
		if err != nil {
			l.broken = fmt.Errorf("encode %s: %w", ev.Kind(), err)
			break
		}
		records = append(records, journal.Record{Flow: flow.Version, Now: l.state.Now, Type: string(ev.Kind()), Payload: payload})
		cmds = append(cmds, more...)
	}
	began := l.clock()
	if l.broken == nil {
		l.broken = l.cfg.Store.Append(l.ctx, l.seq, l.epoch, records)
	}
	if err := l.broken; err != nil {
		// The state in memory is ahead of the disk now: nothing follows from it. Read again what is durable.
		if errors.Is(err, journal.ErrFenced) {
			l.cfg.Permit.revoke(fmt.Errorf("%w: %w", ErrLapsed, err))
		} else {
			l.reloadLocked()
		}
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	l.seq += uint64(len(records))
	l.unsaved += len(records)
	if f := l.cfg.Hooks.Appended; f != nil {
		f(len(records), l.clock().Sub(began))
	}
	l.carryOut(cmds)
	l.afterwards()
	return nil
}

// step is flow.Step, with a fault of ours turned into an error: the state is half stepped then, and is read again.
func (l *Loop) step(now time.Time, ev flow.Event) (cmds []flow.Command, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("step %s: %v", ev.Kind(), p)
			l.log.Error("a fault of flow", "event", ev.Kind(), "fault", p)
		}
	}()
	l.state, cmds = flow.Step(l.state, now, ev)
	return cmds, nil
}

// afterwards tells the hooks about incidents that ended, and forgets what belonged to them.
func (l *Loop) afterwards() {
	for id, in := range l.state.Incidents {
		if !in.State.Terminal() {
			delete(l.ended, id)
			continue
		}
		if l.ended[id] {
			continue
		}
		l.ended[id] = true
		delete(l.observedAt, id)
		delete(l.looks.waiting, id)
		if v, ok := flow.ViewOf(l.state, id); ok && l.cfg.Hooks.Ended != nil {
			l.cfg.Hooks.Ended(v)
		}
	}
	for id := range l.ended {
		if l.state.Incidents[id] == nil {
			delete(l.ended, id)
		}
	}
}

// checkpoint saves the state, so that the next start need not replay from the beginning.
func (l *Loop) checkpoint() error {
	text, err := l.state.Encode()
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), time.Minute)
	defer cancel()
	if err := l.cfg.Store.Checkpoint(ctx, l.seq, l.epoch, flow.Version, l.state.Now, text); err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	l.seq++ // the checkpoint is a record, too
	l.unsaved = 0
	return nil
}

// reload reads the journal again after a failed write. If what is durable is as before, the run goes on under it: every
// command that was lost with the failed record is asked for again, as after a start.
func (l *Loop) reload() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reloadLocked()
}

func (l *Loop) reloadLocked() {
	cause, epoch := l.broken, l.epoch
	if err := l.replay(); err != nil {
		l.broken = errors.Join(cause, err)
		return
	}
	l.epoch = epoch
	if l.readOnly != nil {
		return
	}
	// A probe first: as long as nothing can be written, stay broken without growing the journal's gap.
	l.broken = nil
	text, _ := flow.EncodeEvent(flow.Started{Epoch: l.epoch, Problem: "the journal could not be written: " + cause.Error()})
	var ev flow.Event = flow.Started{Epoch: l.epoch, Problem: "the journal could not be written: " + cause.Error()}
	next, cmds := flow.Step(l.state, l.clock(), ev)
	payload, err := encodeEntry(text, cmds)
	if err == nil {
		err = l.cfg.Store.Append(l.ctx, l.seq, l.epoch, []journal.Record{{Flow: flow.Version, Now: next.Now, Type: string(ev.Kind()), Payload: payload}})
	}
	if err != nil {
		l.broken = err
		if errors.Is(err, journal.ErrFenced) {
			l.cfg.Permit.revoke(fmt.Errorf("%w: %w", ErrLapsed, err))
		}
		return
	}
	l.state = next
	l.seq++
	l.unsaved++
	l.log.Info("the journal can be written again")
	l.carryOut(cmds)
}
