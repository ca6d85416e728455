"""Proposition 1: whether an algorithm that is not TRP can be gamed under some prior."""

from __future__ import annotations

from cloneproof.market import Agent, Discrete
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, detail, ours, table
from cloneproof.paper.trp import AGENT, COPIES, HORIZON, RULES, Necessity, Trial, necessity, trial, trials


def run(setting: RowSetting) -> Findings:
    """Check rules that violate TRP and cannot be gamed; find the prior on two means that shows it for two originals."""
    tried = setting.pick(quick=100, full=3000)
    rules = {name: necessity(rule, tried, setting.seed) for name, rule in RULES.items()}
    cases = list(trials(setting, setting.pick(quick=10, full=84)))
    violated = [case for case in cases if not case.trp]
    restricted = [_on_its_own_support(case) for case in violated if case.market.agents[0].count == 2]
    pays = all(case.pays for case in restricted) if restricted else None
    return Findings(
        computed=(
            f"Two rules in fractions that violate TRP at the means 1, ½, 0, and {tried} random priors, copies and "
            "horizons under each (one to four originals); that no copies pay under any prior is proven in the "
            f"textbook. The violations of TRP among {len(cases)} random markets of one agent, those with two "
            "originals again with a prior on the two means. All exact."
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
        ),
        tables=(_table(rules),),
    )


def _on_its_own_support(violating: Trial) -> Trial:
    """Repeat the trial with a prior on the two means that violate TRP most."""
    (means, _), _ = min(violating.margins.items(), key=lambda pair: pair[1].value)
    prior = Discrete(list(means), [0.5, 0.5])
    return trial(violating.mechanism, violating.market.with_agents([Agent(AGENT, 2, prior)]))


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
            "For permutation-invariant algorithms and two originals it is true; for three there are rules that violate "
            "TRP at some means and under which no copies pay, whatever the prior."
        )
    },
)
