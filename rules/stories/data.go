// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/rules/yard"
)

// dataStories are about data that is missing, old or broken: absent is not zero, and nothing fires on it.
func dataStories(p rules.Profile) []Story {
	keep := ticks(p, p.KeepFiring)
	gone := []float64{1, yard.Gone}
	no := []AlertCheck{none(calm+1, linkCongested), none(calm+4, linkCongested), none(calm+8, linkCongested), none(end, linkCongested)}
	return []Story{
		{Name: "the counters of the full link are missing", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, yard.Gone, 5)
				y.Use("s1:d2", 0.3)
			}},
		{Name: "the peers' counters are missing, as if they had none: marks do not count then, a missing peer is no idle peer", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8)
				for _, link := range []string{"l1:u2", "l1:u3", "s2:d2", "s3:d2"} {
					y.Use(link, 0.3, yard.Gone)
				}
				y.MarkedShare("n3", 0, 0.05)
			}},
		{Name: "the speed of the full link is missing", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Use("s1:d2", 0.3)
				y.Set("trainyard_switch_port_speed_bytes_per_second", []float64{yard.LinkBytesPerSecond, yard.Gone}, "switch", "l1", "port", "u1")
			}},
		{Name: "the speed of the full link is given as zero", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Use("s1:d2", 0.3)
				y.Set("trainyard_switch_port_speed_bytes_per_second", []float64{yard.LinkBytesPerSecond, 0}, "switch", "l1", "port", "u1")
			}},
		{Name: "it is not known whether the full link is up", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Use("s1:d2", 0.3)
				y.Set("trainyard_switch_port_up", gone, "switch", "l1", "port", "u1")
			}},
		{Name: "counters of the link start again from zero while it is calm", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				y.Step("job-a", 8, 5)
				y.Reset(1, "trainyard_switch_port_transmit_bytes_total", "switch", "l1", "port", "u1")
			}},
		{Name: "a job's counters start again from zero: its steps do not become longer by that", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8)
				y.Reset(1, "trainyard_job_steps_total", "job_id", "job-a")
				y.Reset(1, "trainyard_job_step_seconds_total", "job_id", "job-a")
			}},
		{Name: "the job that suffered is gone: the alert ends though the link stays full", Phases: []int{calm, event, keep + yard.Window + 4},
			Yard: func(y *yard.Yard) {
				y.Use("l1:u1", 0.3, 0.95, 0.95)
				y.Step("job-a", 8, 5, yard.Gone)
				y.Set("trainyard_job_rank_address_info", []float64{1, 1, yard.Gone}, "job_id", "job-a")
				y.MarkedShare("n3", 0, 0.05, 0.05)
			},
			Alerts: []AlertCheck{none(end+keep+yard.Window+2, linkCongested)},
			Values: []ValueCheck{{end + yard.Window + 2, `count({__name__=~"job:.+",job_id="job-a"}) or vector(0)`, []Sample{{"{}", 0}}}},
		},
		{Name: "a job that has just started and is slower than in its first steps has no usual step time yet", Phases: []int{calm, yard.Window, ticks(p, p.Warmup) - yard.Window},
			Yard: func(y *yard.Yard) {
				y.Use("l1:u1", 0.95)
				y.Step("job-a", yard.Gone, 8, 5)
			},
			Alerts: []AlertCheck{none(calm+ticks(p, p.Warmup)-1, linkCongested)},
			Values: []ValueCheck{{calm + ticks(p, p.Warmup) - 1, `job:step_seconds:baseline{job_id="job-a"}`, nil}},
		},
		{Name: "the node role is gone: no victim is known, nothing fires", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Set("trainyard_nic_info", gone)
			}},
		{Name: "a NIC that two switch ports claim counts for neither, and the other jobs are judged as ever", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Use("l2:u1", 0.3, 0.95)
				y.Step("job-b", 8, 4)
				for _, claimed := range [][]string{{"n2", "l1", "h9"}, {"n4", "l2", "h9"}} {
					y.Gauge(yard.Fabric, "trainyard_link_info", []float64{1}, "fabric", "f", "link", "f/"+claimed[1]+":h9", "switch", claimed[1], "port", "h9",
						"peer_kind", "node", "peer", claimed[0], "peer_port", "rail0", "peer_link", "f/"+claimed[0]+":rail0", "direction", "access")
				}
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l1:u1", 0.95, 0.3, 1.6), congested("l2:u1", 0.95, 0.3, 1.6), congested("s1:d2", 0.95, 0.3, 1.6))}},
		{Name: "an address that stands on two devices of a node counts for neither", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8)
				y.MarkedShare("n3", 0, 0.05)
				for n, address := range map[string]string{"n1": "10.1.1.2", "n3": "10.2.3.2"} {
					y.Gauge(yard.Node, "trainyard_nic_info", []float64{1}, "node", n, "device", "bond0", "rail", "0", "address", address, "fabric", "f")
				}
			}},
	}
}
