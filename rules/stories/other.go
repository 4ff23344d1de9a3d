// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/rules/yard"
)

// otherStories are about the other alerts and about series that no alert is made of.
func otherStories(p rules.Profile) []Story {
	// Long enough for each alert's "for", and then for the windows behind it.
	long := func(duration string) ([]int, int) {
		n := ticks(p, duration) + yard.Window + 4
		return []int{calm, n, ticks(p, p.MemoryWindow) + 4}, calm + n - 1
	}
	imbalancePhases, imbalanceEnd := long(p.ImbalanceFor)
	memoryPhases, memoryEnd := long(p.FragmentedFor)
	downPhases, downEnd := long(p.DownFor)
	switchPhases, switchEnd := long(p.UnreachableFor)
	// pieces is a zone whose free memory falls into pieces; why is the kernel's own judgement of it.
	pieces := func(y *yard.Yard, zone string, unusable, why float64) {
		at := []string{"node", "n1", "numa_node", "0", "zone", zone, "order", "9"}
		y.Gauge(yard.Node, "trainyard_memory_unusable_free_index", []float64{0.2, unusable, 0.2}, at...)
		y.Gauge(yard.Node, "trainyard_memory_fragmentation_index", []float64{-1, why, -1}, at...)
	}
	memory := func(y *yard.Yard, zone string, unusable, why float64) {
		pieces(y, zone, unusable, why)
		y.Counter(yard.Node, "node_vmstat_compact_fail", []float64{0, 1, 0}, "node", "n1")
	}
	one := func(metric string, failed float64) func(*yard.Yard) {
		return func(y *yard.Yard) {
			pieces(y, "Normal", 0.95, -1)
			y.Counter(yard.Node, metric, []float64{0, failed, 0}, "node", "n1")
		}
	}
	calmMemory := []AlertCheck{none(memoryEnd, hostFragmented)}
	firing := []AlertCheck{only(memoryEnd, hostFragmented, fragmented("n1", "Normal", 95))}
	flapEnd := calm + ticks(p, p.FlapWindow) + 1
	imbalanced := ticks(p, p.ImbalanceFor)
	return []Story{
		{Name: "one uplink of a leaf carries 1.6 times the others and 55 %: after its time it is said, and taken back", Phases: imbalancePhases,
			Yard: func(y *yard.Yard) {
				y.Use("l2:u2", 0.3, 0.55, 0.3)
				y.Use("l2:u1", 0.3, 0.34375, 0.3)
				y.Use("l2:u3", 0.3, 0.34375, 0.3)
			},
			Alerts: []AlertCheck{
				none(calm+imbalanced-1, uplinkImbalance), only(calm+imbalanced+3, uplinkImbalance, imbalance("l2", 1.6)),
				only(imbalanceEnd, uplinkImbalance, imbalance("l2", 1.6)), none(imbalanceEnd+yard.Window+1, uplinkImbalance), none(imbalanceEnd, linkCongested),
			}},
		{Name: "one uplink carries 1.4 times the others", Phases: imbalancePhases, Alerts: quiet(imbalanceEnd),
			Yard: func(y *yard.Yard) { full(y, 0.5); y.Use("l2:u2", 0.5, 0.7) }},
		{Name: "one uplink carries twice the others, and 47 %", Phases: imbalancePhases, Alerts: quiet(imbalanceEnd),
			Yard: func(y *yard.Yard) { full(y, 0.235); y.Use("l2:u2", 0.235, 0.47) }},
		{Name: "one uplink carries twice the others, and 47 %, while a downlink elsewhere is fuller", Phases: imbalancePhases, Alerts: []AlertCheck{none(imbalanceEnd, uplinkImbalance)},
			Yard: func(y *yard.Yard) { full(y, 0.235); y.Use("l2:u2", 0.235, 0.47); y.Use("s1:d1", 0.235, 0.7) }},
		{Name: "two of three uplinks carry it all: the worst is named", Phases: imbalancePhases, Alerts: []AlertCheck{only(imbalanceEnd, uplinkImbalance, imbalance("l2", 2))},
			Yard: func(y *yard.Yard) { y.Use("l2:u1", 0.3, 0.9); y.Use("l2:u2", 0.3, 0.8); y.Use("l2:u3", 0.3, 0.1) }},
		{Name: "one downlink of a spine carries more than the others: no matter of the leaf's uplinks", Phases: imbalancePhases, Alerts: []AlertCheck{none(imbalanceEnd, uplinkImbalance)},
			Yard: func(y *yard.Yard) { y.Use("s1:d1", 0.3, 0.7) }},

		{Name: "a switch's agent stops to answer, then answers again", Phases: switchPhases,
			Yard: func(y *yard.Yard) { y.Set("trainyard_switch_up", []float64{1, 0, 1}, "switch", "s2") },
			Alerts: []AlertCheck{none(calm+ticks(p, p.UnreachableFor)-1, switchUnreachable), only(calm+ticks(p, p.UnreachableFor), switchUnreachable, unreachable("s2")),
				only(switchEnd, switchUnreachable, unreachable("s2")), none(switchEnd+1, switchUnreachable)}},
		{Name: "one of two exporters reaches the switch: it is reachable", Phases: switchPhases, Alerts: quiet(switchEnd),
			Yard: func(y *yard.Yard) {
				y.Twice(yard.Fabric)
				y.Gauge("trainyard-fabric-third", "trainyard_switch_up", []float64{0}, "fabric", "f", "switch", "s2")
			}},

		{Name: "an exporter cannot be scraped, then it can", Phases: downPhases, Rules: "trainyard.yaml",
			Yard: func(y *yard.Yard) { y.Set("up", []float64{1, 0, 1}) },
			Alerts: []AlertCheck{none(calm+ticks(p, p.DownFor)-1, exporterIsDown),
				only(calm+ticks(p, p.DownFor), exporterIsDown, exporterDown(yard.Fabric), exporterDown(yard.Node)), none(downEnd+1, exporterIsDown)}},
		{Name: "a target of somebody else is down", Phases: downPhases, Rules: "trainyard.yaml", Alerts: quiet(downEnd),
			Yard: func(y *yard.Yard) { y.Gauge("database", "up", []float64{1, 0}) }},

		{Name: "free memory in pieces and compaction fails", Phases: memoryPhases, Rules: "memory.yaml", Alerts: append(firing, none(calm+ticks(p, p.FragmentedFor)-1, hostFragmented), none(memoryEnd+memoryPhases[2], hostFragmented)),
			Yard: func(y *yard.Yard) { memory(y, "Normal", 0.95, 0.7) }},
		{Name: "free memory in pieces and huge pages are replaced by small ones", Phases: memoryPhases, Rules: "memory.yaml", Alerts: firing, Yard: one("node_vmstat_thp_fault_fallback", 1)},
		{Name: "free memory in pieces and the huge-page pool cannot grow", Phases: memoryPhases, Rules: "memory.yaml", Alerts: firing, Yard: one("node_vmstat_htlb_buddy_alloc_fail", 1)},
		{Name: "free memory in pieces and nobody asks for huge pages", Phases: memoryPhases, Rules: "memory.yaml", Alerts: calmMemory,
			Yard: func(y *yard.Yard) {
				one("node_vmstat_thp_fault_fallback", 0)(y)
				y.Counter(yard.Node, "node_vmstat_compact_fail", []float64{0}, "node", "n1")
				y.Counter(yard.Node, "node_vmstat_htlb_buddy_alloc_fail", []float64{0}, "node", "n1")
			}},
		{Name: "free memory in pieces in one zone, while another zone, another NUMA node and another host are short of memory", Phases: memoryPhases, Rules: "memory.yaml", Alerts: firing,
			Yard: func(y *yard.Yard) {
				memory(y, "Normal", 0.95, 0.7)
				for _, at := range [][]string{{"n1", "0", "Movable"}, {"n1", "1", "Normal"}, {"n2", "0", "Normal"}} {
					y.Gauge(yard.Node, "trainyard_memory_fragmentation_index", []float64{0.1}, "node", at[0], "numa_node", at[1], "zone", at[2], "order", "9")
				}
			}},
		{Name: "85 % of the free memory in pieces", Phases: memoryPhases, Rules: "memory.yaml", Alerts: calmMemory, Yard: func(y *yard.Yard) { memory(y, "Normal", 0.85, 0.7) }},
		{Name: "the kernel says that memory is short, not in pieces", Phases: memoryPhases, Rules: "memory.yaml", Alerts: calmMemory, Yard: func(y *yard.Yard) { memory(y, "Normal", 0.95, 0.45) }},
		{Name: "the kernel says that memory is in pieces, just so", Phases: memoryPhases, Rules: "memory.yaml", Alerts: firing, Yard: func(y *yard.Yard) { memory(y, "Normal", 0.95, 0.55) }},
		{Name: "nothing is free at all: short, not in pieces", Phases: memoryPhases, Rules: "memory.yaml", Alerts: calmMemory, Yard: func(y *yard.Yard) { memory(y, "Normal", 1, 0) }},
		{Name: "a DMA zone in pieces", Phases: memoryPhases, Rules: "memory.yaml", Alerts: calmMemory, Yard: func(y *yard.Yard) { memory(y, "DMA32", 0.95, 0.7) }},

		{Name: "errors and flaps at one end count for both directions of the cable", Phases: []int{calm, ticks(p, p.FlapWindow) + 2},
			Yard: func(y *yard.Yard) {
				perFlap := 2 / (float64(ticks(p, p.FlapWindow)) * y.Tick().Seconds()) // one down and one up in the window
				y.Set("trainyard_switch_port_receive_errors_total", []float64{0, 3}, "switch", "s1", "port", "d1")
				y.Set("trainyard_switch_port_transmit_errors_total", []float64{0, 2}, "switch", "l1", "port", "u1")
				y.Set("node_network_receive_errs_total", []float64{0, 4}, "node", "n2")
				y.Set("trainyard_switch_port_flaps_total", []float64{0, 3 * perFlap}, "switch", "s2", "port", "d2")
				y.Set("trainyard_bgp_peer_transitions_total", []float64{0, 2 * perFlap}, "switch", "l3", "peer", "10.0.33.1")
			},
			Values: []ValueCheck{
				{flapEnd, `link:errors:per_second > 0`, []Sample{
					{`link:errors:per_second{fabric="f",link="f/l1:u1"}`, 5}, {`link:errors:per_second{fabric="f",link="f/s1:d1"}`, 5},
					{`link:errors:per_second{fabric="f",link="f/l1:h2"}`, 4}, {`link:errors:per_second{fabric="f",link="f/n2:rail0"}`, 4}}},
				{flapEnd, `link:flaps:increase > 0`, []Sample{
					{`link:flaps:increase{fabric="f",link="f/s2:d2"}`, 3}, {`link:flaps:increase{fabric="f",link="f/l2:u2"}`, 3},
					{`link:flaps:increase{fabric="f",link="f/l3:u3"}`, 4}}},
			}},
		{Name: "signals of nodes and ranks", Phases: usual,
			Yard: func(y *yard.Yard) {
				y.MarkedShare("n1", 0, 0.02)
				y.Counter(yard.Node, "node_network_receive_packets_total", []float64{500}, "node", "n1", "device", "management0")
				y.Set("node_netstat_Tcp_RetransSegs", []float64{0, 7}, "node", "n1")
				y.Set("node_netstat_TcpExt_TCPToZeroWindowAdv", []float64{0, 9}, "node", "n1")
				y.Set("trainyard_job_compute_seconds_total", []float64{0.5, 0.25}, "rank", "1", "job_id", "job-a")
			},
			Values: []ValueCheck{
				{end, `node:ecn:rate{node="n1"}`, []Sample{{`node:ecn:rate{node="n1"}`, 20}}},
				{end, `node:ecn:ratio{node="n1"}`, []Sample{{`node:ecn:ratio{node="n1"}`, 0.02}}},
				{end, `node:retransmits:rate > 0`, []Sample{{`node:retransmits:rate{node="n1"}`, 7}}},
				{end, `node:zero_windows:rate > 0`, []Sample{{`node:zero_windows:rate{node="n1"}`, 9}}},
				// one second of stepping a second, eight steps a window
				{end, `rank:compute_seconds:mean{job_id="job-a",rank="1"} * 32`, []Sample{{`{job_id="job-a",gang="g",rank="1",node="n3"}`, 4 * tickSeconds(p)}}},
				{end, `job:step_seconds:mean{job_id="job-a"} * 8`, []Sample{{`{job_id="job-a",gang="g"}`, 4 * tickSeconds(p)}}},
				{end, `job:collective_seconds:mean{job_id="job-a"} * 8`, []Sample{{`{job_id="job-a",gang="g"}`, 4 * tickSeconds(p)}}},
			}},
	}
}
