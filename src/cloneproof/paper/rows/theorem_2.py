"""Theorem 2: TRP and PI against direct audits; its footnote on equal means; whether PI is necessary."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

from cloneproof.evaluation.evaluate import evaluate
from cloneproof.market import Agent, Discrete, Market
from cloneproof.paper.evidence import all_of, at_most, by_value
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, detail, table
from cloneproof.paper.permutations import check_permutation_invariance
from cloneproof.paper.trp import HALF, ROUNDING, RulePayoff, Trial, ex_ante_payoff, permuted_regret, rule_c, trials
from cloneproof.runs.estimate import Estimate

BERN = Discrete([0, 1], [0.5, 0.5])
INVARIANT: dict[str, dict[str, Any]] = {"etc": {"arm_rounds": 3}, "ucb1": {}, "h-ucb": {}, "epsilon-greedy": {}}


def run(setting: RowSetting) -> Findings:
    """Try random trials, a rule that is TRP for different means only, and a mechanism without PI."""
    cases = list(trials(setting, setting.pick(quick=10, full=84)))
    held = [case for case in cases if case.trp]
    invariance = {
        name: check_permutation_invariance(setting.mechanism(name, **options))
        for name, options in list(INVARIANT.items())[: setting.pick(quick=1, full=len(INVARIANT))]
    }
    footnote = Unionized(rule_c, setting.pick(quick=(5, 100), full=(1, 2, 3, 4, 5, 7, 10, 20, 100)))
    favour = Favouring(setting)
    return Findings(
        computed=(
            f"{len(cases)} random markets of one agent (two or three originals, priors of two or three values, with "
            "and without noise) under UCB with four constants, ETC with m = 1 to 8, ε-greedy and H-UCB: the RP-regret "
            "of every realisation with up to three copies of each original, and apart from it the payoff over the "
            "prior. Then a rule in fractions that is TRP where all means differ, and the Discussion's mechanism that "
            "favours an agent by its index. All exact."
        ),
        checks=(
            claim(
                "Wherever TRP holds (all means of the support, equal ones as different originals, all copies tried) "
                "under a permutation-invariant mechanism, no copies tried pay.",
                all_of(
                    [bool(held) or None, not any(case.pays for case in held)]
                    + [result.holds for result in invariance.values()]
                ),
                ("markets in which TRP holds", len(held)),
                ("in which copies pay all the same", sum(case.pays for case in held)),
                ("mechanisms found permutation invariant", sum(result.holds for result in invariance.values())),
                ("of", len(invariance)),
            ),
            claim(
                "Its proof: the gain is minus the mean of the TRP margins over what may be realised.",
                all(case.identity for case in cases),
                ("gains compared", sum(len(case.gains) for case in cases)),
            ),
            detail(
                "The proof's footnote: where two arms may have the same mean, “we can essentially unionize those two "
                "arms”, so that TRP for different means is enough. (A rule that is PI and TRP for different means: "
                "three originals, 0 or 1 with equal odds, sure rewards, T = 100.)",
                not footnote.pays if footnote.trp else None,
                ("comparisons of RP-regret, all means different", footnote.compared),
                ("smallest margin of the copies", str(footnote.least)),
                ("honest payoff", str(footnote.honest)),
                ("with copies (2, 1, 1)", str(footnote.copied)),
            ),
            claim(
                "Discussion: a mechanism that favours an agent by its index, whatever its arms do, is "
                "replication-proof and not permutation invariant.",
                favour.works,
                ("largest gain of any copies tried, either agent", favour.largest),
                ("rounds of the first agent", favour.rounds[0]),
                ("rounds of the second", favour.rounds[1]),
                ("permutation invariant", favour.invariance.verdict),
            ),
            detail(
                "Introduction: permutation invariance is necessary for replication-proofness.",
                None if favour.works is None else not favour.works,
                ("mechanisms above that are one without the other", int(bool(favour.works))),
            ),
        ),
        tables=(_table(cases),),
    )


class Unionized:
    """A rule on a grid of different means, where its TRP margins are computed, and over a prior with equal means."""

    GRID = tuple(Fraction(k, 4) for k in range(5))
    PRIOR = {Fraction(0): HALF, Fraction(1): HALF}  # noqa: RUF012 (never changed)

    def __init__(self, rule: RulePayoff, horizons: tuple[int, ...]) -> None:
        margins = [
            permuted_regret(rule, means, copies, horizon) - permuted_regret(rule, means, (1,) * count, horizon)
            for count in (2, 3)
            for means in combinations(self.GRID, count)
            for copies in product((1, 2, 4), repeat=count)
            if max(copies) > 1 and list(copies) == sorted(copies, reverse=True)
            for horizon in horizons
        ]
        self.compared, self.least = len(margins), min(margins)
        self.honest, self.copied = (ex_ante_payoff(rule, self.PRIOR, own, 100) for own in ((1, 1, 1), (2, 1, 1)))

    @property
    def trp(self) -> bool:
        return self.least >= 0

    @property
    def pays(self) -> bool:
        return self.copied > self.honest


class Favouring:
    """Rule that gives the first agent as registered its block of rounds first, the second the rest. Inside: ETC."""

    BLOCK, HORIZON = 13, 20

    def __init__(self, setting: RowSetting) -> None:
        mechanism = setting.mechanism("h-etc-r", arm_rounds=3, agent_rounds=self.BLOCK, agent_order="index")
        names = ("ana", "bo")
        market = Market([Agent(name, 2, BERN) for name in names], horizon=self.HORIZON, rewards="deterministic")
        honest = evaluate(market, mechanism).payoff
        self.gains = [
            evaluate(market, mechanism, {name: copies}).payoff[name] - honest[name]
            for name in names
            for copies in ((2, 1), (3, 1), (2, 2), (3, 2), (3, 3), (4, 1))
        ]
        self.rounds = (self.BLOCK, self.HORIZON - self.BLOCK)
        self.invariance = check_permutation_invariance(mechanism)

    @property
    def works(self) -> bool | None:
        """Whether no copies tried pay, and relabelling changes the run."""
        return all_of([at_most(self.largest, 0, self.HORIZON * ROUNDING), not self.invariance.holds])

    @property
    def largest(self) -> Estimate:
        return max(self.gains, key=by_value)


def _table(cases: list[Trial]) -> FindingsTable:
    rows = []
    for name in dict.fromkeys(case.mechanism.name for case in cases):
        own = [case for case in cases if case.mechanism.name == name]
        held, violated = ([case for case in own if case.trp is holds] for holds in (True, False))
        counts = (len(own), len(held), sum(c.pays for c in held), len(violated), sum(c.pays for c in violated))
        rows.append((name, *counts))
    return table(
        "Random markets by mechanism",
        "mechanism | markets | TRP holds | and copies pay | TRP violated | and copies pay ",
        rows,
        "TRP for all means of the support, at this horizon, up to three copies of each original.",
    )


ROW = Row(
    4,
    "Theorem 2: TRP and PI are sufficient",
    "Theorem 2 (thm:single_pf_rp): “in the single-agent setting, if an algorithm is TRP and PI, then it is "
    "replication-proof”; its footnote on priors with point masses. Discussion: one that favours agents by their index "
    "is replication-proof without PI.",
    run,
    summary={
        "confirmed with corrections": (
            "It holds in every market tried, where TRP is asked of equal means too; the footnote that dispenses with "
            "them does not hold, and permutation invariance is not necessary."
        )
    },
)
