"""Section 5's first step: agents chosen uniformly, a TRP and PI algorithm inside: clone-proof, and linear regret."""

from __future__ import annotations

import math
from dataclasses import replace

from scipy.stats import binom

from cloneproof.audits.audit import audit
from cloneproof.audits.result import Audit
from cloneproof.bounds import uniform_etc_regret_at_least
from cloneproof.evaluation.evaluate import evaluate, evaluate_horizons
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.paper.evidence import AUDITED, above, agrees, all_of, by_high, by_law, by_value, size
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, detail, ours, table
from cloneproof.runs.estimate import Estimate

ANA = "ana"
PRIORS = {
    "0 or 1": Discrete([0, 1], [0.5, 0.5]),
    "1/4 or 3/4": Discrete([0.25, 0.75], [0.5, 0.5]),
    "0 or 1/2": Discrete([0, 0.5], [0.5, 0.5]),
}
COPIES = (2, 2)
ROUNDING = 1e-9


def run(setting: RowSetting) -> Findings:
    """Audit against all opponents; compare the payoff with its formula, and the regret."""
    horizons = setting.pick(quick=(100, 1000), full=(100, 1000, 10**4))
    audits = {(prior, n, t): _audit(setting, prior, n, t) for prior in PRIORS for n in (2, 3) for t in horizons}
    payoffs = [
        _payoff(setting, prior, n, t) for prior in PRIORS for n in (2, 3) for t in horizons[: setting.pick(1, 2)]
    ]
    growth = [(t, _regret(setting, t)) for t in (10**3, 10**6, 10**9)]
    least = uniform_etc_regret_at_least([[0.9], [0.1]], 1)
    short = by_law(_market(PRIORS["0 or 1/2"], 2, 100), setting.mechanism("uniform-etc", arm_rounds=1), COPIES).gain
    apart = max((_apart(payoff, plain) for payoff, plain, _ in payoffs), key=by_value)
    apart_mixed = max((_apart(payoff, mixed) for payoff, _, mixed in payoffs), key=by_value)
    nearest = max((result.worst.gain for result in audits.values()), key=by_high)
    return Findings(
        computed=(
            "Uniform x ETC at the m of Theorem 3 for priors on {0, 1}, {1/4, 3/4} and {0, 1/2}, two and three agents, "
            f"T from {horizons[0]:,} to {horizons[-1]:,}: complete audits (all copies, all opponents; the others "
            "cannot reach an agent here). The payoff against the paper's formula and against the corrected one, from "
            "the single-agent payoff at every number of rounds."
        ),
        checks=(
            claim(
                "Uniform selection of agents with ETC inside is clone-proof.",
                all_of([AUDITED[result.verdict] for result in audits.values()]),
                ("audits", len(audits)),
                ("gain that comes nearest to paying", nearest),
            ),
            claim(
                "Its regret is linear.",
                all_of([above(regret, least * t - 1e-6 * t) for t, regret in growth]),
                *((f"regret per round, T = {t:,}", regret.scaled(1 / t)) for t, regret in growth),
            ),
            detail(
                "The payoff is u_i = Γ_i(T)/n, the single-agent payoff divided by n.",
                all(agrees(payoff, plain, ROUNDING) for payoff, plain, _ in payoffs),
                ("largest difference", apart),
            ),
            ours(
                "It is E Γ_i(Bin(T, 1/n)): so the algorithm inside must be TRP at every horizon up to T, as ETC is.",
                all(agrees(payoff, mixed, ROUNDING * 10) for payoff, _, mixed in payoffs),
                ("largest difference", apart_mixed),
            ),
            ours(
                "ETC inside with too little exploration (m = 1) is not clone-proof either.",
                above(short),
                ("gain of copies (2, 2), prior {0, 1/2}, T = 100", short),
            ),
        ),
        tables=(_table(audits),),
    )


def _market(prior: Discrete, agents: int, horizon: int) -> Market:
    others = [Agent(f"bo {k}", 1, Point(0.5)) for k in range(1, agents)]
    return Market([Agent(ANA, 2, prior), *others], horizon=horizon)


def _audit(setting: RowSetting, prior: str, agents: int, horizon: int) -> Audit:
    market = _market(PRIORS[prior], agents, horizon)
    return audit(market, setting.mechanism("uniform-etc", market=market), agent=ANA, opponents="any")


def _payoff(setting: RowSetting, prior: str, agents: int, horizon: int) -> tuple[Estimate, float, float]:
    """Return the payoff with copies, Γ(T)/n, and E Γ(Bin(T, 1/n)) from the single-agent payoffs at every horizon."""
    market = _market(PRIORS[prior], agents, horizon)
    mechanism = setting.mechanism("uniform-etc", market=market)
    payoff = evaluate(market, mechanism, {ANA: COPIES}).payoff[ANA]
    alone = setting.mechanism("etc", arm_rounds=mechanism.parameters["arm_rounds"])
    single = evaluate_horizons(_market(PRIORS[prior], 1, horizon), alone, range(1, horizon + 1), {ANA: COPIES})
    chances = binom.pmf(range(1, horizon + 1), horizon, 1 / agents)
    mixed = math.fsum(chances[h - 1] * single[h].payoff[ANA].value for h in range(1, horizon + 1))
    return payoff, single[horizon].payoff[ANA].value / agents, mixed


def _regret(setting: RowSetting, horizon: int) -> Estimate:
    market = Market([Agent("a", 1, Point(0.9)), Agent("b", 1, Point(0.1))], horizon=horizon)
    return evaluate(market, setting.mechanism("uniform-etc", arm_rounds=5)).regret


def _apart(payoff: Estimate, other: float) -> Estimate:
    return size(replace(payoff, value=payoff.value - other))


def _table(audits: dict[tuple[str, int, int], Audit]) -> FindingsTable:
    return table(
        "Audits of uniform x ETC: all copies, all opponents",
        "prior | agents | T | m | verdict | nearest copies | their gain",
        (
            (
                prior,
                n,
                f"{t:,}",
                int(result.mechanism.parameters["arm_rounds"]),
                result.verdict,
                str(at.copies),
                at.gain,
            )
            for (prior, n, t), result in audits.items()
            for at in (result.worst,)
        ),
    )


ROW = Row(
    8,
    "Section 5: a uniform first phase",
    "Section 5: if “the first phase runs a simple uniform-random selection algorithm, and the second phase runs some "
    "arbitrary TRP and PI algorithms, then the resulting algorithm is replication-proof”, with u_i = Γ_i/n; and it "
    "“suffers linear regret”.",
    run,
    summary={
        "confirmed with corrections": (
            "With ETC inside it is clone-proof and its regret is linear; the payoff is not Γ(T)/n, so the algorithm "
            "inside must be TRP at every horizon up to T."
        )
    },
)
