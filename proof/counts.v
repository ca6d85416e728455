(* What a slot shows in its test and later, the law of its count of ones, and scans over levels of counts. *)
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

Section Coins.
Variables (R : realFieldType) (n : nat).
Definition likely (v : R) (k : nat) : R := v ^+ k * (1 - v) ^+ (n - k).

Lemma likely_ge0 v k : 0 <= v <= 1 -> 0 <= likely v k.
Proof. by case/andP => v0 v1; rewrite mulr_ge0 ?exprn_ge0 ?subr_ge0. Qed.

(* Counts of coins have likelihood ratios. *)
Lemma likelihood_ratio (a b : R) (x y : nat) : 0 <= a -> a <= b -> b <= 1 -> (x <= y)%N -> (y <= n)%N ->
  likely a y * likely b x <= likely b y * likely a x.
Proof.
move=> a0 ab b1 xy yn.
have b0 : 0 <= b := le_trans a0 ab.
have a1 : a <= 1 := le_trans ab b1.
have ya (c : R) : c ^+ y = c ^+ x * c ^+ (y - x) by rewrite -exprD subnKC.
have na (c : R) : c ^+ (n - x) = c ^+ (n - y) * c ^+ (y - x).
  by rewrite -exprD; congr (_ ^+ _); rewrite addnBA // subnK.
pose Z := a ^+ x * b ^+ x * (1 - a) ^+ (n - y) * (1 - b) ^+ (n - y).
have Z0 : 0 <= Z by rewrite /Z !mulr_ge0 ?exprn_ge0 ?subr_ge0.
have -> : likely a y * likely b x = Z * (a * (1 - b)) ^+ (y - x).
  rewrite /likely /Z [(_ * _) ^+ (y - x)]exprMn (ya a) (na (1 - b)).
  move: (a ^+ x) (a ^+ (y - x)) (b ^+ x) ((1 - a) ^+ (n - y)) ((1 - b) ^+ (n - y)) ((1 - b) ^+ (y - x)).
  by move=> *; ring.
have -> : likely b y * likely a x = Z * (b * (1 - a)) ^+ (y - x).
  rewrite /likely /Z [(_ * _) ^+ (y - x)]exprMn (ya b) (na (1 - a)).
  move: (a ^+ x) (b ^+ (y - x)) (b ^+ x) ((1 - a) ^+ (n - y)) ((1 - b) ^+ (n - y)) ((1 - a) ^+ (y - x)).
  by move=> *; ring.
apply: ler_wpmul2l => //; apply: ler_expn2r; rewrite ?nnegrE ?mulr_ge0 ?subr_ge0 //.
by apply: ler_pmul => //; rewrite ?subr_ge0 // ler_sub.
Qed.

Definition tosses := {ffun 'I_n -> bool}.
Definition total (b : tosses) : nat := \sum_(i < n) b i.
Lemma total_le b : (total b <= n)%N.
Proof.
rewrite /total -[X in (_ <= X)%N]card_ord -sum1_card; apply: leq_sum => i _; exact: leq_b1.
Qed.
Definition count_law (v : R) (A : pred nat) : R := \sum_(b : tosses | A (total b)) likely v (total b).

Lemma cross (a b : R) (A B : pred nat) : 0 <= a -> a <= b -> b <= 1 -> above A B ->
  count_law a A * count_law b B <= count_law b A * count_law a B.
Proof.
move=> a0 ab b1 AB.
pose t (x y : tosses) := likely b (total x) * likely a (total y) - likely a (total x) * likely b (total y).
pose f (x y : tosses) : R := (A (total x) && B (total y))%:R.
pose Z := \sum_x \sum_y f x y * t x y.
have E p q : count_law p A * count_law q B = \sum_x \sum_y f x y * (likely p (total x) * likely q (total y)).
  rewrite /count_law big_mkcond [\sum_(i | B _) _]big_mkcond big_distrlr /=.
  apply: eq_bigr => x _; apply: eq_bigr => y _.
  by rewrite /f; case: (A _) (B _) => [] []; rewrite ?mul0r ?mulr0 ?mul1r.
have ZE : count_law b A * count_law a B - count_law a A * count_law b B = Z.
  rewrite !E -sumrB; apply: eq_bigr => x _; rewrite -sumrB; apply: eq_bigr => y _.
  by rewrite /t mulrBr.
have ZS : Z = \sum_x \sum_y f y x * t y x by rewrite /Z exchange_big.
rewrite -subr_ge0 ZE; suff : 0 <= Z *+ 2 by rewrite pmulrn_lge0.
rewrite mulr2n {1}/Z ZS -big_split /=; apply: sumr_ge0 => x _.
rewrite -big_split /=; apply: sumr_ge0 => y _.
have -> : f x y * t x y + f y x * t y x = (f x y - f y x) * t x y by rewrite /t; ring.
have [xy|yx|xy] := ltngtP (total x) (total y).
- apply: mulr_le0; rewrite subr_le0.
    by rewrite /f ler_nat leq_imp // => /andP [Ax By]; apply: AB.
  by have := likelihood_ratio a0 ab b1 (ltnW xy) (total_le y); rewrite mulrC [X in _ <= X]mulrC.
- apply: mulr_ge0; rewrite subr_ge0.
    by rewrite /f ler_nat leq_imp // => /andP [Ax By]; apply: AB.
  by have := likelihood_ratio a0 ab b1 (ltnW yx) (total_le x).
- by rewrite /f xy subrr mul0r.
Qed.
End Coins.

Lemma marginal (R : comRingType) (m : nat) (Y : finType) (q f : Y -> R) (t : 'I_m) : \sum_y q y = 1 ->
  \sum_(h : {ffun 'I_m -> Y}) (\prod_i q (h i)) * f (h t) = \sum_y q y * f y.
Proof.
move=> q1; pose e (i : 'I_m) y := q y * (if i == t then f y else 1).
transitivity (\sum_(h : {ffun 'I_m -> Y}) \prod_i e i (h i)).
  apply: eq_bigr => h _; rewrite /e big_split /=; congr (_ * _).
  by rewrite (bigD1 t) //= eqxx big1 ?mulr1 // => i /negbTE ->.
rewrite -bigA_distr_bigA /= (bigD1 t) //= /e eqxx [X in _ * X]big1 ?mulr1 // => i /negbTE ->.
by rewrite -[RHS]q1; apply: eq_bigr => y _; rewrite mulr1.
Qed.

Lemma product1 (R : comRingType) (m : nat) (Y : finType) (q : Y -> R) : \sum_y q y = 1 ->
  \sum_(h : {ffun 'I_m -> Y}) \prod_i q (h i) = 1.
Proof. by move=> q1; rewrite -(bigA_distr_bigA (fun=> q)) /= big1. Qed.

(* What a slot shows: reward and coin in each pull of its test, and what it would pay in each round after an award. *)
Section Shown.
Variables (R : realFieldType) (n T : nat) (X : finType) (rho : X -> R).
Hypothesis rho01 : forall x, 0 <= rho x <= 1.
Definition shown := ({ffun 'I_n -> X * bool} * {ffun 'I_T -> X})%type.
Definition toss (q : X -> R) (z : X * bool) := q z.1 * (if z.2 then rho z.1 else 1 - rho z.1).
Definition slot_law (q : X -> R) (x : shown) : R := (\prod_i toss q (x.1 i)) * \prod_t q (x.2 t).
Definition ones (x : shown) : nat := \sum_(i < n) (x.1 i).2.
Definition mean (q : X -> R) : R := \sum_x q x * rho x.

Variable q : X -> R.
Hypothesis q0 : forall x, 0 <= q x.
Hypothesis q1 : \sum_x q x = 1.

Lemma mean01 : 0 <= mean q <= 1.
Proof.
apply/andP; split; first by apply: sumr_ge0 => x _; rewrite mulr_ge0 //; case/andP: (rho01 x).
by rewrite -q1; apply: ler_sum => x _; rewrite ler_pimulr //; case/andP: (rho01 x).
Qed.

Lemma toss_b b : \sum_x toss q (x, b) = if b then mean q else 1 - mean q.
Proof.
rewrite /toss /mean; case: b => //=.
by rewrite -[X in _ = X - _]q1 -sumrB; apply: eq_bigr => x _; rewrite mulrBr mulr1.
Qed.

Lemma toss1 : \sum_z toss q z = 1.
Proof.
rewrite -(pair_bigA _ (fun x b => toss q (x, b))) /= exchange_big /= big_bool /= !toss_b; ring.
Qed.

Lemma toss_reward : \sum_z toss q z * rho z.1 = mean q.
Proof.
rewrite -(pair_bigA _ (fun x b => toss q (x, b) * rho x)) /= /mean; apply: eq_bigr => x _.
by rewrite big_bool /toss /=; ring.
Qed.

Lemma slot_law_ge0 x : 0 <= slot_law q x.
Proof.
rewrite mulr_ge0 ?prodr_ge0 // => i _; rewrite mulr_ge0 //.
by case/andP: (rho01 (x.1 i).1) => ? ?; case: ifP; rewrite ?subr_ge0.
Qed.

Lemma slot_law_split (A : pred nat) (f : {ffun 'I_T -> X} -> R) :
  \sum_(x : shown | A (ones x)) slot_law q x * f x.2 =
  (\sum_(x : shown | A (ones x)) slot_law q x) * \sum_(h : {ffun 'I_T -> X}) (\prod_t q (h t)) * f h.
Proof.
pose c (y : {ffun 'I_n -> X * bool}) := (\sum_(i < n) (y i).2)%N.
have E (g : {ffun 'I_T -> X} -> R) : \sum_(x : shown | A (ones x)) slot_law q x * g x.2 =
    (\sum_(y | A (c y)) \prod_i toss q (y i)) * \sum_(h : {ffun 'I_T -> X}) (\prod_t q (h t)) * g h.
  rewrite big_distrlr /= pair_big /=; apply: eq_big => [x|[y h] _] /=; first by rewrite andbT.
  by rewrite /slot_law /= mulrA.
rewrite E; congr (_ * _); have := E (fun=> 1).
have -> : \sum_(h : {ffun 'I_T -> X}) (\prod_t q (h t)) * 1 = 1.
  by rewrite -[RHS](product1 T q1); apply: eq_bigr => h _; rewrite mulr1.
by rewrite mulr1 => <-; apply: eq_bigr => x _; rewrite mulr1.
Qed.

Lemma ones_law (A : pred nat) : \sum_(x : shown | A (ones x)) slot_law q x = count_law n (mean q) A.
Proof.
pose c (y : {ffun 'I_n -> X * bool}) : tosses n := [ffun i => (y i).2].
transitivity (\sum_(y | A (total (c y))) \prod_i toss q (y i)).
  transitivity (\sum_(y | A (total (c y))) \sum_(h : {ffun 'I_T -> X}) slot_law q (y, h)).
    rewrite pair_big /=; apply: eq_big => [[y h]|[y h] _] //=; rewrite andbT; congr A.
    by apply: eq_bigr => i _; rewrite ffunE.
  apply: eq_bigr => y _; rewrite /slot_law /= -mulr_sumr product1 //; ring.
rewrite (partition_big c (fun b => A (total b))) //=; apply: eq_bigr => b Ab.
transitivity (\prod_i \sum_(z | z.2 == b i) toss q z).
  rewrite bigA_distr_big_dep /=; apply: eq_bigl => y; apply/andP/familyP => [[_ /eqP <-] i|H].
    by rewrite unfold_in /= ffunE.
  have -> : c y = b by apply/ffunP => i; rewrite ffunE; have := H i; rewrite unfold_in => /eqP.
  by rewrite eqxx.
have tb d : \sum_(z | z.2 == d) toss q z = mean q ^+ d * (1 - mean q) ^+ (~~ d).
  rewrite (eq_bigl (fun z => true && (z.2 == d))) //.
  rewrite -(pair_big xpredT (fun d' => d' == d) (fun x d' => toss q (x, d'))) /=.
  under eq_bigr => x _ do rewrite big_pred1_eq.
  by rewrite toss_b; case: d; rewrite /= expr1 expr0 ?mulr1 ?mul1r.
under eq_bigr => i _ do rewrite tb.
rewrite big_split /= !prodrXr /likely; congr (_ * _ ^+ _).
apply/eqP; rewrite -(eqn_add2l (total b)) subnKC ?total_le // /total -big_split /=.
by under eq_bigr => i _ do rewrite addnC addn_negb; rewrite sum1_card card_ord.
Qed.

Lemma slot_law1 : \sum_x slot_law q x = 1.
Proof.
transitivity (\sum_(y : {ffun 'I_n -> X * bool}) \sum_(h : {ffun 'I_T -> X}) slot_law q (y, h)).
  by rewrite pair_big; apply: eq_bigr => [[y h] _].
rewrite -[RHS](product1 n toss1); apply: eq_bigr => y _.
by rewrite /slot_law /= -mulr_sumr product1 // mulr1.
Qed.

Lemma test_mean i : \sum_(x : shown) slot_law q x * rho (x.1 i).1 = mean q.
Proof.
transitivity (\sum_(y : {ffun 'I_n -> X * bool}) \sum_(h : {ffun 'I_T -> X}) slot_law q (y, h) * rho (y i).1).
  by rewrite pair_big; apply: eq_bigr => [[y h] _].
rewrite -toss_reward -(marginal (fun z => rho z.1) i toss1); apply: eq_bigr => y _.
by rewrite /slot_law /= -mulr_suml -mulr_sumr product1 // mulr1.
Qed.
End Shown.

(* A scan over levels: event k asks whether slot k has at least `lo k` ones; the first that has pays. *)
Section Levels.
Variables (R : realFieldType) (l' s n T K : nat) (X : finType) (rho : X -> R).
Notation l := l'.+1.
Notation S := [finType of shown n T X].
Hypothesis rho01 : forall x, 0 <= rho x <= 1.
Variable law : 'I_l -> X -> R.
Hypothesis law0 : forall a x, 0 <= law a x.
Hypothesis law1 : forall a, \sum_x law a x = 1.
Variables (slot : nat -> 'I_s) (lo : nat -> nat) (worth : nat -> R) (u : 'I_l -> R) (r : nat -> S -> R).
Definition v a := mean rho (law a).
Definition P a := slot_law rho (law a) : S -> R.
Definition B k := [set x : S | (lo k <= ones x)%N].
Notation C := (C slot B).
Notation D := (D slot B).
Notation p := (p P slot B).
Notation G := (G P slot B).
Definition value := F K P slot B r.

Hypothesis fair : forall k a, (k < K)%N -> \sum_(x in D k) P a x * r k x = p k a * (worth k * u a).
Hypothesis u_up : forall a b, v a <= v b -> u a <= u b.
Hypothesis u_ge0 : forall a, 0 <= u a.
Hypothesis worth_ge0 : forall k, (k < K)%N -> 0 <= worth k.
Hypothesis worth_falls : forall i k, (i <= k < K)%N -> worth k <= worth i.
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
Lemma pr_count a (Z : {set S}) (A : pred nat) : (forall x, (x \in Z) = A (ones x)) ->
  pr P a Z = count_law n (v a) A.
Proof. by move=> H; rewrite /v -(ones_law n T rho (law1 a)); apply: eq_bigl. Qed.

Lemma v01 a : 0 <= v a <= 1. Proof. exact: mean01. Qed.
Lemma P0 a x : 0 <= P a x. Proof. exact: slot_law_ge0. Qed.
Lemma P1 a : \sum_x P a x = 1. Proof. exact: slot_law1. Qed.

Lemma count_law1 a : count_law n (v a) xpredT = 1.
Proof. by rewrite /v -(ones_law n T rho (law1 a)) slot_law1. Qed.

Lemma ordered a b (Y Z : {set S}) (A A' : pred nat) : v a <= v b -> above A A' ->
  (forall x, (x \in Y) = A (ones x)) -> (forall x, (x \in Z) = A' (ones x)) ->
  pr P a Y * pr P b Z <= pr P b Y * pr P a Z.
Proof.
move=> ab AA' /pr_count HY /pr_count HZ; rewrite !HY !HZ.
by have /andP [a0 _] := v01 a; have /andP [_ b1] := v01 b; apply: cross.
Qed.

Lemma C_low j k x y : (x < y)%N -> Cn j k y -> Cn j k x.
Proof.
move=> xy /forallP H; apply/forallP => i; apply/implyP => ij; have := H i; rewrite ij /= -!ltnNge.
exact: ltn_trans.
Qed.

Lemma levels1 j k a b : v a <= v b -> pr P b (C j k) <= pr P a (C j k).
Proof.
move=> ab; have := @ordered a b setT (C j k) xpredT (Cn j k) ab.
rewrite !(@pr_count _ setT xpredT) ?count_law1 ?mul1r => [|x|x]; rewrite ?inE //.
apply=> [x y _ Cy xy|x|x]; [exact: C_low xy Cy|by rewrite inE|exact: C_count].
Qed.

Lemma levels2 k a b : G k a != 0 -> G k b != 0 -> v a <= v b -> p k a / G k a <= p k b / G k b.
Proof.
have G0 c : G k c != 0 -> 0 < G k c by move=> H; rewrite lt_neqAle eq_sym H sumr_ge0 // => x _; apply: P0.
move=> /G0 Ga /G0 Gb ab; rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr //.
apply: (@ordered a b (D k) (C (slot k) k) (Dn k) (Cn (slot k) k)) => [//|x y|x|x]; rewrite ?C_count ?D_count //.
case/andP=> lx _ Cy xy; rewrite /Dn Cy (C_low xy Cy) !andbT; exact: leq_trans lx (ltnW xy).
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

Definition level_mean k := (\sum_a p k a * u a) / (\sum_a p k a).
Lemma m_level k : m P slot B (fun k a => worth k * u a) k = worth k * level_mean k.
Proof.
rewrite /m /level_mean mulrA mulr_sumr; congr (_ / _); apply: eq_bigr => a _; ring.
Qed.
Lemma p_ge0 k a : 0 <= p k a. Proof. by apply: sumr_ge0 => x _; apply: P0. Qed.
Lemma level_mean_ge0 k : 0 <= level_mean k.
Proof. by rewrite divr_ge0 // sumr_ge0 // => a _; rewrite ?mulr_ge0 ?p_ge0. Qed.

Lemma level_mean_falls i k : (i < k < K)%N -> \sum_a p i a != 0 -> \sum_a p k a != 0 ->
  level_mean k <= level_mean i.
Proof.
move=> ik pi pk.
have S0 j : \sum_a p j a != 0 -> 0 < \sum_a p j a.
  by move=> H; rewrite lt_neqAle eq_sym H sumr_ge0 // => a _; apply: p_ge0.
rewrite /level_mean ler_pdivr_mulr ?S0 // mulrAC ler_pdivl_mulr ?S0 // -subr_ge0.
rewrite !big_distrlr /= -sumrB; under eq_bigr => a _ do rewrite -sumrB.
set Z := \sum_a _.
have ZS : Z = \sum_a \sum_b (p i b * u b * p k a - p k b * u b * p i a) by rewrite /Z exchange_big.
suff : 0 <= Z *+ 2 by rewrite pmulrn_lge0.
rewrite mulr2n {1}/Z ZS -big_split /=; apply: sumr_ge0 => a _.
rewrite -big_split /=; apply: sumr_ge0 => b _.
have -> : p i a * u a * p k b - p k a * u a * p i b + (p i b * u b * p k a - p k b * u b * p i a)
   = (u a - u b) * (p i a * p k b - p i b * p k a) by ring.
have O c d : v c <= v d -> p i c * p k d <= p i d * p k c.
  by move=> cd; apply: (@ordered c d _ _ (Dn i) (Dn k) cd (D_above ik)) => x; rewrite D_count.
case: (leP (v a) (v b)) => [ab|/ltW ba]; first by apply: mulr_le0; rewrite subr_le0 ?u_up ?O.
by apply: mulr_ge0; rewrite subr_ge0 ?u_up ?O.
Qed.

Variable w : 'I_l -> R.
Hypothesis w0 : forall a, 0 <= w a.
Hypothesis w1 : \sum_a w a = 1.

Theorem levels_scan : (\sum_(g : 'S_l) value (moved w g)) / (l`!)%:R <= value (@unif R l').
Proof.
apply: (@scan R l' s K _ P v slot B r (fun k a => worth k * u a) P0 P1 fair) => //.
- by move=> k a b kK /u_up ab; apply: ler_wpmul2l; rewrite ?worth_ge0.
- by move=> j k a b _; apply: levels1.
- by move=> k a b _; apply: levels2.
apply: falling_means; first exact: P0.
- move=> i k ik si sk; have /andP [lik kK] := ik; rewrite !m_level.
  by apply: ler_pmul; rewrite ?worth_ge0 ?level_mean_ge0 ?level_mean_falls ?worth_falls ?(ltnW lik).
- by move=> k kK; rewrite m_level mulr_ge0 ?worth_ge0 ?level_mean_ge0.
Qed.

Theorem levels_best_alone b : (forall a, v a <= v b) -> value w <= value (fun a => (a == b)%:R).
Proof.
move=> vb; apply: (@best_alone R l' s K _ P v slot B r (fun k a => worth k * u a) P0 P1 fair) => //.
- by move=> j k c d _; apply: levels1.
- by move=> k a kK; apply: ler_wpmul2l; rewrite ?worth_ge0 ?u_up.
- by move=> k kK; rewrite mulr_ge0 ?worth_ge0.
- by move=> i k ik; apply: ler_wpmul2r; rewrite ?worth_falls.
Qed.
End Levels.
