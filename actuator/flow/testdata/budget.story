# One action at a time, two in an hour; a blocked one keeps no slot.
policy act max_concurrent=1 per_hour=2 cooldown=1m
----

fire aa sp1
----
0s inc-4volgsqf-1: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-1

act
----
0s inc-4volgsqf-1: observed: at 2026-11-30T12:00:00Z
  > propose
0s inc-4volgsqf-1: decided: hash collision: two flows
0s inc-4volgsqf-1: proposed: move 1 (gain 30.0 %): best
  > judge
0s inc-4volgsqf-1: judged: allow: none of 20 checks objects
  > recheck
0s inc-4volgsqf-1: rechecked: none of 20 checks objects
0s inc-4volgsqf-1: step: 1 of 1: l1 pin 10.116.0.2/32 via 10.0.32.0
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

fire bb sp2
----
0s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

observed
----
0s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:00Z
  > propose

proposed 1
----
0s inc-yvmrmhlv-2: decided: hash collision: two flows
0s inc-yvmrmhlv-2: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
0s inc-yvmrmhlv-2: judged: deny: concurrency: 1 of 1 actions at once in pool default
0s inc-yvmrmhlv-2: refused: concurrency: 1 of 1 actions at once in pool default

stepped done
----
0s inc-4volgsqf-1: step done: 1 of 1: the driver says so
0s inc-4volgsqf-1: settling: all steps are in force; verified by 2026-11-30T12:01:00Z or undone
  > verify

verified better
----
0s inc-4volgsqf-1: verified: better: measured
0s inc-4volgsqf-1: holding: until the alert is gone for 1m0s, the job ends or the topology changes
  > hold

let go
----
0s inc-4volgsqf-1: releasing: released by ada
  > undo 10.116.0.2/32 at l1

show
----
inc-4volgsqf-1 lab/l1:sp1 releasing: better: measured
inc-yvmrmhlv-2 lab/l1:sp2 refused: concurrency: 1 of 1 actions at once in pool default
desired 1, reservations 0, attempts 1

stepped done
----
0s inc-4volgsqf-1: undo done: step 1: the driver says so
0s inc-4volgsqf-1: released: released by ada

resolve aa sp1
----
  > input resolved by webhook

after 61s
----
1m0s inc-yvmrmhlv-3: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-3

show
----
inc-4volgsqf-1 lab/l1:sp1 released: released by ada
inc-yvmrmhlv-2 lab/l1:sp2 refused: concurrency: 1 of 1 actions at once in pool default
inc-yvmrmhlv-3 lab/l1:sp2 opened: 
desired 0, reservations 0, attempts 1
