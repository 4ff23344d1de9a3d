// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// Measured on the real lab: BGP takes the dead path out of use about this long after a link went down, a route that a
// controller sends is in the forwarding table this long after it was sent.
const (
	convergence  = 150 * time.Millisecond
	installDelay = 65 * time.Millisecond
)

// ecmpBuckets is the size of a switch's weighted table; a flow's hash picks a bucket.
const ecmpBuckets = 128

// router is the forwarding state of the leaves. Paths are leaf, spine, leaf; spines have one way to each leaf.
type router struct {
	f     *fabric
	seeds [leaves + 1]uint64 // hidden: nothing outside this package can know which way a flow hashes
	known map[*link]bool     // state of each fabric link as routing knows it, later than the link itself
	due   []change           // changes that routing learns later, in order of time
	host  map[plan.RouteKey]plan.Route
	epoch int // grows with each change, so that paths are computed anew
}

type change struct {
	at    time.Time
	apply func()
}

func newRouter(f *fabric, seed uint64) *router {
	r := &router{f: f, known: map[*link]bool{}, host: map[plan.RouteKey]plan.Route{}}
	for i := range r.seeds {
		seed = scramble(seed + uint64(i) + 1)
		r.seeds[i] = seed
	}
	for _, l := range f.order {
		r.known[l] = true
	}
	return r
}

// later has routing learn of a change at a time to come.
func (r *router) later(at time.Time, apply func()) { r.due = append(r.due, change{at, apply}) }

// learn applies what is due.
func (r *router) learn(now time.Time) {
	rest := r.due[:0]
	for _, c := range r.due {
		if c.at.After(now) {
			rest = append(rest, c)
			continue
		}
		c.apply()
		r.epoch++
	}
	r.due = rest
}

// usable says whether routing believes in the way from leaf i over spine j to leaf d.
func (r *router) usable(i, j, d int) bool { return r.known[r.f.up(i, j)] && r.known[r.f.down(j, d)] }

// spineOf returns the spine that leaf i takes for a flow with the given hash input to the NIC, and 0 if it has none.
func (r *router) spineOf(i int, to *nic, key uint64) int {
	h := scramble(key ^ r.seeds[i])
	if route, ok := r.host[plan.RouteKey{Switch: leafName(i), Prefix: netip.PrefixFrom(to.addr, 32)}]; ok {
		if j := r.follow(i, to.leaf, route, h); j != 0 {
			return j
		}
		// The host route's next hops do not resolve: next-hop tracking drops it and the ordinary routes count.
	}
	var ways []int
	for j := 1; j <= spines; j++ {
		if r.usable(i, j, to.leaf) {
			ways = append(ways, j)
		}
	}
	if len(ways) == 0 {
		return 0
	}
	return ways[h%uint64(len(ways))]
}

// follow resolves a host route at leaf i towards leaf d; 0 means that no next hop resolves.
func (r *router) follow(i, d int, route plan.Route, h uint64) int {
	var ways, weights []int
	sum := 0
	for _, hop := range route.NextHops {
		j, err := spineBehind(i, d, route.Kind, hop.Addr)
		if err != nil {
			continue
		}
		// A pin resolves over the link subnet that the spine advertises, so the far link counts too. Weighted next hops
		// are direct: they stand while the leaf's own link stands, wherever the traffic then goes.
		ok := r.usable(i, j, d)
		if route.Kind == plan.Weights {
			ok = r.known[r.f.up(i, j)]
		}
		if ok {
			w := max(1, int(hop.Weight))
			ways, weights, sum = append(ways, j), append(weights, w), sum+w
		}
	}
	if sum == 0 {
		return 0
	}
	bucket := int(h % ecmpBuckets)
	edge := 0
	for n, w := range weights {
		edge += w
		if bucket*sum < edge*ecmpBuckets {
			return ways[n]
		}
	}
	return ways[len(ways)-1]
}

// spineBehind says which spine a next hop of leaf i towards leaf d means.
func spineBehind(i, d int, kind plan.Kind, hop netip.Addr) (int, error) {
	for j := 1; j <= spines; j++ {
		switch {
		case kind == plan.Pin && hop == leafSide(d, j), kind == plan.Weights && hop == spineSide(i, j):
			return j, nil
		}
	}
	want := "the far end of a spine's link to " + leafName(d)
	if kind == plan.Weights {
		want = "a spine's end of a link of " + leafName(i)
	}
	return 0, fmt.Errorf("next hop %s is not %s", hop, want)
}

// scramble is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a cheap hash with good mixing.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
