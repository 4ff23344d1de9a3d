// SPDX-License-Identifier: Apache-2.0

// Package lab builds a real leaf-spine fabric out of network namespaces: two spines, four leaves, eight hosts with
// two rails each and a management network, with FRR, net-snmp and lldpd on the switches and lldpd on the hosts.
// Links are rate-limited veth pairs. Tests, the demo and people who explore by hand use it; the product never does.
//
//	l, err := lab.Up(ctx, lab.Config{})      // needs root; lab.Require says in one line why it cannot
//	defer l.Close()                          // leaves nothing behind; lab.Sweep clears what a killed process left
//
// Places are called by their short names everywhere: switches "s1" "s2" "l1".."l4", hosts "n1".."n8", and "mgmt".
//
//	out, err := l.Exec(ctx, "l1", "ip", "route")             // run a command there
//	p, err := l.Start("mgmt", lab.Command{...})              // a process that dies with us
//	l.Do("n1", func() error { ... })                         // sockets made inside stay in that namespace
//	l.HTTPClient("mgmt"), l.Dial(ctx, "mgmt", "tcp", addr), l.Listen("mgmt", "tcp", addr)
//	l.Routes("l1"), l.RouteEvents("l1")                      // what the kernel has, and every change of it
//	l.SetRoute("l1", prefix, nexthop), l.DelRoute(...)       // a hand-moved route, metric 0
//	l.PickSourcePort(ctx, "tcp", src, dst, dport, "s1", nil) // a source port that ECMP hashes onto that spine
//	l.Uplink(ctx, "tcp", src, sport, dst, dport)             // the port by which the source's leaf forwards that flow
//	l.CutLink("s1", "l3"), l.RestoreLink("s1", "l3"), l.FlapLink(ctx, "s1", "l3", n, every)
//	l.SetRate("l1", "sp1", mbit)                             // a slower link, from one side
//	l.Drops("l1", "sp1"), l.PortCounters("l1", "sp1"), l.NetSNMP("n1")
//	l.Vtysh(ctx, "l1", "show bgp summary json")
//
// Traffic lives in package ring: all-reduce rings that report their step times, plain streams, incast and a UDP
// probe. iperf3 is the independent witness (l.Iperf3).
//
// Nothing outside the namespaces is changed: no sysctl of the host, no file under /etc or /run except the
// namespaces' own names in /run/netns. Congestion control is set socket by socket, which root may do.
package lab
