// SPDX-License-Identifier: Apache-2.0

// Package ring makes the lab's traffic: all-reduce rings between the hosts of a job, plain streams and a UDP probe.
// Every end point is a process of its own inside its host's namespace, so its counters, its sockets and its death are
// real. The processes are this very program started again: call Main first thing in main and in TestMain.
//
//	job, err := ring.Start(ctx, l, ring.Spec{JobID: "job-a", Hosts: []string{"n1", "n2", "n5", "n6"}})
//	job.WaitSteps(ctx, 10)
//	job.Stats(since, until)               // step time, longest gap, stalls, resets, retransmits
//	job.SetCompute(2, 200*time.Millisecond) // rank 2 becomes a straggler
//	job.SetReadRate(1, 2e6)                 // rank 1 reads 2 MB/s only: a slow receiver
//	job.Stop(ctx)
//
//	s, err := ring.StartStream(ctx, l, ring.Stream{From: "n3", To: "n7"}) // unannounced traffic; several to one host: incast
//	p, err := ring.StartProbe(ctx, l, ring.Probe{From: "n1", To: "n5", PacketsPerSecond: 1000})
//
// All traffic ends by itself: after Duration, after MaxBytes, and when the program that started it is gone.
package ring
