# The whole way: congestion, one route, better, held until the alert is gone, released.
policy act
----

fire aa
----
0s inc-4volgsqf-1: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-1

observed
----
0s inc-4volgsqf-1: observed: at 2026-11-30T12:00:00Z
  > propose

proposed 1
----
0s inc-4volgsqf-1: decided: hash collision: two flows
0s inc-4volgsqf-1: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
0s inc-4volgsqf-1: judged: allow: none of 20 checks objects
  > recheck

rechecked
----
0s inc-4volgsqf-1: rechecked: none of 20 checks objects
0s inc-4volgsqf-1: step: 1 of 1: l1 pin 10.116.0.2/32 via 10.0.32.0
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

show
----
inc-4volgsqf-1 lab/l1:sp1 acting: 
desired 1, reservations 1, attempts 1

stepped done
----
0s inc-4volgsqf-1: step done: 1 of 1: the driver says so
0s inc-4volgsqf-1: settling: all steps are in force; verified by 2026-11-30T12:01:00Z or undone
  > verify

after 5s
----

verified better
----
5s inc-4volgsqf-1: verified: better: measured
5s inc-4volgsqf-1: holding: until the alert is gone for 1m0s, the job ends or the topology changes
  > hold

resolve aa
----
5s inc-4volgsqf-1: alert gone: no alert of the target fires any more
  > input resolved by webhook

after 59s
----

after 2s
----
1m5s inc-4volgsqf-1: releasing: the alert was gone for 1m0s
  > undo 10.116.0.2/32 at l1

stepped done
----
1m6s inc-4volgsqf-1: undo done: step 1: the driver says so
1m6s inc-4volgsqf-1: released: the alert was gone for 1m0s

show
----
inc-4volgsqf-1 lab/l1:sp1 released: the alert was gone for 1m0s
desired 0, reservations 0, attempts 1

# The same episode again is nothing new; a new one within the cooldown is refused, and looked at again after it.
fire aa
----
  > input stale 

fire aa sp1 100
----
  > input waiting until 2026-11-30T12:06:06Z

after 3m55s
----

show
----
inc-4volgsqf-1 lab/l1:sp1 released: the alert was gone for 1m0s
desired 0, reservations 0, attempts 1

after 65s
----
6m6s inc-4volgsqf-2: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-2

observed
----
6m6s inc-4volgsqf-2: observed: at 2026-11-30T12:06:06Z
  > propose

proposed 1
----
6m6s inc-4volgsqf-2: decided: hash collision: two flows
6m6s inc-4volgsqf-2: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
6m6s inc-4volgsqf-2: judged: allow: none of 20 checks objects
  > recheck

show
----
inc-4volgsqf-1 lab/l1:sp1 released: the alert was gone for 1m0s
inc-4volgsqf-2 lab/l1:sp1 judged: 
desired 0, reservations 1, attempts 2
