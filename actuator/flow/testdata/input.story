# Every input has a named end.
fire aa
----
  > input no policy FabricLinkCongested

policy act max_concurrent=9 per_hour=99
----
0s inc-4volgsqf-1: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-1

fire aa
----
  > input duplicate 

resolve zz sp9
----
  > input lone resolved 

fire zz sp9
----
  > input stale 

fire aa sp1 50
----
0s inc-4volgsqf-1: alert: FabricLinkCongested fires too (aa)
  > input joined inc-4volgsqf-1

fire aa
----
  > input stale 

resolve aa sp1 50
----
0s inc-4volgsqf-1: resolved: the alert went away before anything was written
  > input resolved by webhook

fire aa sp1 50
----
  > input stale 

fire aa sp1 50 poll
----
0s inc-4volgsqf-2: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-2

resolve aa sp1 50 poll
----
0s inc-4volgsqf-2: resolved: the alert went away before anything was written
  > input resolved by poll

fire aa sp1 50
----
0s inc-4volgsqf-3: opened: FabricLinkCongested on lab/l1:sp1
  > observe
  > input opened inc-4volgsqf-3

show
----
inc-4volgsqf-1 lab/l1:sp1 resolved: the alert went away before anything was written
inc-4volgsqf-2 lab/l1:sp1 resolved: the alert went away before anything was written
inc-4volgsqf-3 lab/l1:sp1 opened: 
desired 0, reservations 0, attempts 0
