// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// LinkID is the place of a directed link in a Graph: small, dense and the same for the same fabric, so that the
// solvers can use slices where a map keyed by names would be most of their time.
type LinkID int32

// Path is a way from one NIC to another: host link first, access link last. Via is the highest switch on it, the
// one that the hash chose; it is the leaf itself when both NICs hang on one leaf.
type Path struct {
	Links []LinkID
	Via   string
}

// Crosses says whether the path uses the link.
func (p Path) Crosses(id LinkID) bool { return slices.Contains(p.Links, id) }

// Graph is a Fabric prepared for path questions. It is made for one decision and thrown away; its cache makes it
// unfit for use by several goroutines at once.
type Graph struct {
	Fabric Fabric
	links  []Link
	ids    map[ident.Port]LinkID
	out    map[string][]LinkID // links that leave a switch, in order of identity
	cache  map[[2]string][]Path
	height int
}

// NewGraph indexes the fabric. It does not judge it: see Validate.
func NewGraph(f Fabric) *Graph {
	g := &Graph{
		Fabric: f,
		ids:    make(map[ident.Port]LinkID, len(f.Links)),
		out:    map[string][]LinkID{},
		cache:  map[[2]string][]Path{},
		height: 1,
	}
	ports := make([]ident.Port, 0, len(f.Links))
	for p := range f.Links {
		ports = append(ports, p)
	}
	slices.SortFunc(ports, ident.Port.Compare)
	for i, p := range ports {
		l := f.Links[p]
		g.links = append(g.links, l)
		g.ids[p] = LinkID(i)
		if l.Direction != Host {
			g.out[p.Device] = append(g.out[p.Device], LinkID(i))
		}
	}
	for _, s := range f.Switches {
		g.height = max(g.height, s.Tier)
	}
	return g
}

// Len is the number of links; LinkIDs run from 0 to Len-1.
func (g *Graph) Len() int { return len(g.links) }

// Link is the link with that id.
func (g *Graph) Link(id LinkID) Link { return g.links[id] }

// ID finds a link by its transmitting port.
func (g *Graph) ID(p ident.Port) (LinkID, error) {
	id, ok := g.ids[p]
	if !ok {
		return 0, fmt.Errorf("link %s: not in fabric %q", p, g.Fabric.Name)
	}
	return id, nil
}

// NIC finds a NIC by address.
func (g *Graph) NIC(a netip.Addr) (NIC, error) {
	n, ok := g.Fabric.NICs[a]
	if !ok {
		return NIC{}, fmt.Errorf("nic %s: not in fabric %q", a, g.Fabric.Name)
	}
	return n, nil
}

// Ports spells a path as link identities.
func (g *Graph) Ports(p Path) []ident.Port {
	out := make([]ident.Port, len(p.Links))
	for i, id := range p.Links {
		out[i] = g.links[id].From
	}
	return out
}

// Peers lists the other links of the link's ECMP group, live or not, in order of identity. A link without a group
// has none.
func (g *Graph) Peers(id LinkID) []LinkID {
	group := g.links[id].ECMPGroup
	if group == "" {
		return nil
	}
	var out []LinkID
	for i, l := range g.links {
		if l.ECMPGroup == group && LinkID(i) != id {
			out = append(out, LinkID(i))
		}
	}
	return out
}

// Paths lists the live up-down (valley-free) paths from one NIC to another, in a stable order: one when both hang
// on the same leaf, else one for each live way over the lowest common tier. An empty list means that no path is
// alive; an error means that a NIC or its link is not in the fabric.
func (g *Graph) Paths(src, dst netip.Addr) ([]Path, error) {
	a, err := g.NIC(src)
	if err != nil {
		return nil, err
	}
	b, err := g.NIC(dst)
	if err != nil {
		return nil, err
	}
	host, err := g.ID(a.Port())
	if err != nil {
		return nil, fmt.Errorf("host link of nic %s: %w", src, err)
	}
	access, err := g.ID(b.Attached)
	if err != nil {
		return nil, fmt.Errorf("access link of nic %s: %w", dst, err)
	}
	if !g.links[host].Up || !g.links[access].Up {
		return nil, nil
	}
	from, to := a.Attached.Device, b.Attached.Device
	if from == to {
		return []Path{{Links: []LinkID{host, access}, Via: from}}, nil
	}
	middle := g.between(from, to)
	out := make([]Path, len(middle))
	for i, m := range middle {
		links := make([]LinkID, 0, len(m.Links)+2)
		links = append(links, host)
		links = append(links, m.Links...)
		out[i] = Path{Links: append(links, access), Via: m.Via}
	}
	return out, nil
}

// between lists the fabric part of the paths between two leaves. ECMP takes shortest paths only, so the search
// stops at the lowest height that has one: n links up, n links down.
func (g *Graph) between(from, to string) []Path {
	key := [2]string{from, to}
	if p, ok := g.cache[key]; ok {
		return p
	}
	var found []Path
	for n := 1; n <= g.height && found == nil; n++ {
		g.walk(from, to, n, n, "", nil, &found)
	}
	g.cache[key] = found
	return found
}

func (g *Graph) walk(at, to string, up, down int, via string, sofar []LinkID, found *[]Path) {
	if up == 0 && down == 0 {
		if at == to {
			*found = append(*found, Path{Links: slices.Clone(sofar), Via: via})
		}
		return
	}
	want := Up
	if up == 0 {
		want = Down
	}
	for _, id := range g.out[at] {
		l := g.links[id]
		if l.Direction != want || !l.Up {
			continue
		}
		next := l.To.Device
		switch {
		case want == Down && down == 1 && next != to:
			continue
		case up > 1:
			g.walk(next, to, up-1, down, via, append(sofar, id), found)
		case up == 1:
			g.walk(next, to, 0, down, next, append(sofar, id), found)
		default:
			g.walk(next, to, 0, down-1, via, append(sofar, id), found)
		}
	}
}
