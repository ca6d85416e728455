(* No anonymous mechanism is proof against unlimited accounts. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From mathcomp Require Import ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* The average over who is who of what depends on one place is the average over the places. *)
Lemma sum_place (R : realFieldType) n' (f : 'I_n'.+1 -> R) (i : 'I_n'.+1) :
  n'.+1%:R * (\sum_(s : 'S_n'.+1) f (s i)) = (n'.+1)`!%:R * (\sum_j f j) :> R.
Proof.
pose A j := \sum_(s : 'S_n'.+1) f (s j).
have AE j : A j = A i.
  rewrite /A (reindex_inj (mulgI (tperm j i))); apply: eq_bigr => s _; by rewrite permM tpermL.
transitivity (\sum_j A j); first by under eq_bigr => j _ do rewrite AE; rewrite sumr_const card_ord mulr_natl.
rewrite /A exchange_big /= (eq_bigr (fun=> \sum_j f j)); last by move=> s _; rewrite [RHS](reindex_inj (@perm_inj _ s)).
by rewrite sumr_const card_Sn mulr_natl.
Qed.

Section Accounts.
Variables (R : realFieldType) (X : finType) (rho : X -> R) (N : nat).
Hypothesis rho_ge0 : forall x, 0 <= rho x.

(* A mechanism: the chance of each account to be served next, given who was served before and what it paid. *)
Definition policy := seq ('I_N * X) -> 'I_N -> R.
Definition relabel (s : 'S_N) (h : seq ('I_N * X)) := [seq (s z.1, z.2) | z <- h].
Record anonymous (pi : policy) : Prop := Anonymous {
  pi_ge0 : forall h i, 0 <= pi h i;
  pi_sum : forall h, \sum_i pi h i = 1;                                   (* somebody is served in every round *)
  pi_same : forall s h i, pi (relabel s h) (s i) = pi h i }.             (* names of accounts do not matter *)

(* What accounts `mine` earn on average in T rounds after h, if account i pays by law i. *)
Fixpoint pay (pi : policy) (law : 'I_N -> X -> R) (mine : pred 'I_N) T h : R :=
  if T is T'.+1 then
    \sum_i pi h i * \sum_x law i x * ((if mine i then rho x else 0) + pay pi law mine T' ((i, x) :: h))
  else 0.

Variable pi : policy.
Hypothesis anon : anonymous pi.
Variable law : 'I_N -> X -> R.
Hypothesis law0 : forall i x, 0 <= law i x.
Hypothesis law1 : forall i, \sum_x law i x = 1.
Definition mean i := \sum_x law i x * rho x.

Lemma pay_ge0 mine T h : 0 <= pay pi law mine T h.
Proof.
elim: T h => //= T IH h; apply: sumr_ge0 => i _; rewrite mulr_ge0 ?(pi_ge0 anon) //; apply: sumr_ge0 => x _.
by rewrite mulr_ge0 // addr_ge0 //; case: ifP.
Qed.

Lemma mean_ge0 i : 0 <= mean i. Proof. by apply: sumr_ge0 => x _; rewrite mulr_ge0. Qed.

(* Together, accounts earn no more than the best of them in every round. *)
Lemma pay_all B T h : (forall i, mean i <= B) -> \sum_j pay pi law (pred1 j) T h <= T%:R * B.
Proof.
move=> vB; elim: T h => [|T IH] h /=; first by rewrite big1 ?mul0r.
rewrite exchange_big /= -[X in _ <= X]mulr1 -[X in _ <= _ * X](pi_sum anon h) mulr_sumr; apply: ler_sum => i _.
rewrite -mulr_sumr mulrC; apply: ler_wpmul2r; first exact: (pi_ge0 anon).
rewrite exchange_big /=.
have -> : \sum_x \sum_j law i x * ((if i == j then rho x else 0) + pay pi law (pred1 j) T ((i, x) :: h)) =
    mean i + \sum_x law i x * \sum_j pay pi law (pred1 j) T ((i, x) :: h).
  rewrite /mean -big_split /=; apply: eq_bigr => x _; rewrite -mulr_sumr -mulrDr big_split /=; congr (_ * (_ + _)).
  by rewrite -big_mkcond /= (eq_bigl (pred1 i)) ?big_pred1_eq // => j; rewrite /= eq_sym.
rewrite -[T.+1]addn1 natrD mulrDl mul1r [X in _ <= X]addrC; apply: ler_add => //.
by rewrite -[X in _ <= X]mul1r -[X in _ <= X * _](law1 i) mulr_suml; apply: ler_sum => x _; apply: ler_wpmul2l.
Qed.

Lemma pay_relabel (s : 'S_N) i T h :
  pay pi (fun k => law (s k)) (pred1 i) T h = pay pi law (pred1 (s i)) T (relabel s h).
Proof.
elim: T h => //= T IH h; rewrite [RHS](reindex_inj (@perm_inj _ s)); apply: eq_bigr => k _.
rewrite (pi_same anon); congr (_ * _); apply: eq_bigr => x _; rewrite IH /=.
by rewrite (inj_eq perm_inj).
Qed.

(* Accounts that were never served are alike, so the others' ones are rare among many of mine. *)
Lemma unplayed_alike h i j : i \notin [seq z.1 | z <- h] -> j \notin [seq z.1 | z <- h] -> pi h i = pi h j.
Proof.
move=> hi hj; rewrite -(pi_same anon (tperm i j)) tpermL; congr (pi _ j).
rewrite /relabel -[RHS]map_id; apply/eq_in_map => -[k x] /= kh; congr (_, _).
have kh' : k \in [seq z.1 | z <- h] by apply/mapP; exists (k, x).
by rewrite tpermD //; [apply: contraNneq hi => ->|apply: contraNneq hj => ->].
Qed.

Variable mine : pred 'I_N.
Notation others := (predC mine).

Lemma others_rare (h : seq ('I_N * X)) : all mine [seq z.1 | z <- h] ->
  (N - size h)%:R * (\sum_(i | others i) pi h i) <= #|others|%:R :> R.
Proof.
move=> /allP hm.
have un i : others i -> i \notin [seq z.1 | z <- h] by apply: contraL => /hm /= ->.
have [i0 oi0|no] := pickP others; last by rewrite (eq_bigl _ _ no) big_pred0_eq mulr0 ler0n.
have pE i : i \notin [seq z.1 | z <- h] -> pi h i = pi h i0 by move=> hi; apply: unplayed_alike => //; apply: un.
rewrite (eq_bigr (fun=> pi h i0)); last by move=> i /un /pE.
rewrite sumr_const -[pi h i0 *+ _]mulr_natl mulrCA ler_pimulr ?ler0n //.
have U : #|[pred i | i \notin [seq z.1 | z <- h]]|%:R * pi h i0 <= 1.
  rewrite -[X in _ <= X](pi_sum anon h) (bigID (fun i => i \notin [seq z.1 | z <- h])) /=.
  rewrite [X in _ <= X + _](eq_bigr (fun=> pi h i0)); last by move=> i /pE.
  by rewrite sumr_const mulr_natl ler_addl; apply: sumr_ge0 => i _; apply: (pi_ge0 anon).
apply: le_trans U; apply: ler_wpmul2r; first exact: (pi_ge0 anon).
rewrite ler_nat leq_subLR -[X in (X <= _)%N]card_ord -(cardC [pred i | i \in [seq z.1 | z <- h]]) leq_add //.
by apply: leq_trans (card_size _) _; rewrite size_map.
Qed.

(* All of mine pay by the same law, with mean v. *)
Variables (q : X -> R) (K T0 : nat).
Hypothesis mine_law : forall i, mine i -> law i = q.
Hypothesis others_K : (#|others| <= K)%N.
Hypothesis T0_N : (T0 < N)%N.
Definition delta : R := K%:R / (N - T0)%:R.
Hypothesis small : T0%:R * delta <= 1.
Notation v := (\sum_x q x * rho x).

Lemma delta_ge0 : 0 <= delta. Proof. by rewrite divr_ge0 ?ler0n. Qed.

Lemma flood_earns T (h : seq ('I_N * X)) : (size h + T <= T0)%N -> all mine [seq z.1 | z <- h] ->
  0 <= v -> \sum_x q x = 1 ->
  (forall x, 0 <= q x) -> v * (T%:R * (1 - T%:R * delta)) <= pay pi law mine T h.
Proof.
move=> + + v0 q1 q0; elim: T h => [|T IH] h hT hm /=; first by rewrite !mul0r mulr0.
set L := v * (T%:R * (1 - T%:R * delta)) in IH.
have Td : T%:R * delta <= 1.
  apply: le_trans small; apply: ler_wpmul2r; first exact: delta_ge0.
  by rewrite ler_nat; apply: leq_trans hT; rewrite addnS; apply: ltnW; rewrite ltnS leq_addl.
have L0 : 0 <= v + L by rewrite addr_ge0 // mulr_ge0 // mulr_ge0 ?ler0n ?subr_ge0.
have rare : \sum_(i | others i) pi h i <= delta.
  have hN : (size h < N)%N by apply: leq_ltn_trans T0_N; apply: leq_trans hT; apply: leq_addr.
  rewrite /delta ler_pdivl_mulr ?ltr0n ?subn_gt0 // mulrC.
  apply: le_trans (_ : (N - size h)%:R * (\sum_(i | others i) pi h i) <= _); last first.
    by apply: le_trans (others_rare hm) _; rewrite ler_nat.
  apply: ler_wpmul2r; first by apply: sumr_ge0 => i _; apply: (pi_ge0 anon).
  by rewrite ler_nat leq_sub2l //; apply: leq_trans hT; apply: leq_addr.
apply: le_trans (_ : (1 - delta) * (v + L) <= _).
  have -> : v * (T.+1%:R * (1 - T.+1%:R * delta)) =
      (1 - delta) * (v + L) - v * delta * (T%:R + T%:R * T%:R * delta) by rewrite /L -addn1 natrD; ring.
  rewrite ler_subl_addr ler_addl; apply: mulr_ge0; first exact: mulr_ge0 v0 delta_ge0.
  exact: addr_ge0 (ler0n _ _) (mulr_ge0 (mulr_ge0 (ler0n _ _) (ler0n _ _)) delta_ge0).
rewrite (bigID mine) /= -[X in X <= _]addr0; apply: ler_add; last first.
  apply: sumr_ge0 => i mi; rewrite mulr_ge0 ?(pi_ge0 anon) //; apply: sumr_ge0 => x _.
  by rewrite (negbTE mi) add0r mulr_ge0 // pay_ge0.
apply: le_trans (_ : (\sum_(i | mine i) pi h i) * (v + L) <= _).
  apply: ler_wpmul2r => //; rewrite ler_subl_addr -[X in X <= _](pi_sum anon h) (bigID mine) /=; exact: ler_add.
rewrite mulr_suml; apply: ler_sum => i mi; apply: ler_wpmul2l; first exact: (pi_ge0 anon).
rewrite mine_law // mi -[X in _ + X <= _]mul1r -[X in _ + X * _ <= _]q1 mulr_suml -big_split /=; apply: ler_sum => x _.
rewrite mulrDr; apply: ler_add => //; apply: ler_wpmul2l => //; apply: IH; last by rewrite /= mi.
by rewrite /= addSnnS.
Qed.
End Accounts.

(* n agents with one original each. Honest: one account each. A flood: the first agent has M accounts. *)
Section Flood.
Variables (R : archiFieldType) (X : finType) (rho : X -> R) (n' T : nat).
Notation n := n'.+1.
Hypothesis rho_ge0 : forall x, 0 <= rho x.
Variable pi : forall N, policy R X N.
Hypothesis anon : forall N, (0 < N)%N -> anonymous (pi (N := N)).
Variable law : 'I_n -> X -> R.
Hypothesis law0 : forall a x, 0 <= law a x.
Hypothesis law1 : forall a, \sum_x law a x = 1.
Notation v a := (\sum_x law a x * rho x).

Definition honest_pay (law : 'I_n -> X -> R) : R := pay rho (pi (N := n)) law (pred1 ord0) T [::].
Definition flood_law M (law : 'I_n -> X -> R) (i : 'I_(M + n')) : X -> R :=
  match split i with inl _ => law ord0 | inr j => law (lift ord0 j) end.
Definition flood_pay M (law : 'I_n -> X -> R) : R :=
  pay rho (pi (N := M + n')) (flood_law law) (fun i => (i < M)%N) T [::].
Definition mean_of (f : ('I_n -> X -> R) -> R) : R := (\sum_(s : 'S_n) f (fun a => law (s a))) / (n`!)%:R.

(* Unless at most one mean is positive, enough accounts earn more than honesty. *)
Theorem flood (top : 'I_n) : (0 < T)%N -> (forall a, v a <= v top) -> v top < \sum_a v a ->
  exists M0, forall M, (M0 <= M)%N -> mean_of honest_pay < mean_of (flood_pay M).
Proof.
move=> T0 vtop gap; set V := \sum_a v a in gap.
have va0 a : 0 <= v a by apply: sumr_ge0 => x _; rewrite mulr_ge0.
have n0 : 0 < n%:R :> R by rewrite ltr0n.
have f0 : 0 < (n`!)%:R :> R by rewrite ltr0n fact_gt0.
pose x := T%:R * (n'%:R * V) / (V - v top) + T%:R * n'%:R.
have V0 : 0 <= V by apply: sumr_ge0 => a _.
have gap0 : 0 < V - v top by rewrite subr_gt0.
have x0 : 0 <= x by rewrite addr_ge0 ?divr_ge0 ?mulr_ge0 ?ler0n // ltW.
exists (T + (Num.bound x).+1)%N => M MM; pose N := (M + n')%N.
have TN : (T < N)%N by apply: (leq_trans _ (leq_addr n' M)); apply: leq_trans MM; rewrite addnS ltnS leq_addr.
pose d : R := delta R N n' T.
have NT : x < (N - T)%:R.
  apply: lt_le_trans (archi_boundP x0) _; rewrite ler_nat leq_subRL 1?ltnW //.
  by apply: (leq_trans _ (leq_addr n' M)); apply: leq_trans MM; rewrite addnS.
have NT0 : 0 < (N - T)%:R :> R by apply: le_lt_trans NT.
have small : T%:R * d <= 1.
  rewrite /d /delta mulrA ler_pdivr_mulr // mul1r; apply: le_trans (ltW NT).
  by rewrite ler_addr divr_ge0 ?mulr_ge0 ?ler0n // ltW.
have honest : n%:R * mean_of honest_pay <= T%:R * v top.
  rewrite /mean_of mulrA; have -> : \sum_(s : 'S_n) honest_pay (fun a => law (s a)) =
      \sum_(s : 'S_n) pay rho (pi (N := n)) law (pred1 (s ord0)) T [::].
    by apply: eq_bigr => s _; rewrite /honest_pay (pay_relabel rho (anon (ltn0Sn n')) law s).
  rewrite (sum_place (fun j => pay rho (pi (N := n)) law (pred1 j) T [::])) mulrAC divff ?lt0r_neq0 // mul1r.
  by apply: (pay_all (anon (ltn0Sn n')) law0 law1).
have earns (s : 'S_n) : v (s ord0) * (T%:R * (1 - T%:R * d)) <= flood_pay M (fun a => law (s a)).
  have N0 : (0 < N)%N by apply: leq_ltn_trans TN.
  apply: (flood_earns rho_ge0 (anon N0)) => //.
  - by move=> i y; rewrite /flood_law; case: split.
  - by move=> i iM; rewrite /flood_law; case: splitP => // j E; move: iM; rewrite E ltnNge leq_addr.
  - rewrite -[X in (_ <= X)%N](card_ord n') -(card_imset _ (@rshift_inj M n')).
    apply: subset_leq_card; apply/subsetP => i; rewrite !inE -leqNgt => Mi; apply/imsetP.
    by case: (splitP i) => j E; [move: Mi; rewrite E leqNgt ltn_ord|exists j => //; apply: val_inj].
have fl : V * (T%:R * (1 - T%:R * d)) <= n%:R * mean_of (flood_pay M).
  rewrite /mean_of [X in _ <= X]mulrA ler_pdivl_mulr // [X in X <= _]mulrC [X in X <= _]mulrA.
  rewrite /V -(sum_place (fun a => v a) ord0) -mulrA.
  by apply: ler_wpmul2l; rewrite ?ler0n // mulr_suml; apply: ler_sum => s _.
rewrite -(ltr_pmul2l n0); apply: le_lt_trans honest _; apply: lt_le_trans fl.
rewrite mulrCA ltr_pmul2l ?ltr0n // mulrBr mulr1 ltr_subr_addr -ltr_subr_addl mulrCA /d /delta.
rewrite [V * _]mulrCA [n'%:R * _]mulrA [T%:R * _]mulrA ltr_pdivr_mulr // [X in _ < X]mulrC -ltr_pdivr_mulr //.
by apply: le_lt_trans NT; rewrite ler_addl mulr_ge0 ?ler0n.
Qed.
End Flood.
