(* Counts of coins whose chances are multiples of one rate: a test that is seen in several places of a page. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Cloneproof Require Import scan counts.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Mix.
Variable R : realFieldType.
Implicit Types (q : nat -> R) (f g : nat -> R).

(* Coin i falls on one with chance q i, and counts if m i; the chance of y ones that count among the first n. *)
Definition bern (q : R) (b : bool) : R := if b then q else 1 - q.
Definition coins_chance n q (x : tosses n) : R := \prod_(i < n) bern (q i) (x i).
Definition counted n (m : pred nat) (x : tosses n) : nat := \sum_(i < n) (m i && x i).
Definition only (m : pred nat) q i : R := if m i then q i else 0.
Definition before f (y : nat) : R := if y is y'.+1 then f y' else 0.
Fixpoint mix q n : nat -> R :=
  if n is n'.+1 then fun y => (1 - q n') * mix q n' y + q n' * before (mix q n') y else fun y => (y == 0%N)%:R.

Lemma mixP n m q y : mix (only m q) n y = \sum_(x : tosses n | counted m x == y) coins_chance q x.
Proof.
pose F (i : 'I_n) b : {poly R} := bern (q i) b *: 'X^(m i && b).
have E : \prod_i (\sum_b F i b) = \sum_(x : tosses n) coins_chance q x *: 'X^(counted m x).
  by rewrite bigA_distr_bigA /=; apply: eq_bigr => x _; rewrite /coins_chance /counted -prodrXr -scaler_prod.
transitivity ((\prod_i (\sum_b F i b))`_y); last first.
  rewrite E coef_sum [RHS]big_mkcond /=; apply: eq_bigr => x _; rewrite coefZ coefXn eq_sym.
  by case: eqP; rewrite ?mulr1 ?mulr0.
have {E} -> : \prod_i (\sum_b F i b) = \prod_(i < n) ((1 - only m q i)%:P + only m q i *: 'X).
  apply: eq_bigr => i _; rewrite big_bool /F /only /bern andbT andbF expr0; case: (m i).
    by rewrite /= expr1 addrC alg_polyC.
  by rewrite /= expr0 -scalerDl subr0 scale0r addr0 addrC subrK scale1r.
elim: n y {F} => [|n IH] y /=; first by rewrite big_ord0 coef1.
rewrite big_ord_recr /= mulrDr coefD coefMC -scalerAr coefZ coefMX -IH mulrC; congr (_ + _ * _).
by case: y => //= y; rewrite -IH.
Qed.

Lemma counted_le n m (x : tosses n) : (counted m x < n.+1)%N.
Proof.
rewrite ltnS -[X in (_ <= X)%N]card_ord -sum1_card; apply: leq_sum => i _; exact: leq_b1.
Qed.

Lemma mix_out n q y : (n < y)%N -> mix q n y = 0.
Proof.
elim: n y => [|n IH] [|y] //= ny; rewrite IH ?(ltn_trans (ltnSn n)) // mulr0 add0r.
by rewrite IH ?mulr0.
Qed.

Lemma coins_ge0 n q (x : tosses n) : (forall i, 0 <= q i <= 1) -> 0 <= coins_chance q x.
Proof.
move=> q01; rewrite prodr_ge0 // => i _; have /andP [? ?] := q01 i.
by rewrite /bern; case: (x i); rewrite ?subr_ge0.
Qed.

Definition chances q := forall i, 0 <= q i <= 1.
Lemma mix_ge0 n q y : chances q -> 0 <= mix q n y.
Proof.
move=> q01; elim: n y => [|n IH] y /=; first exact: ler0n.
by have /andP [? ?] := q01 n; rewrite addr_ge0 ?mulr_ge0 ?subr_ge0 //; case: y => [|y] /=.
Qed.

Lemma coins1 n q : \sum_(x : tosses n) coins_chance q x = 1.
Proof.
rewrite /coins_chance -(bigA_distr_bigA (fun (i : 'I_n) b => bern (q i) b)) /= big1 // => i _.
by rewrite big_bool /bern /=; ring.
Qed.

(* Expectations by the last coin. *)
Definition expect q n (f : nat -> R) := \sum_(y < n.+1) mix q n y * f y.
Lemma mix_mean n m q (f : nat -> R) :
  \sum_(x : tosses n) coins_chance q x * f (counted m x) = expect (only m q) n f.
Proof.
rewrite /expect; under [RHS]eq_bigr => y _ do rewrite mixP mulr_suml.
rewrite (exchange_big_dep xpredT) //=; apply: eq_bigr => x _.
by rewrite (big_pred1 (Ordinal (counted_le m x))) // => y; rewrite eq_sym.
Qed.

Lemma expectS q n f : expect q n.+1 f = (1 - q n) * expect q n f + q n * expect q n (fun y => f y.+1).
Proof.
rewrite /expect; under eq_bigr => y _ do rewrite /= mulrDl -!mulrA.
rewrite big_split /= -!mulr_sumr; congr (_ * _ + _ * _).
  by rewrite big_ord_recr /= mix_out // mul0r addr0.
by rewrite big_ord_recl /= mul0r add0r.
Qed.

Lemma expect_mono q n f g : chances q -> (forall y, f y <= g y) -> expect q n f <= expect q n g.
Proof. by move=> q01 fg; apply: ler_sum => y _; rewrite ler_wpmul2l ?mix_ge0. Qed.

Lemma expect_up q q' n f : chances q -> chances q' -> (forall i, q i <= q' i) -> (forall y, f y <= f y.+1) ->
  expect q n f <= expect q' n f.
Proof.
move=> q01 q01' qq; elim: n f => [|n IH] f fup; first by [].
rewrite !expectS; have /andP [n0 n1] := q01 n; have /andP [n0' n1'] := q01' n.
set E := expect q' n f; set E' := expect q' n (fun y => f y.+1).
have EE : E <= E' by apply: expect_mono.
apply: (@le_trans _ _ ((1 - q n) * E + q n * E')).
  by apply: ler_add; apply: ler_wpmul2l; rewrite ?subr_ge0 ?IH // => y; apply: fup.
have -> : (1 - q' n) * E + q' n * E' = (1 - q n) * E + q n * E' + (q' n - q n) * (E' - E) by ring.
by rewrite ler_addl mulr_ge0 // subr_ge0.
Qed.

(* Log-concavity, in the form that coins keep. *)
Definition concave f := forall i j d, (i <= j)%N -> f i * f (j + d)%N <= f (i + d)%N * f j.

Lemma before_concave f : (forall y, 0 <= f y) -> concave f -> concave (before f).
Proof.
move=> f0 cf [|i] [|j] d //=; rewrite ?mul0r ?addSn /=.
- by rewrite !add0n; case: d => [|d] /=; rewrite ?mul0r ?mulr0.
- by rewrite mulr_ge0 //; case: d.
- by move=> ij; apply: cf.
Qed.

Lemma mix_concave q n : chances q -> concave (mix q n).
Proof.
move=> q01; elim: n => [|n IH] i j d ij /=.
  case: i ij => [|i] ij; last by rewrite mul0r mulr_ge0 ?ler0n.
  case: j d ij => [|j] [|d] _ //=; rewrite ?addn0 ?mulr0 ?mul0r //.
set f := mix q n in IH *; set a := 1 - q n; set b := q n.
have f0 y : 0 <= f y by apply: mix_ge0.
have h0 y : 0 <= before f y by case: y => [|y] //=; apply: f0.
have /andP [b0 b1] := q01 n; have a0 : 0 <= a by rewrite subr_ge0.
have hc := before_concave f0 IH.
have X1 : f i * before f (j + d) + before f i * f (j + d)%N <= f (i + d)%N * before f j + before f (i + d) * f j.
  case: d => [|d]; first by rewrite !addn0.
  rewrite !addnS /= addrC; apply: ler_add; last exact: IH.
  case: i j ij => [|i] [|j] //= ij; rewrite ?mul0r ?mulr0 // ?mulr_ge0 //.
  by have := IH i j d.+2 ij; rewrite !addnS !addSn.
rewrite -subr_ge0.
have -> : (a * f (i + d)%N + b * before f (i + d)) * (a * f j + b * before f j) -
  (a * f i + b * before f i) * (a * f (j + d)%N + b * before f (j + d)) =
  a * a * (f (i + d)%N * f j - f i * f (j + d)%N) + b * b * (before f (i + d) * before f j - before f i * before f (j + d)) +
  a * b * (f (i + d)%N * before f j + before f (i + d) * f j - (f i * before f (j + d) + before f i * f (j + d)%N)) by ring.
apply: addr_ge0; [apply: addr_ge0|]; apply: mulr_ge0; rewrite ?mulr_ge0 ?subr_ge0 //.
  exact: IH.
exact: hc.
Qed.

(* Likelihood ratios: more likely coins, higher counts. The odds may stand still, but never fall. *)
Definition ratio f g := forall x y, (x <= y)%N -> f y * g x <= g y * f x.

Lemma before_ratio f g : ratio f g -> ratio (before f) (before g).
Proof. by move=> fg [|x] [|y] //= xy; rewrite ?mul0r ?mulr0 ?fg. Qed.

Lemma mix_ratio q q' n : chances q -> chances q' -> (forall i, q i <= q' i) -> ratio (mix q n) (mix q' n).
Proof.
move=> q01 q01' qq; elim: n => [|n IH] x y xy /=; first by [].
move: xy; rewrite leq_eqVlt => /orP [/eqP <-|xy]; first by rewrite mulrC.
set f := mix q n in IH *; set g := mix q' n in IH *; set a := q n; set b := q' n.
have /andP [a0 a1] := q01 n; have /andP [b0 b1] := q01' n; have ab := qq n.
have f0 z : 0 <= f z by apply: mix_ge0.
have g0 z : 0 <= g z by apply: mix_ge0.
have cf : concave f by apply: mix_concave.
have B := before_ratio IH.
case: y xy => [//|y]; rewrite ltnS => xy /=.
(* The two mixed terms: the heavier is nonnegative, and so is their sum. *)
pose A1 := g y * f x - f y.+1 * before g x.
pose A2 := g y.+1 * before f x - f y * g x.
have A12 : 0 <= A1 + A2.
  have -> : A1 + A2 = (g y * f x - f y * g x) + (g y.+1 * before f x - f y.+1 * before g x) by rewrite /A1 /A2; ring.
  rewrite addr_ge0 // subr_ge0; first exact: IH.
  clear A1 A2; case: x xy => [|x] xy /=; rewrite ?mulr0 //.
  by apply: IH; apply: leq_trans (ltnW xy) (leqnSn _).
have A1p : 0 <= A1.
  rewrite /A1 subr_ge0; clear A12 A2 A1; case: x xy => [|x] xy /=; first by rewrite mulr0 mulr_ge0.
  have H1 : f y * g x <= g y * f x by apply: IH; apply: ltnW.
  have H2 : f x * f y.+1 <= f x.+1 * f y by have := cf x y 1%N (ltnW xy); rewrite !addn1.
  have [fx|fx] := eqVneq (f x) 0.
    apply: (@le_trans _ _ 0); last by rewrite mulr_ge0.
    by have := IH x y.+1 (leq_trans (ltnW xy) (leqnSn _)); rewrite fx mulr0.
  have fxp : 0 < f x by rewrite lt_neqAle eq_sym fx f0.
  rewrite -(ler_pmul2l fxp); apply: (@le_trans _ _ (f x.+1 * (f y * g x))).
    by rewrite !mulrA ler_wpmul2r.
  have -> : f x * (g y * f x.+1) = f x.+1 * (g y * f x) by ring.
  by rewrite ler_wpmul2l.
rewrite -subr_ge0.
have -> : ((1 - b) * g y.+1 + b * g y) * ((1 - a) * f x + a * before f x) -
    ((1 - a) * f y.+1 + a * f y) * ((1 - b) * g x + b * before g x) =
  (1 - b) * (1 - a) * (g y.+1 * f x - f y.+1 * g x) + a * b * (g y * before f x - f y * before g x) +
  ((b - a) * A1 + a * (1 - b) * (A1 + A2)) by rewrite /A1 /A2; ring.
rewrite !addr_ge0 ?mulr_ge0 ?subr_ge0 //.
- by apply: IH; apply: leq_trans xy (leqnSn _).
- by have := B x y.+1; rewrite /=; apply; apply: leq_trans xy (leqnSn _).
- by rewrite -subr_ge0.
Qed.
End Mix.
