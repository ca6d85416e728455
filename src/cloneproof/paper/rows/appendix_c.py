"""Appendix C: originals of different priors; whether a dominated one is left out, and whether copies pay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cloneproof.evaluation.evaluate import evaluate
from cloneproof.market import Agent, Discrete, Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.paper.evidence import above, all_of, at_most, by_value
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, detail, ours, reading, table
from cloneproof.runs.estimate import Estimate

ANA, ETC = "ana", "etc"
PAIRS = ((0.9, 0.1), (0.6, 0.4), (0.5, 0.3))  # P(mean 1) of the better and of the dominated original
BOTH, BETTER, WORSE, COPIED = (1, 1), (1, 0), (0, 1), (3, 1)


def run(setting: RowSetting) -> Findings:
    """Compare payoffs of registering one, both, or copies over T: two originals, one prior dominated by the other."""
    horizons = setting.pick(quick=(20, 100, 1000, 10**6), full=(20, 50, 100, 200, 500, 1000, 10**4, 10**6))
    cases = [_DominatedCase(setting, pair, t) for pair in PAIRS for t in horizons]
    dropped = [case.gain(BOTH, BETTER) for case in cases]
    pays = [case for case, gain in zip(cases, dropped, strict=True) if gain.low > 0]
    ordered = [case.gain(BETTER, WORSE) for case in cases]
    copied = [case.gain(COPIED, BOTH) for case in cases]
    early = max(copied, key=by_value)
    left_out = _DominatedCase(setting, PAIRS[0], horizons[0]).gain(BETTER, BOTH)
    return Findings(
        computed=(
            "One agent with two originals of mean 0 or 1; the chance of a 1 is larger for the first, so that its prior "
            f"dominates the other's: {', '.join(f'{a:g} and {b:g}' for a, b in PAIRS)}. Exact payoffs of registering "
            "the better one, the dominated one, both, and both with copies, under ETC at the m of Theorem 3 for T "
            f"from {horizons[0]} to {horizons[-1]:,}."
        ),
        checks=(
            reading(
                "“F₂ is dominant strategy over F₁”, read as “so it reduces to the symmetric case with F₂” has it: "
                "a dominated type of arm is left out; the better original alone is never worse than both.",
                False if pays else all_of([at_most(gain, 0.0, 1e-9) for gain in dropped]),
                *(
                    (f"gain of registering the dominated one too, {case.name}", case.gain(BOTH, BETTER))
                    for case in pays[-3:]
                ),
            ),
            detail(
                "Arm for arm it is so: of a single arm to register, the one of the dominating prior is the better.",
                all_of([above(gain) for gain in ordered]),
                ("least difference of payoffs", min(ordered, key=by_value)),
            ),
            ours(
                "At short horizons the remark holds: exploring the dominated original costs more than it finds.",
                above(left_out),
                (f"gain of leaving it out, T = {horizons[0]}", left_out),
            ),
            ours(
                "With different priors ETC at Theorem 3's m is not replication-proof: copies shift exploration to the "
                "better original while it lasts.",
                above(early),
                ("largest gain of copies (3, 1) over (1, 1)", early),
            ),
        ),
        tables=(_table(cases),),
    )


@dataclass(frozen=True)
class _DominatedCase:
    setting: RowSetting
    chances: tuple[float, float]
    horizon: int

    @property
    def name(self) -> str:
        return f"P(1) = {self.chances[0]:g} and {self.chances[1]:g}, T = {self.horizon:,}"

    @property
    def market(self) -> Market:
        priors = [Discrete([0, 1], [1 - p, p]) for p in self.chances]
        return Market([Agent(ANA, prior=priors)], horizon=self.horizon)

    @cached_property
    def etc(self) -> Mechanism:
        return self.setting.mechanism(ETC, market=self.market)

    @cached_property
    def payoffs(self) -> dict[tuple[int, int], Estimate]:
        """Payoffs of registering the better one, the dominated one, both, and copies of the better one."""
        vectors = (BETTER, WORSE, BOTH, COPIED)
        return {own: evaluate(self.market, self.etc, {ANA: own}).payoff[ANA] for own in vectors}

    def gain(self, copies: tuple[int, int], over: tuple[int, int]) -> Estimate:
        return self.payoffs[copies] - self.payoffs[over]


def _table(cases: list[_DominatedCase]) -> FindingsTable:
    return table(
        "Payoff under ETC (share 1): what to register?",
        "priors and horizon | m | better alone | dominated alone | both | both, better one three times",
        ((case.name, case.etc.parameters["arm_rounds"], *case.payoffs.values()) for case in cases),
    )


ROW = Row(
    11,
    "Appendix C: different priors for different originals",
    "Appendix C, a remark: “one can find some evidences .. if an agent has "
    "two types of arms each sampling from distributions F₁ and F₂ and if F₁ is "
    "stochastically dominated by F₂, then one can easily argue that F₂ is dominant strategy over F₁, so it reduces to "
    "the symmetric case with F₂.”",
    run,
    summary={
        "refuted on our reading": (
            "If it means that the dominated type is left out: at long horizons both originals earn more than the "
            "better one alone. Arm for arm, and at short horizons, the remark holds."
        )
    },
)
