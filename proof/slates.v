(* Pages of several places, every place a laboratory: no copies and no withholding pay more than each original once. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From mathcomp Require Import ring.
From Cloneproof Require Import serve scan levels counts loop own theorem corollaries mix slate.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Lemma count_lt (A : eqType) (p q : pred A) s x : {subset p <= q} -> x \in s -> q x -> ~~ p x ->
  (count p s < count q s)%N.
Proof.
move=> pq + qx px; elim: s => //= a s IH; rewrite inE => /predU1P [<-|/IH H].
  by rewrite (negbTE px) qx add0n add1n ltnS sub_count.
by rewrite -addnS leq_add //; apply: leq_imp; apply: pq.
Qed.

(* ---------- the statement ---------- *)
Section WholePages.
Variables (R : realFieldType) (l' draws' views ranks T : nat) (order : seq nat) (places me : nat).
Notation l := l'.+1.
Notation draws := draws'.+1.
Variable attention : nat -> R.                         (* of place 0, 1, .. *)
Variables other_clicks others_later : nat -> nat -> nat -> bool.   (* what the others' draws show: any, fixed *)
Notation n := (test_pages views order).
Notation filled := (filled order places).
Notation rotated := (rotated order).

(* What a draw of the agent shows: clicks of its test, clicks that count on later pages, and what each page pays. *)
Definition record := (tosses n * tosses T * tosses T)%type.
Definition slots := {ffun 'I_draws -> 'I_l * record}.
Definition at_page k (x : tosses k) (t : nat) : bool := if insub t is Some i then x i else false.
Definition click (y : slots) i j t :=
  if i == me then at_page (y (inord j)).2.1.1 t else other_clicks i j t.
Definition later (y : slots) i j t :=
  if i == me then at_page (y (inord j)).2.1.2 t else others_later i j t.

(* An item of rate v is clicked with chance a v in a place of attention a. After the test of ranks a click counts with
   chance a' / a, where a' is the attention of the last place: so with chance a' v, wherever it stands. *)
Definition test_chance (v : R) (t : nat) := attention (rotated me t) * v.
Definition later_chance (v : R) (t : nat) :=
  (if (t < ranks_end draws views ranks order)%N then attention (rotated me t) else attention filled.-1) * v.
Definition record_chance (v : R) (x : record) : R :=
  coins_chance (test_chance v) x.1.1 * coins_chance (later_chance v) x.1.2 * coins_chance (fun=> v) x.2.
Definition slots_chance (v : 'I_l -> R) c (y : slots) : R :=
  \prod_j (weight R c (y j).1 * record_chance (v (y j).1) (y j).2).

Definition page_paid (y : slots) (t : 'I_T) : R :=
  if place draws views ranks order places (click y) (later y) me t is Some k
  then attention k * ((y (inord (shown_draw draws views order places (click y) me t))).2.2 t)%:R else 0.
Definition page_pay (v : 'I_l -> R) c t : R := \sum_y slots_chance v c y * page_paid y t.
Definition pages_pay (v : 'I_l -> R) c : R := \sum_y slots_chance v c y * \sum_t page_paid y t.
Definition mean_over_names (f : ('I_l -> R) -> R) v : R := (\sum_(g : 'S_l) f (fun a => v (g a))) / (l`!)%:R.

(* ---------- the proof ---------- *)
Hypothesis me_in : me \in order.
Hypothesis attention_falls : forall i j, (i <= j)%N -> 0 <= attention j <= attention i.
Hypothesis attention1 : attention 0 <= 1.
Notation N := (size order).
Notation tests_end := (tests_end draws views order).
Notation ranks_end := (ranks_end draws views ranks order).

Lemma attention01 k : 0 <= attention k <= 1.
Proof. by have /andP [-> H] := attention_falls (leq0n k); apply: le_trans H _. Qed.
Lemma attention0 k : 0 <= attention k. Proof. by have /andP [] := attention01 k. Qed.
Lemma share01 (v a : R) : 0 <= v <= 1 -> 0 <= a <= 1 -> 0 <= a * v <= 1.
Proof. by case/andP=> v0 v1 /andP [a0 a1]; rewrite mulr_ge0 //= mulr_ile1. Qed.
Lemma test01 v : 0 <= v <= 1 -> chances (test_chance v).
Proof. by move=> v01 t; apply: share01 (attention01 _). Qed.
Lemma later01 v : 0 <= v <= 1 -> chances (later_chance v).
Proof. by move=> v01 t; apply: share01 => //; case: ifP => _; apply: attention01. Qed.
Lemma only01 m (q : nat -> R) : chances q -> chances (only m q).
Proof. by move=> q01 i; rewrite /only; case: ifP => _ //; rewrite lexx ler01. Qed.

(* What counts in the test, and on later pages before page t. *)
Definition in_test (t : nat) := (rotated me t < filled)%N.
Definition in_score (t t' : nat) := (tests_end <= t' < t)%N && counts draws views ranks order places me t'.
Definition ones (x : record) := counted in_test x.1.1.
Definition points (t : nat) (x : record) := counted (in_score t) x.1.2.

Lemma count_at k (m : pred nat) (x : tosses k) : count (fun t => m t && at_page x t) (iota 0 k) = counted m x.
Proof.
rewrite -sum1_count big_mkcond /= -[k in iota 0 k]subn0 -/(index_iota 0 k) big_mkord /counted.
by apply: eq_bigr => i _; rewrite /at_page valK; case: (_ && _).
Qed.

Lemma level_of (y : slots) j : level views order places (click y) me j = ones (y (inord j)).2.
Proof.
rewrite /level /ones -count_at; apply: eq_count => t; by rewrite /click eqxx.
Qed.

Definition champ (y : slots) := champion draws views order places (click y) me.
Lemma best_ofP f s : (0 < s)%N -> [/\ (best_of f s < s)%N, forall j, (j < s)%N -> (f j <= f (best_of f s))%N
  & forall j, (j < best_of f s)%N -> (f j < f (best_of f s))%N].
Proof.
elim: s => [//|[|s] IH] _; first by rewrite /= ltnn; split=> // -[].
have [//|b1 b2 b3] := IH; rewrite [best_of f _]/= -/(best_of f s.+1); move: (best_of _ _) b1 b2 b3 => b b1 b2 b3.
case: ifP => [bs|/negbT bs]; split=> //.
- by move=> j; rewrite ltnS leq_eqVlt => /orP [/eqP -> //|/b2 H]; apply: leq_trans H (ltnW bs).
- by move=> j /b2 H; apply: leq_ltn_trans H bs.
- exact: ltnW.
- by move=> j; rewrite ltnS leq_eqVlt => /orP [/eqP ->|/b2 //]; rewrite leqNgt.
Qed.

Section Later.
Variable t : 'I_T.
Hypothesis later_page : (tests_end <= t)%N.

Lemma score_of (y : slots) : score draws views ranks order places (click y) (later y) me t =
  (ones (y (inord (champ y))).2 + points t (y (inord (champ y))).2)%N.
Proof.
rewrite /score -/(champ y) level_of; congr (_ + _)%N.
rewrite /points -count_at /in_score.
have -> : iota 0 T = iota 0 tests_end ++ iota tests_end (t - tests_end) ++ iota t (T - t).
  rewrite -{2}(subnKC later_page) -iotaD -{3}[tests_end]add0n -iotaD; congr (iota 0 _).
  by rewrite addnA subnKC // subnKC // ltnW.
rewrite !count_cat.
rewrite [X in (_ = X + _)%N](eq_in_count (a2 := pred0)) ?count_pred0 ?add0n => [|t']; last first.
  by rewrite mem_iota add0n => /andP [_ H]; rewrite leqNgt H.
rewrite [X in (_ = _ + X)%N](eq_in_count (a2 := pred0)) ?count_pred0 ?addn0 => [|t']; last first.
  by rewrite mem_iota => /andP [H _]; rewrite [(t' < t)%N]ltnNge H andbF.
apply: eq_in_count => t'; rewrite mem_iota subnKC // => ->.
by rewrite /later eqxx.
Qed.

(* The others' scores do not depend on the agent. *)
Definition nobody : slots := [ffun=> (ord0, ([ffun=> false], [ffun=> false], [ffun=> false]))].
Definition other_score j := score draws views ranks order places (click nobody) (later nobody) j t.
Lemma others_same (y : slots) j : j != me ->
  score draws views ranks order places (click y) (later y) j t = other_score j.
Proof.
move=> /negbTE jm; rewrite /other_score /score /champion.
have L : level views order places (click y) j =1 level views order places (click nobody) j.
  by move=> d; apply: eq_count => t'; rewrite /click jm.
have C s : best_of (level views order places (click y) j) s = best_of (level views order places (click nobody) j) s.
  by elim: s => //= s ->; rewrite !L.
by rewrite C L; congr (_ + _)%N; apply: eq_count => t'; rewrite /later jm.
Qed.

(* The attention of the agent at score z: it never falls in z. *)
Definition passed z j := (j != me) && ((z < other_score j)%N || ((other_score j == z) && (index j order < index me order)%N)).
Definition behind z := count (passed z) order.
Definition turn := nth 0%N order (t %% N).
Definition seen z : R :=
  if (t < ranks_end)%N then (if in_test t then attention (rotated me t) else 0) else
  if (N <= places)%N || (behind z < filled.-1)%N then attention (behind z) else
  if (me == turn) || ((behind z == filled.-1) && passed z turn) then attention filled.-1 else 0.

Lemma passed_falls z z' : (z <= z')%N -> {subset passed z' <= passed z}.
Proof.
move=> zz j; rewrite !unfold_in => /andP [-> /orP [H|/andP [/eqP -> I]]] /=.
  by rewrite (leq_ltn_trans zz H).
by move: zz; rewrite leq_eqVlt => /orP [/eqP <-|->] //; rewrite eqxx I orbT.
Qed.
Lemma behind_falls z z' : (z <= z')%N -> (behind z' <= behind z)%N.
Proof. by move=> zz; apply: sub_count; apply: passed_falls. Qed.

Lemma turn_in : turn \in order.
Proof. by rewrite mem_nth // ltn_mod; case: order me_in. Qed.

Lemma behind_same z z' : (z <= z')%N -> behind z' = behind z -> passed z turn -> passed z' turn.
Proof.
move=> zz E H; apply/negPn/negP => H'.
have : (behind z' < behind z)%N; last by rewrite E ltnn.
exact: (count_lt (passed_falls zz) turn_in).
Qed.

Lemma seen_up z : seen z <= seen z.+1.
Proof.
have zz := leqnSn z; have r := behind_falls zz.
have up i j : (i <= j)%N -> attention j <= attention i by move=> /attention_falls /andP [].
rewrite /seen; case: ifP => // _; case: (N <= places)%N => /=; first exact: up.
case: (ltnP (behind z)) => [H|H]; first by rewrite (leq_ltn_trans r H) up.
case: (ltnP (behind z.+1)) => [H'|H'].
  by case: ifP => _ //; [apply: up; apply: ltnW|apply: attention0].
case: (me == turn) => //=; case: ifP => [/andP [/eqP E P']|_]; last by case: ifP => _ //; apply: attention0.
have E' : behind z.+1 = behind z by apply/eqP; rewrite eqn_leq r E.
by rewrite (behind_same zz E' P') E' E eqxx.
Qed.
Lemma seen_ge0 z : 0 <= seen z.
Proof.
by rewrite /seen; do 4?case: ifP => _ //; apply: attention0.
Qed.

Lemma paid_later (y : slots) : page_paid y t =
  seen (ones (y (inord (champ y))).2 + points t (y (inord (champ y))).2) * ((y (inord (champ y))).2.2 t)%:R.
Proof.
rewrite /page_paid /shown_draw [(t < tests_end)%N]ltnNge later_page /= -/(champ y) -score_of.
have A j : ahead draws views ranks order places (click y) (later y) me t j =
    passed (score draws views ranks order places (click y) (later y) me t) j.
  rewrite /ahead /passed; case: (eqVneq j me) => [->|jm] /=; first by rewrite !ltnn eqxx.
  by rewrite (others_same y jm).
have B : rank draws views ranks order places (click y) (later y) me t =
    behind (score draws views ranks order places (click y) (later y) me t) by apply: eq_count.
rewrite /place /seen B A; case: ifP => _; first by rewrite /in_test; case: ifP; rewrite ?mul0r.
by case: ifP => _ //; rewrite /turn; case: ifP; rewrite ?mul0r.
Qed.

(* The page is a scan: from the highest level down, the first draw that has so much is the champion. *)
Definition events := (n.+1 * draws)%N.
Definition slot k : 'I_draws := inord (k %% draws).
Definition lo k := (n - k %/ draws)%N.
Definition rew (k : nat) (x : record) : R := seen (ones x + points t x) * (x.2 t)%:R.
Notation BB := (levels.B ones lo).

Lemma ones_le x : (ones x <= n)%N. Proof. by rewrite -ltnS counted_le. Qed.
Lemma slotE k : slot k = (k %% draws)%N :> nat. Proof. by rewrite inordK ?ltn_mod. Qed.
Lemma lo_down i k : (i <= k < events)%N -> (lo k <= lo i)%N.
Proof. by case/andP=> ik _; rewrite leq_sub2l // leq_div2r. Qed.

Lemma scan_pay (y : slots) : page_paid y t = pay events slot BB rew y.
Proof.
rewrite paid_later.
have [c1 c2 c3] := best_ofP (level views order places (click y) me) (isT : (0 < draws)%N).
rewrite -/(champion _ _ _ _ _ _) -/(champ y) in c1 c2 c3.
pose L := ones (y (inord (champ y))).2; have Ln : (L <= n)%N := ones_le _.
pose k := ((n - L) * draws + champ y)%N.
have kd : (k %/ draws = n - L)%N by rewrite divnMDl // divn_small ?addn0.
have km : (k %% draws = champ y)%N by rewrite modnMDl modn_small.
have kK : (k < events)%N by rewrite -ltn_divLR // kd ltnS leq_subr.
have sk : slot k = inord (champ y) by rewrite /slot km.
have before_k i : (i < k)%N -> (y (slot i)).2 \notin BB i.
  move=> ik; rewrite inE -ltnNge -level_of /lo.
  have si : (i %% draws < draws)%N by rewrite ltn_mod.
  have id : (i %/ draws <= n - L)%N by rewrite -kd leq_div2r // ltnW.
  move: id; rewrite leq_eqVlt => /orP [/eqP id|id].
    rewrite id subKn // /L -level_of; apply: c3.
    by move: ik; rewrite {1}(divn_eq i draws) id /k ltn_add2l.
  apply: leq_ltn_trans (c2 _ si) _; rewrite level_of -/L ltn_subRL.
  by move: id; rewrite ltn_subRL addnC.
have occ : occurs slot BB y k.
  rewrite /occurs inE sk -/L /lo kd subKn // leqnn; apply/forallP => i; exact: before_k.
rewrite /pay (bigD1 (Ordinal kK)) //= occ sk big1 ?addr0 // => i ik.
case: ifP => // /andP [Bi /forallP H].
have [lt|gt|E] := ltngtP i k; first by rewrite (negbTE (before_k i lt)) in Bi.
  by have /andP [Bk _] := occ; have := H (Ordinal gt); rewrite /= Bk.
by case/eqP: ik; apply: val_inj.
Qed.

Lemma slots_turn i j k : (i < j < k)%N -> (k < events)%N -> slot i = slot j ->
  exists2 e : nat, (i <= e < k)%N & slot e = slot k.
Proof.
case/andP=> ij jk kK /(congr1 val); rewrite /= !slotE => H.
have id : (i + draws <= j)%N.
  have : (i == j %[mod draws])%N by rewrite H.
  by rewrite eq_sym eqn_mod_dvd ?(ltnW ij) // => /dvdn_leq; rewrite subn_gt0 ij leq_subRL ?(ltnW ij) //; apply.
have dk : (draws <= k)%N by apply: leq_trans (ltnW jk); apply: leq_trans id; apply: leq_addl.
exists (k - draws)%N; last by apply: val_inj; rewrite /= !slotE -[in RHS](subnKC dk) modnDl.
by rewrite ltn_subrL (leq_trans _ dk) // andbT leq_subRL // addnC (leq_trans id (ltnW jk)).
Qed.

Lemma exact_level k x : (k < events)%N -> x \in D slot BB k -> ones x = lo k.
Proof.
move=> kK; rewrite levels.D_count => /andP [lk /forallP H]; apply/eqP; rewrite eqn_leq lk andbT.
have [dk|kd] := leqP draws k; last by rewrite /lo divn_small // subn0 ones_le.
have ek : (k - draws < k)%N by rewrite ltn_subrL (leq_trans _ dk).
have := H (Ordinal ek); rewrite /= -val_eqE /= !slotE -[in X in _ == X](subnKC dk) modnDl eqxx /= -ltnNge.
have kn : (k %/ draws <= n)%N by rewrite -ltnS ltn_divLR.
have k1 : (0 < k %/ draws)%N by rewrite divn_gt0.
have -> : lo (k - draws) = (lo k).+1; last by rewrite ltnS.
rewrite /lo -{1}(mul1n draws) divnBMl // subnBA // addn1 subSn //.
Qed.

Section Rates.
Variable v : 'I_l -> R.
Hypothesis v01 : forall a, 0 <= v a <= 1.
Definition P a (x : record) := record_chance (v a) x.

Lemma record_split a (A : pred nat) (f h : tosses T -> R) :
  \sum_(x : record | A (ones x)) P a x * (f x.1.2 * h x.2) =
  (\sum_(b : tosses n | A (counted in_test b)) coins_chance (test_chance (v a)) b) *
  (\sum_b coins_chance (later_chance (v a)) b * f b) * (\sum_b coins_chance (fun=> v a) b * h b).
Proof.
rewrite big_distrlr /= pair_big /= big_distrlr /= pair_big /=.
apply: eq_big => [[[b c] d]|[[b c] d] _] /=; first by rewrite !andbT.
by rewrite /P /record_chance /=; ring.
Qed.

Lemma law_ones a (A : pred nat) : law_of P ones a A =
  \sum_(y < n.+1 | A y) mix (only in_test (test_chance (v a))) n y.
Proof.
transitivity (\sum_(x : record | A (ones x)) P a x * (1 * 1)).
  by apply: eq_bigr => x _; rewrite !mulr1.
rewrite (record_split a A (fun=> 1) (fun=> 1)).
have one (q : nat -> R) : \sum_(b : tosses T) coins_chance q b * 1 = 1.
  by rewrite -[RHS](coins1 T q); apply: eq_bigr => b _; rewrite mulr1.
rewrite !one !mulr1.
have E := mix_mean n in_test (test_chance (v a)) (fun y => (A y)%:R); rewrite /expect in E.
rewrite big_mkcond [RHS]big_mkcond /=.
transitivity (\sum_(x : tosses n) coins_chance (test_chance (v a)) x * (A (counted in_test x))%:R).
  by apply: eq_bigr => x _; case: (A _); rewrite ?mulr1 ?mulr0.
by rewrite E; apply: eq_bigr => y _; case: (A _); rewrite ?mulr1 ?mulr0.
Qed.

Lemma P0 a x : 0 <= P a x.
Proof. by rewrite !mulr_ge0 // coins_ge0 //; [apply: test01|apply: later01]. Qed.
Lemma P1 a : \sum_x P a x = 1.
Proof.
transitivity (law_of P ones a xpredT); first by [].
have := record_split a xpredT (fun=> 1) (fun=> 1).
have one k (q : nat -> R) : \sum_(b : tosses k) coins_chance q b * 1 = 1.
  by rewrite -[RHS](coins1 k q); apply: eq_bigr => b _; rewrite mulr1.
rewrite !one !mulr1 coins1 => <-; apply: eq_bigr => x _; by rewrite !mulr1.
Qed.

Lemma only_up m (q q' : nat -> R) : (forall i, q i <= q' i) -> forall i, only m q i <= only m q' i.
Proof. by move=> qq i; rewrite /only; case: ifP. Qed.
Lemma test_up a b : v a <= v b -> forall i, test_chance (v a) i <= test_chance (v b) i.
Proof. by move=> ab i; rewrite ler_wpmul2l ?attention0. Qed.
Lemma later_up a b : v a <= v b -> forall i, later_chance (v a) i <= later_chance (v b) i.
Proof. by move=> ab i; rewrite ler_wpmul2l //; case: ifP => _; apply: attention0. Qed.

Lemma ordered a b (A A' : pred nat) : v a <= v b -> above A A' ->
  law_of P ones a A * law_of P ones b A' <= law_of P ones b A * law_of P ones a A'.
Proof.
move=> ab; rewrite !law_ones; apply: crossing => x y.
by apply: mix_ratio; [apply/only01/test01|apply/only01/test01|apply/only_up/test_up].
Qed.

Definition u k a := v a * expect (only (in_score t) (later_chance (v a))) T (fun z => seen (lo k + z)).

Lemma seen_mono z z' : (z <= z')%N -> seen z <= seen z'.
Proof.
move=> /subnKC <-; elim: (z' - z)%N => [|d IH]; first by rewrite addn0.
by rewrite addnS; apply: le_trans IH (seen_up _).
Qed.

Lemma fair k a : (k < events)%N -> \sum_(x in D slot BB k) P a x * rew k x = p P slot BB k a * u k a.
Proof.
move=> kK; have DE (f : record -> R) : \sum_(x in D slot BB k) f x = \sum_(x : record | Dn slot lo k (ones x)) f x.
  by apply: eq_bigl => x; rewrite levels.D_count.
transitivity (\sum_(x in D slot BB k) P a x * (seen (lo k + points t x) * (x.2 t)%:R)).
  by apply: eq_bigr => x /(exact_level kK) E; rewrite /rew E.
rewrite DE (record_split a _ (fun b => seen (lo k + counted (in_score t) b)) (fun b => (b t)%:R)).
have := record_split a (Dn slot lo k) (fun=> 1) (fun=> 1).
have one (q : nat -> R) : \sum_(b : tosses T) coins_chance q b * 1 = 1.
  by rewrite -[RHS](coins1 T q); apply: eq_bigr => b _; rewrite mulr1.
rewrite !one !mulr1 => E; rewrite /p /pr DE; under [X in _ = X * _]eq_bigr => x _ do rewrite -[P a x]mulr1.
rewrite E -mulrA; congr (_ * _).
rewrite (mix_mean T (in_score t) (later_chance (v a)) (fun z => seen (lo k + z))) /u mulrC; congr (_ * _).
rewrite (marginal (fun b : bool => b%:R) t (_ : \sum_b bern (v a) b = 1)); last by rewrite big_bool /bern /=; ring.
by rewrite big_bool /bern /=; ring.
Qed.

Lemma expect_ge0 k a : 0 <= expect (only (in_score t) (later_chance (v a))) T (fun z => seen (lo k + z)).
Proof. by apply: sumr_ge0 => z _; rewrite mulr_ge0 ?seen_ge0 // mix_ge0 //; apply/only01/later01. Qed.
Lemma u_up k a b : (k < events)%N -> v a <= v b -> u k a <= u k b.
Proof.
move=> _ ab; apply: ler_pmul => //; rewrite ?expect_ge0 //; first by have /andP [] := v01 a.
apply: expect_up; [apply/only01/later01|apply/only01/later01|apply/only_up/later_up|] => // z.
by rewrite addnS seen_up.
Qed.
Lemma u_ge0 k a : (k < events)%N -> 0 <= u k a.
Proof. by move=> _; rewrite mulr_ge0 ?expect_ge0 //; have /andP [] := v01 a. Qed.
Lemma u_down i k a : (i <= k < events)%N -> u k a <= u i a.
Proof.
move=> ik; apply: ler_wpmul2l; first by have /andP [] := v01 a.
by apply: expect_mono => [|z]; [apply/only01/later01|rewrite seen_mono // leq_add2r lo_down].
Qed.

Definition page_value := levels.value events P ones slot lo rew.
Lemma page_value_scan w : (forall a, 0 <= w a) -> \sum_a w a = 1 ->
  (\sum_(g : 'S_l) page_value (moved w g)) / (l`!)%:R <= page_value (@unif R l').
Proof. exact: (levels.levels_scan P0 P1 ordered fair u_up u_ge0 u_down lo_down slots_turn). Qed.
End Rates.
End Later.

(* ---------- the theorem ---------- *)
Variable v : 'I_l -> R.
Hypothesis v01 : forall a, 0 <= v a <= 1.
Variable c : 'I_l -> nat.
Hypothesis c0 : exists a, c a != 0%N.

Lemma later_proof (t : 'I_T) : (tests_end <= t)%N ->
  mean_over_names (fun v => page_pay v c t) v <= mean_over_names (fun v => page_pay v (@once l') t) v.
Proof.
move=> later_page.
have E (g : 'S_l) c' : page_pay (fun a => v (g a)) c' t = page_value t v (moved (weight R c') (g^-1)%g).
  transitivity (page_value t (fun a => v (g a)) (weight R c')); last exact: F_rename.
  by apply: eq_bigr => y _; rewrite scan_pay.
rewrite /mean_over_names; under eq_bigr => g _ do rewrite E.
under [X in _ <= X / _]eq_bigr => g _ do rewrite E.
rewrite (reindex_inj invg_inj) /=; under eq_bigr => g _ do rewrite invgK.
rewrite [X in _ <= X / _](eq_bigr (fun=> page_value t v (@unif R l'))).
  rewrite sumr_const card_Sn -[X in _ <= X / _]mulr_natr mulfK; last by rewrite pnatr_eq0 -lt0n fact_gt0.
  by apply: page_value_scan => //; [exact: weight_ge0|exact: weight1].
by move=> g _; apply: eq_F => a; rewrite /moved weight_once.
Qed.

(* On pages of tests the places are given by the table, and an item is a uniform draw. *)
Lemma test_pay (v' : 'I_l -> R) c' (t : 'I_T) : (exists a, c' a != 0%N) -> (t < tests_end)%N ->
  page_pay v' c' t = (if in_test t then attention (rotated me t) else 0) * \sum_a weight R c' a * v' a.
Proof.
move=> c0' te.
have q1 : \sum_(e : 'I_l * record) weight R c' e.1 * record_chance (v' e.1) e.2 = 1.
  rewrite -(pair_bigA _ (fun a x => weight R c' a * record_chance (v' a) x)) /= -[RHS](weight1 R c0').
  by apply: eq_bigr => a _; rewrite -mulr_sumr (P1 v' a) mulr1.
have paid y : page_paid y t = (if in_test t then attention (rotated me t) else 0) *
    ((y (inord (t %/ n))).2.2 t)%:R.
  rewrite /page_paid /place /shown_draw te (leq_trans te (leq_addr _ _)) -/(in_test t).
  by case: ifP; rewrite ?mul0r.
rewrite /page_pay; under eq_bigr => y _ do rewrite paid mulrCA.
rewrite -mulr_sumr; congr (_ * _).
rewrite (marginal (fun e : 'I_l * record => (e.2.2 t)%:R) _ q1).
rewrite -(pair_bigA _ (fun a x => weight R c' a * record_chance (v' a) x * (x.2 t)%:R)) /=; apply: eq_bigr => a _.
under eq_bigr => x _ do rewrite -mulrA.
rewrite -mulr_sumr; congr (_ * _).
have := record_split v' a xpredT (fun=> 1) (fun b => (b t)%:R).
rewrite coins1 mul1r; under [X in _ = X * _]eq_bigr => b _ do rewrite mulr1.
rewrite coins1 mul1r (marginal (fun b : bool => b%:R) t (_ : \sum_b bern (v' a) b = 1)); last first.
  by rewrite big_bool /bern /=; ring.
rewrite big_bool /bern /= mulr1 mulr0 addr0 => E; rewrite -[RHS]E; by apply: eq_bigr => x _; rewrite mul1r.
Qed.

Lemma neutral c' : (exists a, c' a != 0%N) ->
  mean_over_names (fun v => \sum_a weight R c' a * v a) v = (\sum_(g : 'S_l) v (g ord0)) / (l`!)%:R.
Proof.
move=> c0'; rewrite /mean_over_names; congr (_ / _); rewrite exchange_big /=.
rewrite -[RHS]mul1r -(weight1 R c0') mulr_suml; apply: eq_bigr => a _; rewrite -mulr_sumr; congr (_ * _).
rewrite (reindex_inj (mulgI (tperm a ord0))) /=; apply: eq_bigr => g _.
by rewrite permM tpermL.
Qed.

(* Each page by itself, hence every horizon. *)
Theorem clone_proof_whole_page (t : 'I_T) :
  mean_over_names (fun v => page_pay v c t) v <= mean_over_names (fun v => page_pay v (@once l') t) v.
Proof.
have [|te] := leqP tests_end t; first exact: later_proof.
have E c' : (exists a, c' a != 0%N) -> mean_over_names (fun v => page_pay v c' t) v =
    (if in_test t then attention (rotated me t) else 0) * mean_over_names (fun v => \sum_a weight R c' a * v a) v.
  move=> c0'; rewrite /mean_over_names mulrA mulr_sumr; congr (_ / _); apply: eq_bigr => g _.
  by rewrite test_pay.
by rewrite !E ?neutral //; apply: once0.
Qed.

Theorem clone_proof_whole_pages :
  mean_over_names (fun v => pages_pay v c) v <= mean_over_names (fun v => pages_pay v (@once l')) v.
Proof.
have E c' : mean_over_names (fun v => pages_pay v c') v = \sum_t mean_over_names (fun v => page_pay v c' t) v.
  rewrite /mean_over_names -mulr_suml [in RHS]exchange_big /=; congr (_ / _); apply: eq_bigr => g _.
  rewrite /pages_pay /page_pay [RHS]exchange_big /=; apply: eq_bigr => y _; exact: mulr_sumr.
by rewrite !E; apply: ler_sum => t _; apply: clone_proof_whole_page.
Qed.
End WholePages.
