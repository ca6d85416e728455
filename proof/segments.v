(* Segments: a reservoir for each kind of user, one list for all of them. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve scan levels counts theorem corollaries.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ---------- the statement ---------- *)
Section Segments.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R) (me : nat).
Notation l := l'.+1.
Variable Seg : finType.                  (* the segments *)
Variable arrivals : nat -> Seg.          (* the user of round i = 0, 1, .. is of this segment: any, fixed *)
Variable T : nat.                        (* the horizon, over all segments *)
Variable worth : Seg -> R.               (* what a reward of 1 is worth in each segment *)

(* The reservoir of each segment, with numbers, an order and others of its own. *)
Variables (n draws threshold : Seg -> nat) (fresh : Seg -> bool) (order : Seg -> seq nat) (lot : Seg -> nat).
Variable others : Seg -> nat -> nat -> bool.

Definition before (x : Seg) (i : nat) : nat := \sum_(j < i) (arrivals j == x).
Definition rounds x := before x T.       (* the horizon of segment x *)
Definition draws_in x := draws_of_me l' X (rounds x) (n x) (draws x).

(* The law of the rewards of original a in segment x is `rates a (x, _)`: it may be any other in another segment. *)
Definition law_in (rates : 'I_l -> Seg * X -> R) (x : Seg) (a : 'I_l) : X -> R := fun r => rates a (x, r).
Definition chance_in x rates c (y : draws_in x) : R := chance_of rho (law_in rates x) c y.

(* An outcome shows what the draws of each segment hold and show. The draws of different segments may be the same, or
   independent, or linked in any other way, and so may their rewards; in each segment by itself they have their law. *)
Variables (Outcome : finType) (shows : forall x, Outcome -> draws_in x).
Variable chance : ('I_l -> Seg * X -> R) -> ('I_l -> nat) -> Outcome -> R.
Definition has_its_law := forall rates c x (y : draws_in x), (forall x a, is_law (law_in rates x a)) ->
  (exists a, c a != 0%N) -> \sum_(o | shows x o == y) chance rates c o = chance_in rates c y.

(* Round k = 0, 1, .. of segment x; and round i of all, which is the next one of the segment of its user. *)
Definition paid_in x (o : Outcome) (k : nat) : R :=
  if insub k is Some t then paid rho (threshold x) (fresh x) (order x) (lot x) me (others x) (shows x o) t else 0.
Definition paid_at (o : Outcome) (i : nat) : R :=
  let x := arrivals i in worth x * paid_in x o (before x i).

Definition segment_pay x rates c : R := \sum_o chance rates c o * \sum_(k < rounds x) paid_in x o k.
Definition segments_pay rates c : R := \sum_o chance rates c o * \sum_(i < T) paid_at o i.
(* ---------- the proof ---------- *)

Hypothesis rewards : forall x, 0 <= rho x <= 1.
Hypothesis worth0 : forall x, 0 <= worth x.
Hypothesis n_gt0 : forall x, (0 < n x)%N.
Hypothesis draws_gt0 : forall x, (0 < draws x)%N.
Hypothesis order_uniq : forall x, uniq (order x).
Hypothesis me_in : forall x, me \in order x.
Hypothesis linked : has_its_law.

Lemma by_segment (f : Seg -> nat -> R) (N : nat) :
  \sum_(i < N) f (arrivals i) (before (arrivals i) i) = \sum_x \sum_(k < before x N) f x k.
Proof.
elim: N => [|N IH].
  by rewrite big_ord0 big1 // => x _; rewrite /before big_ord0 big_ord0.
have beforeS x : before x N.+1 = (before x N + (arrivals N == x))%N by rewrite /before big_ord_recr.
rewrite big_ord_recr /= IH [RHS](bigD1 (arrivals N)) //= [in LHS](bigD1 (arrivals N)) //= addrAC.
rewrite beforeS eqxx addn1 big_ord_recr /=; congr (_ + _).
by apply: eq_bigr => x /negbTE nx; rewrite beforeS eq_sym nx addn0.
Qed.

Lemma segment_payE x rates c : (forall x a, is_law (law_in rates x a)) -> (exists a, c a != 0%N) ->
  segment_pay x rates c =
  expected_pay rho (rounds x) (n x) (draws x) (threshold x) (fresh x) (order x) (lot x) me (others x)
    (law_in rates x) c.
Proof.
move=> laws c0; rewrite /segment_pay /expected_pay (partition_big (shows x) predT) //=; apply: eq_bigr => y _.
rewrite -/(chance_in rates c y) -(linked _ laws c0) mulr_suml; apply: eq_bigr => o /eqP shown_y; congr (_ * _).
by apply: eq_bigr => t _; rewrite /paid_in valK shown_y.
Qed.

Lemma segments_payE rates c : segments_pay rates c = \sum_x worth x * segment_pay x rates c.
Proof.
rewrite /segments_pay; under eq_bigr => o _ do rewrite (by_segment (fun x k => worth x * paid_in x o k)) mulr_sumr.
rewrite exchange_big; apply: eq_bigr => x _; rewrite /segment_pay mulr_sumr; apply: eq_bigr => o _.
by rewrite -mulr_sumr mulrCA.
Qed.

Variable rates : 'I_l -> Seg * X -> R.
Hypothesis laws : forall x a, is_law (law_in rates x a).
Variable c : 'I_l -> nat.
Hypothesis c0 : exists a, c a != 0%N.

(* In every segment. *)
Theorem clone_proof_segment x :
  average (fun rates => segment_pay x rates c) rates <= average (fun rates => segment_pay x rates (@once l')) rates.
Proof.
have E c' : (exists a, c' a != 0%N) -> average (fun rates => segment_pay x rates c') rates = average (fun law =>
    expected_pay rho (rounds x) (n x) (draws x) (threshold x) (fresh x) (order x) (lot x) me (others x) law c')
    (law_in rates x).
  by move=> c0'; rewrite /average; congr (_ / _); apply: eq_bigr => g _; rewrite segment_payE // => z a; apply: laws.
rewrite (E c c0) (E (@once l') (once0 l')); exact: clone_proof.
Qed.

(* And in total, whoever arrives when. *)
Theorem clone_proof_segments :
  average (fun rates => segments_pay rates c) rates <= average (fun rates => segments_pay rates (@once l')) rates.
Proof.
have E c' : average (fun rates => segments_pay rates c') rates =
    \sum_x worth x * average (fun rates => segment_pay x rates c') rates.
  under eq_bigr => x _ do rewrite -average_scale.
  by rewrite -average_sum /average; congr (_ / _); apply: eq_bigr => g _; apply: segments_payE.
by rewrite !E; apply: ler_sum => x _; apply: ler_wpmul2l => //; apply: clone_proof_segment.
Qed.
End Segments.

(* ---------- draws that are shared, and draws that are not ---------- *)
Lemma sum_dffun (R : comRingType) (I : finType) (Y : I -> finType) (f : forall x, Y x -> R) :
  \sum_(z : {dffun forall x, Y x}) \prod_x f x (z x) = \prod_x \sum_(y : Y x) f x y.
Proof.
pose of_tag (e : {x : I & Y x}) := f (tag e) (tagged e).
transitivity (\prod_x \sum_(e : {x : I & Y x} | tag e == x) of_tag e); last first.
  apply: eq_bigr => x _; rewrite (eq_bigl (fun e => (tag e == x) && true)) => [|e]; last by rewrite andbT.
  by rewrite -(sig_big_dep (fun x' => x' == x) (fun _ _ => true) f) big_pred1_eq.
rewrite bigA_distr_big_dep /=.
pose to (z : {dffun forall x, Y x}) : {ffun I -> {x : I & Y x}} := [ffun x => Tagged Y (z x)].
pose from (z0 : {dffun forall x, Y x}) (h : {ffun I -> {x : I & Y x}}) : {dffun forall x, Y x} :=
  [ffun x => tagged_as (Tagged Y (z0 x)) (h x)].
case: (pickP (fun _ : {dffun forall x, Y x} => true)) => [z0 _|none].
  rewrite (reindex_onto to (from z0)) => [|h /familyP fam]; last first.
    apply/ffunP => x; rewrite !ffunE; have := fam x; rewrite unfold_in /=.
    by case: (h x) => x' y /= /eqP x'x; subst x'; rewrite tagged_asE.
  apply: eq_big => [z|z _]; last by apply: eq_bigr => x _; rewrite ffunE.
  rewrite (_ : from z0 (to z) = z) ?eqxx ?andbT; last by apply/ffunP => x; rewrite !ffunE tagged_asE.
  by symmetry; apply/familyP => x; rewrite unfold_in /= ffunE.
rewrite !big1 // => [h /familyP fam|z _]; last by have := none z.
have y x : Y x by have := fam x; case: (h x) => x' y0; rewrite unfold_in /= => /eqP <-.
by have := none [ffun x => y x].
Qed.

Lemma marginal_dffun (R : comRingType) (I : finType) (Y : I -> finType) (f : forall x, Y x -> R) x (y : Y x) :
  (forall x', x' != x -> \sum_(v : Y x') f x' v = 1) ->
  \sum_(z : {dffun forall x, Y x} | z x == y) \prod_x' f x' (z x') = f x y.
Proof.
move=> f1; pose e x' (v : Y x') := f x' v * ((x' == x) ==> (Tagged Y v == Tagged Y y))%:R.
transitivity (\sum_(z : {dffun forall x, Y x}) \prod_x' e x' (z x')).
  rewrite big_mkcond; apply: eq_bigr => z _; rewrite big_split /= [\prod_(i | _) _%:R](bigD1 x) //= eqxx eq_Tagged /=.
  by rewrite [X in _ * (_ * X)]big1 ?mulr1 => [|x' /negbTE ->] //; case: eqP; rewrite ?mulr1 ?mulr0.
rewrite sum_dffun (bigD1 x) //= [X in _ * X]big1 => [|x' nx]; last first.
  by rewrite -(f1 x' nx); apply: eq_bigr => v _; rewrite /e (negbTE nx) mulr1.
rewrite mulr1 (bigD1 y) //= /e !eqxx mulr1 big1 ?addr0 // => v vy.
by rewrite eq_Tagged /= (negbTE vy) mulr0.
Qed.

Section Lists.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R).
Variables (Seg : finType) (arrivals : nat -> Seg) (T : nat) (n draws : Seg -> nat).
Notation l := l'.+1.
Notation rounds := (rounds arrivals T).
Notation draws_in := (@draws_in l' X Seg arrivals T n draws).

(* Draws of its own for each segment. *)
Definition own_chance (rates : 'I_l -> Seg * X -> R) c (o : {dffun forall x, draws_in x}) : R :=
  \prod_x chance_in rho rates c (o x).

Lemma own_draws : has_its_law rho (fun x (o : {dffun forall x, draws_in x}) => o x) own_chance.
Proof.
move=> rates c x y laws c0.
apply: (@marginal_dffun R Seg (fun x => [finType of draws_in x]) (fun x y => chance_in rho rates c y)) => x' _.
exact: chance1.
Qed.

(* One list of draws for all segments: each uses as many from its beginning as it needs. *)
Variable longest : nat.
Hypothesis long : forall x, (draws x <= longest)%N.
Definition shown_in x := {ffun 'I_(draws x).+1 -> shown (n x) (rounds x) X}.
Definition shared := ({ffun 'I_longest.+1 -> 'I_l} * {dffun forall x, shown_in x})%type.
Definition shared_shows x (o : shared) : draws_in x := [ffun d : 'I_(draws x).+1 => (o.1 (inord d), o.2 x d)].
Definition shared_chance (rates : 'I_l -> Seg * X -> R) c (o : shared) : R :=
  (\prod_j weight R c (o.1 j)) *
  \prod_x \prod_(d < (draws x).+1) slot_law rho (law_in rates x (o.1 (inord d))) (o.2 x d).

Lemma shared_draws : has_its_law rho shared_shows shared_chance.
Proof.
move=> rates c x y laws c0.
pose f (h : {ffun 'I_longest.+1 -> 'I_l}) x (z : shown_in x) : R :=
  \prod_(d < (draws x).+1) slot_law rho (law_in rates x (h (inord d))) (z d).
pose yz : shown_in x := [ffun d => (y d).2].
pose fits (h : {ffun 'I_longest.+1 -> 'I_l}) := [forall d : 'I_(draws x).+1, h (inord d) == (y d).1].
have f1 h x' : \sum_(z : shown_in x') f h x' z = 1.
  rewrite /f -(bigA_distr_bigA (fun (d : 'I_(draws x').+1) z => slot_law rho (law_in rates x' (h (inord d))) z)) /=.
  by apply: big1 => d _; have [_ law1] := laws x' (h (inord d)); apply: slot_law1.
have showsE h z : (shared_shows x (h, z) == y) = fits h && (z x == yz).
  apply/eqP/andP => [/ffunP E|[/forallP hy /eqP zy]].
    by split; [apply/forallP => d|apply/eqP/ffunP => d]; rewrite ?[in RHS]ffunE -(E d) !ffunE.
  by apply/ffunP => d; rewrite ffunE /= zy ffunE (eqP (hy d)); case: (y d).
transitivity (\sum_(h | fits h) (\prod_j weight R c (h j)) * f h x yz).
  rewrite (eq_bigl (fun o : shared => fits o.1 && (o.2 x == yz))) => [|[h z]]; last exact: showsE.
  rewrite -(pair_big_dep fits (fun _ (z : {dffun forall x, shown_in x}) => z x == yz)
    (fun h z => (\prod_j weight R c (h j)) * \prod_x f h x (z x))) /=.
  apply: eq_bigr => h _; rewrite -mulr_sumr; congr (_ * _).
  by apply: (@marginal_dffun R Seg (fun x => [finType of shown_in x]) (f h)) => x' _; apply: f1.
rewrite /chance_in /chance_of big_split /=.
transitivity (\sum_(h | fits h) (\prod_j weight R c (h j)) *
    \prod_(d < (draws x).+1) slot_law rho (law_in rates x (y d).1) (y d).2).
  apply: eq_bigr => h /forallP hy; congr (_ * _); apply: eq_bigr => d _; by rewrite ffunE (eqP (hy d)).
rewrite -mulr_suml; congr (_ * _).
pose q (j : 'I_longest.+1) (a : 'I_l) := (j < (draws x).+1)%N ==> (a == (y (inord j)).1).
transitivity (\sum_(h : {ffun 'I_longest.+1 -> 'I_l} | h \in family q) \prod_j weight R c (h j)).
  apply: eq_bigl => h; apply/forallP/familyP => [hy j|hy d].
    by rewrite unfold_in /q; apply/implyP => jd; have := hy (inord j); rewrite inordK // inord_val.
  by have := hy (inord d); rewrite unfold_in /q inordK ?inord_val ?ltn_ord // (leq_trans (ltn_ord d)) // ltnS.
rewrite -(bigA_distr_big_dep (fun j : 'I_longest.+1 => q j) (fun _ a => weight R c a)).
have long' : ((draws x).+1 <= longest.+1)%N by rewrite ltnS.
under [RHS]eq_bigr => d _ do rewrite -[d in y d]inord_val.
rewrite (big_ord_widen _ (fun j => weight R c (y (inord j)).1) long') [RHS]big_mkcond; apply: eq_bigr => j _.
rewrite /q; case: ifP => _ /=; first by rewrite big_pred1_eq.
exact: weight1.
Qed.
End Lists.
