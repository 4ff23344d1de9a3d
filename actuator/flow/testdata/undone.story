# Harm, no change, inconclusive, a job that ends, and silence: all taken back.
policy act max_concurrent=9 per_hour=99
----

fire aa
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

stepped done
----
0s inc-4volgsqf-1: step done: 1 of 1: the driver says so
0s inc-4volgsqf-1: settling: all steps are in force; verified by 2026-11-30T12:01:00Z or undone
  > verify

verified harm
----
0s inc-4volgsqf-1: verified: harm: measured
0s inc-4volgsqf-1: undoing: harm: measured
  > undo 10.116.0.2/32 at l1

stepped done
----
0s inc-4volgsqf-1: undo done: step 1: the driver says so
0s inc-4volgsqf-1: undone: harm: measured

fire bb sp2
----
0s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

act
----
0s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:00Z
  > propose
0s inc-yvmrmhlv-2: decided: hash collision: two flows
0s inc-yvmrmhlv-2: proposed: move 1 (gain 30.0 %): best
  > judge
0s inc-yvmrmhlv-2: judged: allow: none of 20 checks objects
  > recheck
0s inc-yvmrmhlv-2: rechecked: none of 20 checks objects
0s inc-yvmrmhlv-2: step: 1 of 1: l1 pin 10.117.0.2/32 via 10.0.32.0
  > step l1 pin 10.117.0.2/32 via 10.0.32.0

stepped done
----
0s inc-yvmrmhlv-2: step done: 1 of 1: the driver says so
0s inc-yvmrmhlv-2: settling: all steps are in force; verified by 2026-11-30T12:01:00Z or undone
  > verify

verified no change
----
0s inc-yvmrmhlv-2: verified: no change: measured
0s inc-yvmrmhlv-2: undoing: no change: measured
  > undo 10.117.0.2/32 at l1

stepped done
----
0s inc-yvmrmhlv-2: undo done: step 1: the driver says so
0s inc-yvmrmhlv-2: undone: no change: measured

fire cc sp3
----
0s inc-kxdz3vxx-3: opened: FabricLinkCongested on lab/l1:sp3
  > observe
  > input opened inc-kxdz3vxx-3

act
----
0s inc-kxdz3vxx-3: observed: at 2026-11-30T12:00:00Z
  > propose
0s inc-kxdz3vxx-3: decided: hash collision: two flows
0s inc-kxdz3vxx-3: proposed: move 1 (gain 30.0 %): best
  > judge
0s inc-kxdz3vxx-3: judged: allow: none of 20 checks objects
  > recheck
0s inc-kxdz3vxx-3: rechecked: none of 20 checks objects
0s inc-kxdz3vxx-3: step: 1 of 1: l1 pin 10.118.0.2/32 via 10.0.32.0
  > step l1 pin 10.118.0.2/32 via 10.0.32.0

stepped done
----
0s inc-kxdz3vxx-3: step done: 1 of 1: the driver says so
0s inc-kxdz3vxx-3: settling: all steps are in force; verified by 2026-11-30T12:01:00Z or undone
  > verify

changed job job-a ended
----
0s inc-kxdz3vxx-3: undoing: inconclusive: job job-a ended
  > undo 10.118.0.2/32 at l1

stepped done
----
0s inc-kxdz3vxx-3: undo done: step 1: the driver says so
0s inc-kxdz3vxx-3: undone: inconclusive: job job-a ended

fire dd sp4
----
0s inc-i5pf5ydf-4: opened: FabricLinkCongested on lab/l1:sp4
  > observe
  > input opened inc-i5pf5ydf-4

act
----
0s inc-i5pf5ydf-4: observed: at 2026-11-30T12:00:00Z
  > propose
0s inc-i5pf5ydf-4: decided: hash collision: two flows
0s inc-i5pf5ydf-4: proposed: move 1 (gain 30.0 %): best
  > judge
0s inc-i5pf5ydf-4: judged: allow: none of 20 checks objects
  > recheck
0s inc-i5pf5ydf-4: rechecked: none of 20 checks objects
0s inc-i5pf5ydf-4: step: 1 of 1: l1 pin 10.119.0.2/32 via 10.0.32.0
  > step l1 pin 10.119.0.2/32 via 10.0.32.0

stepped done
----
0s inc-i5pf5ydf-4: step done: 1 of 1: the driver says so
0s inc-i5pf5ydf-4: settling: all steps are in force; verified by 2026-11-30T12:01:00Z or undone
  > verify

after 60s
----
1m0s inc-i5pf5ydf-4: undoing: inconclusive: not verified by the deadline
  > undo 10.119.0.2/32 at l1

stepped done
----
1m0s inc-i5pf5ydf-4: undo done: step 1: the driver says so
1m0s inc-i5pf5ydf-4: undone: inconclusive: not verified by the deadline

# A resolved alert alone proves nothing.
fire ee sp5
----
1m0s inc-v7orodx3-5: opened: FabricLinkCongested on lab/l1:sp5
  > observe
  > input opened inc-v7orodx3-5

act
----
1m0s inc-v7orodx3-5: observed: at 2026-11-30T12:01:00Z
  > propose
1m0s inc-v7orodx3-5: decided: hash collision: two flows
1m0s inc-v7orodx3-5: proposed: move 1 (gain 30.0 %): best
  > judge
1m0s inc-v7orodx3-5: judged: allow: none of 20 checks objects
  > recheck
1m0s inc-v7orodx3-5: rechecked: none of 20 checks objects
1m0s inc-v7orodx3-5: step: 1 of 1: l1 pin 10.120.0.2/32 via 10.0.32.0
  > step l1 pin 10.120.0.2/32 via 10.0.32.0

stepped done
----
1m0s inc-v7orodx3-5: step done: 1 of 1: the driver says so
1m0s inc-v7orodx3-5: settling: all steps are in force; verified by 2026-11-30T12:02:00Z or undone
  > verify

resolve ee sp5
----
1m0s inc-v7orodx3-5: alert gone: no alert of the target fires any more
  > input resolved by webhook

verified inconclusive
----
1m0s inc-v7orodx3-5: verified: inconclusive: measured
1m0s inc-v7orodx3-5: undoing: inconclusive: measured
  > undo 10.120.0.2/32 at l1

stepped done
----
1m0s inc-v7orodx3-5: undo done: step 1: the driver says so
1m0s inc-v7orodx3-5: undone: inconclusive: measured

show
----
inc-4volgsqf-1 lab/l1:sp1 undone: harm: measured
inc-yvmrmhlv-2 lab/l1:sp2 undone: no change: measured
inc-kxdz3vxx-3 lab/l1:sp3 undone: inconclusive: job job-a ended
inc-i5pf5ydf-4 lab/l1:sp4 undone: inconclusive: not verified by the deadline
inc-v7orodx3-5 lab/l1:sp5 undone: inconclusive: measured
desired 0, reservations 0, attempts 5
