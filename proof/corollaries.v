(* What follows from clone_proof: shares, best of all, beliefs, epochs; and the contest of champions. *)
From mathcomp Require Import all_ssreflect all_algebra fingroup perm.
From Cloneproof Require Import serve scan levels counts loop own theorem.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Average.
Variables (R : realFieldType) (l' : nat) (X : finType).
Notation l := l'.+1.
Notation avg := (@average R l' X).

Lemma average_sum (I : finType) (f : I -> ('I_l -> X -> R) -> R) law :
  avg (fun law => \sum_i f i law) law = \sum_i avg (f i) law.
Proof. by rewrite /average -mulr_suml [in RHS]exchange_big. Qed.

Lemma average_add f f' law : avg (fun law => f law + f' law) law = avg f law + avg f' law.
Proof. by rewrite /average big_split mulrDl. Qed.

Lemma average_scale x f law : avg (fun law => x * f law) law = x * avg f law.
Proof. by rewrite /average -mulr_sumr mulrA. Qed.
End Average.

Section Corollaries.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R) (me : nat).
Notation l := l'.+1.
Hypothesis rewards : forall x, 0 <= rho x <= 1.
Variable c : 'I_l -> nat.
Hypothesis c0 : exists a, c a != 0%N.

(* The agent gets a share of its rewards, which may change from round to round (also: a discount, a random end). *)
Corollary clone_proof_shares T n draws threshold fresh order lot others law (share : 'I_T -> R) :
  (0 < n)%N -> (0 < draws)%N -> uniq order -> me \in order -> (forall a, is_law (law a)) ->
  (forall t, 0 <= share t) ->
  average (fun law =>
    \sum_t share t * round_pay rho T n draws threshold fresh order lot me others law c t) law <=
  average (fun law =>
    \sum_t share t * round_pay rho T n draws threshold fresh order lot me others law (@once l') t) law.
Proof.
move=> n0 d0 ou mi laws s0; rewrite !average_sum; apply: ler_sum => t _.
by rewrite !average_scale; apply: ler_wpmul2l => //; apply: clone_proof_round.
Qed.

(* Flat best of all: a threshold that no count reaches. *)
Corollary best_of_all T n draws fresh order lot others law :
  (0 < n)%N -> (0 < draws)%N -> uniq order -> me \in order -> (forall a, is_law (law a)) ->
  average (fun law => expected_pay rho T n draws n.+1 fresh order lot me others law c) law <=
  average (fun law => expected_pay rho T n draws n.+1 fresh order lot me others law (@once l')) law.
Proof. by move=> *; apply: clone_proof. Qed.

(* Epochs with restarts (doubling ones, or any): each has numbers, draws and others of its own. *)
Record epoch := Epoch { e_T : nat; e_n : nat; e_draws : nat; e_threshold : nat; e_fresh : bool; e_order : seq nat;
                        e_lot : nat; e_others : nat -> nat -> bool }.
Definition good e := [&& (0 < e_n e)%N, (0 < e_draws e)%N, uniq (e_order e) & me \in e_order e].
Definition epoch_pay (e : epoch) law (c : 'I_l -> nat) : R :=
  expected_pay rho (e_T e) (e_n e) (e_draws e) (e_threshold e) (e_fresh e) (e_order e) (e_lot e) me
    (e_others e) law c.

Corollary clone_proof_epochs (epochs : seq epoch) law : all good epochs -> (forall a, is_law (law a)) ->
  average (fun law => \sum_(e <- epochs) epoch_pay e law c) law <=
  average (fun law => \sum_(e <- epochs) epoch_pay e law (@once l')) law.
Proof.
move=> + laws; elim: epochs => [|e es IH] /=.
  by move=> _; rewrite /average !big1 // => g _; rewrite big_nil.
case/andP=> /and4P [n0 d0 ou mi] /IH {}IH.
have E c' : average (fun law => \sum_(e' <- e :: es) epoch_pay e' law c') law =
    average (fun law => epoch_pay e law c') law + average (fun law => \sum_(e' <- es) epoch_pay e' law c') law.
  by rewrite -average_add /average; congr (_ / _); apply: eq_bigr => g _; rewrite big_cons.
by rewrite !E; apply: ler_add => //; apply: clone_proof.
Qed.

(* Beliefs: a finite joint law of the agent's originals and of everything about the others (what they register, draw
   and earn, the order, the lot), exchangeable in the agent's originals. *)
Section Beliefs.
Variables (T n draws threshold : nat) (fresh : bool) (Theta Omega : finType).
Variables (order : Omega -> seq nat) (lot : Omega -> nat) (others : Omega -> nat -> nat -> bool).
Variable law_of : Theta -> X -> R.
Variable prior : {ffun 'I_l -> Theta} -> Omega -> R.
Hypothesis n_gt0 : (0 < n)%N.
Hypothesis draws_gt0 : (0 < draws)%N.
Hypothesis order_uniq : forall o, uniq (order o).
Hypothesis me_in : forall o, me \in order o.
Hypothesis laws : forall th, is_law (law_of th).
Hypothesis prior0 : forall th o, 0 <= prior th o.
Hypothesis exchangeable : forall (g : 'S_l) (th : {ffun 'I_l -> Theta}) o, prior [ffun a => th (g a)] o = prior th o.

Definition pay_given o (law : 'I_l -> X -> R) c :=
  expected_pay rho T n draws threshold fresh (order o) (lot o) me (others o) law c.
Definition bayes_pay c := \sum_(th : {ffun 'I_l -> Theta}) \sum_o prior th o * pay_given o (fun a => law_of (th a)) c.

Lemma bayes_average c' : bayes_pay c' =
  \sum_(th : {ffun 'I_l -> Theta}) \sum_o prior th o * average (fun law => pay_given o law c') (fun a => law_of (th a)).
Proof.
have l0 : (l`!)%:R != 0 :> R by rewrite pnatr_eq0 -lt0n fact_gt0.
apply: (mulIf l0); rewrite [RHS]mulr_suml.
transitivity (\sum_(g : 'S_l) bayes_pay c'); first by rewrite sumr_const card_Sn mulr_natr.
rewrite /average; under [in RHS]eq_bigr => th _ do rewrite mulr_suml.
under [in RHS]eq_bigr => th _ do under eq_bigr => o _ do rewrite mulrA divfK // mulr_sumr.
under [in RHS]eq_bigr => th _ do rewrite exchange_big /=.
rewrite [in RHS]exchange_big /=; apply: eq_bigr => g _.
pose f (th : {ffun 'I_l -> Theta}) := [ffun a => th (g a)].
have fI : injective f.
  move=> th th' /ffunP H; apply/ffunP => a; have := H ((g^-1)%g a); rewrite !ffunE permKV //.
rewrite /bayes_pay (reindex_inj fI); apply: eq_bigr => th _; apply: eq_bigr => o _.
rewrite exchangeable; congr (_ * _); apply: eq_bigr => y _; congr (_ * _).
by apply: eq_bigr => j _; rewrite ffunE.
Qed.

Theorem clone_proof_bayes : bayes_pay c <= bayes_pay (@once l').
Proof.
rewrite !bayes_average; apply: ler_sum => th _; apply: ler_sum => o _.
by apply: ler_wpmul2l => //; apply: clone_proof.
Qed.
End Beliefs.

(* One prior for all originals, independent of the others, is exchangeable. *)
Lemma iid_exchangeable (Theta Omega : finType) (one : Theta -> R) (nu : Omega -> R) (g : 'S_l)
    (th : {ffun 'I_l -> Theta}) o :
  (\prod_a one ([ffun a => th (g a)] a)) * nu o = (\prod_a one (th a)) * nu o.
Proof.
congr (_ * _); rewrite [RHS](reindex_inj (@perm_inj _ g)); apply: eq_bigr => a _; by rewrite ffunE.
Qed.
End Corollaries.

(* The contest of champions. Each agent finds a champion in draws * n rounds of its own, in which it is paid as the loop
   pays it alone. Then champions meet, and the agent gets a prize: any function of its champion's fresh rewards (an
   average over coins and ties, given the others), if what it is worth does not fall with the champion's mean. *)
Section Contest.
Variables (R : realFieldType) (l' : nat) (X : finType) (rho : X -> R) (me : nat).
Notation l := l'.+1.
Hypothesis rewards : forall x, 0 <= rho x <= 1.
Variables (T n draws threshold : nat) (fresh : bool).
Hypothesis n_gt0 : (0 < n)%N.
Hypothesis draws_gt0 : (0 < draws)%N.
Variable law : 'I_l -> X -> R.
Hypothesis laws : forall a, is_law (law a).
Definition nobody (q i : nat) := false.

Definition champion (y : draws_of_me l' X T n draws) : shown n T X :=
  let: (_, d, _) := serve n draws threshold fresh [:: me] me (coins [:: me] me me nobody y) (draws * n) in
  (y (inord d)).2.
Definition contest_pay (prize : {ffun 'I_T -> X} -> R) (law : 'I_l -> X -> R) c : R :=
  \sum_(y : draws_of_me l' X T n draws) chance_of rho law c y * prize (champion y).2.
Definition worth_of (prize : {ffun 'I_T -> X} -> R) (q : X -> R) : R :=
  \sum_(h : {ffun 'I_T -> X}) (\prod_i q (h i)) * prize h.

Lemma chance1 (law' : 'I_l -> X -> R) c : (forall a, is_law (law' a)) -> (exists a, c a != 0%N) ->
  \sum_(y : draws_of_me l' X T n draws) chance_of rho law' c y = 1.
Proof.
move=> laws' c0; rewrite /chance_of -(bigA_distr_bigA (fun (j : 'I_draws.+1) (z : 'I_l * shown n T X) =>
  weight R c z.1 * slot_law rho (law' z.1) z.2)) /=; apply: big1 => j _.
rewrite -(pair_bigA _ (fun a x => weight R c a * slot_law rho (law' a) x)) /= -[RHS](weight1 R c0).
by apply: eq_bigr => a _; rewrite -mulr_sumr (slot_law1 n T rho (law1 laws' a)) mulr1.
Qed.

Lemma contest_gets prize y :
  gets rho threshold fresh [:: me] me me nobody (draws * n) prize y = prize (champion y).2.
Proof.
have t0 : (0 < tests draws [:: me])%N by rewrite /tests mul1n.
have [_ Q] := loop_scan threshold fresh (coins [:: me] me me nobody y) n_gt0 t0 (draws * n).
by rewrite /gets /champion /serve Q /tests mul1n ltnn /owner modn1 /= if_same eqxx.
Qed.

Variable prize : {ffun 'I_T -> X} -> R.
Hypothesis prize_up : forall a b, mean rho (law a) <= mean rho (law b) ->
  worth_of prize (law a) <= worth_of prize (law b).

(* Prizes may be negative: add a constant. *)
Definition low := \sum_a `|worth_of prize (law a)|.
Definition raised h := prize h + low.

Lemma worth_raised a : worth_of raised (law a) = worth_of prize (law a) + low.
Proof.
rewrite /worth_of /raised; under eq_bigr => h _ do rewrite mulrDr.
by rewrite big_split /= -mulr_suml (product1 T (law1 laws a)) mul1r.
Qed.

Lemma worth_raised_ge0 a : 0 <= worth_of raised (law a).
Proof.
rewrite worth_raised /low (bigD1 a) //= addrA; apply: addr_ge0; last by apply: sumr_ge0.
by rewrite addrC -[X in _ + X]opprK subr_ge0 -normrN ler_norm.
Qed.

Lemma contest_raised law' c : (forall a, is_law (law' a)) -> (exists a, c a != 0%N) ->
  contest_pay raised law' c = contest_pay prize law' c + low.
Proof.
move=> laws' c0; rewrite /contest_pay; under eq_bigr => y _ do rewrite /raised mulrDr.
by rewrite big_split /= -mulr_suml chance1 // mul1r.
Qed.

Lemma contest_worth law' c : contest_pay raised law' c =
  worth_pay rho n draws threshold fresh [:: me] me me nobody (draws * n) raised law' c.
Proof. by apply: eq_bigr => y _; rewrite contest_gets. Qed.

Variable c : 'I_l -> nat.
Hypothesis c0 : exists a, c a != 0%N.

Lemma once0 : exists a, @once l' a != 0%N. Proof. by exists ord0. Qed.

Theorem contest_prize :
  average (fun law => contest_pay prize law c) law <= average (fun law => contest_pay prize law (@once l')) law.
Proof.
have E c' : (exists a, c' a != 0%N) -> average (fun law => contest_pay prize law c') law =
    average (fun law => contest_pay raised law c') law - low.
  move=> c0'; rewrite /average; apply/eqP; rewrite eq_sym subr_eq; apply/eqP.
  have l0 : (l`!)%:R != 0 :> R by rewrite pnatr_eq0 -lt0n fact_gt0.
  rewrite -[X in _ + X](mulfK l0) -mulrDl; congr (_ / _).
  rewrite mulr_natr -(card_Sn l) -sumr_const -big_split /=; apply: eq_bigr => g _.
  by rewrite contest_raised // => a; apply: laws.
rewrite (E c c0) (E (@once l') once0) ler_add2r.
rewrite /average; under eq_bigr => g _ do rewrite contest_worth.
under [X in _ <= X / _]eq_bigr => g _ do rewrite contest_worth.
apply: (@worth_proof _ _ _ _ _ _ _ _ _ _ _ _ _ rewards n_gt0 draws_gt0 _ _ _ laws _ _
  (fun a => worth_of raised (law a))) => //; rewrite ?inE //.
- by rewrite /tests mul1n ltnn.
- by move=> a b ab; rewrite !worth_raised ler_add2r prize_up.
- exact: worth_raised_ge0.
Qed.

(* Rounds of its own, cut anywhere, and the prize. *)
Theorem contest_proof (share : 'I_T -> R) : (forall t, 0 <= share t) ->
  average (fun law => \sum_t share t * round_pay rho T n draws threshold fresh [:: me] me me nobody law c t
                      + contest_pay prize law c) law <=
  average (fun law => \sum_t share t * round_pay rho T n draws threshold fresh [:: me] me me nobody law (@once l') t
                      + contest_pay prize law (@once l')) law.
Proof.
move=> s0; rewrite !average_add; apply: ler_add; last exact: contest_prize.
by apply: clone_proof_shares; rewrite ?inE.
Qed.

Theorem contest_informed b : (forall a, mean rho (law a) <= mean rho (law b)) ->
  contest_pay prize law c <= contest_pay prize law (alone b).
Proof.
move=> best; have b0 : exists a, alone b a != 0%N by exists b; rewrite /alone eqxx.
rewrite -(ler_add2r low) -!contest_raised // !contest_worth.
apply: (@worth_alone _ _ _ _ _ _ _ _ _ _ _ _ _ rewards n_gt0 draws_gt0 _ _ _ laws _ _
  (fun a => worth_of raised (law a))) => //; rewrite ?inE //.
- by rewrite /tests mul1n ltnn.
- by move=> a a' aa; rewrite !worth_raised ler_add2r prize_up.
- exact: worth_raised_ge0.
Qed.
End Contest.
