// SPDX-License-Identifier: Apache-2.0

package catalog

var deviceLabels = []string{"node", "device"}

var nics = Family{
	Title: "Network devices of a node",
	About: "From sysfs and the configuration, by the node role, for the chosen devices only. node_ names are node_exporter's.",
	Rows: []Row{
		{Name: "node_network_receive_bytes_total", Help: "Bytes received by the device.", Unit: Bytes, Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_receive_packets_total", Help: "Packets received by the device.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_receive_errs_total", Help: "Receive errors of the device.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_receive_drop_total", Help: "Packets dropped on receipt by the device.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_transmit_bytes_total", Help: "Bytes transmitted by the device.", Unit: Bytes, Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_transmit_packets_total", Help: "Packets transmitted by the device.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_transmit_errs_total", Help: "Transmit errors of the device.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_transmit_drop_total", Help: "Packets dropped before transmission by the device.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "node_network_up", Help: "1 if the device's operational state is up, else 0.", Kind: Gauge, Labels: deviceLabels, Shared: true},
		{Name: "node_network_speed_bytes", Help: "Speed of the device in bytes per second; absent where the driver gives none.", Unit: Bytes, Kind: Gauge, Labels: deviceLabels, Shared: true},
		{Name: "node_network_carrier_changes_total", Help: "Times the device's carrier changed.", Kind: Counter, Labels: deviceLabels, Shared: true},
		{Name: "trainyard_nic_info", Help: "Rail, address and fabric of a device; address and rail are empty where there is none.", Kind: Info,
			Labels: []string{"node", "device", "rail", "address", "fabric"}},
		{Name: "trainyard_nic_transmit_pause_seconds_total", Help: "Time for which this NIC told the switch to stop sending, by priority; absent where the driver does not report it.", Unit: Seconds, Kind: Counter,
			Labels: []string{"node", "device", "priority"}},
	},
}

var blockLabels = []string{"node", "numa_node", "zone", "order"}

var hostMemory = Family{
	Title: "Host memory fragmentation",
	About: "From /proc/buddyinfo and /proc/vmstat, by the node role. Free memory that cannot serve a huge page shows as an unusable free index near 1 at that page's order.",
	Rows: append([]Row{
		{Name: "trainyard_memory_free_blocks", Help: "Free blocks of exactly this order in the zone (buddyinfo).", Kind: Gauge, Labels: blockLabels},
		{Name: "trainyard_memory_free_blocks_capped", Help: "1 if the kernel gave only a lower bound for a count of the zone, such as >100000, else 0.", Kind: Gauge, Labels: []string{"node", "numa_node", "zone"}},
		{Name: "trainyard_memory_unusable_free_index", Help: "Share of the zone's free memory that lies in blocks smaller than this order, 0 to 1; 1 if nothing is free.", Kind: Gauge, Labels: blockLabels},
		{Name: "trainyard_memory_fragmentation_index", Help: "Why an allocation of this order would fail: -1 it would not, towards 0 for lack of memory, towards 1 for fragmentation.", Kind: Gauge, Labels: blockLabels},
		{Name: "trainyard_memory_page_size_bytes", Help: "Size of a page of order 0.", Unit: Bytes, Kind: Gauge, Labels: []string{"node"}},
	}, vmstat()...),
}

// VMStatFields are the fields of /proc/vmstat that say how hard the kernel works for large blocks: compaction, huge
// pages, stalled allocations. A kernel has most of them; those that it lacks are absent.
var VMStatFields = []string{
	"allocstall_device", "allocstall_dma", "allocstall_dma32", "allocstall_movable", "allocstall_normal",
	"compact_daemon_free_scanned", "compact_daemon_migrate_scanned", "compact_daemon_wake", "compact_fail",
	"compact_free_scanned", "compact_isolated", "compact_migrate_scanned", "compact_stall", "compact_success",
	"htlb_buddy_alloc_fail", "htlb_buddy_alloc_success",
	"thp_collapse_alloc", "thp_collapse_alloc_failed", "thp_deferred_split_page", "thp_fault_alloc", "thp_fault_fallback",
	"thp_fault_fallback_charge", "thp_file_alloc", "thp_file_fallback", "thp_file_fallback_charge", "thp_file_mapped",
	"thp_migration_fail", "thp_migration_split", "thp_migration_success", "thp_scan_exceed_none_pte",
	"thp_scan_exceed_share_pte", "thp_scan_exceed_swap_pte", "thp_split_page", "thp_split_page_failed", "thp_split_pmd",
	"thp_split_pud", "thp_swpout", "thp_swpout_fallback", "thp_underused_split_page", "thp_zero_page_alloc",
	"thp_zero_page_alloc_failed",
}

func vmstat() []Row {
	var rows []Row
	for _, f := range VMStatFields {
		rows = append(rows, Row{Name: "node_vmstat_" + f, Help: "/proc/vmstat field " + f + ".", Kind: Unknown, Labels: []string{"node"}, Shared: true})
	}
	return rows
}

// NetstatFields are the fields of /proc/net/netstat and /proc/net/snmp that are read, by protocol.
var NetstatFields = map[string][]string{
	"Tcp":    {"RetransSegs", "OutRsts", "EstabResets"},
	"TcpExt": {"TCPToZeroWindowAdv", "TCPTimeouts"},
	"IpExt":  {"InCEPkts"},
}

var hostTCP = Family{
	Title: "TCP and IP of a node",
	About: "From /proc/net/snmp and /proc/net/netstat, by the node role; the names are node_exporter's.",
	Rows: []Row{
		{Name: "node_netstat_Tcp_RetransSegs", Help: "TCP segments sent again.", Kind: Unknown, Labels: []string{"node"}, Shared: true},
		{Name: "node_netstat_Tcp_OutRsts", Help: "TCP resets sent.", Kind: Unknown, Labels: []string{"node"}, Shared: true},
		{Name: "node_netstat_Tcp_EstabResets", Help: "TCP connections reset from established or close-wait.", Kind: Unknown, Labels: []string{"node"}, Shared: true},
		{Name: "node_netstat_TcpExt_TCPToZeroWindowAdv", Help: "Times a receiver's window went to zero: the host told its sender to stop.", Kind: Unknown, Labels: []string{"node"}, Shared: true},
		{Name: "node_netstat_TcpExt_TCPTimeouts", Help: "TCP retransmission timeouts.", Kind: Unknown, Labels: []string{"node"}, Shared: true},
		{Name: "node_netstat_IpExt_InCEPkts", Help: "IP packets received with the mark congestion experienced.", Kind: Unknown, Labels: []string{"node"}, Shared: true},
	},
}
