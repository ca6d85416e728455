(* What was proven, as Coq prints it, and the axioms that it rests on. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve scan counts theorem corollaries weights segments slates flood.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Set Printing Width 120.
Check clone_proof.
Print Assumptions clone_proof.
Print Assumptions informed_best_alone.
Print Assumptions clone_proof_shares.
Print Assumptions best_of_all.
Print Assumptions clone_proof_epochs.
Print Assumptions clone_proof_bayes.
Print Assumptions contest_proof.
Print Assumptions contest_informed.
Print Assumptions weights_suffice.
Print Assumptions weights_suffice_law.
Print Assumptions weights_suffice_contest.
Print Assumptions draws_by_weights.
Print Assumptions clone_proof_segment.
Print Assumptions clone_proof_segments.
Print Assumptions shared_draws.
Print Assumptions own_draws.
Print Assumptions clone_proof_page.
Print Assumptions clone_proof_slates.
Print Assumptions flood.
