// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/loop"
)

// yard is the loop as the API wants it.
type yard struct{ loop *loop.Loop }

var _ api.Yard = yard{}

func now() time.Time { return time.Now() }

// Incidents implements api.Yard.
func (y yard) Incidents() []flow.View { return y.loop.Views() }

// Incident implements api.Yard.
func (y yard) Incident(id flow.ID) (flow.View, bool) { return y.loop.View(id) }

// Answer implements api.Yard.
func (y yard) Answer(ctx context.Context, id flow.ID, approve bool, actor string) error {
	say := y.loop.Deny
	if approve {
		say = y.loop.Approve
	}
	err := say(ctx, id, actor)
	if errors.Is(err, loop.ErrNotAsked) {
		return fmt.Errorf("%w: %w", api.ErrConflict, err)
	}
	return err
}

// Release implements api.Yard.
func (y yard) Release(ctx context.Context, id flow.ID, actor string) error {
	return y.loop.LetGo(ctx, id, actor)
}

// Stop implements api.Yard.
func (y yard) Stop(ctx context.Context, withdraw bool, actor string) error {
	return y.loop.Stop(ctx, withdraw, actor)
}

// Resume implements api.Yard.
func (y yard) Resume(ctx context.Context, actor string) error { return y.loop.Resume(ctx, actor) }

// Stopped implements api.Yard.
func (y yard) Stopped() (string, bool) {
	s := y.loop.Status()
	return s.StoppedBy, s.Stopped
}

// Ready implements api.Yard.
func (y yard) Ready() error {
	switch s := y.loop.Status(); {
	case !s.Running:
		return errors.New("the loop is not running")
	case s.ReadOnly != "":
		return fmt.Errorf("the journal is read-only: %s", s.ReadOnly)
	}
	return nil
}
