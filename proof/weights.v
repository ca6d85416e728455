(* A list with copies is a list with weights: whatever is made of its draws has the law that the distinct originals have
   with weights. No average over who is who, and no assumption about what the agent knows. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve scan levels counts theorem corollaries.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma eq_serve pulls draws threshold fresh order lot coin coin' t : coin =2 coin' ->
  serve pulls draws threshold fresh order lot coin t = serve pulls draws threshold fresh order lot coin' t.
Proof.
move=> E; rewrite /serve; suff -> : state_at pulls draws threshold fresh order coin t =
    state_at pulls draws threshold fresh order coin' t by [].
by rewrite /state_at; elim: t => //= t ->; rewrite /step; case: (iter _ _ _) => // q i k b; rewrite E.
Qed.

Section Weights.
Variables (R : realFieldType) (k' l' : nat) (X : finType) (rho : X -> R) (T n draws : nat).
Notation k := k'.+1.
Notation l := l'.+1.
Variable original : 'I_k -> 'I_l.        (* the list has k entries: entry j is a copy of original j *)
Variable c : 'I_k -> nat.                (* their weights; `once` if none are declared *)
Variable law : 'I_l -> X -> R.

(* The same shares as weights on the originals: how often each stands in the list. *)
Definition shares (a : 'I_l) : nat := \sum_(j | original j == a) c j.
Definition listed (j : 'I_k) : X -> R := law (original j).
Definition held (y : draws_of_me k' X T n draws) : draws_of_me l' X T n draws :=
  [ffun d => (original (y d).1, (y d).2)].

Lemma weight_shares a : \sum_(j | original j == a) weight R c j = weight R shares a.
Proof.
rewrite /weight -mulr_suml -natr_sum; congr (_ / _%:R).
by rewrite (partition_big original predT).
Qed.

(* Any function of what the draws hold, by original, and show. *)
Theorem draws_by_weights (f : draws_of_me l' X T n draws -> R) :
  \sum_y chance_of rho listed c y * f (held y) = \sum_z chance_of rho law shares z * f z.
Proof.
rewrite (partition_big held predT) //=; apply: eq_bigr => z _.
transitivity ((\sum_(y | held y == z) chance_of rho listed c y) * f z).
  by rewrite mulr_suml; apply: eq_bigr => y /eqP E; rewrite E.
congr (_ * _); rewrite /chance_of.
under [RHS]eq_bigr => d _ do rewrite -weight_shares mulr_suml.
pose Q d (e : 'I_k * shown n T X) := (original e.1, e.2) == z d.
transitivity (\prod_(d < draws.+1) \sum_(e : 'I_k * shown n T X | Q d e)
    weight R c e.1 * slot_law rho (listed e.1) e.2).
  rewrite bigA_distr_big_dep; apply: eq_bigl => y; apply/eqP/familyP => [E d|H].
    by rewrite unfold_in /Q -E ffunE.
  by apply/ffunP => d; have := H d; rewrite unfold_in ffunE => /eqP.
apply: eq_bigr => d _; case E : (z d) => [a x] /=.
rewrite (reindex_onto (fun j => (j, x)) (fun e => e.1)) /=; last first.
  by case=> j x' /=; rewrite /Q E /= => /eqP [_ ->].
apply: eq_big => [j|j]; rewrite /Q E xpair_eqE !eqxx ?andbT //=.
by move=> /eqP <-.
Qed.

Section Loop.
Variables (threshold : nat) (fresh : bool) (order : seq nat) (lot me : nat) (others : nat -> nat -> bool).

Lemma coins_held y : coins order lot me others y =2 coins order lot me others (held y).
Proof. by move=> q i; rewrite /coins ffunE. Qed.

Lemma paid_held y (t : 'I_T) :
  paid rho threshold fresh order lot me others y t = paid rho threshold fresh order lot me others (held y) t.
Proof.
rewrite /paid (eq_serve _ _ _ _ _ _ _ (coins_held y)).
by case: (serve _ _ _ _ _ _ _ _) => [[agent d] pull]; rewrite ffunE.
Qed.

(* What the agent expects; and any function of all that it is paid, round by round. *)
Theorem weights_suffice : expected_pay rho T n draws threshold fresh order lot me others listed c =
  expected_pay rho T n draws threshold fresh order lot me others law shares.
Proof.
rewrite /expected_pay -draws_by_weights; apply: eq_bigr => y _; congr (_ * _).
by apply: eq_bigr => t _; apply: paid_held.
Qed.

Theorem weights_suffice_law (f : {ffun 'I_T -> R} -> R) :
  \sum_(y : draws_of_me k' X T n draws)
    chance_of rho listed c y * f [ffun t => paid rho threshold fresh order lot me others y t] =
  \sum_(z : draws_of_me l' X T n draws)
    chance_of rho law shares z * f [ffun t => paid rho threshold fresh order lot me others z t].
Proof.
rewrite -(draws_by_weights (fun z => f [ffun t => paid rho threshold fresh order lot me others z t])).
by apply: eq_bigr => y _; congr (_ * f _); apply/ffunP => t; rewrite !ffunE paid_held.
Qed.
End Loop.

Theorem weights_suffice_contest me threshold fresh (prize : {ffun 'I_T -> X} -> R) :
  contest_pay rho me n draws threshold fresh prize listed c = contest_pay rho me n draws threshold fresh prize law shares.
Proof.
rewrite /contest_pay -draws_by_weights; apply: eq_bigr => y _; congr (_ * prize _.2).
rewrite /champion (eq_serve _ _ _ _ _ _ _ (coins_held _ _ _ _ y)).
by case: (serve _ _ _ _ _ _ _ _) => [[agent d] pull]; rewrite ffunE.
Qed.
End Weights.
