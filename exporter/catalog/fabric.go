// SPDX-License-Identifier: Apache-2.0

package catalog

var portLabels = []string{"fabric", "switch", "port"}

var ports = Family{
	Title: "Switch ports",
	About: "From IF-MIB over SNMP, by the fabric role. A directed link from a node to its leaf has no counter of its own: read the leaf port's receive side.",
	Rows: []Row{
		{Name: "trainyard_switch_port_receive_bytes_total", Help: "Bytes received by the port (ifHCInOctets).", Unit: Bytes, Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_transmit_bytes_total", Help: "Bytes transmitted by the port (ifHCOutOctets).", Unit: Bytes, Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_receive_errors_total", Help: "Frames received with errors (ifInErrors).", Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_transmit_errors_total", Help: "Frames not transmitted because of errors (ifOutErrors).", Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_receive_discards_total", Help: "Good frames dropped on receipt (ifInDiscards).", Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_transmit_discards_total", Help: "Good frames dropped before transmission (ifOutDiscards); many agents do not count queue drops here.", Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_speed_bytes_per_second", Help: "Speed of the port (ifHighSpeed); absent where the agent gives 0.", Unit: BytesPerSecond, Kind: Gauge, Labels: portLabels},
		{Name: "trainyard_switch_port_up", Help: "1 if the port is operationally up (ifOperStatus), else 0.", Kind: Gauge, Labels: portLabels},
		{Name: "trainyard_switch_port_admin_up", Help: "1 if the port is meant to be up (ifAdminStatus), else 0.", Kind: Gauge, Labels: portLabels},
		{Name: "trainyard_switch_port_last_change_seconds", Help: "Seconds since the port last changed state, as the agent's clock has it (sysUpTime minus ifLastChange).", Unit: Seconds, Kind: Gauge, Labels: portLabels},
		{Name: "trainyard_switch_port_flaps_total", Help: "Times that the port went down, as this exporter saw it since it started; also between two polls, where the agent's ifLastChange tells.", Kind: Counter, Labels: portLabels},
		{Name: "trainyard_switch_port_address_info", Help: "Address of the port with its prefix length (ipAddrTable).", Kind: Info, Labels: []string{"fabric", "switch", "port", "address"}},
	},
}

var links = Family{
	Title: "Links and switches",
	About: "From LLDP-MIB, the inventory and the poll itself. A link whose peer is not exactly one object of the inventory has no ecmp_group and an empty peer_link.",
	Rows: []Row{
		{Name: "trainyard_link_info", Help: "Directed link from a switch port to its LLDP neighbour; peer_link is the opposite direction.", Kind: Info,
			Labels: []string{"fabric", "link", "switch", "port", "peer_kind", "peer", "peer_port", "peer_link", "direction", "ecmp_group"}},
		{Name: "trainyard_link_unresolved", Help: "LLDP neighbours of the switch that are not exactly one object of the inventory.", Kind: Gauge, Labels: []string{"fabric", "switch"}},
		{Name: "trainyard_switch_info", Help: "What the inventory and the agent say of a switch.", Kind: Info,
			Labels: []string{"fabric", "switch", "tier", "asn", "chassis_id", "balancing", "vrf"}},
		{Name: "trainyard_switch_up", Help: "1 if the switch's SNMP agent answered the last poll, else 0.", Kind: Gauge, Labels: []string{"fabric", "switch"}},
		{Name: "trainyard_switch_agent_cache_seconds", Help: "Seconds for which the agent repeats its counters (net-snmp's nsCacheTimeout); absent where it does not say.", Unit: Seconds, Kind: Gauge, Labels: []string{"fabric", "switch"}},
		{Name: "trainyard_switch_poll_duration_seconds", Help: "Time that the last poll of the switch took.", Unit: Seconds, Kind: Gauge, Labels: []string{"fabric", "switch"}},
	},
}

var bgp = Family{
	Title: "BGP peers",
	About: "From BGP4-MIB over SNMP; the label peer is the peer's address.",
	Rows: []Row{
		{Name: "trainyard_bgp_peer_established", Help: "1 if the session is established (bgpPeerState), else 0.", Kind: Gauge, Labels: []string{"fabric", "switch", "peer"}},
		{Name: "trainyard_bgp_peer_transitions_total", Help: "Times the session reached established (bgpPeerFsmEstablishedTransitions).", Kind: Counter, Labels: []string{"fabric", "switch", "peer"}},
		{Name: "trainyard_bgp_peer_info", Help: "Remote autonomous system of the session and the port it runs over; port is empty where no port's prefix holds the peer.", Kind: Info,
			Labels: []string{"fabric", "switch", "peer", "remote_asn", "port"}},
	},
}
