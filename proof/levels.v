(* Scans over levels: event k asks whether slot k has at least `lo k` ones, and the first that has pays. What it needs of
   the laws of counts is that they are ordered as likelihood ratios are. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From mathcomp Require Import ring.
From Cloneproof Require Import scan.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* A is above B: a pair in the wrong order lies in both. *)
Definition above (A B : pred nat) := forall x y, A x -> B y -> (x < y)%N -> A y && B x.

Lemma leq_imp (p q : bool) : (p -> q) -> (p <= q)%N.
Proof. by case: p q => [] [] // ->. Qed.


(* If the likelihood ratio of g to f rises with the count, g has more weight above. *)
Lemma crossing (R : realFieldType) (I : finType) (size : I -> nat) (f g : I -> R) (A B : pred nat) :
  (forall x y, (size x <= size y)%N -> f y * g x <= g y * f x) -> above A B ->
  (\sum_(x | A (size x)) f x) * (\sum_(x | B (size x)) g x) <=
  (\sum_(x | A (size x)) g x) * (\sum_(x | B (size x)) f x).
Proof.
move=> ratio AB.
pose t x y := g x * f y - f x * g y.
pose h x y : R := (A (size x) && B (size y))%:R.
pose Z := \sum_x \sum_y h x y * t x y.
have E (p q : I -> R) : (\sum_(x | A (size x)) p x) * (\sum_(x | B (size x)) q x) = \sum_x \sum_y h x y * (p x * q y).
  rewrite big_mkcond [\sum_(i | B _) _]big_mkcond big_distrlr /=.
  apply: eq_bigr => x _; apply: eq_bigr => y _.
  by rewrite /h; case: (A _) (B _) => [] []; rewrite ?mul0r ?mulr0 ?mul1r.
rewrite -subr_ge0 !E -sumrB; under eq_bigr => x _ do rewrite -sumrB.
under eq_bigr => x _ do under eq_bigr => y _ do rewrite -mulrBr -/(t x y).
rewrite -/Z; have ZS : Z = \sum_x \sum_y h y x * t y x by rewrite /Z exchange_big.
suff : 0 <= Z *+ 2 by rewrite pmulrn_lge0.
rewrite mulr2n {1}/Z ZS -big_split /=; apply: sumr_ge0 => x _.
rewrite -big_split /=; apply: sumr_ge0 => y _.
have -> : h x y * t x y + h y x * t y x = (h x y - h y x) * t x y by rewrite /t; ring.
have [xy|yx|xy] := ltngtP (size x) (size y).
- apply: mulr_le0; rewrite subr_le0.
    by rewrite /h ler_nat leq_imp // => /andP [Ax By]; apply: AB.
  by have := ratio x y (ltnW xy); rewrite mulrC [X in _ <= X]mulrC.
- apply: mulr_ge0; rewrite subr_ge0.
    by rewrite /h ler_nat leq_imp // => /andP [Ay Bx]; apply: AB.
  by have := ratio y x (ltnW yx).
- by rewrite /h xy subrr mul0r.
Qed.

Section Levels.
Variables (R : realFieldType) (l' s K : nat) (S : finType).
Notation l := l'.+1.
Variables (P : 'I_l -> S -> R) (ones : S -> nat) (v : 'I_l -> R).
Variables (slot : nat -> 'I_s) (lo : nat -> nat) (u : nat -> 'I_l -> R) (r : nat -> S -> R).
Hypothesis P0 : forall a x, 0 <= P a x.
Hypothesis P1 : forall a, \sum_x P a x = 1.
Definition law_of a (A : pred nat) : R := \sum_(x | A (ones x)) P a x.
Hypothesis ordered : forall a b (A A' : pred nat), v a <= v b -> above A A' ->
  law_of a A * law_of b A' <= law_of b A * law_of a A'.
Definition B k := [set x : S | (lo k <= ones x)%N].
Notation C := (C slot B).
Notation D := (D slot B).
Notation p := (p P slot B).
Notation G := (G P slot B).
Definition value := F K P slot B r.

Hypothesis fair : forall k a, (k < K)%N -> \sum_(x in D k) P a x * r k x = p k a * u k a.
Hypothesis u_up : forall k a b, (k < K)%N -> v a <= v b -> u k a <= u k b.
Hypothesis u_ge0 : forall k a, (k < K)%N -> 0 <= u k a.
Hypothesis u_falls : forall i k a, (i <= k < K)%N -> u k a <= u i a.
Hypothesis lo_falls : forall i k, (i <= k < K)%N -> (lo k <= lo i)%N.
(* No slot is asked twice before the others have been asked again. *)
Hypothesis in_turn : forall i j k, (i < j < k)%N -> (k < K)%N -> slot i = slot j ->
  exists2 e : nat, (i <= e < k)%N & slot e = slot k.

Definition Cn j k y := [forall i : 'I_k, (slot i == j) ==> ~~ (lo i <= y)%N].
Definition Dn k y := (lo k <= y)%N && Cn (slot k) k y.

Lemma C_count j k x : (x \in C j k) = Cn j k (ones x).
Proof. by rewrite inE; apply: eq_forallb => i; rewrite inE. Qed.
Lemma D_count k x : (x \in D k) = Dn k (ones x).
Proof. by rewrite in_setI C_count inE. Qed.
Lemma pr_count a (Z : {set S}) (A : pred nat) : (forall x, (x \in Z) = A (ones x)) -> pr P a Z = law_of a A.
Proof. by move=> H; apply: eq_bigl. Qed.
Lemma C_law a j k : pr P a (C j k) = law_of a (Cn j k). Proof. by apply: pr_count => x; apply: C_count. Qed.
Lemma D_law a k : p k a = law_of a (Dn k). Proof. by apply: pr_count => x; apply: D_count. Qed.

Lemma C_low j k x y : (x < y)%N -> Cn j k y -> Cn j k x.
Proof.
move=> xy /forallP H; apply/forallP => i; apply/implyP => ij; have := H i; rewrite ij /= -!ltnNge.
exact: ltn_trans.
Qed.

Lemma levels1 j k a b : v a <= v b -> pr P b (C j k) <= pr P a (C j k).
Proof.
move=> ab; have := @ordered a b xpredT (Cn j k) ab; rewrite /law_of !P1 !mul1r -!/(law_of _ _) !C_law.
apply=> x y _ Cy xy; exact: C_low xy Cy.
Qed.

Lemma levels2 k a b : G k a != 0 -> G k b != 0 -> v a <= v b -> p k a / G k a <= p k b / G k b.
Proof.
have G0 c : G k c != 0 -> 0 < G k c by move=> H; rewrite lt_neqAle eq_sym H sumr_ge0 // => x _; apply: P0.
move=> /G0 Ga /G0 Gb ab; rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
rewrite !D_law /scan.G !C_law; apply: ordered => // x y /andP [lx _] Cy xy.
rewrite /Dn Cy (C_low xy Cy) !andbT; exact: leq_trans lx (ltnW xy).
Qed.

Lemma D_above i k : (i < k < K)%N -> above (Dn i) (Dn k).
Proof.
case/andP=> ik kK x y /andP [lx Cx] /andP [ly Cy] xy.
have yi : (lo i <= y)%N := leq_trans lx (ltnW xy).
have xk : (lo k <= x)%N by apply: leq_trans lx; apply: lo_falls; rewrite (ltnW ik).
rewrite /Dn yi xk (C_low xy Cy) /= andbT; apply/forallP => j; apply/implyP => /eqP sj; rewrite -ltnNge.
have [|e /andP [je ek] se] := @in_turn j i k _ kK sj; first by rewrite ltn_ord.
have ye : (y < lo e)%N by have /forallP/(_ (Ordinal ek)) := Cy; rewrite /= se eqxx /= -ltnNge.
by apply: leq_trans ye (lo_falls _); rewrite je (ltn_trans ek kK).
Qed.

Notation m := (m P slot B u).
Lemma p_ge0 k a : 0 <= p k a. Proof. by apply: sumr_ge0 => x _; apply: P0. Qed.
Lemma sum_p_gt0 k : \sum_a p k a != 0 -> 0 < \sum_a p k a.
Proof. by move=> H; rewrite lt_neqAle eq_sym H sumr_ge0 // => a _; apply: p_ge0. Qed.

Lemma level_means_fall i k : (i < k < K)%N -> \sum_a p i a != 0 -> \sum_a p k a != 0 -> m k <= m i.
Proof.
move=> ik pi pk; have /andP [lik kK] := ik; have iK := ltn_trans lik kK.
apply: (@le_trans _ _ ((\sum_a p k a * u i a) / (\sum_a p k a))).
  apply: ler_wpmul2r; first by rewrite invr_ge0 ltW // sum_p_gt0.
  apply: ler_sum => a _.
  by rewrite ler_wpmul2l ?p_ge0 ?u_falls ?(ltnW lik).
rewrite /m ler_pdivr_mulr ?sum_p_gt0 // mulrAC ler_pdivl_mulr ?sum_p_gt0 // -subr_ge0.
rewrite !big_distrlr /= -sumrB; under eq_bigr => a _ do rewrite -sumrB.
set Z := \sum_a _.
have ZS : Z = \sum_a \sum_b (p i b * u i b * p k a - p k b * u i b * p i a) by rewrite /Z exchange_big.
suff : 0 <= Z *+ 2 by rewrite pmulrn_lge0.
rewrite mulr2n {1}/Z ZS -big_split /=; apply: sumr_ge0 => a _.
rewrite -big_split /=; apply: sumr_ge0 => b _.
have -> : p i a * u i a * p k b - p k a * u i a * p i b + (p i b * u i b * p k a - p k b * u i b * p i a)
   = (u i a - u i b) * (p i a * p k b - p i b * p k a) by ring.
have O c d : v c <= v d -> p i c * p k d <= p i d * p k c.
  by move=> cd; rewrite !D_law; apply: ordered (D_above ik).
case: (leP (v a) (v b)) => [ab|/ltW ba]; first by apply: mulr_le0; rewrite subr_le0 ?u_up ?O.
by apply: mulr_ge0; rewrite subr_ge0 ?u_up ?O.
Qed.

Variable w : 'I_l -> R.
Hypothesis w0 : forall a, 0 <= w a.
Hypothesis w1 : \sum_a w a = 1.

Theorem levels_scan : (\sum_(g : 'S_l) value (moved w g)) / (l`!)%:R <= value (@unif R l').
Proof.
apply: (@scan R l' s K _ P v slot B r u P0 P1 fair) => //.
- by move=> j k a b _; apply: levels1.
- by move=> k a b _; apply: levels2.
apply: falling_means; [exact: P0|exact: level_means_fall|].
move=> k kK; rewrite /m divr_ge0 // sumr_ge0 // => a _; rewrite ?mulr_ge0 ?p_ge0 ?u_ge0 //.
Qed.

Theorem levels_best_alone b : (forall a, v a <= v b) -> value w <= value (fun a => (a == b)%:R).
Proof.
move=> vb; apply: (@best_alone R l' s K _ P v slot B r u P0 P1 fair) => //.
- by move=> j k c d _; apply: levels1.
- by move=> k a kK; apply: u_up.
- by move=> k kK; apply: u_ge0.
- by move=> i k ik; apply: u_falls.
Qed.
End Levels.
