// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
	"github.com/trainyard/trainyard/exporter/prom"
	"github.com/trainyard/trainyard/exporter/source"
)

// FabricMetrics is the page that the exporter's fabric role would show, in the Prometheus text format.
func (p *Plant) FabricMetrics() []byte {
	return prom.Render(locked(p, func() []source.Sample { return p.stamp(p.fabricSamples()) }))
}

// NodeMetrics is what the exporter's node role would show on all nodes, on one page.
func (p *Plant) NodeMetrics() []byte {
	return prom.Render(locked(p, func() []source.Sample { return p.stamp(p.nodeSamples()) }))
}

// stamp says when the samples were read, as an exporter does: now, on the plant's clock. What an agent has in its cache is
// older than that, and nobody can see by how much.
func (p *Plant) stamp(samples []source.Sample) []source.Sample {
	for i := range samples {
		samples[i].At = p.now
	}
	return samples
}

func (p *Plant) fabricSamples() []source.Sample {
	var out []source.Sample
	add := func(name string, v float64, labels ...string) { out = append(out, source.New(name, v, labels...)) }
	fab := p.cfg.Fabric
	for _, a := range p.agents {
		sw := a.device
		tier, asn := "0", 65000
		if sw[0] == 's' {
			tier, asn = "1", 65100
		}
		n, _ := strconv.Atoi(sw[1:])
		add("trainyard_switch_up", b2f(a.up), fab, sw)
		add("trainyard_switch_info", 1, fab, sw, tier, strconv.Itoa(asn+n), fmt.Sprintf("02:00:00:00:%02x:%02x", asn-65000, n), "hash", "default")
		add("trainyard_source_success", b2f(a.up), "snmp/"+sw)
		add("trainyard_source_duration_seconds", 0.004, "snmp/"+sw)
		if !a.up {
			continue
		}
		add("trainyard_source_last_success_timestamp_seconds", float64(p.now.UnixMilli())/1000, "snmp/"+sw)
		add("trainyard_switch_poll_duration_seconds", 0.004, fab, sw)
		add("trainyard_link_unresolved", 0, fab, sw)
		for _, t := range a.ports {
			at := []string{fab, sw, t.name}
			add("trainyard_switch_port_receive_bytes_total", t.received, at...)
			add("trainyard_switch_port_transmit_bytes_total", t.sent, at...)
			add("trainyard_switch_port_receive_errors_total", t.errors, at...)
			add("trainyard_switch_port_transmit_errors_total", 0, at...)
			add("trainyard_switch_port_receive_discards_total", 0, at...)
			add("trainyard_switch_port_transmit_discards_total", t.discards, at...)
			add("trainyard_switch_port_speed_bytes_per_second", t.speed, at...)
			add("trainyard_switch_port_up", b2f(t.up), at...)
			add("trainyard_switch_port_admin_up", 1, at...)
			add("trainyard_switch_port_last_change_seconds", p.age()-t.changed, at...)
			add("trainyard_switch_port_flaps_total", t.flaps, at...)
			out = append(out, p.linkSamples(p.fabric.links[ident.Port{Fabric: fab, Device: sw, Name: t.name}], t.up)...)
		}
	}
	return append(out, buildInfo("fabric"))
}

// linkSamples are the series of the cable behind a switch port: its neighbour, its addresses, its BGP session.
func (p *Plant) linkSamples(l *link, up bool) []source.Sample {
	fab, sw, port := l.from.Fabric, l.from.Device, l.from.Name
	kind, address := "switch", ""
	var leaf, spine, node int
	switch l.dir {
	case "up":
		_, _ = fmt.Sscanf(sw+port, "l%dsp%d", &leaf, &spine)
		address = leafSide(leaf, spine).String() + "/31"
	case "down":
		_, _ = fmt.Sscanf(sw+port, "s%dlf%d", &spine, &leaf)
		address = spineSide(leaf, spine).String() + "/31"
	case "access":
		kind = "node"
		_, _ = fmt.Sscanf(sw+port, "l%dh%d", &leaf, &node)
		address = fmt.Sprintf("10.%d.%d.1/24", leaf, node)
	}
	out := []source.Sample{
		source.New("trainyard_link_info", 1, fab, l.from.String(), sw, port, kind, l.to.Device, l.to.Name, l.to.String(), l.dir, l.group),
		source.New("trainyard_switch_port_address_info", 1, fab, sw, port, address),
	}
	if kind == "switch" {
		peer, asn := spineSide(leaf, spine).String(), 65100+spine
		if l.dir == "down" {
			peer, asn = leafSide(leaf, spine).String(), 65000+leaf
		}
		out = append(out,
			source.New("trainyard_bgp_peer_established", b2f(up), fab, sw, peer),
			source.New("trainyard_bgp_peer_transitions_total", 1+l.flaps, fab, sw, peer),
			source.New("trainyard_bgp_peer_info", 1, fab, sw, peer, strconv.Itoa(asn), port))
	}
	return out
}

// nodeSamples are fresh: a node reads its own counters when it is asked.
func (p *Plant) nodeSamples() []source.Sample {
	var out []source.Sample
	add := func(name string, v float64, labels ...string) { out = append(out, source.New(name, v, labels...)) }
	for k := 1; k <= nodes; k++ {
		node := fmt.Sprintf("n%d", k)
		for r := range rails {
			n := p.fabric.byPos[k][r]
			at := []string{node, n.device()}
			wire := onWire * segment
			add("node_network_transmit_bytes_total", n.out.sentBytes, at...)
			add("node_network_receive_bytes_total", n.in.sentBytes, at...)
			add("node_network_transmit_packets_total", n.out.sentBytes/wire, at...)
			add("node_network_receive_packets_total", n.in.sentBytes/wire, at...)
			add("node_network_transmit_errs_total", 0, at...)
			add("node_network_receive_errs_total", n.in.errors, at...)
			add("node_network_transmit_drop_total", n.out.lostBytes/wire, at...)
			add("node_network_receive_drop_total", 0, at...)
			add("node_network_up", b2f(n.in.up && n.out.up), at...)
			add("node_network_speed_bytes", n.out.capacity, at...)
			add("node_network_carrier_changes_total", 1+n.in.flaps, at...)
			add("trainyard_nic_info", 1, node, n.device(), strconv.Itoa(r), n.addr.String(), p.cfg.Fabric)
			add("trainyard_nic_transmit_pause_seconds_total", n.pauseSeconds, node, n.device(), "3")
		}
		add("node_netstat_Tcp_RetransSegs", p.retrans[k], node)
		add("node_netstat_Tcp_OutRsts", 0, node)
		add("node_netstat_Tcp_EstabResets", 0, node)
		add("node_netstat_TcpExt_TCPToZeroWindowAdv", p.zeroWin[k], node)
		add("node_netstat_TcpExt_TCPTimeouts", 0, node)
		add("node_netstat_IpExt_InCEPkts", p.ecn[k], node)
		out = append(out, memorySamples(node)...)
	}
	for _, r := range p.jobs {
		out = append(out, p.jobSamples(r)...)
	}
	for _, s := range []string{"memory", "network", "netstat", "job"} {
		add("trainyard_source_success", 1, s)
		add("trainyard_source_duration_seconds", 0.001, s)
		add("trainyard_source_last_success_timestamp_seconds", float64(p.now.UnixMilli())/1000, s)
	}
	return append(out, buildInfo("node"))
}

func (p *Plant) jobSamples(r *ring) []source.Sample {
	var out []source.Sample
	add := func(name string, v float64, labels ...string) { out = append(out, source.New(name, v, labels...)) }
	add("trainyard_job_info", 1, r.ID, r.ID, "ring", strconv.Itoa(len(r.ranks)), strconv.Itoa(r.Connections))
	for _, k := range r.ranks {
		rank, node := strconv.Itoa(k.index), fmt.Sprintf("n%d", k.node)
		at := []string{r.ID, r.ID, rank, node}
		add("trainyard_job_steps_total", float64(k.finished), at...)
		add("trainyard_job_step_seconds_total", k.stepSecs, at...)
		add("trainyard_job_compute_seconds_total", k.compSecs, at...)
		add("trainyard_job_collective_seconds_total", k.collSecs, at...)
		for rail := range rails {
			n := p.fabric.byPos[k.node][rail]
			add("trainyard_job_rank_address_info", 1, r.ID, r.ID, rank, node, strconv.Itoa(rail), n.addr.String())
			add("trainyard_job_collective_bytes_total", k.sent(rail), r.ID, r.ID, rank, node, strconv.Itoa(rail))
		}
	}
	return out
}

// memorySamples are those of a node whose memory is in one piece: the plant has no fragmentation to show.
func memorySamples(node string) []source.Sample {
	out := []source.Sample{source.New("trainyard_memory_page_size_bytes", 4096, node)}
	for order := range 11 {
		free, index := 64.0, 0.0
		if order == 10 {
			free = 20000
		}
		for below := range order {
			index += 64 * float64(int(1)<<below)
		}
		index /= 64*1023 + 20000*1024
		at := []string{node, "0", "Normal", strconv.Itoa(order)}
		out = append(out,
			source.New("trainyard_memory_free_blocks", free, at...),
			source.New("trainyard_memory_unusable_free_index", index, at...),
			source.New("trainyard_memory_fragmentation_index", -1, at...))
	}
	return out
}

func buildInfo(role string) source.Sample {
	return source.New("trainyard_exporter_build_info", 1, "simulated", "", "", role)
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// age is the plant's time since its start, in seconds.
func (p *Plant) age() float64 { return p.now.Sub(p.cfg.Start).Round(time.Millisecond).Seconds() }
