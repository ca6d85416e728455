(* The reservoir on pages of several places, as it runs: an executable definition of what each page shows. Nothing is
   proven here; the theorem in slates.v is about these definitions, and they are compared with the Python session. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat div seq.
From Cloneproof Require Import serve.

(* What a place shows: the arm of an agent's best finished test (by its slot), an agent in turn with a uniform draw, or
   pull i of the test of slot q. *)
Inductive shows := Best of nat | Turn of nat | Trial of nat & nat.

Section Page.
Variables (pulls draws : nat)            (* n pages a test, s draws of each agent *)
          (order turns : seq nat)        (* the agents, in the order of the timetable, and in that of turns *)
          (places : nat)
          (coin : nat -> nat -> bool).   (* whether pull i in the test of slot q was a one *)
Definition tester q := owner draws order 0 q.
Definition score q := count (coin q) (iota 0 pulls).

(* From the highest score down, slots in order: the first of each agent that has so much. *)
Fixpoint ranked (seen : seq nat) (E : seq (nat * nat)) : seq nat :=
  if E is (q, y) :: E' then
    if (y <= score q) && (tester q \notin seen) then q :: ranked (tester q :: seen) E' else ranked seen E'
  else [::].
Definition levels m := flatten [seq [seq (q, pulls - e) | q <- iota 0 m] | e <- iota 0 pulls.+1].

(* Page t = 0, 1, ..: tests run by the timetable alone, in the last place, whoever stands in front. *)
Definition finished t := minn (t %/ pulls) (tests draws order).
Definition tests_on t := t < tests draws order * pulls.
Definition filled := minn places (size order).
Definition front t := filled - tests_on t.
Definition ranking t := ranked [::] (levels (finished t)).
Definition page t : seq shows :=
  let best := take (front t) (ranking t) in
  let others := [seq i <- turns | i \notin [seq tester q | q <- ranking t]] in
  [seq Best q | q <- best] ++ [seq Turn i | i <- take (front t - size best) (rot (t %% size others) others)] ++
  (if tests_on t then [:: Trial (t %/ pulls) (t %% pulls)] else [::]).
End Page.
