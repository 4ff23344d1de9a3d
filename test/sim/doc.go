// SPDX-License-Identifier: Apache-2.0

// Package sim is the simulated plant: a training fabric with jobs on it that exists only as numbers. Demo and tests use
// it where there is no root and no kernel to build a real lab with. It moves in small fixed time steps, in real time or
// as fast as a test asks, and it is deliberately a different model from the one that the actuator forecasts with:
// senders feel marks from queues and raise and cut their rates, so shares emerge after a lag and with noise, hash seeds
// are hidden, and switch counters are as old as an agent's cache.
//
// It exposes the metrics of the catalogue over HTTP and takes routes through the driver interface of the actuator; the
// control side cannot tell it from a fabric. It never imports the actuator's model, candidate or path code (a test in
// test/arch holds that), and no forecast accuracy may be reported from it.
package sim
