# What a write can come to.
policy act max_concurrent=9 per_hour=99
----

# Transient: tried again, three times, then taken back.
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

stepped transient
----
0s inc-4volgsqf-1: step transient: 1 of 1: the driver says so

after 200ms
----
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

stepped transient
----
200ms inc-4volgsqf-1: step transient: 1 of 1: the driver says so

after 400ms
----
  > step l1 pin 10.116.0.2/32 via 10.0.32.0

stepped transient
----
600ms inc-4volgsqf-1: step transient: 1 of 1: the driver says so
600ms inc-4volgsqf-1: undoing: step failed transient each time
  > undo 10.116.0.2/32 at l1

stepped done
----
600ms inc-4volgsqf-1: undo done: step 1: the driver says so
600ms inc-4volgsqf-1: undone: step failed transient each time

# Ambiguous: read back, never written again blind.
fire bb sp2
----
600ms inc-yvmrmhlv-2: opened: FabricLinkCongested on lab/l1:sp2
  > observe
  > input opened inc-yvmrmhlv-2

act 2
----
600ms inc-yvmrmhlv-2: observed: at 2026-11-30T12:00:00.6Z
  > propose
600ms inc-yvmrmhlv-2: decided: hash collision: two flows
600ms inc-yvmrmhlv-2: proposed: move 2 (gain 30.0 %): best
  > judge
600ms inc-yvmrmhlv-2: judged: allow: none of 20 checks objects
  > recheck
600ms inc-yvmrmhlv-2: rechecked: none of 20 checks objects
600ms inc-yvmrmhlv-2: step: 1 of 2: l1 pin 10.117.0.2/32 via 10.0.32.0
  > step l1 pin 10.117.0.2/32 via 10.0.32.0

stepped ambiguous
----
600ms inc-yvmrmhlv-2: step ambiguous: 1 of 2: the driver says so
  > read l1 pin 10.117.0.2/32 via 10.0.32.0

read yes
----
600ms inc-yvmrmhlv-2: read back: step 1 is in force
600ms inc-yvmrmhlv-2: step: 2 of 2: l1 pin 10.117.1.2/32 via 10.0.32.0
  > step l1 pin 10.117.1.2/32 via 10.0.32.0

stepped ambiguous
----
600ms inc-yvmrmhlv-2: step ambiguous: 2 of 2: the driver says so
  > read l1 pin 10.117.1.2/32 via 10.0.32.0

read no
----
600ms inc-yvmrmhlv-2: read back: step 2 is not in force

after 1s
----
  > step l1 pin 10.117.1.2/32 via 10.0.32.0

stepped done
----
1.6s inc-yvmrmhlv-2: step done: 2 of 2: the driver says so
1.6s inc-yvmrmhlv-2: settling: all steps are in force; verified by 2026-11-30T12:01:01Z or undone
  > verify

verified better
----
1.6s inc-yvmrmhlv-2: verified: better: measured
1.6s inc-yvmrmhlv-2: holding: until the alert is gone for 1m0s, the job ends or the topology changes
  > hold

# Unreadable: taken back.
fire cc sp3
----
1.6s inc-kxdz3vxx-3: opened: FabricLinkCongested on lab/l1:sp3
  > observe
  > input opened inc-kxdz3vxx-3

act 1
----
1.6s inc-kxdz3vxx-3: observed: at 2026-11-30T12:00:01.6Z
  > propose
1.6s inc-kxdz3vxx-3: decided: hash collision: two flows
1.6s inc-kxdz3vxx-3: proposed: move 1 (gain 30.0 %): best
  > judge
1.6s inc-kxdz3vxx-3: judged: allow: none of 20 checks objects
  > recheck
1.6s inc-kxdz3vxx-3: rechecked: none of 20 checks objects
1.6s inc-kxdz3vxx-3: step: 1 of 1: l1 pin 10.118.0.2/32 via 10.0.32.0
  > step l1 pin 10.118.0.2/32 via 10.0.32.0

stepped ambiguous
----
1.6s inc-kxdz3vxx-3: step ambiguous: 1 of 1: the driver says so
  > read l1 pin 10.118.0.2/32 via 10.0.32.0

read error
----
1.6s inc-kxdz3vxx-3: not read back: no answer

after 1s
----
  > read l1 pin 10.118.0.2/32 via 10.0.32.0

read error
----
2.6s inc-kxdz3vxx-3: not read back: no answer

after 1s
----
  > read l1 pin 10.118.0.2/32 via 10.0.32.0

read error
----
3.6s inc-kxdz3vxx-3: not read back: no answer
3.6s inc-kxdz3vxx-3: undoing: what the write came to cannot be read: no answer
  > undo 10.118.0.2/32 at l1

stepped ambiguous
----
3.6s inc-kxdz3vxx-3: undo ambiguous: step 1: the driver says so

after 1s
----
  > undo 10.118.0.2/32 at l1

stepped done
----
4.6s inc-kxdz3vxx-3: undo done: step 1: the driver says so
4.6s inc-kxdz3vxx-3: undone: what the write came to cannot be read: no answer

# Permanent at the second step: the first is taken back.
fire dd sp4
----
4.6s inc-i5pf5ydf-4: opened: FabricLinkCongested on lab/l1:sp4
  > observe
  > input opened inc-i5pf5ydf-4

act 2
----
4.6s inc-i5pf5ydf-4: observed: at 2026-11-30T12:00:04.6Z
  > propose
4.6s inc-i5pf5ydf-4: decided: hash collision: two flows
4.6s inc-i5pf5ydf-4: proposed: move 2 (gain 30.0 %): best
  > judge
4.6s inc-i5pf5ydf-4: judged: allow: none of 20 checks objects
  > recheck
4.6s inc-i5pf5ydf-4: rechecked: none of 20 checks objects
4.6s inc-i5pf5ydf-4: step: 1 of 2: l1 pin 10.119.0.2/32 via 10.0.32.0
  > step l1 pin 10.119.0.2/32 via 10.0.32.0

stepped done
----
4.6s inc-i5pf5ydf-4: step done: 1 of 2: the driver says so
4.6s inc-i5pf5ydf-4: step: 2 of 2: l1 pin 10.119.1.2/32 via 10.0.32.0
  > step l1 pin 10.119.1.2/32 via 10.0.32.0

stepped permanent
----
4.6s inc-i5pf5ydf-4: step permanent: 2 of 2: the driver says so
4.6s inc-i5pf5ydf-4: undoing: the driver refuses: the driver says so
  > undo 10.119.0.2/32 at l1

stepped done
----
4.6s inc-i5pf5ydf-4: undo done: step 1: the driver says so
4.6s inc-i5pf5ydf-4: undone: the driver refuses: the driver says so

# Superseded and cancelled.
fire ee sp5
----
4.6s inc-v7orodx3-5: opened: FabricLinkCongested on lab/l1:sp5
  > observe
  > input opened inc-v7orodx3-5

act 2
----
4.6s inc-v7orodx3-5: observed: at 2026-11-30T12:00:04.6Z
  > propose
4.6s inc-v7orodx3-5: decided: hash collision: two flows
4.6s inc-v7orodx3-5: proposed: move 2 (gain 30.0 %): best
  > judge
4.6s inc-v7orodx3-5: judged: allow: none of 20 checks objects
  > recheck
4.6s inc-v7orodx3-5: rechecked: none of 20 checks objects
4.6s inc-v7orodx3-5: step: 1 of 2: l1 pin 10.120.0.2/32 via 10.0.32.0
  > step l1 pin 10.120.0.2/32 via 10.0.32.0

stepped done
----
4.6s inc-v7orodx3-5: step done: 1 of 2: the driver says so
4.6s inc-v7orodx3-5: step: 2 of 2: l1 pin 10.120.1.2/32 via 10.0.32.0
  > step l1 pin 10.120.1.2/32 via 10.0.32.0

stepped superseded
----
4.6s inc-v7orodx3-5: step superseded: 2 of 2: the driver says so
4.6s inc-v7orodx3-5: undoing: a newer decision took its place: the driver says so
  > undo 10.120.0.2/32 at l1

stepped done
----
4.6s inc-v7orodx3-5: undo done: step 1: the driver says so
4.6s inc-v7orodx3-5: superseded: a newer decision took its place: the driver says so

fire ff sp6
----
4.6s inc-6duil2pz-6: opened: FabricLinkCongested on lab/l1:sp6
  > observe
  > input opened inc-6duil2pz-6

act 1
----
4.6s inc-6duil2pz-6: observed: at 2026-11-30T12:00:04.6Z
  > propose
4.6s inc-6duil2pz-6: decided: hash collision: two flows
4.6s inc-6duil2pz-6: proposed: move 1 (gain 30.0 %): best
  > judge
4.6s inc-6duil2pz-6: judged: allow: none of 20 checks objects
  > recheck
4.6s inc-6duil2pz-6: rechecked: none of 20 checks objects
4.6s inc-6duil2pz-6: step: 1 of 1: l1 pin 10.121.0.2/32 via 10.0.32.0
  > step l1 pin 10.121.0.2/32 via 10.0.32.0

stepped cancelled
----
4.6s inc-6duil2pz-6: step cancelled: 1 of 1: the driver says so
4.6s inc-6duil2pz-6: undoing: cancelled before the write: the driver says so
4.6s inc-6duil2pz-6: refused: cancelled before the write: the driver says so

# A removal that never works goes to a human, and goes on as drift.
fire gg sp7
----
4.6s inc-loetbb3z-7: opened: FabricLinkCongested on lab/l1:sp7
  > observe
  > input opened inc-loetbb3z-7

act 1
----
4.6s inc-loetbb3z-7: observed: at 2026-11-30T12:00:04.6Z
  > propose
4.6s inc-loetbb3z-7: decided: hash collision: two flows
4.6s inc-loetbb3z-7: proposed: move 1 (gain 30.0 %): best
  > judge
4.6s inc-loetbb3z-7: judged: allow: none of 20 checks objects
  > recheck
4.6s inc-loetbb3z-7: rechecked: none of 20 checks objects
4.6s inc-loetbb3z-7: step: 1 of 1: l1 pin 10.122.0.2/32 via 10.0.32.0
  > step l1 pin 10.122.0.2/32 via 10.0.32.0

stepped done
----
4.6s inc-loetbb3z-7: step done: 1 of 1: the driver says so
4.6s inc-loetbb3z-7: settling: all steps are in force; verified by 2026-11-30T12:01:04Z or undone
  > verify

verified harm
----
4.6s inc-loetbb3z-7: verified: harm: measured
4.6s inc-loetbb3z-7: undoing: harm: measured
  > undo 10.122.0.2/32 at l1

stepped transient
----
4.6s inc-loetbb3z-7: undo transient: step 1: the driver says so

after 10s
----
  > undo 10.122.0.2/32 at l1

stepped transient
----
14.6s inc-loetbb3z-7: undo transient: step 1: the driver says so

after 10s
----
  > undo 10.122.0.2/32 at l1

stepped ambiguous
----
24.6s inc-loetbb3z-7: undo ambiguous: step 1: the driver says so

after 10s
----
  > undo 10.122.0.2/32 at l1

stepped transient
----
34.6s inc-loetbb3z-7: undo transient: step 1: the driver says so

after 10s
----
  > undo 10.122.0.2/32 at l1

stepped permanent
----
44.6s inc-loetbb3z-7: undo permanent: step 1: the driver says so

after 10s
----
  > undo 10.122.0.2/32 at l1

stepped transient
----
54.6s inc-loetbb3z-7: undo transient: step 1: the driver says so
54.6s inc-loetbb3z-7: handed: harm: measured; and 10.122.0.2/32 at l1 could not be removed: the driver says so
  > tell inc-loetbb3z-7 is yours: harm: measured; and 10.122.0.2/32 at l1 could not be removed: the driver says so

show
----
inc-4volgsqf-1 lab/l1:sp1 undone: step failed transient each time
inc-yvmrmhlv-2 lab/l1:sp2 holding: better: measured
inc-kxdz3vxx-3 lab/l1:sp3 undone: what the write came to cannot be read: no answer
inc-i5pf5ydf-4 lab/l1:sp4 undone: the driver refuses: the driver says so
inc-v7orodx3-5 lab/l1:sp5 superseded: a newer decision took its place: the driver says so
inc-6duil2pz-6 lab/l1:sp6 refused: cancelled before the write: the driver says so
inc-loetbb3z-7 lab/l1:sp7 handed: harm: measured; and 10.122.0.2/32 at l1 could not be removed: the driver says so
desired 2, reservations 0, attempts 6

let go
----
54.6s inc-yvmrmhlv-2: releasing: released by ada
  > undo 10.117.1.2/32 at l1

show
----
inc-4volgsqf-1 lab/l1:sp1 undone: step failed transient each time
inc-yvmrmhlv-2 lab/l1:sp2 releasing: better: measured
inc-kxdz3vxx-3 lab/l1:sp3 undone: what the write came to cannot be read: no answer
inc-i5pf5ydf-4 lab/l1:sp4 undone: the driver refuses: the driver says so
inc-v7orodx3-5 lab/l1:sp5 superseded: a newer decision took its place: the driver says so
inc-6duil2pz-6 lab/l1:sp6 refused: cancelled before the write: the driver says so
inc-loetbb3z-7 lab/l1:sp7 handed: harm: measured; and 10.122.0.2/32 at l1 could not be removed: the driver says so
desired 2, reservations 0, attempts 6
