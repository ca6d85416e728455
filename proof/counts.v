(* What a slot shows in its test and later, the law of its count of ones, and scans over levels of counts. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From mathcomp Require Import ring.
From Cloneproof Require Import scan levels.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

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
move=> a0 ab b1; apply: (crossing (f := fun x => likely a (total x)) (g := fun x => likely b (total x))) => x y xy.
exact: likelihood_ratio (total_le y).
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

(* Levels of these counts, where event k pays `worth k` times what its original pays. *)
Section Counted.
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
Definition B := levels.B (@ones n T X : S -> nat) lo.
Definition value := F K P slot B r.

Lemma D_count k x : (x \in D slot B k) = Dn slot lo k (ones x). Proof. exact: levels.D_count. Qed.
Lemma v01 a : 0 <= v a <= 1. Proof. exact: mean01. Qed.
Lemma P0 a x : 0 <= P a x. Proof. exact: slot_law_ge0. Qed.
Lemma P1 a : \sum_x P a x = 1. Proof. exact: slot_law1. Qed.
Lemma ordered a b (A A' : pred nat) : v a <= v b -> above A A' ->
  law_of P (@ones n T X) a A * law_of P (@ones n T X) b A' <= law_of P (@ones n T X) b A * law_of P (@ones n T X) a A'.
Proof.
move=> ab AA'; rewrite /law_of /P !(ones_law n T rho (law1 _)).
by have /andP [a0 _] := v01 a; have /andP [_ b1] := v01 b; apply: cross.
Qed.

Hypothesis fair : forall k a, (k < K)%N -> \sum_(x in D slot B k) P a x * r k x = p P slot B k a * (worth k * u a).
Hypothesis u_up : forall a b, v a <= v b -> u a <= u b.
Hypothesis u_ge0 : forall a, 0 <= u a.
Hypothesis worth_ge0 : forall k, (k < K)%N -> 0 <= worth k.
Hypothesis worth_falls : forall i k, (i <= k < K)%N -> worth k <= worth i.
Lemma worth_up k a b : (k < K)%N -> v a <= v b -> worth k * u a <= worth k * u b.
Proof. by move=> kK /u_up; apply: ler_wpmul2l; apply: worth_ge0. Qed.
Lemma worth_pos k a : (k < K)%N -> 0 <= worth k * u a. Proof. by move=> kK; rewrite mulr_ge0 ?worth_ge0. Qed.
Lemma worth_down i k a : (i <= k < K)%N -> worth k * u a <= worth i * u a.
Proof. by move=> ik; rewrite ler_wpmul2r ?worth_falls. Qed.

Theorem levels_best_alone w b : (forall a, 0 <= w a) -> \sum_a w a = 1 -> (forall a, v a <= v b) ->
  value w <= value (fun a => (a == b)%:R).
Proof. by move=> w0 w1 vb; apply: (levels.levels_best_alone P0 P1 ordered fair worth_up worth_pos worth_down w0 w1 vb). Qed.

Hypothesis lo_falls : forall i k, (i <= k < K)%N -> (lo k <= lo i)%N.
Hypothesis in_turn : forall i j k, (i < j < k)%N -> (k < K)%N -> slot i = slot j ->
  exists2 e : nat, (i <= e < k)%N & slot e = slot k.
Theorem levels_scan w : (forall a, 0 <= w a) -> \sum_a w a = 1 ->
  (\sum_(g : 'S_l) value (moved w g)) / (l`!)%:R <= value (@unif R l').
Proof. exact: (levels.levels_scan P0 P1 ordered fair worth_up worth_pos worth_down lo_falls in_turn). Qed.
End Counted.
