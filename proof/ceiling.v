(* The ceiling of knowledge: under a steady index of an agent's own rewards no list earns more than its best item alone. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Ceiling.
Variables (R : realDomainType) (index : seq R -> R).   (* of an agent, from its own rewards in their order *)
Hypothesis steady : forall s s', all2 (fun x x' => x <= x') s s' -> index s <= index s'.

(* After k own rounds and j of the others, does an agent of this index get the next round? The others choose among
   themselves as they would without it, so this is any fixed rule, lots and coins for ties included. *)
Variable chosen : nat -> nat -> R -> bool.
Hypothesis chosen_up : forall k j x x', x <= x' -> chosen k j x -> chosen k j x'.

Section Run.
Variable x : nat -> R.                                 (* the agent's rewards, in the order of its own rounds *)
Fixpoint rounds t : nat :=
  if t is t'.+1 then let k := rounds t' in (k + chosen k (t' - k) (index (mkseq x k)))%N else 0%N.
Definition earned t := \sum_(k < rounds t) x k.
End Run.

Lemma more_rounds x x' t : (forall k, x k <= x' k) -> (rounds x t <= rounds x' t)%N.
Proof.
move=> xx; elim: t => //= t IH; set k := rounds x t in IH *; set k' := rounds x' t in IH *.
move: IH; rewrite leq_eqVlt => /orP [/eqP <-|H]; last first.
  by apply: leq_trans (leq_addr _ _); apply: leq_trans H; rewrite -addn1 leq_add2l leq_b1.
rewrite leq_add2l; case E: (chosen _ _ _) => //; rewrite (chosen_up _ E) //; apply: steady.
by rewrite /mkseq; elim: (iota 0 k) => //= i s ->; rewrite xx.
Qed.

Lemma earn_more x x' t : (forall k, 0 <= x k) -> (forall k, x k <= x' k) -> earned x t <= earned x' t.
Proof.
move=> x0 xx; rewrite /earned -(subnKC (more_rounds t xx)) big_split_ord /= -[X in X <= _]addr0.
by apply: ler_add; [apply: ler_sum|apply: sumr_ge0] => k _ //; apply: le_trans (xx _).
Qed.

(* The agent's k-th own round shows the item that its inner rule chooses from its own rewards (and dice of its own), and
   pays what that item pays at the luck of the round; a better item pays at least as much at the same luck. *)
Variables (item luck : Type) (pays : item -> luck -> R) (best : item) (inner : seq R -> item) (u : nat -> luck).
Hypothesis pays_ge0 : forall a z, 0 <= pays a z.
Hypothesis best_pays : forall a z, pays a z <= pays best z.
Fixpoint history k : seq R := if k is k'.+1 then rcons (history k') (pays (inner (history k')) (u k')) else [::].
Definition with_list k := pays (inner (history k)) (u k).
Definition alone k := pays best (u k).

Theorem ceiling_of_knowledge t : earned with_list t <= earned alone t.
Proof. by apply: earn_more => k; [apply: pays_ge0|apply: best_pays]. Qed.
End Ceiling.
