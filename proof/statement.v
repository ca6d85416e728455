(* What was proven, as Coq prints it, and the axioms that it rests on: asked once for all theorems, as that is slow. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve scan counts theorem corollaries weights segments slates flood ceiling.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Set Printing Width 120.
Check clone_proof.
Definition proven := (
  @clone_proof,
  @informed_best_alone,
  @clone_proof_shares,
  @best_of_all,
  @clone_proof_epochs,
  @clone_proof_bayes,
  @contest_proof,
  @contest_informed,
  @weights_suffice,
  @weights_suffice_law,
  @weights_suffice_contest,
  @draws_by_weights,
  @clone_proof_segment,
  @clone_proof_segments,
  @shared_draws,
  @own_draws,
  @clone_proof_whole_page,
  @clone_proof_whole_pages,
  @flood,
  @ceiling_of_knowledge).
Print Assumptions proven.
