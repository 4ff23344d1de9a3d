// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/trainyard/trainyard/actuator/sim"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// ackShare is what acknowledgements take of the way back: one of 66 bytes (14 Ethernet, 20 IP, 32 TCP with time
// stamps) for every two full frames of 1514.
const ackShare = 66.0 / (2 * 1514)

// foresight is what the product's model says will happen, in Mbit/s on the wire.
type foresight struct {
	rates []float64              // by stream
	loads map[ident.Port]float64 // by link that carries a stream
}

// foresee asks the model. Acknowledgements are no flows of it: what they take of a link is taken off its capacity and
// added to its load, which needs a few rounds, since they follow the rates.
func foresee(flows []flow, capacity map[ident.Port]float64) (foresight, error) {
	var in []sim.Flow
	for _, f := range flows {
		in = append(in, sim.Flow{Links: f.links()})
	}
	var out foresight
	acks := map[ident.Port]float64{}
	for range 4 {
		left := map[ident.Port]float64{}
		for p, mbit := range capacity {
			left[p] = mbit - acks[p]
		}
		rates, err := sim.MaxMin(in, left)
		if err != nil {
			return out, err
		}
		out = foresight{rates: rates, loads: map[ident.Port]float64{}}
		clear(acks)
		for i, f := range flows {
			for _, p := range f.acks {
				acks[p] += ackShare * rates[i]
			}
			for _, p := range in[i].Links {
				out.loads[p] += rates[i]
			}
		}
	}
	for p := range out.loads {
		out.loads[p] += acks[p]
	}
	return out, nil
}
