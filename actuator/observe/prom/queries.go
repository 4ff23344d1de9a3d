// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"strings"
	"time"
)

// Query names one question of a snapshot; Results are keyed by it.
type Query string

// The questions. Topology comes from the exporter's info series (contract 13), the figures of jobs and the evidence from
// recording rules. Loads of ports are worked out here from the counters themselves, see rate.go.
const (
	SwitchInfo    Query = "switch info"
	SwitchUp      Query = "switch up"
	LinkInfo      Query = "link info"
	PortSpeed     Query = "port speed"
	PortUp        Query = "port up"
	PortAddress   Query = "port address"
	NICInfo       Query = "nic info"
	JobInfo       Query = "job info"
	RankAddress   Query = "rank address"
	PortTransmit  Query = "port transmit rate"
	PortAge       Query = "age of port counters"
	PortReceive   Query = "port receive rate"
	LinkErrors    Query = "link errors"
	LinkFlaps     Query = "link flaps"
	NICTransmit   Query = "nic transmit rate"
	NICReceive    Query = "nic receive rate"
	NICAge        Query = "age of nic counters"
	NICPause      Query = "nic pause ratio"
	NodeECN       Query = "node ECN rate"
	NodeZeroWin   Query = "node zero windows"
	NodeRetrans   Query = "node retransmits"
	StepSeconds   Query = "step seconds"
	StepBaseline  Query = "step baseline"
	Collective    Query = "collective seconds"
	Compute       Query = "compute seconds"
	JobSteps      Query = "job steps"
	JobStepSecs   Query = "job seconds in steps"
	JobStepBytes  Query = "job bytes per step"
	JobReportsAge Query = "age of job reports"
)

// question is one row of the fixed list. In its expression $F stands for the fabric matcher, $W for the window, $A for
// the age that is accepted, $S for a small part of it, and $R for window and age together.
type question struct {
	name Query
	expr string
	per  []string // labels of a rate that is worked out from counters (rate.go); nil = the answer is a plain vector
}

// last is the newest sample that is not older than accepted. A plain selector would see nothing from a scrape that
// failed to the next: one lost scrape would be a hole in the picture, though nothing in it is stale yet.
func last(selector string) string { return "last_over_time(" + selector + "[$A])" }

// age is how old that sample is, by Prometheus' clock (contract 6).
func age(selector string) string {
	return "time() - (timestamp(" + selector + ") or max_over_time(timestamp(" + selector + ")[$A:$S]))"
}

// port is what a switch port is named by.
var port = []string{"fabric", "switch", "port"}

// onNIC keeps the interfaces that are NICs of the fabric.
func onNIC(expr string) string {
	return "(" + expr + ") and on (node, device) " + last("trainyard_nic_info{$F}")
}

// queries is everything that a snapshot asks. Each aggregates away `instance` and `job`, so that two exporters that
// say the same are one fact, and two that say different things are two rows, which Build refuses.
var queries = []question{
	{SwitchInfo, "group by (fabric, switch, tier, asn, chassis_id, balancing, vrf) (" + last("trainyard_switch_info{$F}") + ")", nil},
	{SwitchUp, "max by (fabric, switch) (" + last("trainyard_switch_up{$F}") + ")", nil},
	{LinkInfo, "group by (fabric, link, switch, port, peer_kind, peer, peer_port, peer_link, direction, ecmp_group) (" + last("trainyard_link_info{$F}") + ")", nil},
	{PortSpeed, "max by (fabric, switch, port) (" + last("trainyard_switch_port_speed_bytes_per_second{$F}") + ")", nil},
	{PortUp, "min by (fabric, switch, port) (" + last("trainyard_switch_port_up{$F}") + ")", nil},
	{PortAddress, "group by (fabric, switch, port, address) (" + last("trainyard_switch_port_address_info{$F}") + ")", nil},
	{NICInfo, "group by (fabric, node, device, rail, address) (" + last("trainyard_nic_info{$F}") + ")", nil},
	{JobInfo, "group by (job_id, gang, collective, ranks, connections) (" + last("trainyard_job_info") + ")", nil},
	{RankAddress, "group by (job_id, gang, rank, node, rail, address) (" + last("trainyard_job_rank_address_info") + ")", nil},

	{PortTransmit, "trainyard_switch_port_transmit_bytes_total{$F}[$R]", port},
	{PortReceive, "trainyard_switch_port_receive_bytes_total{$F}[$R]", port},
	{PortAge, "max by (fabric, switch, port) (" + age("trainyard_switch_port_transmit_bytes_total{$F}") + ")", nil},
	{LinkErrors, "max by (fabric, link) (" + last("link:errors:per_second{$F}") + ")", nil},
	{LinkFlaps, "max by (fabric, link) (" + last("link:flaps:increase{$F}") + ")", nil},

	{NICTransmit, "max by (node, device) (" + onNIC("rate(node_network_transmit_bytes_total[$W])") + ")", nil},
	{NICReceive, "max by (node, device) (" + onNIC("rate(node_network_receive_bytes_total[$W])") + ")", nil},
	{NICAge, "max by (node, device) (" + onNIC(age("node_network_transmit_bytes_total")) + ")", nil},
	{NICPause, "max by (node, device) (" + last("nic:pause:ratio") + ")", nil},
	{NodeECN, "max by (node) (" + last("node:ecn:rate") + ")", nil},
	{NodeZeroWin, "max by (node) (" + last("node:zero_windows:rate") + ")", nil},
	{NodeRetrans, "max by (node) (" + last("node:retransmits:rate") + ")", nil},

	{StepSeconds, "max by (job_id, gang) (" + last("job:step_seconds:mean") + ")", nil},
	{StepBaseline, "max by (job_id, gang) (" + last("job:step_seconds:baseline") + ")", nil},
	{Collective, "max by (job_id, gang) (" + last("job:collective_seconds:mean") + ")", nil},
	{Compute, "max by (job_id, gang, rank) (" + last("rank:compute_seconds:mean") + ")", nil},
	{JobSteps, "avg by (job_id, gang) (" + last("trainyard_job_steps_total") + ")", nil},
	{JobStepSecs, "avg by (job_id, gang) (" + last("trainyard_job_step_seconds_total") + ")", nil},
	// Bytes and steps of one report belong together, so their ratio is exact whenever it was read.
	{JobStepBytes, "avg by (job_id, gang, rail) (max by (job_id, gang, rank, rail) (rate(trainyard_job_collective_bytes_total[$W]))" +
		" / on (job_id, gang, rank) group_left () (max by (job_id, gang, rank) (rate(trainyard_job_steps_total[$W])) > 0))", nil},
	{JobReportsAge, "max by (job_id, gang) (" + age("trainyard_job_steps_total") + ")", nil},
}

// text is the expression for one configuration. The fabric cannot break out of its quotes: Validate refuses them.
func (q question) text(c Config) string {
	matcher := ""
	if c.Fabric != "" {
		matcher = fmt.Sprintf(`fabric="%s"`, c.Fabric)
	}
	return strings.NewReplacer("$F", matcher, "$W", promDuration(c.Window), "$A", promDuration(c.MaxAge), "$S", promDuration(c.MaxAge/12), "$R", promDuration(c.Window+c.MaxAge)).Replace(q.expr)
}

// promDuration spells a duration as PromQL does; milliseconds are its finest unit.
func promDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// Expressions is what a snapshot asks under one configuration, for fakes and for people who want to try it by hand.
func Expressions(c Config) map[Query]string {
	out := make(map[Query]string, len(queries))
	for _, q := range queries {
		out[q.name] = q.text(c)
	}
	return out
}
