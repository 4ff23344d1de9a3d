// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/rules/yard"
)

// full sets every link of the fabric to one use.
func full(y *yard.Yard, use ...float64) {
	y.Set("trainyard_switch_port_transmit_bytes_total", scaled(use, yard.LinkBytesPerSecond))
}

func scaled(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * by
	}
	return out
}

// healthyStories raise no FabricLinkCongested.
func healthyStories(p rules.Profile) []Story {
	halfHour := int(30 * time.Minute / must(time.ParseDuration(p.Scrape)))
	var through []int
	for t := halfHour / 10; t <= halfHour; t += halfHour / 10 {
		through = append(through, t)
	}
	lineRate := func(y *yard.Yard) {
		full(y, 0.97)
		for _, n := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
			y.MarkedShare(n, 0.05) // a full queue marks some packets; that alone is no harm
		}
	}
	no := []AlertCheck{none(end, linkCongested)}
	return []Story{
		{Name: "an all-reduce at line rate on balanced links for 30 minutes raises nothing", Phases: []int{halfHour + 1}, Long: true,
			Yard: lineRate, Alerts: quiet(through...)},
		{Name: "from calm to line rate on all links at once, with marks", Phases: usual, Alerts: quiet(calm+2, calm+5, end),
			Yard: func(y *yard.Yard) {
				full(y, 0.3, 0.97)
				y.MarkedShare("n1", 0, 0.05)
				y.MarkedShare("n3", 0, 0.05)
			}},
		{Name: "a full link whose peers are as full, though job-a is slower: more links are wanted, not other routes", Phases: usual, Alerts: quiet(calm+5, end),
			Yard: func(y *yard.Yard) {
				for _, link := range []string{"l1:u1", "l1:u2", "l1:u3", "s1:d2", "s2:d2", "s3:d2"} {
					y.Use(link, 0.3, 0.95)
				}
				y.Step("job-a", 8, 5)
			}},
		{Name: "a full link, 1.2 times its peers", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.84, 5)
				for _, link := range []string{"l1:u2", "l1:u3", "s2:d2", "s3:d2"} {
					y.Use(link, 0.3, 0.7)
				}
			}},
		{Name: "a link beyond its peers that is 75 % full", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) { collide(y, 0.75, 5) }},
		{Name: "a full link beyond its peers, and no job suffers", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) { collide(y, 0.95, 8) }},
		{Name: "steps 1.1 times as long, 0.95 % of packets marked, 0.95 % of the time paused: no victim", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8/1.1)
				y.MarkedShare("n3", 0, 0.0095)
				y.Set("trainyard_nic_transmit_pause_seconds_total", []float64{0, 0.0095}, "node", "n3")
			}},
		{Name: "a job that finishes less than three steps in the window is not judged, whatever signal it gives", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 2.8)
				y.MarkedShare("n3", 0, 0.05)
				y.Set("trainyard_nic_transmit_pause_seconds_total", []float64{0, 0.05}, "node", "n3")
			}},
		{Name: "one rank of the job is further behind than the others: it decides how many steps the job has finished", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 4)
				y.Set("trainyard_job_steps_total", []float64{8 / (yard.Window * y.Tick().Seconds()), 2.5 / (yard.Window * y.Tick().Seconds())}, "job_id", "job-a", "rank", "1")
			}},
		{Name: "the job that is slower has no NIC behind the full link", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				collide(y, 0.95, 8)
				y.Step("job-c", 8, 5)
				y.MarkedShare("n5", 0, 0.05)
			}},
		{Name: "the only path that is left is full and marks packets, and no job is slower", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				y.Use("l1:u1", 0.3, 0.95)
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u2")
				y.Set("trainyard_switch_port_up", []float64{1, 0}, "switch", "l1", "port", "u3")
				y.MarkedShare("n1", 0, 0.05)
				y.Set("trainyard_nic_transmit_pause_seconds_total", []float64{0, 0.0095}, "node", "n1")
				y.Step("job-a", 8, 8/1.1)
			}},
		{Name: "ports that are up without their BGP session are no peers: marks alone do not make the last path congested", Phases: usual, Alerts: no,
			Yard: func(y *yard.Yard) {
				y.Use("l1:u1", 0.3, 0.95)
				for _, peer := range []string{"10.0.12.1", "10.0.13.1"} {
					y.Set("trainyard_bgp_peer_established", []float64{1, 0}, "switch", "l1", "peer", peer)
				}
				y.Use("l1:u2", 0.3, 0)
				y.Use("l1:u3", 0.3, 0)
				y.MarkedShare("n1", 0, 0.05)
			}},
	}
}
