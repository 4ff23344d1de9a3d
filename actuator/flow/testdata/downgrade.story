# A weaker mode binds at once.
policy act
----

fire aa
----
0s inc-4volgsqf-1: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-1

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

policy watch
----
0s inc-4volgsqf-1: undoing: the policies in force put it in mode watch
  > undo 10.116.1.2/32 at l1

stepped done
----
0s inc-4volgsqf-1: undo done: step 2: the driver says so
  > undo 10.116.0.2/32 at l1

stepped done
----
0s inc-4volgsqf-1: undo done: step 1: the driver says so
0s inc-4volgsqf-1: undone: the policies in force put it in mode watch

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
0s inc-yvmrmhlv-2: judged: deny: mode: mode watch: nothing is written
0s inc-yvmrmhlv-2: watching: would act
  > follow up

show
----
inc-4volgsqf-1 lab/l1:sp1 undone: the policies in force put it in mode watch
inc-yvmrmhlv-2 lab/l1:sp2 watching: mode watch: would allow
desired 0, reservations 0, attempts 1
