"""Proposition 1: whether an algorithm that is not TRP can be gamed under some prior."""

from __future__ import annotations

import numpy as np

from cloneproof.analysis.properties.permutations import Instance, rp_regret
from cloneproof.engines.estimate import Estimate
from cloneproof.market import Agent, Discrete, Market
from cloneproof.report.plots import Lines, Mark, Series
from cloneproof.reproduce.evidence import all_of, at_most
from cloneproof.reproduce.findings import Findings, FindingsTable, Row, Setting, claim, detail, ours, table
from cloneproof.reproduce.trp import (
    AGENT,
    COPIES,
    HORIZON,
    RULES,
    Necessity,
    Trial,
    multiplicity,
    necessity,
    trial,
    trials,
    unequal_means,
)

SUPPORT, OFFSET_COPIES = (0.0, 0.5, 1.0), (2, 1, 1)


class Offset:
    """The margins of all multisets of the three values, and the largest gain over the weights of a prior on them."""

    horizon = 8

    def __init__(self, setting: Setting) -> None:
        mechanism, steps = setting.mechanism("ucb1"), setting.pick(quick=60, full=400)
        self.margins = {}
        for means in unequal_means(SUPPORT, 3):
            honest = rp_regret(mechanism, Instance(means, (1, 1, 1)), self.horizon, "deterministic")
            self.margins[means] = (
                rp_regret(mechanism, Instance(means, OFFSET_COPIES), self.horizon, "deterministic") - honest
            )
        low, middle = np.meshgrid(np.arange(1, steps), np.arange(1, steps))
        inside = low + middle < steps
        weights = np.stack([low[inside], middle[inside], steps - low[inside] - middle[inside]]) / steps
        gains, self.tried = self.gains(weights), int(inside.sum())
        top = self.margins[SUPPORT]
        error = sum(multiplicity(means) * margin.error for means, margin in self.margins.items()) + 1e-14
        self.largest = Estimate(float(gains.max()), error, top.kind, top.method)
        self.margin = top

    def gains(self, weights: np.ndarray, only: bool = False) -> np.ndarray:
        """The gain for each column of weights; `only`: the part of the violating realisation (1, 1/2, 0)."""
        at = dict(zip(SUPPORT, weights, strict=True))
        total = np.zeros(weights.shape[1])
        for means, margin in self.margins.items():
            if not only or means == SUPPORT:
                total -= multiplicity(means) * margin.value * np.prod([at[value] for value in means], axis=0)
        return total

    @property
    def pays(self) -> bool:
        return self.largest.high > 0


def offset_figure(offset: Offset) -> Lines:
    """The gain and its two parts over the weight of the middle value, the other two with equal weights."""
    middle = np.linspace(0.02, 0.98, 49)
    weights = np.stack([(1 - middle) / 2, middle, (1 - middle) / 2])
    whole, part = offset.gains(weights), offset.gains(weights, only=True)
    x = tuple(map(float, middle))
    return Lines(
        f"A violation of TRP that other realisations offset (UCB1, three originals, T = {offset.horizon})",
        "Ex-ante gain of copying one of three arms, prior on 0, ½ and 1, by the weight of ½ (0 and 1 have equal "
        "weights). The realisation (1, ½, 0) alone would make it pay; the others cost more. Exact.",
        "weight of ½",
        "gain (reward units)",
        (
            Series("from (1, ½, 0)", x, tuple(map(float, part)), mechanism="ucb1", shade=1),
            Series("from the other realisations", x, tuple(map(float, whole - part)), mechanism="ucb1", shade=2),
            Series("in all", x, tuple(map(float, whole)), mechanism="ucb1"),
        ),
        (Mark("nothing gained", y=0.0),),
    )


def run(setting: Setting) -> Findings:
    """Rules that violate TRP and cannot be gamed; the prior on two means that shows it for two originals."""
    tried = setting.pick(quick=100, full=3000)
    rules = {name: necessity(rule, tried, setting.seed) for name, rule in RULES.items()}
    cases = list(trials(setting, setting.pick(quick=10, full=84)))
    violated = [case for case in cases if not case.trp]
    restricted = [_on_its_own_support(case) for case in violated if case.market.agents[0].count == 2]
    pays = all(case.pays for case in restricted) if restricted else None
    offset = Offset(setting)
    return Findings(
        computed=(
            f"Two rules in fractions that violate TRP at the means 1, ½, 0, and {tried} random priors, copies and "
            "horizons under each (one to four originals); that no copies pay under any prior is proven in the "
            f"textbook. The violations of TRP among {len(cases)} random markets of one agent, those with two "
            "originals again with a prior on the two means. Then UCB1 with three originals, over all weights of three "
            "values. All exact."
        ),
        checks=(
            claim(
                "If an algorithm is not TRP, then it is not replication-proof.",
                False if any(rule.refutes for rule in rules.values()) else pays,
                *(pair for name, rule in rules.items() for pair in _evidence(name, rule)),
            ),
            ours(
                "For two originals that is so: the two means that violate TRP, with equal odds, are a prior for which "
                "copying pays.",
                pays,
                ("violations with two originals", len(restricted)),
                ("in which that prior makes copies pay", sum(case.pays for case in restricted)),
            ),
            detail(
                "The proof: where TRP is violated, RPReg(honest) ≤ RPReg(copied), as displayed.",
                all(case.margin.high >= 0 for case in violated) if violated else None,
                ("violations", len(violated)),
                ("in which the display is true", sum(case.margin.high >= 0 for case in violated)),
            ),
            ours(
                "A violation may be offset whatever the weights of its means: UCB1, three originals, means 1, ½, 0, "
                f"T = {offset.horizon}, copies (2, 1, 1). (Of other values there may be a prior for which they pay.)",
                all_of([offset.margin.high < 0, at_most(offset.largest)]),
                ("TRP margin at (1, ½, 0)", offset.margin),
                ("weights tried", offset.tried),
                ("largest gain over them", offset.largest),
            ),
        ),
        figures=(offset_figure(offset),),
        tables=(_table(rules),),
    )


def _on_its_own_support(violating: Trial) -> Trial:
    """The trial again with a prior on the two means that violate TRP most."""
    (means, _), _ = min(violating.margins.items(), key=lambda pair: pair[1].value)
    prior = Discrete(list(means), [0.5, 0.5])
    market = Market([Agent(AGENT, 2, prior)], horizon=violating.market.horizon, rewards=violating.market.rewards)
    return trial(violating.mechanism, market)


def _evidence(name: str, rule: Necessity) -> tuple[tuple[str, str | int], ...]:
    return (
        (f"rule {name}: RP-regret at (1, ½, 0), T = {HORIZON}, honest", str(rule.honest)),
        (f"copies {COPIES}", str(rule.copied)),
        ("random priors, copies and horizons", rule.tried),
        ("in which copies pay", rule.paying),
    )


def _table(rules: dict[str, Necessity]) -> FindingsTable:
    return table(
        "Two rules that violate TRP under which no copies pay",
        "rule | honest RP-regret | with copies (2, 1, 1) | cases | copies pay | copies change nothing",
        ((name, str(r.honest), str(r.copied), r.tried, r.paying, r.neutral) for name, r in rules.items()),
        f"RP-regret at the means 1, ½, 0, T = {HORIZON}. A: each arm once, then the best one with chance b, else a "
        "random one; b is 1 for up to three arms, 0 for the three values 1, ½, 0, and ½ for four arms and more. B: the "
        "same idea with chances that are linear in rewards, so that only means matter.",
    )


ROW = Row(
    5,
    "Proposition 1: is TRP necessary?",
    "Proposition 1 (thm:truthful-necessary): “If an algorithm is not TRP, then it is not replication-proof.”",
    run,
    summary={
        "refuted as stated": (
            "For two originals it is true; for three there are rules that violate TRP at some means and under which no "
            "copies pay, whatever the prior."
        )
    },
)
