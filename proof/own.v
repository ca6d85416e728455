(* One agent's own events in the scan of a round, and whether others leave the round to it. *)
From mathcomp Require Import all_ssreflect.
From Cloneproof Require Import serve loop.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Own.
Variables (n draws threshold : nat) (fresh : bool) (order : seq nat) (lot me : nat) (oc : nat -> nat).
Notation N := (size order).
Notation tests := (tests draws order).
Notation events := (events n draws threshold fresh order).
Hypothesis n_gt0 : 0 < n.
Hypothesis order_uniq : uniq order.
Hypothesis me_in : me \in order.
Definition mine q := owner draws order lot q == me.

Lemma N_gt0 : 0 < N. Proof. by case: order me_in. Qed.

(* (q, y, h): an own event, and h: no event of others before it occurs; `oc` are the counts of the others' slots. *)
Fixpoint own h E : seq (nat * nat * bool) :=
  if E is (q, y) :: E' then if mine q then (q, y, h) :: own h E' else own (h && (oc q < y)) E' else [::].

Lemma own_events h E : [seq e.1 | e <- own h E] = [seq e <- E | mine e.1].
Proof. by elim: E h => //= -[q y] E IH h; case: ifP => //= _; rewrite IH. Qed.

Lemma own_falls h E : pairwise (fun e f => f.2 ==> e.2) (own h E) && all (fun e => e.2 ==> h) (own h E).
Proof.
elim: E h => //= -[q y] E IH h; case: ifP => _ /=; first by have /andP [-> ->] := IH h; rewrite implybb.
have /andP [-> /allP H] := IH (h && (oc q < y)); apply/allP => e /H /=.
by apply: contraTT; rewrite !negb_imply => /andP [-> /negbTE ->].
Qed.

(* The draws of the agent's slots among the first m are 0, 1, 2, .. *)
Lemma my_draws m : m <= tests ->
  [seq draw order q | q <- iota 0 m & mine q] = iota 0 (m %/ N + (index me order < m %% N)).
Proof.
elim: m => [|m IH] mt; first by rewrite div0n mod0n.
rewrite -{1}addn1 iotaD filter_cat map_cat (IH (ltnW mt)) add0n /=.
have N0 := N_gt0; have pN : index me order < N by rewrite index_mem.
have bN : m %% N < N by rewrite ltn_mod.
have -> : mine m = (m %% N == index me order).
  rewrite /mine /owner mt; apply/eqP/eqP => [<-|->]; last exact: nth_index.
  by rewrite index_uniq.
have E : m.+1 = m %/ N * N + (m %% N).+1 by rewrite addnS -divn_eq.
have [b1|b1] := ltnP (m %% N).+1 N.
  have -> : m.+1 %/ N = m %/ N by rewrite E divnMDl // (divn_small b1) addn0.
  have -> : m.+1 %% N = (m %% N).+1 by rewrite E modnMDl modn_small.
  rewrite ltnS; case: ltngtP => _ /=; rewrite ?cats0 //.
  by rewrite addn0 -(iotaD 0 (m %/ N) 1).
have b2 : (m %% N).+1 = N by apply/eqP; rewrite eqn_leq bN.
have -> : m.+1 %/ N = (m %/ N).+1 by rewrite E b2 divnMDl // divnn N0 addn1.
have -> : m.+1 %% N = 0 by rewrite E b2 modnMDl modnn.
rewrite ltn0 addn0; have : index me order <= m %% N by rewrite -ltnS b2.
case: ltngtP => //= _ _; first by rewrite cats0 addn1.
by rewrite addn0 -[RHS]/(iota 0 (m %/ N).+1) -[(m %/ N).+1]addn1 iotaD.
Qed.

Definition sl (E : seq (nat * nat)) := [seq draw order q | q <- [seq e.1 | e <- E] & mine q].

Lemma sl_own h E : sl E = [seq draw order e.1.1 | e <- own h E].
Proof. by rewrite /sl (map_comp (fun e => draw order e.1) fst) own_events filter_map -map_comp. Qed.

Lemma fst_row m y : [seq e.1 | e <- row m y] = iota 0 m.
Proof. by rewrite /row -map_comp map_id. Qed.

Lemma draws_tests : tests %/ N = draws. Proof. by rewrite /tests mulKn ?N_gt0. Qed.

Lemma sl_tests : [seq draw order q | q <- iota 0 tests & mine q] = iota 0 draws.
Proof. by rewrite my_draws // draws_tests modnMr ltn0 addn0. Qed.

Lemma sl_once t : (t < tests * n) || fresh -> exists k, sl (events t) = iota 0 k.
Proof.
rewrite /sl /events; case: ltnP => [tn _|_ /= ->].
  rewrite map_cat fst_row -(iotaD 0 (t %/ n) 1) addn1 my_draws ?ltn_divLR //; by eexists.
rewrite map_cat fst_row filter_cat map_cat sl_tests /=.
case: ifP => _; last by rewrite cats0; eexists.
by rewrite /= /draw draws_tests -{1}[draws]add0n -(iotaD 0 draws 1); eexists.
Qed.

Lemma sl_rows : sl (rows draws threshold order) = flatten (nseq threshold.+1 (iota 0 draws)).
Proof.
rewrite /sl /rows; move: (iota 0 threshold.+1) (size_iota 0 threshold.+1) => s <-; elim: s => //= e s IH.
by rewrite map_cat fst_row filter_cat map_cat sl_tests IH.
Qed.

Lemma nth_turns M k : k < M * draws -> nth 0 (flatten (nseq M (iota 0 draws))) k = k %% draws.
Proof.
elim: M k => //= M IH k kM; rewrite nth_cat size_iota; case: ltnP => kd; first by rewrite nth_iota ?modn_small.
rewrite IH; last by rewrite ltn_subLR // -mulSn.
by rewrite -[in RHS](subnKC kd) modnDl.
Qed.

Lemma size_turns M : size (flatten (nseq M (iota 0 draws))) = M * draws.
Proof. by elim: M => //= M IH; rewrite size_cat size_iota IH mulSn. Qed.

Lemma turns t i j k : i < j < k -> k < size (sl (events t)) ->
  nth 0 (sl (events t)) i = nth 0 (sl (events t)) j ->
  exists2 e, i <= e < k & nth 0 (sl (events t)) e = nth 0 (sl (events t)) k.
Proof.
case/andP=> ij jk; have [/sl_once [c ->]|] := boolP ((t < tests * n) || fresh).
  rewrite size_iota => kc; have jc := ltn_trans jk kc; rewrite !nth_iota ?(ltn_trans ij) // !add0n => H.
  by move: ij; rewrite H ltnn.
rewrite negb_or => /andP [tn fr]; rewrite /events (negbTE tn) (negbTE fr) sl_rows size_turns => kM.
have jM := ltn_trans jk kM; have iM := ltn_trans ij jM; rewrite !nth_turns // => H.
have d0 : 0 < draws by move: kM; case: draws => //; rewrite muln0.
have id : i + draws <= j.
  have : i = j %[mod draws] by []; move/eqP; rewrite eq_sym eqn_mod_dvd ?(ltnW ij) // => /dvdn_leq.
  by rewrite subn_gt0 ij leq_subRL ?(ltnW ij) //; apply.
have dk : draws <= k by apply: leq_trans (ltnW jk); apply: leq_trans id; apply: leq_addl.
exists (k - draws); first by rewrite leq_subRL // [draws + i]addnC (leq_trans id (ltnW jk)) ltn_subrL d0 (leq_trans d0).
rewrite nth_turns; last by apply: leq_ltn_trans kM; apply: leq_subr.
by rewrite -[in RHS](subnKC dk) modnDl.
Qed.

Lemma sl_le t : all (fun d => d <= draws) (sl (events t)).
Proof.
have [|] := boolP ((t < tests * n) || fresh) => [H|].
  apply/allP => d /mapP [q]; rewrite mem_filter => /andP [_ /mapP [e He ->]] ->.
  suff : e.1 <= tests by move=> /(leq_div2r N); rewrite draws_tests.
  move: He; rewrite /events; case: ltnP H => [tn _|_ /= ->]; rewrite mem_cat inE => /orP [/mapP [q']|/eqP ->] //=.
  - rewrite mem_iota add0n => /andP [_ q'm] ->; apply: ltnW; apply: leq_trans q'm _.
    by apply: ltnW; rewrite ltn_divLR.
  - by apply: ltnW; rewrite ltn_divLR.
  - by rewrite mem_iota add0n => /andP [_ q'm] ->; apply: ltnW.
rewrite negb_or => /andP [tn fr]; rewrite /events (negbTE tn) (negbTE fr) sl_rows.
by apply/allP => d /flattenP [r /nseqP [-> _]]; rewrite mem_iota add0n => /andP [_ /ltnW].
Qed.

Lemma row_level m y e : e \in row m y -> e.2 = y. Proof. by case/mapP => q _ ->. Qed.

Lemma row_falls m y : pairwise (fun e f => f.2 <= e.2) (row m y).
Proof. by rewrite /row pairwise_map; elim: (iota 0 m) => //= q s ->; rewrite andbT; apply/allP => ? _ /=. Qed.

Lemma events_fall t : pairwise (fun e f => f.2 <= e.2) (events t).
Proof.
rewrite /events; case: ifP => _; last case: ifP => _.
- by rewrite pairwise_cat row_falls /= !andbT; apply/allrelP => e f _; rewrite inE => /eqP ->.
- by rewrite pairwise_cat row_falls /= !andbT; apply/allrelP => e f _; rewrite inE => /eqP ->.
rewrite /rows; elim: threshold.+1 0 => //= M IH k; rewrite pairwise_cat row_falls IH !andbT.
apply/allrelP => e f /row_level -> /flattenP [r /mapP [k']]; rewrite mem_iota => /andP [kk _] -> /row_level ->.
by apply: leq_sub2l; apply: ltnW.
Qed.

Lemma own_levels h t : pairwise (fun e f => f.1.2 <= e.1.2) (own h (events t)).
Proof.
rewrite -(pairwise_map fst (fun e f => f.2 <= e.2)) own_events.
exact: subseq_pairwise (filter_subseq _ _) (events_fall t).
Qed.
End Own.
