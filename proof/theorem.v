(* The theorem about the loop that runs: no copies and no withholding pay more than registering each original once. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve scan levels counts loop own.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* ---------- the statement ---------- *)
Section Market.
Variables (R : realFieldType).           (* the real numbers, or any ordered field *)
Variables (l' : nat).                    (* the agent has l = l' + 1 originals *)
Notation l := l'.+1.
Variables (X : finType) (rho : X -> R).  (* rewards: finitely many numbers rho x in [0, 1] *)
Variables (T : nat).                     (* the horizon *)
Variables (n draws threshold : nat) (fresh : bool) (order : seq nat) (lot me : nat).
Variable others : nat -> nat -> bool.    (* the coins of the others' slots: any, fixed *)

(* What each draw of the agent holds, and shows: rewards and coins of its test, rewards of later rounds. The last draw
   is the one that stands by as a fallback. *)
Definition draws_of_me := {ffun 'I_draws.+1 -> 'I_l * shown n T X}.

Definition coins (y : draws_of_me) (q i : nat) : bool :=
  if owner draws order lot q == me then
    if insub i is Some i' then ((y (inord (draw order q))).2.1 i').2 else false
  else others q i.

Definition reward (x : shown n T X) (pull : option nat) (t : 'I_T) : R :=
  if pull is Some i then if insub i is Some i' then rho (x.1 i').1 else 0 else rho (x.2 t).

(* The agent is paid the reward of round t if it is served, not the coin. *)
Definition paid (y : draws_of_me) (t : 'I_T) : R :=
  let: (agent, d, pull) := serve n draws threshold fresh order lot (coins y) t in
  if agent == me then reward (y (inord d)).2 pull t else 0.

(* Each draw is uniform over the registered arms, c a of which are copies of original a. *)
Definition weight (c : 'I_l -> nat) (a : 'I_l) : R := (c a)%:R / (\sum_b c b)%:R.
Definition chance_of (law : 'I_l -> X -> R) (c : 'I_l -> nat) (y : draws_of_me) : R :=
  \prod_j (weight c (y j).1 * slot_law rho (law (y j).1) (y j).2).

Definition round_pay (law : 'I_l -> X -> R) (c : 'I_l -> nat) (t : 'I_T) : R :=
  \sum_y chance_of law c y * paid y t.
Definition expected_pay (law : 'I_l -> X -> R) (c : 'I_l -> nat) : R :=
  \sum_y chance_of law c y * \sum_t paid y t.

Definition average (f : ('I_l -> X -> R) -> R) (law : 'I_l -> X -> R) : R :=
  (\sum_(g : 'S_l) f (fun a => law (g a))) / (l`!)%:R.
Definition once : 'I_l -> nat := fun=> 1%N.
Definition alone (b : 'I_l) : 'I_l -> nat := fun a => (a == b)%N.
Definition is_law (q : X -> R) := (forall x, 0 <= q x) /\ \sum_x q x = 1.
End Market.
Arguments round_pay {R l' X} rho T n draws threshold fresh order lot me others law c t.
Arguments expected_pay {R l' X} rho T n draws threshold fresh order lot me others law c.

(* ---------- a round is a scan ---------- *)
Fixpoint first_pay (R : realFieldType) (e : seq (bool * R)) : R :=
  if e is (b, x) :: e' then if b then x else first_pay e' else 0.

Lemma first_pay_sum (R : realFieldType) d (e : seq (bool * R)) :
  first_pay e = \sum_(k < size e)
    (if (nth d e k).1 && [forall i : 'I_k, ~~ (nth d e i).1] then (nth d e k).2 else 0).
Proof.
elim: e => [|[b x] e IH] /=; first by rewrite big_ord0.
have F0 k : [forall i : 'I_k.+1, ~~ (nth d ((b, x) :: e) i).1] = ~~ b && [forall i : 'I_k, ~~ (nth d e i).1].
  apply/forallP/andP => [H|[nb /forallP H] i]; first split; first by have := H ord0.
    by apply/forallP => i; have := H (lift ord0 i).
  by case: (unliftP ord0 i) => [j ->|->] //=; rewrite H.
rewrite big_ord_recl /=.
have -> : [forall i : 'I_0, ~~ (nth d ((b, x) :: e) i).1] by apply/forallP => -[].
rewrite andbT; case: b F0 => F0.
  by rewrite big1 ?addr0 // => k _; rewrite F0 /= andbF.
by rewrite add0r IH; apply: eq_bigr => k _; rewrite F0.
Qed.

Lemma own_pays (R : realFieldType) n draws order lot me (oc : nat -> nat) coin (rr : nat -> R) h E :
  (forall q, ~~ mine draws order lot me q -> cnt n coin q = oc q) ->
  first_pay [seq ((e.1.2 <= cnt n coin e.1.1)%N, (nat_of_bool e.2)%:R * rr e.1.1) |
    e <- own draws order lot me oc h E] =
  (nat_of_bool h)%:R * (if winner n coin E is Some q then if mine draws order lot me q then rr q else 0 else 0).
Proof.
move=> H; elim: E h => [|[q y] E IH] h /=; first by rewrite mulr0.
have [mq|mq] := boolP (mine _ _ _ _ q) => /=; first by case: ifP => //= _; rewrite mq.
rewrite IH -(H _ mq) [(_ < y)%N]ltnNge; case: ifP => _ /=; last by rewrite andbT.
by rewrite andbF mul0r (negbTE mq) mulr0.
Qed.

Section Round.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R) (T : nat).
Variables (n draws threshold : nat) (fresh : bool) (order : seq nat) (lot me : nat) (others : nat -> nat -> bool).
Notation l := l'.+1.
Hypothesis rho01 : forall x, 0 <= rho x <= 1.
Hypothesis n_gt0 : (0 < n)%N.
Hypothesis draws_gt0 : (0 < draws)%N.
Hypothesis order_uniq : uniq order.
Hypothesis me_in : me \in order.
Notation S := [finType of shown n T X].
Notation tests := (tests draws order).
Notation events := (events n draws threshold fresh order).
Notation mine := (mine draws order lot me).

Lemma tests_gt0 : (0 < tests)%N.
Proof. by rewrite /tests muln_gt0 draws_gt0 andbT; case: order me_in. Qed.

(* Round t; after an award the agent gets `later` of what its slot would pay from then on. *)
Variables (t : nat) (later : {ffun 'I_T -> X} -> R).
Definition pays (x : shown n T X) (pull : option nat) : R :=
  if pull is Some i then if insub i is Some i' then rho (x.1 i').1 else 0 else later x.2.
Definition gets (y : draws_of_me l' X T n draws) : R :=
  let: (agent, d, pull) := serve n draws threshold fresh order lot (coins order lot me others y) t in
  if agent == me then pays (y (inord d)).2 pull else 0.
Definition oc q := (\sum_(i < n) others q i)%N.
Definition evs := own draws order lot me oc true (events t).
Definition ev := nth ((0, 0), false)%N evs.
Definition pull q := if (t < tests * n)%N && (q == t %/ n)%N then Some (t %% n)%N else None.
Definition slot k : 'I_draws.+1 := inord (draw order (ev k).1.1).
Definition lo k := (ev k).1.2.
Definition worth k : R := (nat_of_bool (ev k).2)%:R.
Definition rew k (x : S) : R := worth k * pays x (pull (ev k).1.1).

Lemma slotE k : (k < size evs)%N -> slot k = nth 0%N (sl draws order lot me (events t)) k :> nat.
Proof.
move=> kK; rewrite (sl_own draws order lot me oc true) (nth_map ((0, 0), false)%N) //.
rewrite /slot inordK // ltnS; have /allP := sl_le draws threshold fresh lot n_gt0 order_uniq me_in t.
apply; rewrite ?(sl_own draws order lot me oc true) //.
by apply/mapP; exists (ev k) => //; apply: mem_nth.
Qed.

Lemma mine_ev k : (k < size evs)%N -> mine (ev k).1.1.
Proof.
move=> kK; have : (ev k).1 \in [seq e.1 | e <- evs] by apply: map_f; apply: mem_nth.
by rewrite own_events mem_filter => /andP [].
Qed.

Lemma cnt_mine (y : draws_of_me l' X T n draws) q : mine q ->
  cnt n (coins order lot me others y) q = ones (y (inord (draw order q))).2.
Proof.
move=> mq; apply: eq_bigr => i _; rewrite /coins -/(serve.owner draws order lot q) -/(mine q) mq.
by rewrite valK.
Qed.

Lemma cnt_other (y : draws_of_me l' X T n draws) q : ~~ mine q -> cnt n (coins order lot me others y) q = oc q.
Proof. by move=> mq; apply: eq_bigr => i _; rewrite /coins -/(mine q) (negbTE mq). Qed.

Lemma round_scan (y : draws_of_me l' X T n draws) :
  gets y = pay (size evs) slot (@counts.B n T X lo) rew y.
Proof.
set co := coins order lot me others y.
have [W Q] := loop_scan threshold fresh co n_gt0 tests_gt0 t.
pose rr q := pays (y (inord (draw order q))).2 (pull q).
have := own_pays rr true (events t) (@cnt_other y); rewrite W mul1r => E.
transitivity (first_pay [seq ((e.1.2 <= cnt n co e.1.1)%N, (nat_of_bool e.2)%:R * rr e.1.1) | e <- evs]).
  by rewrite /evs E /gets /serve -/co Q.
rewrite (first_pay_sum (false, 0)) size_map; apply: eq_bigr => k _.
have evk (i : nat) : (i < size evs)%N ->
    nth (false, 0) [seq ((e.1.2 <= cnt n co e.1.1)%N, (nat_of_bool e.2)%:R * rr e.1.1) | e <- evs] i
    = (((y (slot i)).2 \in @counts.B n T X lo i), rew i (y (slot i)).2).
  by move=> iK; rewrite (nth_map ((0, 0), false)%N) // inE -cnt_mine ?mine_ev.
rewrite evk //= /occurs; congr (if _ && _ then _ else _); apply: eq_forallb => i.
by rewrite evk // (ltn_trans (ltn_ord i)).
Qed.

(* In a round of its own test a slot is served whatever it scores. *)
Lemma test_event k : (k < size evs)%N -> pull (ev k).1.1 != None -> D slot (@counts.B n T X lo) k = setT.
Proof.
move=> kK; rewrite /pull; case: ifP => // /andP [tn /eqP q] _.
have [c once_] := sl_once threshold lot n_gt0 order_uniq me_in (introT orP (or_introl tn) : _ || fresh).
have slk i : (i <= k)%N -> slot i = i :> nat.
  move=> ik; rewrite slotE ?(leq_ltn_trans ik) // once_ nth_iota //.
  by apply: leq_ltn_trans ik _; move: kK; rewrite -(size_map (fun e => draw order e.1.1)) -sl_own once_ size_iota.
have lo0 : lo k = 0%N.
  have : (ev k).1 \in [seq e.1 | e <- evs] by apply: map_f; apply: mem_nth.
  rewrite own_events mem_filter /events tn mem_cat inE /lo => /andP [_ /orP [/mapP [q']|/eqP -> //]].
  by rewrite mem_iota add0n => /andP [_ q't] E; move: q; rewrite E /= => q; rewrite q ltnn in q't.
apply/setP => x; rewrite !inE lo0 /=; apply/forallP => i; apply/implyP => /eqP H.
by have := ltn_ord i; rewrite -(slk _ (ltnW (ltn_ord i))) H slk // ltnn.
Qed.

Variable law : 'I_l -> X -> R.
Hypothesis laws : forall a, is_law (law a).
Lemma law0 a x : 0 <= law a x. Proof. by have [] := laws a. Qed.
Lemma law1 a : \sum_x law a x = 1. Proof. by have [] := laws a. Qed.
Notation v := (v rho law).
Notation P := (@P R l' n T X rho law).
Notation BB := (@counts.B n T X lo).
Variable u : 'I_l -> R.
Hypothesis u_later : forall a, \sum_(h : {ffun 'I_T -> X}) (\prod_i law a (h i)) * later h = u a.
Hypothesis u_test : (t < tests * n)%N -> u =1 v.
Hypothesis u_up : forall a b, v a <= v b -> u a <= u b.
Hypothesis u_ge0 : forall a, 0 <= u a.

Lemma round_fair k a : (k < size evs)%N ->
  \sum_(x in D slot BB k) P a x * rew k x = p P slot BB k a * (worth k * u a).
Proof.
move=> kK; under eq_bigr => x _ do rewrite /rew mulrCA.
rewrite -mulr_sumr mulrCA; congr (_ * _).
case E : (pull (ev k).1.1) => [i|].
  have DT : D slot BB k = setT by apply: test_event; rewrite ?E.
  have [tn iE] : (t < tests * n)%N /\ i = (t %% n)%N by move: E; rewrite /pull; case: ifP => // /andP [tn _] [].
  have ni : (i < n)%N by rewrite iE ltn_mod.
  rewrite /p DT /pr; under eq_bigl => x do rewrite inE.
  rewrite (eq_bigr (fun x : S => P a x * rho (x.1 (Ordinal ni)).1)); last by move=> x _; rewrite /pays insubT.
  under [X in _ = X * _]eq_bigl => x do rewrite inE.
  by rewrite (test_mean T rho (law1 a)) (slot_law1 n T rho (law1 a)) mul1r u_test.
have DE (f : S -> R) : \sum_(x in D slot BB k) f x = \sum_(x : S | Dn slot lo k (ones x)) f x.
  by apply: eq_bigl => x; rewrite D_count.
by rewrite /p /pr !DE /= -(u_later a) (slot_law_split n rho (law1 a)).
Qed.

Lemma worth_down i k : (i <= k < size evs)%N -> worth k <= worth i.
Proof.
case/andP; rewrite leq_eqVlt => /orP [/eqP -> //|ik kK].
have /andP [/(pairwiseP ((0, 0), false)%N) H _] := own_falls draws order lot me oc true (events t).
have := H i k; rewrite !inE => /(_ (ltn_trans ik kK) kK ik) /implyP Hik.
by rewrite /worth ler_nat; apply: leq_imp.
Qed.

Lemma lo_down i k : (i <= k < size evs)%N -> (lo k <= lo i)%N.
Proof.
case/andP; rewrite leq_eqVlt => /orP [/eqP -> //|ik kK].
have /(pairwiseP ((0, 0), false)%N) H := own_levels n draws threshold fresh order lot me oc true t.
by have := H i k; rewrite !inE => /(_ (ltn_trans ik kK) kK ik).
Qed.

Lemma slots_turn i j k : (i < j < k)%N -> (k < size evs)%N -> slot i = slot j ->
  exists2 e : nat, (i <= e < k)%N & slot e = slot k.
Proof.
move=> ijk kK H; have /andP [ij jk] := ijk; have jK := ltn_trans jk kK.
have kS : (k < size (sl draws order lot me (events t)))%N by rewrite (sl_own draws order lot me oc true) size_map.
have [|e /andP [ie ek] E] := turns n_gt0 order_uniq me_in ijk kS.
  by rewrite -!slotE ?(ltn_trans ij) // H.
by exists e; rewrite ?ie //; apply: val_inj; rewrite /= !slotE // (ltn_trans ek).
Qed.

Definition round_value := value (size evs) rho law slot lo rew.

Lemma round_value_scan w : (forall a, 0 <= w a) -> \sum_a w a = 1 ->
  (\sum_(g : 'S_l) round_value (moved w g)) / (l`!)%:R <= round_value (@unif R l').
Proof.
apply: (levels_scan rho01 law0 law1 round_fair) => //.
- by move=> k _; rewrite ler0n.
- exact: worth_down.
- exact: lo_down.
- exact: slots_turn.
Qed.

Lemma round_value_alone w b : (forall a, 0 <= w a) -> \sum_a w a = 1 -> (forall a, v a <= v b) ->
  round_value w <= round_value (fun a => (a == b)%:R).
Proof.
move=> w0 w1 vb; apply: (levels_best_alone rho01 law0 law1 round_fair) => //.
- by move=> k _; rewrite ler0n.
- exact: worth_down.
Qed.
End Round.

Arguments round_value_scan {R l' X rho T n draws threshold fresh order lot me others}.
Arguments round_value_alone {R l' X rho T n draws threshold fresh order lot me others}.

(* ---------- the theorem ---------- *)
Lemma weight_ge0 (R : realFieldType) l' (c : 'I_l'.+1 -> nat) a : 0 <= weight R c a.
Proof. by rewrite divr_ge0 ?ler0n. Qed.

Lemma weight1 (R : realFieldType) l' (c : 'I_l'.+1 -> nat) : (exists a, c a != 0%N) -> \sum_a weight R c a = 1.
Proof.
case=> a ca; rewrite -mulr_suml -natr_sum divff // pnatr_eq0 sum_nat_eq0.
by apply/negP => /forallP /(_ a); rewrite (negbTE ca).
Qed.

Lemma weight_once (R : realFieldType) l' : weight R (@once l') =1 @unif R l'.
Proof. by move=> a; rewrite /weight /once sum1_card card_ord mul1r. Qed.

Lemma weight_alone (R : realFieldType) l' (b : 'I_l'.+1) : weight R (alone b) =1 (fun a => (a == b)%:R).
Proof.
move=> a; rewrite /weight /alone (bigD1 b) //= eqxx big1 => [|c /negbTE -> //].
by rewrite addn0 divr1.
Qed.

Section CloneProof.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R) (T : nat).
Variables (n draws threshold : nat) (fresh : bool) (order : seq nat) (lot me : nat) (others : nat -> nat -> bool).
Notation l := l'.+1.
Hypothesis rewards : forall x, 0 <= rho x <= 1.
Hypothesis n_gt0 : (0 < n)%N.
Hypothesis draws_gt0 : (0 < draws)%N.
Hypothesis order_uniq : uniq order.
Hypothesis me_in : me \in order.
Variable law : 'I_l -> X -> R.
Hypothesis laws : forall a, is_law (law a).
Notation round_pay := (@round_pay R l' X rho T n draws threshold fresh order lot me others).
Notation expected_pay := (@expected_pay R l' X rho T n draws threshold fresh order lot me others).

Notation round_value := (@round_value R l' X rho T n draws threshold fresh order lot me others).
Notation gets := (@gets R l' X rho T n draws threshold fresh order lot me others).

(* Round t, where a slot that was awarded is worth u, and u does not fall with the mean. *)
Section Worth.
Variables (t : nat) (later : {ffun 'I_T -> X} -> R) (u : 'I_l -> R).
Hypothesis u_later : forall a, \sum_(h : {ffun 'I_T -> X}) (\prod_i law a (h i)) * later h = u a.
Hypothesis u_test : (t < tests draws order * n)%N -> u =1 v rho law.
Hypothesis u_up : forall a b, mean rho (law a) <= mean rho (law b) -> u a <= u b.
Hypothesis u_ge0 : forall a, 0 <= u a.
Definition worth_pay law' c : R := \sum_y chance_of rho law' c y * gets t later y.

Lemma worth_pay_value (law' : 'I_l -> X -> R) c : worth_pay law' c = round_value t later law' (weight R c).
Proof. by apply: eq_bigr => y _; rewrite -round_scan. Qed.

Lemma worth_pay_moved (g : 'S_l) c : worth_pay (fun a => law (g a)) c =
  round_value t later law (moved (weight R c) (g^-1)%g).
Proof. by rewrite worth_pay_value; apply: F_rename. Qed.

Lemma worth_proof (c : 'I_l -> nat) : (exists a, c a != 0%N) ->
  average (fun law => worth_pay law c) law <= average (fun law => worth_pay law (@once l')) law.
Proof.
move=> c0; rewrite /average.
under eq_bigr => g _ do rewrite worth_pay_moved.
under [X in _ <= X / _]eq_bigr => g _ do rewrite worth_pay_moved.
rewrite (reindex_inj invg_inj) /=; under eq_bigr => g _ do rewrite invgK.
rewrite [X in _ <= X / _](eq_bigr (fun=> round_value t later law (@unif R l'))).
  rewrite sumr_const card_Sn -[X in _ <= X / _]mulr_natr mulfK; last by rewrite pnatr_eq0 -lt0n fact_gt0.
  apply: (round_value_scan rewards n_gt0 order_uniq me_in _ _ _ laws u) => //; first exact: weight_ge0.
  exact: weight1.
by move=> g _; apply: eq_F => a; rewrite /moved weight_once.
Qed.

Lemma worth_alone (c : 'I_l -> nat) (b : 'I_l) : (exists a, c a != 0%N) ->
  (forall a, mean rho (law a) <= mean rho (law b)) -> worth_pay law c <= worth_pay law (alone b).
Proof.
move=> c0 best; rewrite !worth_pay_value [X in _ <= X](eq_F _ _ _ _ _ (weight_alone R b)).
apply: (round_value_alone rewards n_gt0 order_uniq me_in _ _ _ laws u) => //; first exact: weight_ge0.
exact: weight1.
Qed.
End Worth.

Lemma mean_later (t : 'I_T) a : \sum_(h : {ffun 'I_T -> X}) (\prod_i law a (h i)) * rho (h t) = v rho law a.
Proof. by rewrite (marginal _ _ (law1 laws a)). Qed.

Lemma mean_ge0 a : 0 <= v rho law a.
Proof. by have /andP [] := mean01 rewards (law0 laws a) (law1 laws a). Qed.

(* Each round by itself. *)
Theorem clone_proof_round (c : 'I_l -> nat) (t : 'I_T) : (exists a, c a != 0%N) ->
  average (fun law => round_pay law c t) law <= average (fun law => round_pay law (@once l') t) law.
Proof. by apply: (worth_proof (mean_later t)) => // a; apply: mean_ge0. Qed.

Theorem informed_round (c : 'I_l -> nat) (b : 'I_l) (t : 'I_T) : (exists a, c a != 0%N) ->
  (forall a, mean rho (law a) <= mean rho (law b)) -> round_pay law c t <= round_pay law (alone b) t.
Proof. by apply: (worth_alone (mean_later t)) => // a; apply: mean_ge0. Qed.

Lemma expected_payE (law' : 'I_l -> X -> R) c : expected_pay law' c = \sum_t round_pay law' c t.
Proof.
rewrite /expected_pay; under eq_bigr => y _ do rewrite mulr_sumr.
by rewrite exchange_big.
Qed.

(* The theorem: for all copies c that are not all 0, on average over who is who. *)
Theorem clone_proof (c : 'I_l -> nat) : (exists a, c a != 0%N) ->
  average (fun law => expected_pay law c) law <= average (fun law => expected_pay law (@once l')) law.
Proof.
move=> c0; have E c' : average (fun law => expected_pay law c') law =
    \sum_t average (fun law => round_pay law c' t) law.
  rewrite /average -mulr_suml; congr (_ / _); rewrite [RHS]exchange_big /=.
  by apply: eq_bigr => g _; apply: expected_payE.
by rewrite !E; apply: ler_sum => t _; apply: clone_proof_round.
Qed.

(* An informed agent does no better than registering its best original alone; no average here. *)
Theorem informed_best_alone (c : 'I_l -> nat) (b : 'I_l) : (exists a, c a != 0%N) ->
  (forall a, mean rho (law a) <= mean rho (law b)) -> expected_pay law c <= expected_pay law (alone b).
Proof.
by move=> c0 best; rewrite !expected_payE; apply: ler_sum => t _; apply: informed_round.
Qed.
End CloneProof.

(* A uniform draw from the registered arms holds original a with chance `weight c a`. *)
Lemma uniform_draw (R : realFieldType) l' (c : 'I_l'.+1 -> nat) a :
  \sum_(arm : {b : 'I_l'.+1 & 'I_(c b)} | tag arm == a) (#|{: {b : 'I_l'.+1 & 'I_(c b)}}|%:R)^-1 = weight R c a.
Proof.
have -> : #|{: {b : 'I_l'.+1 & 'I_(c b)}}| = (\sum_b c b)%N.
  by rewrite card_tagged sumnE big_map big_enum; apply: eq_bigr => b _; rewrite card_ord.
rewrite (eq_bigl (fun arm : {b : 'I_l'.+1 & 'I_(c b)} => (tag arm == a) && true)) => [|arm]; last by rewrite andbT.
rewrite -(sig_big_dep (fun b => b == a) (fun b (j : 'I_(c b)) => true) (fun b j => (\sum_b c b)%:R^-1)) /=.
by rewrite big_pred1_eq sumr_const card_ord -[LHS]mulr_natl.
Qed.
