(* The reservoir as it runs: an executable loop over the rounds. Nothing is proven here; the theorem in theorem.v is
   about these definitions, and they are compared with the Python session case by case (make prove). *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat div seq.

Section Serve.
Variables (pulls : nat)                  (* n: pulls of a test *)
          (draws : nat)                  (* s: draws of each agent *)
          (threshold : nat)              (* ones that pass a test; more than `pulls`: nobody passes, best of all *)
          (fresh : bool)                 (* if nobody passes: true for a fresh draw, false for the best count *)
          (order : seq nat)              (* the agents, in the order of the timetable *)
          (lot : nat)                    (* the agent whose fresh draw it would be *)
          (coin : nat -> nat -> bool).   (* the coin of pull i in the test of slot q *)

(* The timetable: first draws of all agents, then second draws of all, and so on. Slot `tests` is the fresh draw. *)
Definition tests := size order * draws.
Definition owner q := if q < tests then nth 0 order (q %% size order) else lot.
Definition draw q := q %/ size order.

(* Testing q i k b: slot q has had i pulls, k of them ones; b is the best slot so far, with its count. *)
Inductive state := Testing of nat & nat & nat & nat * nat | Award of nat.

Definition step st :=
  if st is Testing q i k b then
    let k := k + coin q i in
    if i.+1 < pulls then Testing q i.+1 k b else       (* no verdict before the last pull *)
    if threshold <= k then Award q else                (* the first pass gets every later round *)
    let b := if b.2 < k then (q, k) else b in          (* ties to the earlier slot *)
    if q.+1 < tests then Testing q.+1 0 0 b else Award (if fresh then tests else b.1)
  else st.

Definition state_at t := iter t step (Testing 0 0 0 (0, 0)).
Definition slot_of st := match st with Testing q _ _ _ => q | Award q => q end.
Definition pull_of st := if st is Testing _ i _ _ then Some i else None.

(* Round t = 0, 1, ..: the agent, the number of its draw, and the pull of the test (None after the award). *)
Definition serve t :=
  let q := slot_of (state_at t) in (owner q, draw q, pull_of (state_at t)).

(* The same with what the draws hold: the agent and the arm that are served. *)
Definition served (holds : nat -> nat -> nat) t :=
  let: (agent, d, _) := serve t in (agent, holds agent d).
End Serve.
