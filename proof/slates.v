(* Slates: pages of several places with a laboratory. No copies and no withholding pay more than each original once. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve slate scan counts loop own theorem corollaries.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* ---------- the statement ---------- *)
Section Slates.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R) (T : nat).
Notation l := l'.+1.
Variables (n draws : nat) (order turns : seq nat) (places me : nat).
Variable others : nat -> nat -> bool.    (* the coins of the others' slots: any, fixed *)
Variable attention : nat -> R.           (* of place 0, 1, .. *)

(* The laboratory is the last place that is filled. A click there has the chance attention times reward, and counts. *)
Definition lab (x : X) : R := attention (filled order places).-1 * rho x.

(* What the agent's slots hold and show, as in theorem.v; and its turns: a draw and a reward for each page. *)
Definition slots_of_me := draws_of_me l' X T n draws.
Definition turns_of_me := {ffun 'I_T -> 'I_l * X}.
Definition mean_of (y : slots_of_me) (z : turns_of_me) (t : 'I_T) (place : nat) (s : shows) : R :=
  match s with
  | Best q => if tester draws order q == me then attention place * rho ((y (inord (draw order q))).2.2 t) else 0
  | Turn i => if i == me then attention place * rho (z t).2 else 0
  | Trial q i => if tester draws order q == me then
      (if insub i is Some i' then lab ((y (inord (draw order q))).2.1 i').1 else 0) else 0
  end.
Fixpoint sum_places y z t (place : nat) (s : seq shows) : R :=
  if s is x :: s' then mean_of y z t place x + sum_places y z t place.+1 s' else 0.
Definition page_of (y : slots_of_me) := page n draws order turns places (coins order 0 me others y).
Definition page_paid y z (t : 'I_T) : R := sum_places y z t 0 (page_of y t).

Definition slate_chance (law : 'I_l -> X -> R) c (y : slots_of_me) (z : turns_of_me) : R :=
  chance_of lab law c y * \prod_t (weight R c (z t).1 * law (z t).1 (z t).2).
Definition page_pay law c t : R := \sum_y \sum_z slate_chance law c y z * page_paid y z t.
Definition slates_pay law c : R := \sum_y \sum_z slate_chance law c y z * \sum_t page_paid y z t.
(* ---------- the proof ---------- *)

Hypothesis rewards : forall x, 0 <= rho x <= 1.
Hypothesis n_gt0 : (0 < n)%N.
Hypothesis order_uniq : uniq order.
Hypothesis me_in : me \in order.
Hypothesis attention_falls : forall i j, (i <= j)%N -> 0 <= attention j <= attention i.
Hypothesis attention1 : attention 0 <= 1.
Hypothesis seen_in_lab : 0 < attention (filled order places).-1.
Notation tests := (tests draws order).
Notation mine := (mine draws order 0 me).
Notation tester := (tester draws order).
Notation N := (size order).

Lemma lab01 x : 0 <= lab x <= 1.
Proof.
have /andP [r0 r1] := rewards x; have /andP [a0 a1] := attention_falls (leq0n (filled order places).-1).
by rewrite mulr_ge0 //= mulr_ile1 // (le_trans a1).
Qed.

Lemma scoreE coin q : score n coin q = cnt n coin q.
Proof.
rewrite /score /cnt /part -sum1_count big_mkcond /= -[n in iota 0 n]subn0 -/(index_iota 0 n) big_mkord.
by apply: eq_bigr => i _; case: (coin q i).
Qed.

(* Who has a finished test depends on the timetable alone. *)
Section Ranked.
Variable coin : nat -> nat -> bool.
Notation ranked := (ranked n draws order coin).

Lemma mem_ranked seen E i : (i \in [seq tester q | q <- ranked seen E]) =
  (i \notin seen) && has (fun e => (e.2 <= score n coin e.1)%N && (tester e.1 == i)) E.
Proof.
elim: E seen => [|[q y] E IH] seen /=; first by rewrite in_nil andbF.
case: ifP => [/andP [yq qs]|]; rewrite /= ?in_cons IH ?in_cons.
  rewrite yq /= eq_sym; case: eqP => [<-|_] //=; by rewrite qs.
move=> /negbT; rewrite negb_and negbK; case: (y <= _)%N => //= qs.
by case: eqP => //= <-; rewrite qs.
Qed.

Lemma ranked_uniq seen E : uniq [seq tester q | q <- ranked seen E].
Proof.
elim: E seen => //= -[q y] E IH seen; case: ifP => //= _.
by rewrite IH andbT mem_ranked in_cons eqxx.
Qed.

Lemma ranked_levels m : [seq tester q | q <- ranked [::] (levels n m)] =i [seq tester q | q <- iota 0 m].
Proof.
move=> i; rewrite mem_ranked in_nil /=; apply/hasP/mapP => [[[q y]]|[q qm ->]].
  case/flattenP => r /mapP [e _ ->] /mapP [q' qm [-> _]] /andP [_ /eqP <-]; by exists q'.
exists (q, 0%N); last by rewrite /= eqxx.
apply/flattenP; exists [seq (q, 0%N) | q <- iota 0 m]; last exact: map_f.
by apply/mapP; exists n; rewrite ?subnn // mem_iota add0n ltnS leqnn.
Qed.
End Ranked.

Definition done t := undup [seq tester q | q <- iota 0 (finished n draws order t)].

Lemma size_ranking coin t : size (ranking n draws order coin t) = size (done t).
Proof.
rewrite -(size_map tester); apply: perm_size; apply: uniq_perm; rewrite ?undup_uniq ?ranked_uniq // => i.
by rewrite mem_undup ranked_levels.
Qed.

Lemma page_split coin t : page n draws order turns places coin t =
  let others := [seq i <- turns | i \notin done t] in
  let k := front n draws order places t in
  [seq Best q | q <- take k (ranking n draws order coin t)] ++
  [seq Turn i | i <- take (k - minn k (size (done t))) (rot (t %% size others)%N others)] ++
  (if tests_on n draws order t then [:: Trial (t %/ n)%N (t %% n)%N] else [::]).
Proof.
rewrite /page; have -> : [seq i <- turns | i \notin [seq tester q | q <- ranking n draws order coin t]] =
    [seq i <- turns | i \notin done t].
  by apply: eq_filter => i; rewrite /done mem_undup ranked_levels.
by rewrite size_take_min size_ranking.
Qed.
Lemma sum_places_cat y z t r (s s' : seq shows) :
  sum_places y z t r (s ++ s') = sum_places y z t r s + sum_places y z t (r + size s) s'.
Proof.
elim: s r => [|x s IH] r /=; first by rewrite add0r addn0.
by rewrite IH addrA addSnnS.
Qed.

(* Turns are worth a fixed share of the agent's draw. *)
Fixpoint share_of (r : nat) (W : seq nat) : R :=
  if W is i :: W' then (if i == me then attention r else 0) + share_of r.+1 W' else 0.
Lemma turns_pay y z t r W : sum_places y z t r [seq Turn i | i <- W] = share_of r W * rho (z t).2.
Proof.
elim: W r => [|i W IH] r /=; first by rewrite mul0r.
by rewrite IH mulrDl; case: ifP => _; rewrite ?mul0r.
Qed.

(* ---------- places in front are a scan ---------- *)
Section Front.
Variable t : 'I_T.
Notation k0 := (front n draws order places t).
Notation m := (finished n draws order t).
Definition prize (r : nat) : R := if (r < k0)%N then attention r else 0.
Definition oc q := (\sum_(i < n) others q i)%N.

Lemma prize_ge0 r : 0 <= prize r.
Proof. by rewrite /prize; case: ifP => // _; have /andP [] := attention_falls (leqnn r). Qed.
Lemma prize_falls r r' : (r <= r')%N -> prize r' <= prize r.
Proof.
move=> rr; rewrite {1}/prize; case: ifP => [r'k|_]; last exact: prize_ge0.
by rewrite /prize (leq_ltn_trans rr r'k); have /andP [] := attention_falls rr.
Qed.

Fixpoint front_pay (rr : nat -> R) (r : nat) (Q : seq nat) : R :=
  if Q is q :: Q' then (if mine q then prize r * rr q else 0) + front_pay rr r.+1 Q' else 0.

Lemma front_zero rr r Q : (k0 <= r)%N -> front_pay rr r Q = 0.
Proof.
elim: Q r => [|q Q IH] r rk //=; rewrite IH ?(leq_trans rk) // addr0 /prize ltnNge rk /= mul0r.
exact: if_same.
Qed.

Lemma best_pay (y : slots_of_me) z r Q :
  sum_places y z t r [seq Best q | q <- take (k0 - r) Q] =
  front_pay (fun q => rho ((y (inord (draw order q))).2.2 t)) r Q.
Proof.
elim: Q r => [|q Q IH] r //; case: (ltnP r k0) => rk.
  by rewrite -subnSK //= IH /prize rk.
by rewrite front_zero // (_ : k0 - r = 0)%N ?take0 //; apply/eqP; rewrite subn_eq0.
Qed.

(* (q, y, r): an own event, and r: how many others are ahead of it. *)
Fixpoint own seen E : seq (nat * nat * nat) :=
  if E is (q, y) :: E' then
    if mine q then (q, y, size seen) :: own seen E'
    else own (if (y <= oc q)%N && (tester q \notin seen) then tester q :: seen else seen) E'
  else [::].

Lemma own_events seen E : [seq e.1 | e <- own seen E] = [seq e <- E | mine e.1].
Proof. by elim: E seen => //= -[q y] E IH seen; case: ifP => //= _; rewrite IH. Qed.

Lemma own_rises seen E :
  pairwise (fun e f => e.2 <= f.2)%N (own seen E) && all (fun e => size seen <= e.2)%N (own seen E).
Proof.
elim: E seen => //= -[q y] E IH seen; case: ifP => _ /=; first by have /andP [-> ->] := IH seen; rewrite leqnn.
set seen' := if _ then _ else _; have /andP [-> /allP H] := IH seen'.
apply/allP => e /H; apply: leq_trans; rewrite /seen'; by case: ifP => //= _; apply: leqnSn.
Qed.

Lemma nothing_more coin rr r seen E : me \in seen -> front_pay rr r (ranked n draws order coin seen E) = 0.
Proof.
elim: E r seen => [|[q y] E IH] r seen ms //=; case: ifP => [/andP [_ qs]|_]; last exact: IH.
rewrite /= IH ?in_cons ?ms ?orbT // addr0 /mine /slate.tester in qs *.
by case: eqP => // E'; move: qs; rewrite E' ms.
Qed.

Lemma own_pays coin rr seen E : (forall q, ~~ mine q -> cnt n coin q = oc q) -> me \notin seen ->
  front_pay rr (size seen) (ranked n draws order coin seen E) =
  first_pay [seq ((e.1.2 <= cnt n coin e.1.1)%N, prize e.2 * rr e.1.1) | e <- own seen E].
Proof.
move=> H; elim: E seen => [//|[q y] E IH] seen ms /=; rewrite scoreE.
have [mq|mq] := boolP (mine q).
  have -> : tester q = me by apply/eqP.
  rewrite ms andbT /=; case: ifP => yq /=; last exact: IH.
  by rewrite mq nothing_more ?addr0 // in_cons eqxx.
rewrite -(H _ mq); case: ifP => yq /=; last exact: IH.
by rewrite (negbTE mq) add0r -IH // in_cons negb_or ms andbT eq_sym.
Qed.

Definition evs := own [::] (levels n m).
Definition ev := nth ((0, 0), 0)%N evs.
Definition slot k : 'I_draws.+1 := inord (draw order (ev k).1.1).
Definition lo k := (ev k).1.2.
Definition worth k : R := prize (ev k).2.
Definition rew k (x : shown n T X) : R := worth k * rho (x.2 t).

Lemma mine_ev k : (k < size evs)%N -> mine (ev k).1.1.
Proof.
move=> kK; have : (ev k).1 \in [seq e.1 | e <- evs] by apply: map_f; apply: mem_nth.
by rewrite own_events mem_filter => /andP [].
Qed.

Definition front_paid (y : slots_of_me) : R :=
  front_pay (fun q => rho ((y (inord (draw order q))).2.2 t)) 0 (ranking n draws order (coins order 0 me others y) t).

Lemma front_scan (y : slots_of_me) : front_paid y = pay (size evs) slot (@counts.B n T X lo) rew y.
Proof.
set co := coins order 0 me others y.
pose rr q := rho ((y (inord (draw order q))).2.2 t).
have := @own_pays co rr [::] (levels n m) (fun q mq => cnt_other others y mq) isT => E.
rewrite /front_paid /ranking E (first_pay_sum (false, 0)) size_map; apply: eq_bigr => k _.
have evk (i : nat) : (i < size evs)%N ->
    nth (false, 0) [seq ((e.1.2 <= cnt n co e.1.1)%N, prize e.2 * rr e.1.1) | e <- evs] i
    = (((y (slot i)).2 \in @counts.B n T X lo i), rew i (y (slot i)).2).
  by move=> iK; rewrite (nth_map ((0, 0), 0)%N) // inE -(cnt_mine others y (mine_ev iK)).
rewrite evk //= /occurs; congr (if _ && _ then _ else _); apply: eq_forallb => i.
by rewrite evk // (ltn_trans (ltn_ord i)).
Qed.

Lemma finished_le : (m <= tests)%N. Proof. exact: geq_minr. Qed.

Definition own_draws_done := (m %/ N + (index me order < m %% N))%N.
Lemma slots_in_turn : [seq draw order e.1.1 | e <- evs] = flatten (nseq n.+1 (iota 0 own_draws_done)).
Proof.
rewrite (map_comp (fun e => draw order e.1) fst) own_events /levels.
rewrite -{2}(size_iota 0 n.+1); elim: (iota 0 n.+1) => [//|e s IH] /=.
rewrite filter_cat map_cat IH; congr (_ ++ _).
rewrite filter_map -map_comp -(my_draws 0 order_uniq me_in finished_le).
by apply: eq_map.
Qed.

Lemma slotE k : (k < size evs)%N -> slot k = nth 0%N (flatten (nseq n.+1 (iota 0 own_draws_done))) k :> nat.
Proof.
move=> kK; rewrite -slots_in_turn (nth_map ((0, 0), 0)%N) // /slot inordK // ltnS.
have : (ev k).1 \in [seq e.1 | e <- evs] by apply: map_f; apply: mem_nth.
rewrite own_events mem_filter => /andP [_ /flattenP [r /mapP [e _ ->] /mapP [q]]].
rewrite mem_iota add0n => /andP [_ qm] -> /=; apply: ltnW; rewrite /draw ltn_divLR ?(N_gt0 me_in) //.
by rewrite mulnC; apply: leq_trans qm finished_le.
Qed.

Lemma slots_turn i j k : (i < j < k)%N -> (k < size evs)%N -> slot i = slot j ->
  exists2 e : nat, (i <= e < k)%N & slot e = slot k.
Proof.
case/andP=> ij jk kK; have jK := ltn_trans jk kK; have iK := ltn_trans ij jK.
have size_evs : size evs = (n.+1 * own_draws_done)%N.
  by rewrite -(size_map (fun e => draw order e.1.1)) slots_in_turn size_turns.
move=> /(congr1 val); rewrite /= !slotE // !nth_turns -?size_evs // => H.
have d0 : (0 < own_draws_done)%N by move: kK; rewrite size_evs; case: own_draws_done => //; rewrite muln0.
have id : (i + own_draws_done <= j)%N.
  have : (i = j %[mod own_draws_done])%N by []; move/eqP; rewrite eq_sym eqn_mod_dvd ?(ltnW ij) // => /dvdn_leq.
  by rewrite subn_gt0 ij leq_subRL ?(ltnW ij) //; apply.
have dk : (own_draws_done <= k)%N by apply: leq_trans (ltnW jk); apply: leq_trans id; apply: leq_addl.
have ek : (k - own_draws_done < k)%N by rewrite ltn_subrL d0 (leq_trans d0).
exists (k - own_draws_done)%N.
  by rewrite ek leq_subRL // [(own_draws_done + i)%N]addnC (leq_trans id (ltnW jk)).
apply: val_inj; rewrite /= !slotE ?(ltn_trans ek) // !nth_turns -?size_evs ?(ltn_trans ek) //.
by rewrite -[in RHS](subnKC dk) modnDl.
Qed.

Lemma levels_fall (p : nat) : pairwise (fun e f => f.2 <= e.2)%N (levels n p).
Proof.
have -> : levels n p = flatten [seq row p (n - e) | e <- iota 0 n.+1] by [].
elim: n.+1 0%N => [//|M IH] k; rewrite [iota _ _]/= [flatten _]/= pairwise_cat row_falls IH !andbT.
apply/allrelP => e f /row_level -> /flattenP [r /mapP [k']]; rewrite mem_iota => /andP [kk _] -> /row_level ->.
by apply: leq_sub2l; apply: ltnW.
Qed.

Lemma lo_down i k : (i <= k < size evs)%N -> (lo k <= lo i)%N.
Proof.
case/andP; rewrite leq_eqVlt => /orP [/eqP -> //|ik kK].
have : pairwise (fun e f : nat * nat * nat => f.1.2 <= e.1.2)%N evs.
  rewrite -(pairwise_map fst (fun e f => f.2 <= e.2)%N) own_events.
  exact: subseq_pairwise (filter_subseq _ _) (levels_fall m).
move=> /(pairwiseP ((0, 0), 0)%N) H; by have := H i k; rewrite !inE => /(_ (ltn_trans ik kK) kK ik).
Qed.

Lemma worth_down i k : (i <= k < size evs)%N -> worth k <= worth i.
Proof.
case/andP; rewrite leq_eqVlt => /orP [/eqP -> //|ik kK].
have /andP [/(pairwiseP ((0, 0), 0)%N) H _] := own_rises [::] (levels n m).
by apply: prize_falls; have := H i k; rewrite !inE => /(_ (ltn_trans ik kK) kK ik).
Qed.

Variable law : 'I_l -> X -> R.
Hypothesis laws : forall a, is_law (law a).
Notation BB := (@counts.B n T X lo).
Notation P := (@counts.P R l' n T X lab law).

Lemma front_fair k a : (k < size evs)%N ->
  \sum_(x in D slot BB k) P a x * rew k x = p P slot BB k a * (worth k * mean rho (law a)).
Proof.
move=> kK; under eq_bigr => x _ do rewrite /rew mulrCA.
rewrite -mulr_sumr mulrCA; congr (_ * _).
have DE (f : shown n T X -> R) : \sum_(x in D slot BB k) f x = \sum_(x : shown n T X | Dn slot lo k (ones x)) f x.
  by apply: eq_bigl => x; rewrite D_count.
by rewrite /p /pr !DE /= (slot_law_split n lab (law1 laws a) _ (fun h => rho (h t))) (marginal _ _ (law1 laws a)).
Qed.

Lemma lab_mean a : mean lab (law a) = attention (filled order places).-1 * mean rho (law a).
Proof. by rewrite /mean mulr_sumr; apply: eq_bigr => x _; rewrite mulrCA. Qed.

Definition front_value := value (size evs) lab law slot lo rew.
Lemma front_value_scan w : (forall a, 0 <= w a) -> \sum_a w a = 1 ->
  (\sum_(g : 'S_l) front_value (moved w g)) / (l`!)%:R <= front_value (@unif R l').
Proof.
apply: (levels_scan lab01 (law0 laws) (law1 laws) front_fair).
- by move=> a b; rewrite /v !lab_mean ler_pmul2l.
- by move=> a; have /andP [] := mean01 rewards (law0 laws a) (law1 laws a).
- by move=> k _; apply: prize_ge0.
- exact: worth_down.
- exact: lo_down.
- exact: slots_turn.
Qed.
End Front.

(* ---------- tests and turns are neutral ---------- *)
Lemma neutral (f : (X -> R) -> R) law c : (exists a, c a != 0%N) ->
  average (fun law : 'I_l -> X -> R => \sum_a weight R c a * f (law a)) law =
  average (fun law => \sum_a weight R (@once l') a * f (law a)) law.
Proof.
have E c' : (exists a, c' a != 0%N) ->
    average (fun law : 'I_l -> X -> R => \sum_a weight R c' a * f (law a)) law =
    (\sum_(g : 'S_l) f (law (g ord0))) / (l`!)%:R.
  move=> c0; rewrite /average; congr (_ / _); rewrite exchange_big /=.
  rewrite -[RHS]mul1r -(weight1 R c0) mulr_suml; apply: eq_bigr => a _; rewrite -mulr_sumr; congr (_ * _).
  rewrite (reindex_inj (mulgI (tperm a ord0))) /=; apply: eq_bigr => g _.
  by rewrite permM tpermL.
by move=> c0; rewrite (E c c0) (E _ (once0 l')).
Qed.

Definition turn_share (t : nat) : R :=
  let left := [seq i <- turns | i \notin done t] in
  let k := front n draws order places t in
  share_of (minn k (size (done t))) (take (k - minn k (size (done t))) (rot (t %% size left)%N left)).
Definition test_paid (y : slots_of_me) (t : nat) : R :=
  if tests_on n draws order t && (tester (t %/ n)%N == me) then
    (if insub (t %% n)%N is Some i then lab ((y (inord (draw order (t %/ n)%N))).2.1 i).1 else 0) else 0.

Lemma page_paidE y z (t : 'I_T) : page_paid y z t = front_paid t y + turn_share t * rho (z t).2 + test_paid y t.
Proof.
rewrite /page_paid /page_of page_split /= !sum_places_cat turns_pay size_map size_take_min size_ranking add0n addrA.
rewrite -[X in take X _]subn0 best_pay -/(front_paid t y) -/(turn_share t); congr (_ + _ + _).
by rewrite /test_paid; case: (tests_on _ _ _ _) => //=; rewrite addr0.
Qed.

Section Pay.
Variable law : 'I_l -> X -> R.
Hypothesis laws : forall a, is_law (law a).
Variable c : 'I_l -> nat.
Hypothesis c0 : exists a, c a != 0%N.

Lemma turn_law1 : \sum_(e : 'I_l * X) weight R c e.1 * law e.1 e.2 = 1.
Proof.
rewrite -(pair_bigA _ (fun a x => weight R c a * law a x)) /= -[RHS](weight1 R c0); apply: eq_bigr => a _.
by rewrite -mulr_sumr (law1 laws a) mulr1.
Qed.

Lemma turn_mean (t : 'I_T) : \sum_(z : turns_of_me) (\prod_t (weight R c (z t).1 * law (z t).1 (z t).2)) * rho (z t).2 =
  \sum_a weight R c a * mean rho (law a).
Proof.
rewrite (marginal (fun e : 'I_l * X => rho e.2) t turn_law1).
rewrite -(pair_bigA _ (fun a x => weight R c a * law a x * rho x)) /=; apply: eq_bigr => a _.
by rewrite /mean mulr_sumr; apply: eq_bigr => x _; rewrite mulrA.
Qed.

Lemma slot_marginal (j : 'I_draws.+1) (f : shown n T X -> R) :
  \sum_(y : slots_of_me) chance_of lab law c y * f (y j).2 =
  \sum_a weight R c a * \sum_x slot_law lab (law a) x * f x.
Proof.
have q1 : \sum_(e : 'I_l * shown n T X) weight R c e.1 * slot_law lab (law e.1) e.2 = 1.
  rewrite -(pair_bigA _ (fun a x => weight R c a * slot_law lab (law a) x)) /= -[RHS](weight1 R c0).
  by apply: eq_bigr => a _; rewrite -mulr_sumr (slot_law1 n T lab (law1 laws a)) mulr1.
rewrite (marginal (fun e : 'I_l * shown n T X => f e.2) j q1).
rewrite -(pair_bigA _ (fun a x => weight R c a * slot_law lab (law a) x * f x)) /=; apply: eq_bigr => a _.
by rewrite mulr_sumr; apply: eq_bigr => x _; rewrite mulrA.
Qed.

Definition test_share (t : nat) : R := (tests_on n draws order t && (tester (t %/ n)%N == me))%:R.
Lemma test_mean_pay (t : nat) : \sum_(y : slots_of_me) chance_of lab law c y * test_paid y t =
  test_share t * \sum_a weight R c a * mean lab (law a).
Proof.
rewrite /test_share /test_paid; case: (_ && _); last by rewrite mul0r big1 // => y _; rewrite mulr0.
have nt : (t %% n < n)%N by rewrite ltn_mod.
rewrite insubT mul1r (slot_marginal _ (fun x => lab (x.1 (Ordinal nt)).1)); apply: eq_bigr => a _.
by rewrite (test_mean T lab (law1 laws a)).
Qed.

Lemma page_payE (t : 'I_T) : page_pay law c t =
  (\sum_(y : slots_of_me) chance_of lab law c y * front_paid t y) +
  turn_share t * (\sum_a weight R c a * mean rho (law a)) + test_share t * \sum_a weight R c a * mean lab (law a).
Proof.
rewrite /page_pay /slate_chance.
pose cz (z : turns_of_me) := \prod_t (weight R c (z t).1 * law (z t).1 (z t).2).
have cz1 : \sum_z cz z = 1 by rewrite (product1 T turn_law1).
transitivity (\sum_y chance_of lab law c y * (front_paid t y + turn_share t *
    (\sum_a weight R c a * mean rho (law a)) + test_paid y t)).
  apply: eq_bigr => y _; under eq_bigr => z _ do rewrite -/(cz z) page_paidE -mulrA.
  rewrite -mulr_sumr; congr (_ * _); rewrite -(turn_mean t) -/(cz _).
  under eq_bigr => z _ do rewrite !mulrDr mulrCA.
  by rewrite !big_split /= -!mulr_suml cz1 !mul1r -mulr_sumr.
under eq_bigr => y _ do rewrite !mulrDr.
by rewrite !big_split /= test_mean_pay -mulr_suml chance1 // mul1r.
Qed.
End Pay.

(* ---------- the theorem ---------- *)
Variable law : 'I_l -> X -> R.
Hypothesis laws : forall a, is_law (law a).
Variable c : 'I_l -> nat.
Hypothesis c0 : exists a, c a != 0%N.

Lemma front_proof (t : 'I_T) :
  average (fun law => \sum_(y : slots_of_me) chance_of lab law c y * front_paid t y) law <=
  average (fun law => \sum_(y : slots_of_me) chance_of lab law (@once l') y * front_paid t y) law.
Proof.
have E (g : 'S_l) c' : \sum_(y : slots_of_me) chance_of lab (fun a => law (g a)) c' y * front_paid t y =
    front_value t law (moved (weight R c') (g^-1)%g).
  transitivity (front_value t (fun a => law (g a)) (weight R c')); last exact: F_rename.
  by apply: eq_bigr => y _; rewrite front_scan.
rewrite /average; under eq_bigr => g _ do rewrite E.
under [X in _ <= X / _]eq_bigr => g _ do rewrite E.
rewrite (reindex_inj invg_inj) /=; under eq_bigr => g _ do rewrite invgK.
rewrite [X in _ <= X / _](eq_bigr (fun=> front_value t law (@unif R l'))).
  rewrite sumr_const card_Sn -[X in _ <= X / _]mulr_natr mulfK; last by rewrite pnatr_eq0 -lt0n fact_gt0.
  by apply: front_value_scan => //; [exact: weight_ge0|exact: weight1].
by move=> g _; apply: eq_F => a; rewrite /moved weight_once.
Qed.

(* Each page by itself, hence every horizon. *)
Theorem clone_proof_page (t : 'I_T) :
  average (fun law => page_pay law c t) law <= average (fun law => page_pay law (@once l') t) law.
Proof.
have E c' : (exists a, c' a != 0%N) -> average (fun law => page_pay law c' t) law =
    average (fun law => \sum_(y : slots_of_me) chance_of lab law c' y * front_paid t y) law +
    turn_share t * average (fun law => \sum_a weight R c' a * mean rho (law a)) law +
    test_share t * average (fun law => \sum_a weight R c' a * mean lab (law a)) law.
  move=> c0'; rewrite -!average_scale -!average_add /average; congr (_ / _); apply: eq_bigr => g _.
  by rewrite page_payE // => a; apply: laws.
rewrite (E c c0) (E _ (once0 l')) (neutral (mean rho) law c0) (neutral (mean lab) law c0) !ler_add2r.
exact: front_proof.
Qed.

Theorem clone_proof_slates :
  average (fun law => slates_pay law c) law <= average (fun law => slates_pay law (@once l')) law.
Proof.
have E c' : average (fun law => slates_pay law c') law = \sum_t average (fun law => page_pay law c' t) law.
  rewrite -average_sum /average; congr (_ / _); apply: eq_bigr => g _; rewrite /slates_pay /page_pay.
  rewrite [RHS]exchange_big; apply: eq_bigr => y _; rewrite [RHS]exchange_big; apply: eq_bigr => z _.
  exact: mulr_sumr.
by rewrite !E; apply: ler_sum => t _; apply: clone_proof_page.
Qed.
End Slates.
