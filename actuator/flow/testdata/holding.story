# While holding: lost routes are written again, three times; then the path is not sound.
policy act hold=30s
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
0s inc-4volgsqf-1: holding: until the alert is gone for 30s, the job ends or the topology changes
  > hold

lost
----
0s inc-4volgsqf-1: lost: a switch lost a route for the 1. time; written again
  > put l1 pin 10.116.0.2/32 via 10.0.32.0

lost
----
0s inc-4volgsqf-1: lost: a switch lost a route for the 2. time; written again
  > put l1 pin 10.116.0.2/32 via 10.0.32.0

lost
----
0s inc-4volgsqf-1: lost: a switch lost a route for the 3. time; written again
  > put l1 pin 10.116.0.2/32 via 10.0.32.0

lost
----
0s inc-4volgsqf-1: releasing: a switch lost a route for the 4. time
  > undo 10.116.0.2/32 at l1

stepped done
----
0s inc-4volgsqf-1: undo done: step 1: the driver says so
0s inc-4volgsqf-1: released: a switch lost a route for the 4. time

after 6m
----

# It fires again before the timer: the timer stops.
fire aa sp1 1000
----
6m0s inc-4volgsqf-2: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-2

act
----
6m0s inc-4volgsqf-2: observed: at 2026-11-30T12:06:00Z
  > propose
6m0s inc-4volgsqf-2: decided: hash collision: two flows
6m0s inc-4volgsqf-2: proposed: move 1 (gain 30.0 %): best
  > judge
6m0s inc-4volgsqf-2: judged: allow: none of 20 checks objects
  > recheck
6m0s inc-4volgsqf-2: rechecked: none of 20 checks objects
6m0s inc-4volgsqf-2: step: 1 of 1: l1 pin 10.116.0.2/32 via 10.0.32.0
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

stepped done
----
6m0s inc-4volgsqf-2: step done: 1 of 1: the driver says so
6m0s inc-4volgsqf-2: settling: all steps are in force; verified by 2026-11-30T12:07:00Z or undone
  > verify

verified better
----
6m0s inc-4volgsqf-2: verified: better: measured
6m0s inc-4volgsqf-2: holding: until the alert is gone for 30s, the job ends or the topology changes
  > hold

resolve aa sp1 1000
----
6m0s inc-4volgsqf-2: alert gone: no alert of the target fires any more
  > input resolved by webhook

after 20s
----

fire aa sp1 1020
----
6m20s inc-4volgsqf-2: alert: FabricLinkCongested fires too (aa)
  > input joined inc-4volgsqf-2

after 40s
----

show
----
inc-4volgsqf-1 lab/l1:sp1 released: a switch lost a route for the 4. time
inc-4volgsqf-2 lab/l1:sp1 holding: better: measured
desired 1, reservations 0, attempts 2

changed the topology changed: link lab/s1:lf3
----
7m0s inc-4volgsqf-2: releasing: the topology changed: link lab/s1:lf3
  > undo 10.116.0.2/32 at l1

stepped done
----
7m0s inc-4volgsqf-2: undo done: step 1: the driver says so
7m0s inc-4volgsqf-2: released: the topology changed: link lab/s1:lf3

# What nobody desires is removed.
extra
----
  > remove 10.16.0.2/32 at l1
