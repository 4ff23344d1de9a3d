// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
)

// figures are the model's own step seconds for one placement, by job.
type figures struct {
	bound    []float64     // alone, wherever its flows are: its nodes' links at full speed; not faster than its baseline
	floor    []float64     // alone on the links of this placement, where its own flows may meet
	mixed    []float64     // others send while this one computes: nothing of a link is wasted
	clashing []float64     // others send whenever this one does, as far as they have something to send
	tight    []topo.LinkID // the link that holds the job back while it sends
}

// desk is the memory that working out figures needs; between two placements it is clean.
type desk struct {
	filler  *filler
	amount  []float64 // by link: what the job at hand takes per unit of its level
	total   []float64 // by link: mean rate of all jobs
	sharing [][]share // by link
	users   []user
	duty    []float64
}

// share is what a job takes of a link per unit of its level.
type share struct {
	job int
	by  float64
}

func newDesk(links, jobs int) desk {
	return desk{
		filler: newFiller(links), amount: make([]float64, links), total: make([]float64, links),
		sharing: make([][]share, links), users: make([]user, jobs), duty: make([]float64, jobs),
	}
}

// figures works out both bounds of every job's step. Jobs compute and send in turns; how their turns fall is not
// known. At best they interleave, so that mean rates fill the links: max-min over mean rates, where each job rises
// as fast as the share of time that it sends and wants no more than it could use alone. At worst whatever time
// another job sends falls into the time that this one does, and they share the link: rings that meet can lock
// into such turns.
func (m *Model) figures(a traffic.Assignment) figures {
	n := len(m.jobs)
	all := make([]float64, 4*n)
	f := figures{bound: all[:n], floor: all[n : 2*n], mixed: all[2*n : 3*n], clashing: all[3*n:], tight: make([]topo.LinkID, n)}
	d := &m.desk
	for j := range m.jobs {
		m.alone(j, a, &f)
		d.duty[j] = m.jobs[j].duty(m.jobs[j].step)
	}
	// The share of time that a job sends depends on its step, and its step on everybody's share of time: two
	// rounds come near enough.
	for range 2 {
		for j := range m.jobs {
			d.users[j].weight = d.duty[j]
		}
		for j, level := range d.filler.fill(d.users, m.capacity) {
			f.mixed[j] = m.jobs[j].volume / max(level, 1e-9*m.jobs[j].level)
			d.duty[j] = m.jobs[j].duty(f.mixed[j])
		}
	}
	for j, jb := range m.jobs {
		for _, u := range d.users[j].uses {
			d.total[u.link] += u.by * jb.volume / f.mixed[j]
			d.sharing[u.link] = append(d.sharing[u.link], share{j, u.by})
		}
	}
	for j := range m.jobs {
		m.clash(j, &f)
	}
	for j := range m.jobs {
		for _, u := range d.users[j].uses {
			d.total[u.link], d.sharing[u.link] = 0, d.sharing[u.link][:0]
		}
	}
	return f
}

// duty is the share of a step that the job sends.
func (j job) duty(step float64) float64 { return max(1e-3, 1-j.compute/step) }

// alone fills in what the job could do if nobody else were there, and makes it a user of its links.
func (m *Model) alone(j int, a traffic.Assignment, f *figures) {
	jb, d := m.jobs[j], &m.desk
	u := &d.users[j]
	u.uses = u.uses[:0]
	for k, i := range jb.flows {
		for _, p := range a[i] {
			for _, id := range m.flows[i].Paths[p].Links {
				if d.amount[id] == 0 {
					u.uses = append(u.uses, use{link: int(id)})
				}
				d.amount[id] += jb.share[k]
			}
		}
	}
	alone, edge := 0.0, 0.0
	for k := range u.uses {
		id := u.uses[k].link
		u.uses[k].by = d.amount[id]
		takes := jb.volume * d.amount[id] / max(m.capacity[id], 1)
		alone = max(alone, takes)
		if m.edge[id] {
			edge = max(edge, takes)
		}
		d.amount[id] = 0
	}
	least := 0.0
	if jb.baseline > 0 {
		least = min(jb.baseline, jb.step)
	}
	if !jb.timed {
		least = jb.step
	}
	f.bound[j] = max(least, jb.compute+edge)
	f.floor[j] = max(least, jb.compute+alone)
	u.most = jb.volume / f.floor[j]
}

// clash fills in the worse bound of a job: it has its fair share of each link against those who send meanwhile, or
// what they leave, if that is more.
func (m *Model) clash(j int, f *figures) {
	jb, d := m.jobs[j], &m.desk
	pace := math.Inf(1)
	for _, u := range d.users[j].uses {
		crowd := u.by
		for _, o := range d.sharing[u.link] {
			if o.job != j {
				crowd += o.by * min(1, d.duty[o.job]/d.duty[j])
			}
		}
		c := m.capacity[u.link]
		rest := (c-d.total[u.link])/u.by + jb.volume/f.mixed[j]
		if here := max(c/crowd, rest); here < pace {
			pace, f.tight[j] = here, topo.LinkID(u.link)
		}
	}
	f.clashing[j] = max(f.mixed[j], f.floor[j], jb.compute+jb.volume/max(pace, 1e-9*jb.level))
}
