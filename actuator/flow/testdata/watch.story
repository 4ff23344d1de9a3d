# Mode watch records everything and writes nothing; the follow-up tells whether acting would have been worth it.
policy watch
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

proposed 2
----
0s inc-4volgsqf-1: decided: hash collision: two flows
0s inc-4volgsqf-1: proposed: move 2 (gain 30.0 %): best
  > judge

judged
----
0s inc-4volgsqf-1: judged: deny: mode: mode watch: nothing is written
0s inc-4volgsqf-1: watching: would act
  > follow up

after 10s
----

verified no change
----
10s inc-4volgsqf-1: followed up: no change: measured
10s inc-4volgsqf-1: watched: would act; followed up: measured

show
----
inc-4volgsqf-1 lab/l1:sp1 watched: would act; followed up: measured
desired 0, reservations 0, attempts 0

after 2h
----

fire aa
----
  > input duplicate 

show
----
inc-4volgsqf-1 lab/l1:sp1 watched: would act; followed up: measured
desired 0, reservations 0, attempts 0
