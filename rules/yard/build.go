// SPDX-License-Identifier: Apache-2.0

package yard

import "fmt"

// The scrape jobs of the monitoring configuration.
const (
	Fabric = "trainyard-fabric"
	Node   = "trainyard-node"
)

const fabric = "f"

// ByteRate of a calm link, and the packets per second that a node receives.
const (
	calmUse          = 0.3
	packetsPerSecond = 1000
)

func (y *Yard) exporters() {
	y.Gauge(Fabric, "up", constant(1))
	y.Gauge(Node, "up", constant(1))
	for _, sw := range []string{"l1", "l2", "l3", "s1", "s2", "s3"} {
		y.Gauge(Fabric, "trainyard_switch_up", constant(1), "fabric", fabric, "switch", sw)
	}
}

// cable is both directions between a leaf and a spine, with a BGP session over it.
func (y *Yard) cable(leaf, spine int) {
	l, s := fmt.Sprintf("l%d", leaf), fmt.Sprintf("s%d", spine)
	up, down := fmt.Sprintf("u%d", spine), fmt.Sprintf("d%d", leaf)
	y.port(l, up, "switch", s, down, "up", fabric+"/"+l+":up")
	y.port(s, down, "switch", l, up, "down", fabric+"/"+l+":down")
	y.session(l, up, fmt.Sprintf("10.0.%d.1", 10*leaf+spine))
	y.session(s, down, fmt.Sprintf("10.0.%d.0", 10*leaf+spine))
}

func (y *Yard) port(device, port, peerKind, peer, peerPort, direction, group string) {
	link := fabric + "/" + device + ":" + port
	info := []string{"fabric", fabric, "link", link, "switch", device, "port", port, "peer_kind", peerKind, "peer", peer,
		"peer_port", peerPort, "peer_link", fabric + "/" + peer + ":" + peerPort, "direction", direction}
	if group != "" {
		info = append(info, "ecmp_group", group) // an empty label is no label
	}
	at := []string{"fabric", fabric, "switch", device, "port", port}
	y.Gauge(Fabric, "trainyard_link_info", constant(1), info...)
	y.Gauge(Fabric, "trainyard_switch_port_up", constant(1), at...)
	y.Gauge(Fabric, "trainyard_switch_port_speed_bytes_per_second", constant(LinkBytesPerSecond), at...)
	y.Counter(Fabric, "trainyard_switch_port_transmit_bytes_total", constant(calmUse*LinkBytesPerSecond), at...)
	for _, name := range []string{"receive_errors", "transmit_errors", "flaps"} {
		y.Counter(Fabric, "trainyard_switch_port_"+name+"_total", constant(0), at...)
	}
}

func (y *Yard) session(device, port, peer string) {
	at := []string{"fabric", fabric, "switch", device, "peer", peer}
	y.Gauge(Fabric, "trainyard_bgp_peer_info", constant(1), append(at[:6:6], "remote_asn", "65000", "port", port)...)
	y.Gauge(Fabric, "trainyard_bgp_peer_established", constant(1), at...)
	y.Counter(Fabric, "trainyard_bgp_peer_transitions_total", constant(0), at...)
}

func (y *Yard) node(n, leaf int) {
	node, leafPort := fmt.Sprintf("n%d", n), fmt.Sprintf("h%d", n)
	y.port(fmt.Sprintf("l%d", leaf), leafPort, "node", node, "rail0", "access", "")
	y.Gauge(Node, "trainyard_nic_info", constant(1), "node", node, "device", "rail0", "rail", "0", "address", address(n, leaf), "fabric", fabric)
	y.Counter(Node, "trainyard_nic_transmit_pause_seconds_total", constant(0), "node", node, "device", "rail0", "priority", "3")
	y.Counter(Node, "node_network_receive_packets_total", constant(packetsPerSecond), "node", node, "device", "rail0")
	for _, name := range []string{"receive", "transmit"} {
		y.Counter(Node, "node_network_"+name+"_errs_total", constant(0), "node", node, "device", "rail0")
	}
	for _, name := range []string{"IpExt_InCEPkts", "Tcp_RetransSegs", "TcpExt_TCPToZeroWindowAdv"} {
		y.Counter(Node, "node_netstat_"+name, constant(0), "node", node)
	}
}

// MarkedShare is the share of received packets that a node sees marked, in each phase.
func (y *Yard) MarkedShare(node string, share ...float64) {
	var rate []float64
	for _, s := range share {
		rate = append(rate, s*packetsPerSecond)
	}
	y.Set("node_netstat_IpExt_InCEPkts", rate, "node", node)
}

func (y *Yard) job(id string, nodes ...int) {
	for rank, n := range nodes {
		node := fmt.Sprintf("n%d", n)
		at := []string{"job_id", id, "gang", "g", "rank", fmt.Sprint(rank), "node", node}
		y.Gauge(Node, "trainyard_job_rank_address_info", constant(1), append(at[:8:8], "rail", "0", "address", address(n, (n+1)/2))...)
		for _, name := range []string{"steps", "step_seconds", "compute_seconds", "collective_seconds"} {
			y.Counter(Node, "trainyard_job_"+name+"_total", constant(0.5), at...)
		}
	}
	y.Step(id, 8)
}

func address(node, leaf int) string { return fmt.Sprintf("10.%d.%d.2", leaf, node) }
