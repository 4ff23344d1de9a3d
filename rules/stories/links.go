// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/rules/yard"
)

// Most stories have some ticks of calm and then a dozen of something.
const (
	calm  = 8
	event = 12
	end   = calm + event - 1
)

var usual = []int{calm, event}

// collide is the change that most stories vary: the uplink l1:u1 and, behind it, the downlink s1:d2 are full and job-a,
// which runs over them, slows down.
func collide(y *yard.Yard, use, stepsPerWindow float64) {
	y.Use("l1:u1", 0.3, use)
	y.Use("s1:d2", 0.3, use)
	y.Step("job-a", 8, stepsPerWindow)
}

// All is every story, for one profile.
func All(p rules.Profile) []Story {
	all := append(linkStories(p), healthyStories(p)...)
	all = append(all, dataStories(p)...)
	return append(all, otherStories(p)...)
}

// linkStories raise FabricLinkCongested.
func linkStories(p rules.Profile) []Story {
	keep := ticks(p, p.KeepFiring)
	held := ticks(p, p.CongestedFor)
	both := func(use, peers, slowdown float64) []Alert {
		return []Alert{congested("l1:u1", use, peers, slowdown), congested("s1:d2", use, peers, slowdown)}
	}
	return []Story{
		{
			Name:   "two jobs hash onto one uplink: both directed links of the way fire, hold through a short recovery and resolve",
			Phases: []int{calm, event, keep + yard.Window + 4},
			Yard: func(y *yard.Yard) {
				y.Use("l1:u1", 0.3, 0.95, 0.3)
				y.Use("s1:d2", 0.3, 0.95, 0.3)
				y.Step("job-a", 8, 5, 8)
			},
			Alerts: append(quiet(calm),
				none(calm+1+held, linkCongested), // two thirds of the window are still calm
				only(calm+3+held, linkCongested, both(0.95, 0.3, 1.6)...),
				only(end, linkCongested, both(0.95, 0.3, 1.6)...),
				only(end+keep, linkCongested, both(0.95, 0.3, 1.6)...),
				none(end+keep+yard.Window+2, linkCongested),
			),
			Values: []ValueCheck{
				{end, `link:use_of_peers:mean{link="f/l1:u1"}`, []Sample{{`link:use_of_peers:mean{fabric="f",link="f/l1:u1",switch="l1",port="u1",direction="up",ecmp_group="f/l1:up"}`, 0.3}}},
				{end, `link:transmit:bytes_per_second{link="f/l1:u1"}`, []Sample{{`link:transmit:bytes_per_second{fabric="f",link="f/l1:u1",switch="l1",port="u1",direction="up",ecmp_group="f/l1:up"}`, 0.95e6}}},
				{end, `link:job_victims:max{link=~"f/(l1:u1|l2:u3|s1:d1|s1:d3|l2:h3|l2:h4)"}`, []Sample{
					{`link:job_victims:max{fabric="f",link="f/l1:u1"}`, 1.6}, {`link:job_victims:max{fabric="f",link="f/l2:u3"}`, 1.6}, {`link:job_victims:max{fabric="f",link="f/s1:d1"}`, 1.6},
					{`link:job_victims:max{fabric="f",link="f/s1:d3"}`, 1}, {`link:job_victims:max{fabric="f",link="f/l2:h3"}`, 1.6}, {`link:job_victims:max{fabric="f",link="f/l2:h4"}`, 1}}},
				{end, `job:iterations:increase{job_id="job-a"}`, []Sample{{`job:iterations:increase{job_id="job-a",gang="g"}`, 5}}},
			},
		},
		{
			Name: "everything just over its limit: 85 % full, 1.42 times the peers, steps 1.2 times as long", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.85, 8/1.2)
				for _, link := range []string{"l1:u2", "l1:u3", "s2:d2", "s3:d2"} {
					y.Use(link, 0.3, 0.6)
				}
			},
			Alerts: []AlertCheck{only(end, linkCongested, both(0.85, 0.6, 1.2)...)},
		},
		{
			Name: "a job with just over three steps in the window is judged", Phases: usual,
			Yard:   func(y *yard.Yard) { collide(y, 0.95, 3.2) },
			Alerts: []AlertCheck{only(end, linkCongested, both(0.95, 0.3, 2.5)...)},
		},
		{
			Name: "no job is slower yet, but a receiver of job-a sees more than 1 % of its packets marked", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8)
				y.MarkedShare("n3", 0, 0.0105)
			},
			Alerts: []AlertCheck{only(end, linkCongested, both(0.95, 0.3, 1)...)},
		},
		{
			Name: "no job is slower yet, but a NIC of job-a stops its switch for more than 1 % of the time", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8)
				y.Set("trainyard_nic_transmit_pause_seconds_total", []float64{0, 0.0105}, "node", "n3")
			},
			Alerts: []AlertCheck{only(end, linkCongested, both(0.95, 0.3, 1)...)},
		},
		{
			Name: "the only path that is left is full and job-a is slower: it fires and says that there is no live peer", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8/1.2)
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u2")
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u3")
				y.Use("l1:u2", 0.3, 0)
				y.Use("l1:u3", 0.3, 0)
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l1:u1", 0.95, -1, 1.2), congested("s1:d2", 0.95, 0.3, 1.2))},
		},
		{
			Name: "the only path that is left is full and a NIC behind it stops its switch", Phases: usual,
			Yard: func(y *yard.Yard) {
				y.Use("l1:u1", 0.3, 0.95)
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u2")
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u3")
				y.Set("trainyard_nic_transmit_pause_seconds_total", []float64{0, 0.0105}, "node", "n1")
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l1:u1", 0.95, -1, 1))},
		},
		{
			Name: "one of two peers is down, whatever its counter says: the other alone is compared with", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.85, 8/1.2)
				y.Use("s1:d2", 0.3)
				y.Use("l1:u2", 0.3, 0.6)
				y.Use("l1:u3", 0.3, 0.9)
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u3")
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l1:u1", 0.85, 0.6, 1.2))},
		},
		{
			Name: "the speed of a peer is given as zero: it is left out and does not hide the congestion", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Use("l1:u2", 0.3, 0.4)
				y.Set("trainyard_switch_port_speed_bytes_per_second", []float64{yard.LinkBytesPerSecond, 0}, "switch", "l1", "port", "u3")
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l1:u1", 0.95, 0.4, 1.6), congested("s1:d2", 0.95, 0.3, 1.6))},
		},
		{
			Name: "the last hop to a node is full and its job is slower", Phases: usual,
			Yard: func(y *yard.Yard) {
				y.Use("l2:h3", 0.3, 0.95)
				y.Step("job-a", 8, 5)
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l2:h3", 0.95, -1, 1.6))},
		},
		{
			Name: "two exporters read the same switches: one alert a link, and no rate is counted twice", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Use("l2:u2", 0.3, 0.45)
				y.Twice(yard.Fabric)
			},
			Alerts: []AlertCheck{only(end, linkCongested, both(0.95, 0.3, 1.6)...)},
			Values: []ValueCheck{{end, `max(link:use:ratio{link="f/l2:u2"})`, []Sample{{"{}", 0.45}}}},
		},
		{
			Name: "a port with two neighbours is left out, and the others are judged as ever", Phases: usual,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 5)
				y.Gauge(yard.Fabric, "trainyard_link_info", []float64{1}, "fabric", "f", "link", "f/s1:d2", "switch", "s1", "port", "d2",
					"peer_kind", "switch", "peer", "l9", "peer_port", "u1", "peer_link", "f/l9:u1", "direction", "down")
			},
			Alerts: []AlertCheck{only(end, linkCongested, congested("l1:u1", 0.95, 0.3, 1.6))},
		},
	}
}
