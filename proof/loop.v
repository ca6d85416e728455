(* The loop is a scan: the slot served in round t is that of the first event of a list that occurs. *)
From mathcomp Require Import all_ssreflect.
From Cloneproof Require Import serve.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Loop.
Variables (n draws threshold : nat) (fresh : bool) (order : seq nat) (lot : nat) (coin : nat -> nat -> bool).
Notation tests := (tests draws order).
Notation state_at := (state_at n draws threshold fresh order coin).
Notation step := (step n draws threshold fresh order coin).
Hypothesis n_gt0 : 0 < n.
Hypothesis tests_gt0 : 0 < tests.

Definition part q i := \sum_(j < i) coin q j.
Definition cnt q := part q n.
Fixpoint best q := if q is q'.+1 then (let b := best q' in if b.2 < cnt q' then (q', cnt q') else b) else (0, 0).

Lemma state_atS t : state_at t.+1 = step (state_at t). Proof. by []. Qed.

Lemma award_stays t t' q : state_at t = Award q -> t <= t' -> state_at t' = Award q.
Proof. by move=> H /subnK <-; elim: (t' - t) => // k; rewrite addSn state_atS => ->. Qed.

Lemma partS q i : part q i.+1 = part q i + coin q i.
Proof. by rewrite /part big_ord_recr. Qed.

Lemma within q i : i < n -> state_at (q * n) = Testing q 0 0 (best q) ->
  state_at (q * n + i) = Testing q i (part q i) (best q).
Proof.
move=> + H; elim: i => [|i IH] ni; first by rewrite addn0 H /part big_ord0.
by rewrite addnS state_atS IH /= ?ni ?partS // ltnW.
Qed.

Lemma verdict q : state_at (q * n) = Testing q 0 0 (best q) ->
  state_at (q.+1 * n) = if threshold <= cnt q then Award q else
    if q.+1 < tests then Testing q.+1 0 0 (best q.+1) else Award (if fresh then tests else (best q.+1).1).
Proof.
move=> H; have -> : q.+1 * n = (q * n + n.-1).+1 by rewrite -addnS prednK // mulSn addnC.
rewrite state_atS within ?prednK //= prednK // ltnn -partS prednK //.
Qed.

Lemma testing q : q < tests -> (forall q', q' < q -> cnt q' < threshold) ->
  state_at (q * n) = Testing q 0 0 (best q).
Proof.
elim: q => // q IH qt H; rewrite verdict; last by apply: IH => [|q' qq]; [exact: ltnW|apply: H; exact: ltnW].
by rewrite leqNgt H //= qt.
Qed.

Lemma bestS q : best q.+1 = if (best q).2 < cnt q then (q, cnt q) else best q. Proof. by []. Qed.

(* The best slot has the highest count, and is the first that has it. *)
Lemma best_spec q : 0 < q -> [/\ (best q).1 < q, cnt (best q).1 = (best q).2,
  forall q', q' < q -> cnt q' <= (best q).2 & forall q', q' < (best q).1 -> cnt q' < (best q).2].
Proof.
case: q => // q _; elim: q => [|q [IH1 IH2 IH3 IH4]]; rewrite bestS.
  case: (ltnP (best 0).2 (cnt 0)) => [c0|]; first by split=> // -[].
  by rewrite leqn0 => /eqP c0; split=> // -[] //; rewrite c0.
case: (ltnP (best q.+1).2 (cnt q.+1)) => H.
  split=> // q'; last by move/IH3 => qb; apply: leq_ltn_trans qb H.
  by rewrite ltnS leq_eqVlt => /orP [/eqP ->//|/IH3 qb]; apply: leq_trans qb (ltnW H).
split=> //; first exact: ltnW.
by move=> q'; rewrite ltnS leq_eqVlt => /orP [/eqP ->//|/IH3].
Qed.

(* Events: (q, y) occurs if slot q has counted at least y. *)
Fixpoint winner (E : seq (nat * nat)) : option nat :=
  if E is (q, y) :: E' then if y <= cnt q then Some q else winner E' else None.

Lemma winner_at E1 q y E2 : (forall e, e \in E1 -> cnt e.1 < e.2) -> y <= cnt q ->
  winner (E1 ++ (q, y) :: E2) = Some q.
Proof.
move=> H yq; elim: E1 H => [|[q' y'] E1 IH] H /=; first by rewrite yq.
have := H (q', y') (mem_head _ _); rewrite ltnNge => /negbTE /= ->; apply: IH => e He.
by apply: H; rewrite in_cons He orbT.
Qed.

Definition row (m y : nat) := [seq (q, y) | q <- iota 0 m].
Lemma row_at m y q : q < m -> row m y = row q y ++ (q, y) :: [seq (q', y) | q' <- iota q.+1 (m - q.+1)].
Proof.
by move=> qm; rewrite /row -{1}(subnKC (ltnW qm)) iotaD map_cat add0n -(subnSK qm).
Qed.

Definition rows := flatten [seq row tests (threshold - e) | e <- iota 0 threshold.+1].
Definition events t :=
  if t < tests * n then row (t %/ n) threshold ++ [:: (t %/ n, 0)]
  else if fresh then row tests threshold ++ [:: (tests, 0)] else rows.

Lemma rows_pass : exists E, rows = row tests threshold ++ E.
Proof. by rewrite /rows /= subn0; eexists. Qed.

Lemma winner_pass m q E : q < m -> threshold <= cnt q -> (forall q', q' < q -> cnt q' < threshold) ->
  winner (row m threshold ++ E) = Some q.
Proof.
move=> qm pq H; rewrite (row_at _ qm) -catA /= winner_at // => e /mapP [q']; rewrite mem_iota add0n => /H qq ->.
exact: qq.
Qed.

Lemma winner_best : (forall q, q < tests -> cnt q < threshold) -> winner rows = Some (best tests).1.
Proof.
move=> H; have [b1 b2 b3 b4] := best_spec tests_gt0; have bt := H _ b1; rewrite b2 in bt.
have -> : rows = flatten [seq row tests (threshold - e) | e <- iota 0 (threshold - (best tests).2)] ++
    row tests (best tests).2 ++ flatten [seq row tests (threshold - e) |
      e <- iota (threshold - (best tests).2).+1 (best tests).2].
  rewrite /rows (_ : threshold.+1 = (threshold - (best tests).2) + (best tests).2.+1).
    by rewrite iotaD map_cat flatten_cat add0n /= (subKn (ltnW bt)).
  by rewrite addnS (subnK (ltnW bt)).
rewrite (row_at _ b1) -catA catA.
apply: winner_at; last by rewrite b2.
move=> e; rewrite mem_cat => /orP [/flattenP [r /mapP [k]]|/mapP [q]]; rewrite mem_iota add0n.
  move=> kb -> /mapP [q]; rewrite mem_iota add0n => /b3 qb -> /=; apply: leq_ltn_trans qb _.
  by rewrite ltn_subRL addnC -ltn_subRL.
by move=> /b4 qb ->.
Qed.

Theorem loop_scan t : winner (events t) = Some (slot_of (state_at t)) /\
  pull_of (state_at t) = if (t < tests * n) && (slot_of (state_at t) == t %/ n) then Some (t %% n) else None.
Proof.
pose m := if t < tests * n then t %/ n else tests.
have mt : m * n <= t by rewrite /m; case: ltnP => // _; apply: leq_trunc_div.
have mT : m <= tests by rewrite /m; case: ifP => // H; apply: ltnW; rewrite ltn_divLR.
have [E EE] : exists E, events t = row m threshold ++ E.
  rewrite /m /events; case: ifP => _; first by eexists.
  by case: fresh; [eexists|exact: rows_pass].
case: (boolP (has (fun q => threshold <= cnt q) (iota 0 m))) => [/hasP [q0]|/hasPn none].
  rewrite mem_iota add0n /= => q0m p0.
  have ex : exists q, threshold <= cnt q by exists q0.
  case: (ex_minnP ex) => q pq qmin; have qm : q < m := leq_ltn_trans (qmin _ p0) q0m.
  have H q' : q' < q -> cnt q' < threshold.
    by rewrite [cnt _ < _]ltnNge => q'q; apply/negP => /qmin; rewrite leqNgt q'q.
  have St : state_at t = Award q.
    apply: (@award_stays (q.+1 * n)); last by apply: leq_trans mt; rewrite leq_mul2r qm orbT.
    by rewrite verdict ?pq // testing // (leq_trans qm).
  rewrite St EE (winner_pass _ qm pq H) /=; split=> //.
  by move: qm; rewrite /m; case: ifP => //= _; rewrite ltn_neqAle => /andP [/negbTE ->].
have H q : q < m -> cnt q < threshold by move=> qm; rewrite ltnNge; apply: none; rewrite mem_iota.
move: EE; rewrite /events; move: mt mT H; rewrite /m; case: ltnP => tn _ _ H _.
  have tq : t %/ n < tests by rewrite ltn_divLR.
  have St : state_at t = Testing (t %/ n) (t %% n) (part (t %/ n) (t %% n)) (best (t %/ n)).
    by rewrite {1}(divn_eq t n) within ?ltn_pmod // testing.
  rewrite St /= eqxx; split=> //.
  by apply: winner_at => // e /mapP [q]; rewrite mem_iota add0n => /H qH ->.
have St : state_at t = Award (if fresh then tests else (best tests).1).
  apply: (award_stays _ tn); have := @verdict tests.-1; rewrite prednK // => ->.
    by rewrite ltnn leqNgt H ?prednK.
  by apply: testing => [|q qt]; rewrite ?prednK // H // (leq_trans qt) // leq_pred.
rewrite St /=; split=> //; case: fresh => /=; last exact: winner_best.
by apply: winner_at => // e /mapP [q]; rewrite mem_iota add0n => /H qH ->.
Qed.
End Loop.
