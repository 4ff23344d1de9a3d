# Mode advise asks. An approval holds for the same plan only: everything is looked at again before anything is written.
policy advise
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
0s inc-4volgsqf-1: judged: ask: mode: mode advise: a human decides
0s inc-4volgsqf-1: asked: until 2026-11-30T12:10:00Z
  > tell approve or deny inc-4volgsqf-1: move 1 (mode: mode advise: a human decides)

after 30s
----

approve
----
30s inc-4volgsqf-1: approved: by ada; looking again before acting
  > observe

observed
----
30s inc-4volgsqf-1: observed: at 2026-11-30T12:00:30Z
  > propose

proposed 2
----
30s inc-4volgsqf-1: decided: hash collision: two flows
30s inc-4volgsqf-1: proposed: move 2 (gain 30.0 %): best
  > judge

judged
----
30s inc-4volgsqf-1: judged: ask: mode: mode advise: a human decides
30s inc-4volgsqf-1: asked: until 2026-11-30T12:10:30Z
  > tell approve or deny inc-4volgsqf-1: move 2 (mode: mode advise: a human decides)

approve
----
30s inc-4volgsqf-1: approved: by ada; looking again before acting
  > observe

observed
----
30s inc-4volgsqf-1: observed: at 2026-11-30T12:00:30Z
  > propose

proposed 2
----
30s inc-4volgsqf-1: decided: hash collision: two flows
30s inc-4volgsqf-1: proposed: move 2 (gain 30.0 %): best
  > judge

judged
----
30s inc-4volgsqf-1: judged: allow: approved, and none of 20 checks objects
  > recheck

rechecked
----
30s inc-4volgsqf-1: rechecked: approved, and none of 20 checks objects
30s inc-4volgsqf-1: step: 1 of 2: l1 pin 10.116.0.2/32 via 10.0.32.0
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

stepped done
----
30s inc-4volgsqf-1: step done: 1 of 2: the driver says so
30s inc-4volgsqf-1: step: 2 of 2: l1 pin 10.116.1.2/32 via 10.0.32.0
  > step l1 pin 10.116.1.2/32 via 10.0.32.0

show
----
inc-4volgsqf-1 lab/l1:sp1 acting: 
desired 2, reservations 1, attempts 1

let go
----
30s inc-4volgsqf-1: undoing: taken over by ada
  > undo 10.116.1.2/32 at l1

stepped done
----
30s inc-4volgsqf-1: undo done: step 2: the driver says so
  > undo 10.116.0.2/32 at l1

# Nobody answers.
fire bb sp2
----
30s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

observed
----
30s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:30Z
  > propose

proposed 1
----
30s inc-yvmrmhlv-2: decided: hash collision: two flows
30s inc-yvmrmhlv-2: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
30s inc-yvmrmhlv-2: judged: deny: concurrency: 1 of 1 actions at once in pool default
30s inc-yvmrmhlv-2: refused: concurrency: 1 of 1 actions at once in pool default

after 10m
----
1m30s inc-yvmrmhlv-3: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-3
2m30s inc-yvmrmhlv-3: expired: no decision by 2026-11-30T12:02:30Z (in state opened)
4m30s inc-yvmrmhlv-4: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-4
5m30s inc-yvmrmhlv-4: expired: no decision by 2026-11-30T12:05:30Z (in state opened)
9m30s inc-yvmrmhlv-5: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-5
10m30s inc-yvmrmhlv-5: expired: no decision by 2026-11-30T12:10:30Z (in state opened)

# A human says no.
fire cc sp3
----
10m30s inc-kxdz3vxx-6: opened: FabricLinkCongested on lab/l1:sp3
  > observe
  > input opened inc-kxdz3vxx-6

observed
----
10m30s inc-kxdz3vxx-6: observed: at 2026-11-30T12:10:30Z
  > propose

proposed 1
----
10m30s inc-kxdz3vxx-6: decided: hash collision: two flows
10m30s inc-kxdz3vxx-6: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
10m30s inc-kxdz3vxx-6: judged: deny: concurrency: 1 of 1 actions at once in pool default
10m30s inc-kxdz3vxx-6: refused: concurrency: 1 of 1 actions at once in pool default

deny
----

approve
----

show
----
inc-4volgsqf-1 lab/l1:sp1 undoing: 
inc-yvmrmhlv-2 lab/l1:sp2 refused: concurrency: 1 of 1 actions at once in pool default
inc-yvmrmhlv-3 lab/l1:sp2 expired: no decision by 2026-11-30T12:02:30Z (in state opened)
inc-yvmrmhlv-4 lab/l1:sp2 expired: no decision by 2026-11-30T12:05:30Z (in state opened)
inc-yvmrmhlv-5 lab/l1:sp2 expired: no decision by 2026-11-30T12:10:30Z (in state opened)
inc-kxdz3vxx-6 lab/l1:sp3 refused: concurrency: 1 of 1 actions at once in pool default
desired 1, reservations 1, attempts 1
