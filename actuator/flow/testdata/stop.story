# Stop blocks new steps, never an undo; stop --withdraw takes routes back, too.
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

verified better
----
0s inc-4volgsqf-1: verified: better: measured
0s inc-4volgsqf-1: holding: until the alert is gone for 1m0s, the job ends or the topology changes
  > hold

fire bb sp2
----
0s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

act 2
----
0s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:00Z
  > propose
0s inc-yvmrmhlv-2: decided: hash collision: two flows
0s inc-yvmrmhlv-2: proposed: move 2 (gain 30.0 %): best
  > judge
0s inc-yvmrmhlv-2: judged: allow: none of 20 checks objects
  > recheck
0s inc-yvmrmhlv-2: rechecked: none of 20 checks objects
0s inc-yvmrmhlv-2: step: 1 of 2: l1 pin 10.117.0.2/32 via 10.0.32.0
  > step l1 pin 10.117.0.2/32 via 10.0.32.0

stepped done
----
0s inc-yvmrmhlv-2: step done: 1 of 2: the driver says so
0s inc-yvmrmhlv-2: step: 2 of 2: l1 pin 10.117.1.2/32 via 10.0.32.0
  > step l1 pin 10.117.1.2/32 via 10.0.32.0

fire cc sp3
----
0s inc-kxdz3vxx-3: opened: FabricLinkCongested on lab/l1:sp3
  > observe
  > input opened inc-kxdz3vxx-3

observed
----
0s inc-kxdz3vxx-3: observed: at 2026-11-30T12:00:00Z
  > propose

stop
----
0s inc-4volgsqf-1: stopped: by ada; the routes stay
0s inc-yvmrmhlv-2: undoing: stopped by ada
0s inc-kxdz3vxx-3: refused: stopped by ada
  > undo 10.117.1.2/32 at l1

stepped done
----
0s inc-yvmrmhlv-2: undo done: step 2: the driver says so
  > undo 10.117.0.2/32 at l1

stepped done
----
0s inc-yvmrmhlv-2: undo done: step 1: the driver says so
0s inc-yvmrmhlv-2: undone: stopped by ada

lost
----
0s inc-4volgsqf-1: lost: a switch lost a route for the 1. time; not written again while stopped

fire dd sp4
----
0s inc-i5pf5ydf-4: opened: FabricLinkCongested on lab/l1:sp4
  > observe
  > input opened inc-i5pf5ydf-4

observed
----
0s inc-i5pf5ydf-4: observed: at 2026-11-30T12:00:00Z
  > propose

proposed 1
----
0s inc-i5pf5ydf-4: decided: hash collision: two flows
0s inc-i5pf5ydf-4: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
0s inc-i5pf5ydf-4: judged: deny: stop switch: stopped by ada
0s inc-i5pf5ydf-4: refused: stop switch: stopped by ada

show
----
inc-4volgsqf-1 lab/l1:sp1 holding: better: measured
inc-yvmrmhlv-2 lab/l1:sp2 undone: stopped by ada
inc-kxdz3vxx-3 lab/l1:sp3 refused: stopped by ada
inc-i5pf5ydf-4 lab/l1:sp4 refused: stop switch: stopped by ada
desired 1, reservations 0, attempts 2

stop withdraw
----
0s inc-4volgsqf-1: releasing: stopped and withdrawn by ada
  > withdraw all
  > undo 10.116.0.2/32 at l1

stepped done
----
0s inc-4volgsqf-1: undo done: step 1: the driver says so
0s inc-4volgsqf-1: released: stopped and withdrawn by ada

show
----
inc-4volgsqf-1 lab/l1:sp1 released: stopped and withdrawn by ada
inc-yvmrmhlv-2 lab/l1:sp2 undone: stopped by ada
inc-kxdz3vxx-3 lab/l1:sp3 refused: stopped by ada
inc-i5pf5ydf-4 lab/l1:sp4 refused: stop switch: stopped by ada
desired 0, reservations 0, attempts 2

resume
----

after 6m
----
0s inc-kxdz3vxx-5: opened: FabricLinkCongested on lab/l1:sp3
0s inc-i5pf5ydf-6: opened: FabricLinkCongested on lab/l1:sp4
  > observe
  > input opened inc-kxdz3vxx-5
  > observe
  > input opened inc-i5pf5ydf-6
1m0s inc-kxdz3vxx-5: expired: no decision by 2026-11-30T12:01:00Z (in state opened)
1m0s inc-i5pf5ydf-6: expired: no decision by 2026-11-30T12:01:00Z (in state opened)
3m0s inc-kxdz3vxx-7: opened: FabricLinkCongested on lab/l1:sp3
3m0s inc-i5pf5ydf-8: opened: FabricLinkCongested on lab/l1:sp4
  > observe
  > input opened inc-kxdz3vxx-7
  > observe
  > input opened inc-i5pf5ydf-8
4m0s inc-kxdz3vxx-7: expired: no decision by 2026-11-30T12:04:00Z (in state opened)
4m0s inc-i5pf5ydf-8: expired: no decision by 2026-11-30T12:04:00Z (in state opened)

show
----
inc-4volgsqf-1 lab/l1:sp1 released: stopped and withdrawn by ada
inc-yvmrmhlv-2 lab/l1:sp2 undone: stopped by ada
inc-kxdz3vxx-3 lab/l1:sp3 refused: stopped by ada
inc-i5pf5ydf-4 lab/l1:sp4 refused: stop switch: stopped by ada
inc-kxdz3vxx-5 lab/l1:sp3 expired: no decision by 2026-11-30T12:01:00Z (in state opened)
inc-i5pf5ydf-6 lab/l1:sp4 expired: no decision by 2026-11-30T12:01:00Z (in state opened)
inc-kxdz3vxx-7 lab/l1:sp3 expired: no decision by 2026-11-30T12:04:00Z (in state opened)
inc-i5pf5ydf-8 lab/l1:sp4 expired: no decision by 2026-11-30T12:04:00Z (in state opened)
desired 0, reservations 0, attempts 2
