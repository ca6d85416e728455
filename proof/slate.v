(* The reservoir on pages of several places, as it runs: who stands where on each page. Nothing is proven here; the
   theorem in slates.v is about these definitions, and they are compared with the Python session. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat div seq.

Section Page.
Variables (draws views ranks : nat)               (* s draws, m views a place of a test, b of the test of ranks *)
          (order : seq nat) (places : nat)        (* the agents, in the order of the lot *)
          (click : nat -> nat -> nat -> bool)     (* agent, draw, page of its test: was it clicked? *)
          (later : nat -> nat -> nat -> bool).    (* agent, draw, page after tests: was it clicked, and kept by a coin? *)
Definition agents := size order.
Definition filled := minn places agents.
Definition test_pages := agents * views.          (* of one test *)
Definition tests_end := draws * test_pages.
Definition ranks_end := tests_end + agents * ranks.

(* Everybody moves on by one place from page to page. *)
Definition rotated (i t : nat) := (index i order + t) %% agents.

Definition level (i j : nat) := count (fun t => (rotated i t < filled) && click i j t) (iota 0 test_pages).
(* The draw of the highest level, ties to the earlier one. *)
Fixpoint best_of (f : nat -> nat) (s : nat) :=
  if s is s'.+1 then let b := best_of f s' in if f b < f s' then s' else b else 0.
Definition champion (i : nat) := best_of (level i) draws.

(* Whose clicks count on page t after the tests: in the test of ranks all that are shown, then the agent in turn, or
   everybody if there is a place for everybody. *)
Definition counts (i t : nat) :=
  if t < ranks_end then rotated i t < filled else (agents <= places) || (i == nth 0 order (t %% agents)).
Definition score (i t : nat) :=
  level i (champion i) + count (fun t' => counts i t' && later i (champion i) t') (iota tests_end (t - tests_end)).

(* Who is in front of agent i, by score, ties by the lot. *)
Definition ahead (i t j : nat) :=
  (score i t < score j t) || ((score j t == score i t) && (index j order < index i order)).
Definition rank (i t : nat) := count (ahead i t) order.

(* The place of agent i on page t, and the draw that it shows. *)
Definition place (i t : nat) : option nat :=
  if t < ranks_end then (if rotated i t < filled then Some (rotated i t) else None) else
  let turn := nth 0 order (t %% agents) in
  if (agents <= places) || (rank i t < filled.-1) then Some (rank i t) else
  if (i == turn) || ((rank i t == filled.-1) && ahead i t turn) then Some filled.-1 else None.
Definition shown_draw (i t : nat) := if t < tests_end then t %/ test_pages else champion i.
End Page.
