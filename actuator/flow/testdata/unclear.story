# A picture that does not fit together is taken again, within the decide deadline.
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

proposed 1 unexplained
----
0s inc-4volgsqf-1: decided: hash collision: two flows
0s inc-4volgsqf-1: unclear: looking again (2 of 8)

after 2s
----

after 1s
----
  > observe

observed
----
3s inc-4volgsqf-1: observed: at 2026-11-30T12:00:03Z
  > propose

proposed 1
----
3s inc-4volgsqf-1: decided: hash collision: two flows
3s inc-4volgsqf-1: proposed: move 1 (gain 30.0 %): best
  > judge

# Data that is missing is no last word either.
judged stale
----
3s inc-4volgsqf-1: judged: deny: data: 1000.0 s old, at most 45.0 s
3s inc-4volgsqf-1: unclear: looking again (3 of 8)

after 3s
----
  > observe

observed
----
6s inc-4volgsqf-1: observed: at 2026-11-30T12:00:06Z
  > propose

proposed 1
----
6s inc-4volgsqf-1: decided: hash collision: two flows
6s inc-4volgsqf-1: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
6s inc-4volgsqf-1: judged: allow: none of 20 checks objects
  > recheck

# Nothing fits until there were enough looks.
fire bb sp2
----
6s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

observed
----
6s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:06Z
  > propose

proposed 1 unexplained
----
6s inc-yvmrmhlv-2: decided: hash collision: two flows
6s inc-yvmrmhlv-2: unclear: looking again (2 of 8)

after 3s
----
  > observe

observed
----
9s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:09Z
  > propose

proposed 1 unexplained
----
9s inc-yvmrmhlv-2: decided: hash collision: two flows
9s inc-yvmrmhlv-2: unclear: looking again (3 of 8)

after 3s
----
  > observe

observed
----
12s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:12Z
  > propose

proposed 1 unexplained
----
12s inc-yvmrmhlv-2: decided: hash collision: two flows
12s inc-yvmrmhlv-2: unclear: looking again (4 of 8)

after 3s
----
  > observe

observed
----
15s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:15Z
  > propose

proposed 1 unexplained
----
15s inc-yvmrmhlv-2: decided: hash collision: two flows
15s inc-yvmrmhlv-2: unclear: looking again (5 of 8)

after 3s
----
  > observe

observed
----
18s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:18Z
  > propose

proposed 1 unexplained
----
18s inc-yvmrmhlv-2: decided: hash collision: two flows
18s inc-yvmrmhlv-2: unclear: looking again (6 of 8)

after 3s
----
  > observe

observed
----
21s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:21Z
  > propose

proposed 1 unexplained
----
21s inc-yvmrmhlv-2: decided: hash collision: two flows
21s inc-yvmrmhlv-2: unclear: looking again (7 of 8)

after 3s
----
  > observe

observed
----
24s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:24Z
  > propose

proposed 1 unexplained
----
24s inc-yvmrmhlv-2: decided: hash collision: two flows
24s inc-yvmrmhlv-2: unclear: looking again (8 of 8)

after 3s
----
  > observe

observed
----
27s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:27Z
  > propose

proposed 1 unexplained
----
27s inc-yvmrmhlv-2: decided: hash collision: two flows
27s inc-yvmrmhlv-2: refused: does not explain the present: best
