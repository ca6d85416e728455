(* The scan theorem: slots are filled by draws with weights w, a fixed list of events is scanned, and the first that
   occurs pays. Averaged over who is who, no weights are worth more than uniform ones. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From mathcomp Require Import ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Lemma sumr_le0 (R : numDomainType) (I : Type) (r : seq I) (P : pred I) (E : I -> R) :
  (forall i, P i -> E i <= 0) -> \sum_(i <- r | P i) E i <= 0.
Proof. by move=> H; rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => i /H; rewrite oppr_ge0. Qed.

(* ---------- Chebyshev's sum inequality ---------- *)
Section Chebyshev.
Variables (R : realFieldType) (I : finType) (v : I -> R).

Lemma chebyshev (om f g : I -> R) :
  (forall a, 0 <= om a) ->
  (forall a b, om a != 0 -> om b != 0 -> v a <= v b -> f a <= f b) ->
  (forall a b, v a <= v b -> g b <= g a) ->
  (\sum_a om a * f a * g a) * (\sum_a om a) <= (\sum_a om a * f a) * (\sum_a om a * g a).
Proof.
move=> om0 fm gm.
pose X1 := (\sum_a om a * f a * g a) * (\sum_a om a).
pose X2 := (\sum_a om a * f a) * (\sum_a om a * g a).
pose D := \sum_a \sum_b om a * om b * ((f a - f b) * (g a - g b)).
have D0 : D <= 0.
  apply: sumr_le0 => a _; apply: sumr_le0 => b _.
  have [->|na] := eqVneq (om a) 0; first by rewrite !mul0r.
  have [->|nb] := eqVneq (om b) 0; first by rewrite mulr0 mul0r.
  apply: mulr_ge0_le0; first exact: mulr_ge0.
  case: (leP (v a) (v b)) => [ab|/ltW ba].
    by apply: mulr_le0_ge0; rewrite ?subr_le0 ?subr_ge0 ?fm ?gm.
  by apply: mulr_ge0_le0; rewrite ?subr_le0 ?subr_ge0 ?fm ?gm.
have E1 : X1 = \sum_a \sum_b om a * f a * g a * om b by rewrite /X1 big_distrlr.
have E2 : X2 = \sum_a \sum_b om a * f a * (om b * g b) by rewrite /X2 big_distrlr.
have E3 : X2 = \sum_a \sum_b om a * g a * (om b * f b) by rewrite /X2 mulrC big_distrlr.
have E4 : X1 = \sum_a \sum_b om a * (om b * f b * g b) by rewrite /X1 mulrC big_distrlr.
have DE : D = X1 - X2 - (X2 - X1).
  rewrite {1}E1 {1}E2 E3 E4 -!sumrB; apply: eq_bigr => a _; rewrite -!sumrB.
  apply: eq_bigr => b _; ring.
have : (X1 - X2) *+ 2 <= 0 by rewrite mulr2n -[X in _ + X]opprB -DE.
by rewrite pmulrn_lle0 // subr_le0.
Qed.
End Chebyshev.
(* ---------- the scan ---------- *)
Section Scan.
Variables (R : realFieldType) (l' s K : nat).
Notation l := l'.+1.
Variable S : finType.                 (* scores *)
Variable P : 'I_l -> S -> R.          (* law of the score of an original *)
Variable v : 'I_l -> R.               (* means: only their order is used *)
Variable slot : nat -> 'I_s.          (* the slot of event k *)
Variable B : nat -> {set S}.          (* the scores of event k *)
Variable r : nat -> S -> R.           (* what event k pays, given what its slot shows *)
Variable u : nat -> 'I_l -> R.        (* what event k pays on average if its slot holds a *)

(* The scores of slot j that no event before k has visited. *)
Definition C (j : 'I_s) (k : nat) : {set S} :=
  [set x | [forall i : 'I_k, (slot i == j) ==> (x \notin B i)]].
Definition pr (a : 'I_l) (X : {set S}) : R := \sum_(x in X) P a x.
Definition G k a := pr a (C (slot k) k).
Definition D k := B k :&: C (slot k) k.
Definition p k a := pr a (D k).

(* A world: what each slot holds, and what it scores. *)
Definition world := {ffun 'I_s -> 'I_l * S}.
Definition chance (w : 'I_l -> R) (y : world) := \prod_j (w (y j).1 * P (y j).1 (y j).2).
Definition occurs (y : world) k :=
  ((y (slot k)).2 \in B k) && [forall i : 'I_k, (y (slot i)).2 \notin B i].
Definition pay (y : world) := \sum_(k < K) (if occurs y k then r k (y (slot k)).2 else 0).
Definition F (w : 'I_l -> R) := \sum_(y : world) chance w y * pay y.

Hypothesis P0 : forall a x, 0 <= P a x.
Hypothesis P1 : forall a, \sum_x P a x = 1.
Hypothesis fair : forall k a, (k < K)%N -> \sum_(x in D k) P a x * r k x = p k a * u k a.
Hypothesis u_up : forall k a b, (k < K)%N -> v a <= v b -> u k a <= u k b.

(* uniform quantities *)
Definition lam k := (\sum_a p k a) / (\sum_a G k a).
Definition m k := (\sum_a p k a * u k a) / (\sum_a p k a).
Fixpoint W (d : nat) : R :=
  if d is d'.+1 then W d' + lam (K - d) * (m (K - d) - W d') else 0.
Definition V k := W (K - k).

Hypothesis cond1 : forall j k a b, (k <= K)%N -> v a <= v b -> pr b (C j k) <= pr a (C j k).
Hypothesis cond2 : forall k a b, (k < K)%N -> G k a != 0 -> G k b != 0 -> v a <= v b ->
  p k a / G k a <= p k b / G k b.
Hypothesis cond3 : forall k, (k < K)%N -> \sum_a p k a != 0 -> V k.+1 <= m k.

Lemma VK : V K = 0. Proof. by rewrite /V subnn. Qed.
Lemma V_step k : (k < K)%N -> V k = V k.+1 + lam k * (m k - V k.+1).
Proof.
move=> kK; rewrite /V.
have -> : (K - k = (K - k.+1).+1)%N by rewrite subnSK.
by rewrite /= subnSK // subKn // ltnW.
Qed.

Lemma pr_ge0 a X : 0 <= pr a X. Proof. exact: sumr_ge0. Qed.
Lemma p_le_G k a : p k a <= G k a.
Proof.
rewrite /p /G /D /pr [X in _ <= X](big_setID (B k)) /= setIC ler_addl; exact: sumr_ge0.
Qed.

(* (3), an event that occurs is worth no less than going on, follows if the m of the events fall along the scan. *)
Lemma lam01 k : 0 <= lam k <= 1.
Proof.
have G0 : 0 <= \sum_a G k a by apply: sumr_ge0 => a _; apply: pr_ge0.
have p0 : 0 <= \sum_a p k a by apply: sumr_ge0 => a _; apply: pr_ge0.
rewrite divr_ge0 //=; have [Z|Z] := eqVneq (\sum_a G k a) 0; first by rewrite /lam Z invr0 mulr0 ler01.
rewrite /lam ler_pdivr_mulr ?mul1r; last by rewrite lt_neqAle eq_sym Z G0.
by apply: ler_sum => a _; apply: p_le_G.
Qed.

Lemma W_le M d : (d <= K)%N -> 0 <= M -> (forall k, (K - d <= k < K)%N -> \sum_a p k a != 0 -> m k <= M) -> W d <= M.
Proof.
elim: d => [//|d IH] dK M0 H /=.
have kK : (K - d.+1 < K)%N by rewrite ltn_subrL (leq_trans _ dK).
have IHd : W d <= M.
  apply: IH => [||k /andP [k1 k2] sk] //; first exact: ltnW.
  by apply: H => //; rewrite k2 andbT (leq_trans _ k1) // leq_sub2l.
have /andP [l0 l1] := lam01 (K - d.+1).
have [Z|Z] := eqVneq (\sum_a p (K - d.+1) a) 0; first by rewrite /lam Z mul0r mul0r addr0.
have mk : m (K - d.+1) <= M by apply: H => //; rewrite leqnn.
set L := lam _ in l0 l1 *; set mm := m _ in mk *.
have -> : W d + L * (mm - W d) = (1 - L) * W d + L * mm by ring.
have -> : M = (1 - L) * M + L * M by ring.
by apply: ler_add; apply: ler_wpmul2l; rewrite ?subr_ge0.
Qed.

Lemma falling_means : (forall i k, (i < k < K)%N -> \sum_a p i a != 0 -> \sum_a p k a != 0 -> m k <= m i) ->
  (forall k, (k < K)%N -> 0 <= m k) -> forall k, (k < K)%N -> \sum_a p k a != 0 -> V k.+1 <= m k.
Proof.
move=> falls pos k kK sk; rewrite /V; apply: W_le; [exact: leq_subr|exact: pos|].
move=> j /andP [j1 j2] sj; apply: falls => //; rewrite j2 andbT.
by move: j1; rewrite subKn.
Qed.

(* rest of the chance that no other slot has been visited *)
Definition Rk (w : 'I_l -> R) k := \prod_(j | j != slot k) \sum_a w a * pr a (C j k).
Definition reach (w : 'I_l -> R) k := \prod_j \sum_a w a * pr a (C j k).

Lemma unvisited (y : world) k :
  [forall i : 'I_k, (y (slot i)).2 \notin B i] = [forall j, (y j).2 \in C j k].
Proof.
apply/forallP/forallP => H.
  by move=> j; rewrite inE; apply/forallP => i; apply/implyP => /eqP <-; apply: H.
by move=> i; have := H (slot i); rewrite inE => /forallP/(_ i); rewrite eqxx.
Qed.

Lemma F_prod w : F w = \sum_(k < K) Rk w k * \sum_a w a * (p k a * u k a).
Proof.
rewrite /F; under eq_bigr => y _ do rewrite mulr_sumr.
rewrite exchange_big /=; apply: eq_bigr => k _.
pose e (j : 'I_s) (z : 'I_l * S) : R :=
  w z.1 * P z.1 z.2 *
  (if j == slot k then (if z.2 \in D k then r k z.2 else 0) else (z.2 \in C j k)%:R).
transitivity (\sum_(y : world) \prod_j e j (y j)).
  apply: eq_bigr => y _; rewrite /e big_split /=; congr (_ * _).
  rewrite /occurs unvisited (bigD1 (slot k)) //= eqxx.
  rewrite in_setI; case: (boolP (_ \in B k)) => [yB|_] /=; last by rewrite mul0r.
  case: (boolP [forall _, _]) => [/forallP yC|/forallPn [j Hj]].
    by rewrite yC big1 ?mulr1 // => j /negbTE ->; rewrite yC.
  have [jk|jk] := eqVneq j (slot k); first by rewrite -jk (negbTE Hj) mul0r.
  by rewrite (bigD1 j) //= (negbTE jk) (negbTE Hj) mul0r mulr0.
rewrite -bigA_distr_bigA /= (bigD1 (slot k)) //= mulrC; congr (_ * _).
  apply: eq_bigr => j /negbTE jk; rewrite -(pair_bigA _ (fun a x => e j (a, x))) /=.
  apply: eq_bigr => a _; rewrite /e /= jk /pr mulr_sumr [RHS]big_mkcond /=.
  by apply: eq_bigr => x _; case: ifP; rewrite ?mulr1 ?mulr0.
rewrite -(pair_bigA _ (fun a x => e (slot k) (a, x))) /=.
apply: eq_bigr => a _; rewrite /e /= eqxx -fair // mulr_sumr [RHS]big_mkcond /=.
by apply: eq_bigr => x _; case: ifP; rewrite ?mulr0 // mulrA.
Qed.

Lemma reach0 w : \sum_a w a = 1 -> reach w 0 = 1.
Proof.
move=> w1; rewrite /reach big1 // => j _; rewrite -[RHS]w1; apply: eq_bigr => a _.
rewrite /pr -[RHS]mulr1 -(P1 a); congr (_ * _); apply: eq_bigl => x.
by rewrite inE; apply/forallP => -[].
Qed.

Lemma reachE w k : reach w k = Rk w k * \sum_a w a * G k a.
Proof. by rewrite /reach (bigD1 (slot k)) //= mulrC. Qed.

Lemma C_S j k : C j k.+1 = if j == slot k then C j k :\: B k else C j k.
Proof.
apply/setP => x; case: ifP => jk; rewrite !inE.
  apply/forallP/andP => [H|[xB /forallP H] i].
    split; first by have := H ord_max; rewrite (eqP jk) eqxx.
    by apply/forallP => i; apply: (H (widen_ord (leqnSn k) i)).
  have [ik|ik] := ltnP i k; first exact: (H (Ordinal ik)).
  have -> : (i : nat) = k by apply/eqP; rewrite eqn_leq ik -ltnS ltn_ord.
  by rewrite xB implybT.
apply/forallP/forallP => H i; first exact: (H (widen_ord (leqnSn k) i)).
have [ik|ik] := ltnP i k; first exact: (H (Ordinal ik)).
have -> : (i : nat) = k by apply/eqP; rewrite eqn_leq ik -ltnS ltn_ord.
by rewrite eq_sym jk.
Qed.

Lemma reachS w k : reach w k.+1 = Rk w k * \sum_a w a * (G k a - p k a).
Proof.
rewrite /reach (bigD1 (slot k)) //= mulrC; congr (_ * _).
  by apply: eq_bigr => j /negbTE jk; apply: eq_bigr => a _; rewrite C_S jk.
apply: eq_bigr => a _; rewrite C_S eqxx /G /p /D /pr; congr (_ * _).
by rewrite [X in _ = X - _](big_setID (B k)) /= setIC addrAC subrr add0r.
Qed.

Definition b k a := p k a * (u k a - V k.+1) - G k a * (V k - V k.+1).

Lemma telescope w : \sum_a w a = 1 ->
  F w - V 0 = \sum_(k < K) Rk w k * \sum_a w a * b k a.
Proof.
move=> w1; rewrite F_prod.
have -> : - V 0 = \sum_(k < K) (reach w k.+1 * V k.+1 - reach w k * V k).
  rewrite -(big_mkord xpredT (fun k => reach w k.+1 * V k.+1 - reach w k * V k)).
  by rewrite (telescope_sumr (fun k => reach w k * V k)) // VK mulr0 reach0 // mul1r sub0r.
rewrite -big_split /=; apply: eq_bigr => k _.
rewrite reachS // reachE -!mulrA -mulrBr -mulrDr; congr (_ * _).
rewrite !mulr_suml -sumrB -big_split /=; apply: eq_bigr => a _; rewrite /b; ring.
Qed.

Lemma sum_p0 k : \sum_a p k a = 0 -> forall a, p k a = 0.
Proof.
move=> H a; apply/eqP; have /eqP := H.
by rewrite psumr_eq0 => [/allP/(_ a (mem_index_enum _))//|? _]; apply: pr_ge0.
Qed.
Lemma sum_G0 k : \sum_a G k a = 0 -> forall a, G k a = 0.
Proof.
move=> H a; apply/eqP; have /eqP := H.
by rewrite psumr_eq0 => [/allP/(_ a (mem_index_enum _))//|? _]; apply: pr_ge0.
Qed.

Lemma bE k a : (k < K)%N ->
  b k a = p k a * (u k a - m k) + (m k - V k.+1) * (p k a - lam k * G k a).
Proof. by move=> kK; rewrite /b (V_step kK); ring. Qed.

Lemma sum_first k : \sum_a p k a * (u k a - m k) = 0.
Proof.
have -> : \sum_a p k a * (u k a - m k) = \sum_a p k a * u k a - (\sum_a p k a) * m k.
  by rewrite mulr_suml -sumrB; apply: eq_bigr => a _; rewrite mulrBr.
have [Z|Z] := eqVneq (\sum_a p k a) 0; last by rewrite /m mulrC divfK // subrr.
by rewrite Z mul0r subr0 big1 // => a _; rewrite (sum_p0 Z) mul0r.
Qed.

Lemma sum_second k : \sum_a (p k a - lam k * G k a) = 0.
Proof.
rewrite sumrB -mulr_sumr.
have [Z|Z] := eqVneq (\sum_a G k a) 0; last by rewrite /lam divfK // subrr.
rewrite Z mulr0 subr0 big1 // => a _; apply/eqP; rewrite eq_le pr_ge0 andbT.
by apply: le_trans (p_le_G k a) _; rewrite (sum_G0 Z).
Qed.

(* Who knows its best original b, and registers it alone, does best of all. *)
Lemma best_alone b' w : (forall a, 0 <= w a) -> \sum_a w a = 1 -> (forall a, v a <= v b') ->
  (forall k a, (k < K)%N -> u k a <= u k b') -> (forall k, (k < K)%N -> 0 <= u k b') ->
  (forall i k, (i <= k < K)%N -> u k b' <= u i b') ->
  F w <= F (fun a => (a == b')%:R).
Proof.
move=> w0 w1 vb ub u0 uf; pose del a := (a == b')%:R : R.
have sumd (g : 'I_l -> R) : \sum_a del a * g a = g b'.
  by rewrite (bigD1 b') //= /del eqxx mul1r big1 ?addr0 // => a /negbTE ->; rewrite mul0r.
have d1 : \sum_a del a = 1 by rewrite -(sumd (fun=> 1)); apply: eq_bigr => a _; rewrite mulr1.
have step x k : reach x k - reach x k.+1 = Rk x k * \sum_a x a * p k a.
  rewrite reachE reachS -mulrBr -sumrB; congr (_ * _); apply: eq_bigr => a _; ring.
have Fw : F w <= \sum_(k < K) u k b' * (reach w k - reach w k.+1).
  rewrite F_prod; apply: ler_sum => k _; rewrite step mulrCA; apply: ler_wpmul2l.
    by apply: prodr_ge0 => j _; apply: sumr_ge0 => a _; rewrite mulr_ge0 ?pr_ge0.
  rewrite mulr_sumr; apply: ler_sum => a _; rewrite [_ * (w a * _)]mulrCA; apply: ler_wpmul2l => //.
  by rewrite [X in X <= _]mulrC; apply: ler_wpmul2r; rewrite ?pr_ge0 ?ub.
have Fd : F del = \sum_(k < K) u k b' * (reach del k - reach del k.+1).
  by rewrite F_prod; apply: eq_bigr => k _; rewrite step !sumd; ring.
rewrite Fd; apply: le_trans Fw _; rewrite -subr_le0 -sumrB.
pose d k := reach w k - reach del k.
have dge k : (k <= K)%N -> 0 <= d k.
  move=> kK; rewrite subr_ge0; apply: ler_prod => j _; rewrite sumd pr_ge0 /=.
  rewrite -[X in X <= _]mul1r -w1 mulr_suml; apply: ler_sum => a _; apply: ler_wpmul2l => //.
  exact: cond1.
have dE k : u k b' * (reach w k - reach w k.+1) - u k b' * (reach del k - reach del k.+1)
          = u k b' * (d k - d k.+1) by rewrite /d; ring.
under eq_bigr => k _ do rewrite dE.
suff H M : (M <= K)%N -> \sum_(k < M) u k b' * (d k - d k.+1) <= - (if M is M'.+1 then u M' b' * d M else 0).
  apply: le_trans (H K (leqnn K)) _; case: (K) u0 dge => [|K'] u0 dge; first by rewrite oppr0.
  by rewrite oppr_le0 mulr_ge0 ?u0 ?dge.
elim: M => [|M IH] MK; first by rewrite big_ord0 oppr0.
rewrite big_ord_recr /=; apply: le_trans (ler_add (IH (ltnW MK)) (lexx _)) _.
case: M {IH} MK => [|M] MK.
  by rewrite oppr0 add0r mulrBr /d !reach0 // subrr mulr0 sub0r.
rewrite mulrBr addrA ler_subl_addr addNr addrC subr_le0.
by apply: ler_wpmul2r; rewrite ?dge ?uf ?leqnSn // ltnW.
Qed.

Definition unif : 'I_l -> R := fun _ => (l%:R)^-1.
Lemma unif1 : \sum_a unif a = 1.
Proof. by rewrite sumr_const card_ord /unif -[LHS]mulr_natl mulfV // pnatr_eq0. Qed.

Lemma F_unif : F unif = V 0.
Proof.
apply/eqP; rewrite -subr_eq0 telescope ?unif1 //; apply/eqP.
rewrite big1 // => k _; rewrite -mulr_sumr.
suff -> : \sum_a b k a = 0 by rewrite !mulr0.
under eq_bigr => a _ do rewrite bE //.
by rewrite big_split /= sum_first -mulr_sumr sum_second mulr0 addr0.
Qed.

(* ---------- averaging over who is who ---------- *)
Variable w : 'I_l -> R.
Hypothesis w0 : forall a, 0 <= w a.
Hypothesis w1 : \sum_a w a = 1.
Definition moved (g : 'S_l) : 'I_l -> R := fun a => w (g a).
Lemma moved1 g : \sum_a moved g a = 1.
Proof. by rewrite -[RHS]w1 [RHS](reindex_inj (@perm_inj _ g)). Qed.

Definition phi k a := \sum_(g : 'S_l) moved g a * Rk (moved g) k.

Lemma Rk_swap k a b (g : 'S_l) : (k <= K)%N -> v a <= v b -> w (g b) <= w (g a) ->
  Rk (moved (tperm a b * g)%g) k <= Rk (moved g) k.
Proof.
move=> kK ab wab; apply: ler_prod => j _; apply/andP; split.
  by apply: sumr_ge0 => c _; rewrite mulr_ge0 ?pr_ge0 // /moved.
rewrite -subr_ge0 -sumrB.
have [->|nab] := eqVneq a b.
  by rewrite big1 // => c _; rewrite tperm1 mul1g subrr.
rewrite (bigD1 a) //= (bigD1 b) 1?eq_sym //= big1 ?addr0 => [|c /andP [ca cb]].
  rewrite /moved !permM tpermL tpermR -!mulrBl.
  have -> : (w (g a) - w (g b)) * pr a (C j k) + (w (g b) - w (g a)) * pr b (C j k)
          = (w (g a) - w (g b)) * (pr a (C j k) - pr b (C j k)) by ring.
  by rewrite mulr_ge0 // subr_ge0 // cond1.
by rewrite /moved permM tpermD 1?eq_sym // subrr.
Qed.

Lemma phi_down k a b : (k <= K)%N -> v a <= v b -> phi k b <= phi k a.
Proof.
move=> kK ab.
pose t (g : 'S_l) := (tperm a b * g)%g.
have tI : injective t by move=> g h /mulgI.
have ta g : moved (t g) a = moved g b by rewrite /moved permM tpermL.
have tb g : moved (t g) b = moved g a by rewrite /moved permM tpermR.
have Ea : phi k a = \sum_(g : 'S_l) moved g b * Rk (moved (t g)) k.
  by rewrite /phi (reindex_inj tI); apply: eq_bigr => g _; rewrite ta.
have Eb : phi k b = \sum_(g : 'S_l) moved g a * Rk (moved (t g)) k.
  by rewrite /phi (reindex_inj tI); apply: eq_bigr => g _; rewrite tb.
suff : 0 <= (phi k a - phi k b) *+ 2 by rewrite pmulrn_lge0 // subr_ge0.
rewrite mulr2n {1}/phi {1}/phi Ea Eb -!sumrB -big_split /=; apply: sumr_ge0 => g _.
have -> : moved g a * Rk (moved g) k - moved g b * Rk (moved g) k +
   (moved g b * Rk (moved (t g)) k - moved g a * Rk (moved (t g)) k)
   = (moved g a - moved g b) * (Rk (moved g) k - Rk (moved (t g)) k) by ring.
case: (leP (w (g b)) (w (g a))) => [H|/ltW H].
  by rewrite mulr_ge0 // subr_ge0 //; apply: Rk_swap.
apply: mulr_le0; rewrite subr_le0 //.
have := @Rk_swap k a b (t g) kK ab; rewrite /t mulgA tperm2 mul1g; apply.
by rewrite !permM tpermL tpermR.
Qed.

Lemma phi_ge0 k a : 0 <= phi k a.
Proof.
apply: sumr_ge0 => g _; rewrite mulr_ge0 // ?w0 //; apply: prodr_ge0 => j _.
by apply: sumr_ge0 => c _; rewrite mulr_ge0 ?pr_ge0 ?w0.
Qed.

Lemma first_part k : (k < K)%N -> \sum_a phi k a * (p k a * (u k a - m k)) <= 0.
Proof.
move=> kK; have [Z|Z] := eqVneq (\sum_a p k a) 0.
  by rewrite big1 // => a _; rewrite (sum_p0 Z) mul0r mulr0.
have Zp : 0 < \sum_a p k a by rewrite lt_neqAle eq_sym Z sumr_ge0 // => a _; apply: pr_ge0.
have := @chebyshev R _ v (p k) (fun a => u k a - m k) (phi k).
rewrite sum_first mul0r => H; rewrite -(pmulr_lle0 _ Zp).
have -> : \sum_a phi k a * (p k a * (u k a - m k)) = \sum_a p k a * (u k a - m k) * phi k a.
  by apply: eq_bigr => a _; rewrite mulrC.
apply: H => [a|a c _ _ ac|a c ac]; first exact: pr_ge0.
  by rewrite ler_sub // u_up.
by apply: phi_down => //; apply: ltnW.
Qed.

Lemma second_part k : (k < K)%N -> \sum_a phi k a * (p k a - lam k * G k a) <= 0.
Proof.
move=> kK.
have E a : p k a - lam k * G k a = G k a * (p k a / G k a - lam k).
  have [Z|Z] := eqVneq (G k a) 0; last by rewrite mulrBr mulrCA mulfV // mulr1 [G k a * lam k]mulrC.
  rewrite Z mul0r mulr0 subr0; apply/eqP; rewrite eq_le pr_ge0 andbT -Z; exact: p_le_G.
have [Z|Z] := eqVneq (\sum_a G k a) 0.
  by rewrite big1 // => a _; rewrite E (sum_G0 Z) mul0r mulr0.
have Zp : 0 < \sum_a G k a by rewrite lt_neqAle eq_sym Z sumr_ge0 // => a _; apply: pr_ge0.
have := @chebyshev R _ v (G k) (fun a => p k a / G k a - lam k) (phi k).
have -> : \sum_a G k a * (p k a / G k a - lam k) = 0.
  by rewrite -[RHS](sum_second k); apply: eq_bigr => a _; rewrite E.
rewrite mul0r => H; rewrite -(pmulr_lle0 _ Zp).
have -> : \sum_a phi k a * (p k a - lam k * G k a) = \sum_a G k a * (p k a / G k a - lam k) * phi k a.
  by apply: eq_bigr => a _; rewrite E mulrC.
apply: H => [a|a c na nc ac|a c ac]; first exact: pr_ge0.
  by rewrite ler_sub // cond2.
by apply: phi_down => //; apply: ltnW.
Qed.

Theorem scan : (\sum_(g : 'S_l) F (moved g)) / (l`!)%:R <= F unif.
Proof.
have l0 : 0 < (l`!)%:R :> R by rewrite ltr0n fact_gt0.
rewrite ler_pdivr_mulr // F_unif -subr_le0.
have -> : \sum_(g : 'S_l) F (moved g) - V 0 * (l`!)%:R = \sum_(g : 'S_l) (F (moved g) - V 0).
  by rewrite sumrB sumr_const card_Sn mulr_natr.
under eq_bigr => g _ do rewrite telescope ?moved1 //.
rewrite exchange_big /=; apply: sumr_le0 => k _.
have -> : \sum_(g : 'S_l) Rk (moved g) k * (\sum_a moved g a * b k a) = \sum_a phi k a * b k a.
  rewrite (eq_bigr (fun g => \sum_a Rk (moved g) k * (moved g a * b k a))); last first.
    by move=> g _; rewrite mulr_sumr.
  rewrite exchange_big /=; apply: eq_bigr => a _; rewrite /phi mulr_suml.
  by apply: eq_bigr => g _; rewrite mulrA [Rk _ _ * _]mulrC.
have -> : \sum_a phi k a * b k a = \sum_a phi k a * (p k a * (u k a - m k)) +
   (m k - V k.+1) * \sum_a phi k a * (p k a - lam k * G k a).
  rewrite mulr_sumr -big_split /=; apply: eq_bigr => a _; rewrite bE //; ring.
rewrite -[X in _ <= X]addr0; apply: ler_add; first exact: (first_part (ltn_ord k)).
have [Z|Z] := eqVneq (\sum_a p k a) 0.
  suff -> : \sum_a phi k a * (p k a - lam k * G k a) = 0 by rewrite mulr0.
  by rewrite big1 // => a _; rewrite (sum_p0 Z) /lam Z !mul0r subr0 mulr0.
by apply: mulr_ge0_le0; rewrite ?subr_ge0 ?cond3 // second_part.
Qed.
End Scan.

(* To rename the originals is to move the weights. *)
Section Rename.
Variables (R : realFieldType) (l' s K : nat) (S : finType) (P : 'I_l'.+1 -> S -> R).
Variables (slot : nat -> 'I_s) (B : nat -> {set S}) (r : nat -> S -> R).

Lemma eq_F (w w' : 'I_l'.+1 -> R) : w =1 w' -> F K P slot B r w = F K P slot B r w'.
Proof. by move=> H; apply: eq_bigr => y _; congr (_ * _); apply: eq_bigr => j _; rewrite H. Qed.

Lemma F_rename (g : 'S_l'.+1) w : F K (fun a => P (g a)) slot B r w = F K P slot B r (moved w g^-1).
Proof.
pose f (y : {ffun 'I_s -> 'I_l'.+1 * S}) := [ffun j => (g (y j).1, (y j).2)].
have fI : injective f.
  move=> y z /ffunP H; apply/ffunP => j; have := H j; rewrite !ffunE.
  by case: (y j) (z j) => [a x] [b x'] /= [] /perm_inj -> ->.
rewrite /F [RHS](reindex_inj fI); apply: eq_bigr => y _; congr (_ * _).
  by apply: eq_bigr => j _; rewrite ffunE /= /moved permK.
apply: eq_bigr => k _; rewrite /occurs !ffunE /=.
by have -> : [forall i : 'I_k, (f y (slot i)).2 \notin B i] = [forall i : 'I_k, (y (slot i)).2 \notin B i];
  first by apply: eq_forallb => i; rewrite ffunE.
Qed.
End Rename.
