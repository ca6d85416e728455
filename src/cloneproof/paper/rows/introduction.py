"""Example of the introduction: one agent, two arms, prior Bern(0.5), a share of 40 %; the first arm copied once."""

from __future__ import annotations

from cloneproof.evaluation.evaluate import evaluate
from cloneproof.evaluation.search import Search
from cloneproof.market import Agent, Discrete, Market
from cloneproof.mechanisms.catalogue import AT_RANDOM_ONLY, CATALOGUE, ON_PAGES_ONLY
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.paper.evidence import all_of, at_most, by_high, size
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, table
from cloneproof.runs.estimate import Estimate, weighted_sum

SHARE, ANA = 0.4, "ana"
MECHANISMS = [name for name in CATALOGUE if name not in (*AT_RANDOM_ONLY, *ON_PAGES_ONLY)]
CASES = ((1, 1), (1, 0), (0, 1), (0, 0))
HONEST, COPIED = (1, 1), (2, 1)
ROUNDING = 1e-9  # a round: more than any of these sums can lose, far less than any payoff


def run(setting: RowSetting) -> Findings:
    """Evaluate every mechanism of the catalogue, in each of the four cases and over the prior, at two horizons."""
    horizons, runs = (7, setting.pick(quick=20, full=100)), setting.pick(quick=1_000, full=20_000)
    examples = {
        (name, horizon): _Example(setting.mechanism(name, market=_market(horizon)), horizon, runs, setting.seed)
        for horizon in horizons
        for name in MECHANISMS
    }
    ucb1 = examples["ucb1", 7]
    exact = [example for example in examples.values() if example.exact]
    equal = [example.gain(case) for example in exact for case in ((1, 1), (0, 0))]
    differences = [example.over_prior - example.by_regret for example in exact]
    good = [example.regret[COPIED, (1, 0)] - example.regret[HONEST, (1, 0)] for example in exact]
    bad = [example.regret[HONEST, (0, 1)] - example.regret[COPIED, (0, 1)] for example in exact]
    return Findings(
        computed=(
            f"Honest registration and one copy of arm a, in each of the four cases and over the prior, at T = "
            f"{horizons[0]} and T = {horizons[1]}, under all {len(MECHANISMS)} mechanisms for a fixed end; parameters "
            "as their theorems have them for this market. Rewards of mean 0 and 1 leave nothing to chance but "
            "the mechanism's own coins, so all are computed exactly but those with Thompson sampling "
            f"({runs:,} runs a case)."
        ),
        checks=(
            claim(
                "In the cases (1, 1) and (0, 0) the copy has no effect, under any of the mechanisms.",
                all_of([at_most(size(change), 0, ROUNDING) for change in equal]),
                ("mechanisms and horizons", len(exact)),
                ("largest change of a payoff", _largest(equal)),
            ),
            claim(
                "The gain is that of the average of (1, 1, 0) and (1, 0, 0) over (1, 0): half of the share of the "
                "regret saved.",
                all_of([at_most(size(difference), 0, ROUNDING) for difference in differences]),
                ("gain over the prior, UCB1, T = 7", ucb1.over_prior),
                ("by the regret in the three instances", ucb1.by_regret),
                ("largest difference of the two, all mechanisms", _largest(differences)),
            ),
            claim(
                "Copying a good arm lowers the regret or leaves it, copying a bad one raises it or leaves it.",
                all_of([at_most(change, 0, ROUNDING) for change in (*good, *bad)]),
                *(
                    (f"UCB1, T = 7: regret with means {means}, copies {copies}", ucb1.regret[copies, means])
                    for means, copies in (((1, 0), HONEST), ((1, 0), COPIED), ((0, 1), COPIED))
                ),
            ),
        ),
        tables=tuple(_table(examples, horizon) for horizon in horizons),
    )


def _market(horizon: int) -> Market:
    return Market([Agent(ANA, 2, Discrete([0, 1], [0.5, 0.5]))], horizon=horizon, share=SHARE)


class _Example:
    """Payoff and regret in the four cases, honest and copied; and the gain over the prior, computed in two ways."""

    def __init__(self, mechanism: Mechanism, horizon: int, runs: int, seed: int) -> None:
        market, search = _market(horizon), Search(runs=runs, seed=seed)
        found = {
            (copies, case): evaluate(market.at({ANA: case}), mechanism, {ANA: copies}, search=search)
            for copies in (HONEST, COPIED)
            for case in CASES
        }
        self.payoff = {key: evaluation.payoff[ANA] for key, evaluation in found.items()}
        self.regret = {key: evaluation.regret for key, evaluation in found.items()}
        self.exact = all(evaluation.engine != "runs" for evaluation in found.values())
        copied = weighted_sum([(0.5, self.regret[COPIED, (1, 0)]), (0.5, self.regret[COPIED, (0, 1)])])
        self.by_regret = weighted_sum([(SHARE / 2, self.regret[HONEST, (1, 0)] - copied)])
        if self.exact:
            honest, paid = (evaluate(market, mechanism, {ANA: copies}).payoff[ANA] for copies in (HONEST, COPIED))
            self.over_prior = paid - honest
        else:
            self.over_prior = weighted_sum([(0.25, self.gain(case)) for case in CASES])

    def gain(self, case: tuple[int, int]) -> Estimate:
        """Return what the copy adds to the payoff in this case."""
        return self.payoff[COPIED, case] - self.payoff[HONEST, case]


def _largest(estimates: list[Estimate]) -> Estimate:
    return max(map(size, estimates), key=by_high)


def _table(examples: dict[tuple[str, int], _Example], horizon: int) -> FindingsTable:
    def row(name: str, example: _Example) -> tuple[str | Estimate, ...]:
        payoff = example.payoff
        cases = [f"{_short(payoff[HONEST, case])} → {_short(payoff[COPIED, case])}" for case in CASES]
        return name, *cases, _short(weighted_sum([(0.25, payoff[HONEST, case]) for case in CASES])), example.over_prior

    return table(
        f"Payoffs in the four cases, T = {horizon}: honest → with a copy of a",
        " | ".join(("mechanism", *map(str, CASES), "over the prior", "gain")),
        (row(name, example) for (name, at), example in examples.items() if at == horizon),
    )


def _short(estimate: Estimate) -> str:
    return f"{round(estimate.value, 9) + 0.0:.4g}"


ROW = Row(
    1,
    "The introduction's example",
    "Section 1: one agent, two arms, prior Bern(0.5), share 40 %. In the cases (1, 1) and (0, 0) “the replicated arm "
    "has no effect”; the gain from replicating arm a “is equal to the gain from the average” of the instances "
    "(1, 1, 0) and (0, 0, 1) over (1, 0); the first has smaller regret, the second larger.",
    run,
    summary={
        "confirmed": (
            "Under every mechanism of the catalogue a copy changes nothing where both arms are equal, and the gain is "
            "the average over the two cases in which they differ."
        )
    },
)
