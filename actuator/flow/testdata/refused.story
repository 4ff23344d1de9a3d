# What is not acted on ends with its reason.
policy act
----

fire aa
----
0s inc-4volgsqf-1: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-1

observed unknown
----
0s inc-4volgsqf-1: refused: target: not a link of the fabric

fire bb sp2
----
0s inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

observed
----
0s inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:00Z
  > propose

proposed receiver
----
0s inc-yvmrmhlv-2: decided: slow receiver: two flows
0s inc-yvmrmhlv-2: refused: slow receiver: moving routes does not cure it. two flows

fire cc sp3
----
0s inc-kxdz3vxx-3: opened: FabricLinkCongested on lab/l1:sp3
  > observe
  > input opened inc-kxdz3vxx-3

observed
----
0s inc-kxdz3vxx-3: observed: at 2026-11-30T12:00:00Z
  > propose

proposed 0
----
0s inc-kxdz3vxx-3: decided: hash collision: two flows
0s inc-kxdz3vxx-3: refused: nothing better than doing nothing: best

fire ff sp6
----
0s inc-6duil2pz-4: opened: FabricLinkCongested on lab/l1:sp6
  > observe
  > input opened inc-6duil2pz-4

observed
----
0s inc-6duil2pz-4: observed: at 2026-11-30T12:00:00Z
  > propose

proposed 1
----
0s inc-6duil2pz-4: decided: hash collision: two flows
0s inc-6duil2pz-4: proposed: move 1 (gain 30.0 %): best
  > judge

judged
----
0s inc-6duil2pz-4: judged: allow: none of 20 checks objects
  > recheck

rechecked stopped
----
0s inc-6duil2pz-4: rechecked: deny
0s inc-6duil2pz-4: refused: just before the first write: stop switch: the stop file is there

fire gg sp7
----
0s inc-loetbb3z-5: opened: FabricLinkCongested on lab/l1:sp7
  > observe
  > input opened inc-loetbb3z-5

observed error
----
0s inc-loetbb3z-5: not observed: no answer from Prometheus

after 1s
----
  > observe

observed error
----
1s inc-loetbb3z-5: not observed: no answer from Prometheus

after 1s
----
  > observe

observed error
----
2s inc-loetbb3z-5: not observed: no answer from Prometheus

after 1s
----
  > observe

observed error
----
3s inc-loetbb3z-5: not observed: no answer from Prometheus
3s inc-loetbb3z-5: refused: no picture of the yard: no answer from Prometheus

fire hh sp8
----
3s inc-lsf6cmjv-6: opened: FabricLinkCongested on lab/l1:sp8
  > observe
  > input opened inc-lsf6cmjv-6

resolve hh sp8
----
3s inc-lsf6cmjv-6: resolved: the alert went away before anything was written
  > input resolved by webhook

# Nobody answers at all.
fire ii sp9
----
3s inc-krcoyc6p-7: opened: FabricLinkCongested on lab/l1:sp9
  > observe
  > input opened inc-krcoyc6p-7

after 60s
----
1m0s inc-4volgsqf-8: opened: FabricLinkCongested on lab/l1:sp1
1m0s inc-yvmrmhlv-9: opened: FabricLinkCongested on lab/l1:sp2
1m0s inc-kxdz3vxx-10: opened: FabricLinkCongested on lab/l1:sp3
1m0s inc-6duil2pz-11: opened: FabricLinkCongested on lab/l1:sp6
  > observe
  > input opened inc-4volgsqf-8
  > observe
  > input opened inc-yvmrmhlv-9
  > observe
  > input opened inc-kxdz3vxx-10
  > observe
  > input opened inc-6duil2pz-11
1m3s inc-krcoyc6p-7: expired: no decision by 2026-11-30T12:01:03Z (in state opened)
1m3s inc-loetbb3z-12: opened: FabricLinkCongested on lab/l1:sp7
  > observe
  > input opened inc-loetbb3z-12

show
----
inc-4volgsqf-1 lab/l1:sp1 refused: target: not a link of the fabric
inc-yvmrmhlv-2 lab/l1:sp2 refused: slow receiver: moving routes does not cure it. two flows
inc-kxdz3vxx-3 lab/l1:sp3 refused: nothing better than doing nothing: best
inc-6duil2pz-4 lab/l1:sp6 refused: just before the first write: stop switch: the stop file is there
inc-loetbb3z-5 lab/l1:sp7 refused: no picture of the yard: no answer from Prometheus
inc-lsf6cmjv-6 lab/l1:sp8 resolved: the alert went away before anything was written
inc-krcoyc6p-7 lab/l1:sp9 expired: no decision by 2026-11-30T12:01:03Z (in state opened)
inc-4volgsqf-8 lab/l1:sp1 opened: 
inc-yvmrmhlv-9 lab/l1:sp2 opened: 
inc-kxdz3vxx-10 lab/l1:sp3 opened: 
inc-6duil2pz-11 lab/l1:sp6 opened: 
inc-loetbb3z-12 lab/l1:sp7 opened: 
desired 0, reservations 0, attempts 0
