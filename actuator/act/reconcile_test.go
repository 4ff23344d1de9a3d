// SPDX-License-Identifier: Apache-2.0

package act_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/acttest"
	"github.com/trainyard/trainyard/actuator/plan"
)

func pin(leaf, prefix, hop string) plan.Route {
	return plan.Route{Switch: leaf, Prefix: netip.MustParsePrefix(prefix), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr(hop)}}}
}

func TestReconcileAppliesBeforeItWithdraws(t *testing.T) {
	f := &acttest.Fake{}
	old := pin("l1", "10.3.5.2/32", "10.0.31.0")
	if _, err := act.Reconcile(t.Context(), f, acttest.Always, []plan.Route{old}); err != nil {
		t.Fatal(err)
	}
	desired := []plan.Route{pin("l2", "10.4.5.2/32", "10.0.42.0"), pin("l1", "10.3.7.2/32", "10.0.32.0")}
	if _, err := act.Reconcile(t.Context(), f, acttest.Always, desired); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"apply l1 pin 10.3.5.2/32 via 10.0.31.0",
		"apply l1 pin 10.3.7.2/32 via 10.0.32.0",
		"apply l2 pin 10.4.5.2/32 via 10.0.42.0",
		"withdraw 10.3.5.2/32 at l1",
	}
	if got := f.Writes(); !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestReconcileGoesOnAfterFailuresAndJoinsThem(t *testing.T) {
	f := &acttest.Fake{Fail: func(op string, k plan.RouteKey) act.Result {
		if op == "apply" && k.Switch == "l1" {
			return act.Result{Outcome: act.Ambiguous, Detail: "no answer"}
		}
		return act.Result{}
	}}
	did, err := act.Reconcile(t.Context(), f, acttest.Always, []plan.Route{
		pin("l1", "10.3.5.2/32", "10.0.31.0"), pin("l2", "10.4.5.2/32", "10.0.42.0"), pin("l2", "10.4.5.2/32", "10.0.41.0"),
	})
	if len(did) != 2 || did[0].Result.Outcome != act.Ambiguous || !did[1].Result.OK() {
		t.Errorf("did %v", did)
	}
	for _, want := range []string{"apply 10.3.5.2/32 at l1: ambiguous: no answer", "apply 10.4.5.2/32 at l2: desired twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to have %q", err, want)
		}
	}
}

func TestReconcileRepairsWhatTheSwitchLost(t *testing.T) {
	f := &acttest.Fake{}
	r := pin("l1", "10.3.5.2/32", "10.0.31.0")
	for range 2 {
		if _, err := act.Reconcile(t.Context(), f, acttest.Always, []plan.Route{r}); err != nil {
			t.Fatal(err)
		}
		f.Lose(r.Key())
	}
	if n := len(f.Writes()); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

func TestReconcileWithdrawsManyInPacedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &acttest.Fake{}
		var rs []plan.Route
		for i := range 40 {
			rs = append(rs, pin("l1", fmt.Sprintf("10.3.%d.2/32", i), "10.0.31.0"))
		}
		if _, err := act.Reconcile(t.Context(), f, acttest.Always, rs); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		did, err := act.Reconcile(t.Context(), f, acttest.Always, nil)
		if err != nil || len(did) != 40 {
			t.Fatalf("did %d, %v", len(did), err)
		}
		if d := time.Since(start); d != 200*time.Millisecond {
			t.Errorf("took %s of virtual time, want 200ms: 16, 16 and 8 with a pause between", d)
		}
	})
}

func TestReconcileWritesNothingBlind(t *testing.T) {
	f := &acttest.Fake{Fail: func(op string, _ plan.RouteKey) act.Result {
		if op == "read" {
			return act.Result{Outcome: act.Transient, Detail: "session down"}
		}
		return act.Result{}
	}}
	if _, err := act.Reconcile(t.Context(), f, acttest.Always, []plan.Route{pin("l1", "10.3.5.2/32", "10.0.31.0")}); err == nil {
		t.Error("no error although the driver cannot be read")
	}
	if w := f.Writes(); len(w) > 0 {
		t.Errorf("wrote %q", w)
	}
}

func TestRefuse(t *testing.T) {
	if r := act.Refuse(errors.New("lease is over")); r.Outcome != act.Cancelled || r.Detail != "no permit to write: lease is over" {
		t.Errorf("%+v", r)
	}
	if r := act.Refuse(fmt.Errorf("epoch 4: %w", act.ErrSuperseded)); r.Outcome != act.Superseded {
		t.Errorf("%+v", r)
	}
}
