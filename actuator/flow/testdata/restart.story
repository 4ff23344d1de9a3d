# A start replays, fires what came due, and goes on. What was thought is thought again; what was written is read back.
policy act max_concurrent=9 per_hour=99
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

start
----
0s inc-4volgsqf-1: started: looking again
  > observe

show
----
inc-4volgsqf-1 lab/l1:sp1 opened: 
desired 0, reservations 0, attempts 0

act 2
----
0s inc-4volgsqf-1: observed: at 2026-11-30T12:00:00Z
  > propose
0s inc-4volgsqf-1: decided: hash collision: two flows
0s inc-4volgsqf-1: proposed: move 2 (gain 30.0 %): best
  > judge
0s inc-4volgsqf-1: judged: allow: none of 20 checks objects
  > recheck
0s inc-4volgsqf-1: rechecked: none of 20 checks objects
0s inc-4volgsqf-1: step: 1 of 2: l1 pin 10.116.0.2/32 via 10.0.32.0
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

stepped done
----
0s inc-4volgsqf-1: step done: 1 of 2: the driver says so
0s inc-4volgsqf-1: step: 2 of 2: l1 pin 10.116.1.2/32 via 10.0.32.0
  > step l1 pin 10.116.1.2/32 via 10.0.32.0

start
----
0s inc-4volgsqf-1: started: the step in flight is read back
  > read l1 pin 10.116.1.2/32 via 10.0.32.0

read no
----
0s inc-4volgsqf-1: read back: step 2 is not in force

after 1s
----
  > step l1 pin 10.116.1.2/32 via 10.0.32.0

stepped done
----
1s inc-4volgsqf-1: step done: 2 of 2: the driver says so
1s inc-4volgsqf-1: settling: all steps are in force; verified by 2026-11-30T12:01:01Z or undone
  > verify

start
----
1s inc-4volgsqf-1: started: go on verifying
  > verify

verified better
----
1s inc-4volgsqf-1: verified: better: measured
1s inc-4volgsqf-1: holding: until the alert is gone for 1m0s, the job ends or the topology changes
  > hold

start
----
1s inc-4volgsqf-1: started: go on holding
  > hold

# Away for longer than switches keep routes: nothing is advertised again.
start 5m
----
1s inc-4volgsqf-1: releasing: nobody was there for 5m0s: switches dropped the routes
  > undo 10.116.1.2/32 at l1

stepped done
----
1s inc-4volgsqf-1: undo done: step 2: the driver says so
  > undo 10.116.0.2/32 at l1

# Commit-confirm: the deadline passed while nobody was there.
fire bb sp2
----
1s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

act
----
1s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:01Z
  > propose
1s inc-yvmrmhlv-2: decided: hash collision: two flows
1s inc-yvmrmhlv-2: proposed: move 1 (gain 30.0 %): best
  > judge
1s inc-yvmrmhlv-2: judged: allow: none of 20 checks objects
  > recheck
1s inc-yvmrmhlv-2: rechecked: none of 20 checks objects
1s inc-yvmrmhlv-2: step: 1 of 1: l1 pin 10.117.0.2/32 via 10.0.32.0
  > step l1 pin 10.117.0.2/32 via 10.0.32.0

stepped done
----
1s inc-4volgsqf-1: undo done: step 1: the driver says so
1s inc-4volgsqf-1: released: nobody was there for 5m0s: switches dropped the routes

after 1s
----

start 1s
----
2s inc-yvmrmhlv-2: started: the step in flight is read back
  > read l1 pin 10.117.0.2/32 via 10.0.32.0

show
----
inc-4volgsqf-1 lab/l1:sp1 released: nobody was there for 5m0s: switches dropped the routes
inc-yvmrmhlv-2 lab/l1:sp2 acting: 
desired 1, reservations 1, attempts 2

# A changed program decides nothing about an old story.
diverged
----
2s inc-yvmrmhlv-2: handed: the program was changed and decides differently now: at record 7
  > tell inc-yvmrmhlv-2 is yours: the program was changed and decides differently now: at record 7

lost
----

let go
----
2s inc-yvmrmhlv-2: let go: by ada
2s inc-yvmrmhlv-2: releasing: released by ada
  > undo 10.117.0.2/32 at l1

stepped done
----
2s inc-yvmrmhlv-2: undo done: step 1: the driver says so
2s inc-yvmrmhlv-2: released: released by ada

show
----
inc-4volgsqf-1 lab/l1:sp1 released: nobody was there for 5m0s: switches dropped the routes
inc-yvmrmhlv-2 lab/l1:sp2 released: released by ada
desired 0, reservations 0, attempts 2
