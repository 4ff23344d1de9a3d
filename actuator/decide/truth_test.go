// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/actuator/decide"
	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/fleet/fleettest"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// TestForecastAgainstTruth makes random yards, asks for a plan for their hottest link, carries it out in the truth
// and compares. The truth is an event simulation of its own; hash decisions and how the jobs' turns fall are
// hidden from the code under test.
func TestForecastAgainstTruth(t *testing.T) {
	var errs []float64
	sure := 0.0 // worst error where the band is a point
	chosen, reroutable, inBand, harmed, helped := 0, 0, 0, 0, 0
	for seed := range uint64(16) {
		y := randomYard(rand.New(rand.NewPCG(seed, 1)))
		s := y.Snapshot()
		target := hottest(s.Fabric, func(p ident.Port) float64 { return s.Links[p].BytesPerSecond })
		p := decide.Propose(s, target, decide.Default(), nil, seed)
		if p.Diagnosis.Cause == fault.UnexplainedTraffic {
			t.Errorf("seed %d: all traffic is announced, but: %s", seed, p.Reason)
		}
		if p.Diagnosis.Cause.Reroutable() {
			reroutable++
		}
		if p.Chosen == nil {
			continue
		}
		chosen++
		after := carryOut(y, *p.Chosen).Steps()
		gained := false
		for i, f := range p.Chosen.Forecast.Jobs {
			before := s.Jobs[i].StepSeconds
			errs = append(errs, math.Abs(after[i]-f.After.P50)/after[i])
			if f.After.P90-f.After.P10 < 0.01*f.After.P50 {
				sure = max(sure, math.Abs(after[i]-f.After.P50)/after[i])
			}
			const slack = 0.05
			if after[i] >= (1-slack)*f.After.P10 && after[i] <= (1+slack)*f.After.P90 {
				inBand++
			}
			if after[i] > 1.05*before {
				harmed++
				t.Logf("seed %d: %s slower, %.3f -> %.3f, forecast %+v; %s", seed, f.JobID, before, after[i], f.After, p.Reason)
			}
			gained = gained || after[i] < 0.95*before
		}
		if gained {
			helped++
		} else {
			t.Logf("seed %d: no effect: %s", seed, p.Reason)
		}
	}
	slices.Sort(errs)
	sum := 0.0
	for _, e := range errs {
		sum += e
	}
	mean, p90 := sum/float64(len(errs)), errs[len(errs)*9/10]
	t.Logf("%d yards could be rerouted, %d plans chosen, %d helped; %d of %d jobs in the band, %d slower; step time off by %.1f %% on average, p90 %.1f %%, worst %.1f %%, worst where the forecast is sure %.1f %%",
		reroutable, chosen, helped, inBand, len(errs), harmed, 100*mean, 100*p90, 100*errs[len(errs)-1], 100*sure)
	if chosen < 8 || mean > 0.08 || sure > 0.05 || helped < chosen*95/100 || harmed > 0 || inBand < len(errs)*85/100 {
		t.Error("the forecasts are not good enough")
	}
}

func randomYard(r *rand.Rand) fleettest.Yard {
	y := fleettest.Yard{Fabric: topotest.New(topotest.Options{Spines: 2 + r.IntN(2)}), Via: map[string][]string{}}
	groups := [][]string{{"n1", "n2", "n5", "n6"}, {"n3", "n4", "n7", "n8"}}
	if r.IntN(2) == 0 {
		groups = [][]string{{"n1", "n5"}, {"n2", "n6"}, {"n3", "n4", "n7", "n8"}}
	}
	for i, nodes := range groups {
		y.Jobs = append(y.Jobs, fleettest.Job{
			ID: fmt.Sprintf("job-%c", 'a'+i), Nodes: nodes, Compute: 0.01 + 0.08*r.Float64(), Bytes: 2e6 + 4e6*r.Float64(), Start: 0.2 * r.Float64(),
		})
		for k, n := range nodes {
			for rail := range 2 {
				y.Via[fleettest.Key(y.Jobs[i].ID, n, nodes[(k+1)%len(nodes)], rail)] = []string{fmt.Sprintf("s%d", 1+r.IntN(2))}
			}
		}
	}
	return y
}

func hottest(f topo.Fabric, load func(ident.Port) float64) ident.Port {
	var best ident.Port
	most := -1.0
	for p, l := range f.Links {
		if l.Direction != topo.Up && l.Direction != topo.Down {
			continue
		}
		if v := math.Round(1e3 * load(p) / l.BytesPerSecond); v > most || v == most && p.Compare(best) < 0 {
			best, most = p, v
		}
	}
	return best
}

// carryOut does to the truth what the pins of a plan do to real traffic.
func carryOut(y fleettest.Yard, p plan.Plan) fleettest.Yard {
	g := topo.NewGraph(y.Fabric)
	for _, s := range p.Steps {
		for _, j := range y.Jobs {
			for k, n := range j.Nodes {
				next := j.Nodes[(k+1)%len(j.Nodes)]
				for rail := range 2 {
					src, dst := y.NIC(n, rail), y.NIC(next, rail)
					if leaf, _ := g.Leaf(src); leaf != s.Route.Switch || !s.Route.Prefix.Contains(dst) {
						continue
					}
					paths, _ := g.Paths(src, dst)
					for _, path := range paths {
						if hop, err := g.PinNextHop(path); err == nil && hop == s.Route.NextHops[0].Addr {
							y = y.PinVia(fleettest.Key(j.ID, n, next, rail), path.Via)
						}
					}
				}
			}
		}
	}
	return y
}
