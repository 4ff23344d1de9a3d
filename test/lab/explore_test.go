//go:build lab

package lab_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

func TestExplore(t *testing.T) {
	ctx := testContext(t, time.Minute)
	l := up(t, ctx, lab.Config{ECN: true})
	spine := "s1"
	start := func(id string, hosts ...string) *ring.Job {
		j, err := ring.Start(ctx, l, ring.Spec{JobID: id, Hosts: hosts, Spine: func(r, rail, c int) string { return spine }})
		must(t, err)
		return j
	}
	a := start("job-a", "n1", "n2", "n5", "n6")
	t0 := time.Now()
	must(t, a.WaitSteps(ctx, 20))
	t.Log("alone   ", a.Stats(t0, time.Time{}))
	spine = "s2"
	b := start("job-b", "n3", "n4", "n7", "n8")
	t0 = time.Now()
	must(t, b.WaitSteps(ctx, 20))
	t.Log("balanced a", a.Stats(t0, time.Time{}))
	t.Log("balanced b", b.Stats(t0, time.Time{}))
	st, err := b.Stop(ctx)
	t.Log(st, err)
	spine = "s1"
	b = start("job-b", "n3", "n4", "n7", "n8")
	t0 = time.Now()
	must(t, b.WaitSteps(ctx, 30))
	t.Log("congested a", a.Stats(t0, time.Time{}))
	t.Log("congested b", b.Stats(t0, time.Time{}))
	for _, p := range []string{"sp1", "sp2"} {
		d, err := l.Drops(ctx, "l1", p)
		n, err2 := l.Marked("l1", p)
		t.Log(p, d, err, n, err2)
	}
	m, _ := l.NetSNMP("n5")
	t.Log(m["Tcp.RetransSegs"], m["IpExt.InCEPkts"], m["Tcp.EstabResets"], m["Tcp.OutRsts"])
	st, err = b.Stop(ctx)
	t.Log(st, err)
	st, err = a.Stop(ctx)
	t.Log(st, err)
}
