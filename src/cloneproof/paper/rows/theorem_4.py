"""Theorem 4: H-ETC-R is not clone-proof; the attacks, the step of the proof that breaks, and what would save it.

*Attacks* are markets and copies. *Harder* ones answer what may be said in its defence: L read off registrations, other
orders of exploration, a longer m. Where L is read off, honest registration is played with L = 2 and copies (2, 1) with
L = 3, so that their exploration fits.

*Score tails*: q(y) is the chance that an agent's average over its M rounds of trial reaches y, given the means of its
arms. The proof bounds it by psi(y), from below for an honest agent (`cl:tail_lower`) and from above for any copies
(`cl:tail_upper`). It is not clear what psi is: the text means m rewards of each arm and M - lm of the best one, the
formulas print M rewards of the best arm. Both are computed.

*Threshold gains*: what copies gain at every score that opponents may set. In a trial every agent has the same rounds,
and then an award is decided by scores. Against fixed others an agent wins it with a probability g(score) that does not
fall in its score. A nondecreasing g is a mixture of steps "wins with a score of at least y", y = "never" included, and
payoffs are linear in g. So no opponents, with any means and strategies, allow a larger gain than the best single
threshold, provided the others are independent of the agent's means. Realisations with equally good originals are kept
apart: copies change nothing there, and their parts cancel exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.stats import binom

from cloneproof._lib.arrays import FloatArray
from cloneproof.audits.audit import audit
from cloneproof.audits.deviations import CopiesOf, CopyVector
from cloneproof.audits.result import Audit
from cloneproof.audits.search_result import Witness
from cloneproof.bounds import etc_rounds, mistake_paper, trial_rounds
from cloneproof.evaluation.evaluate import evaluate
from cloneproof.evaluation.search import Search
from cloneproof.laws.means import CopiedOriginal, ExactAtoms, MeanCounts, merge_equal_means, prior_mean, realisations
from cloneproof.laws.points import exact_points
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.mechanisms.bandits.rule import Order
from cloneproof.mechanisms.committing.commitment import Phases, agent_score, commitment_of_types
from cloneproof.mechanisms.committing.committing import Committing
from cloneproof.mechanisms.committing.rewards import Bernoulli, Deterministic, RewardLaw
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.paper.evidence import AUDITED, above, all_of, at_most, by_law, by_value, rounded
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, detail, ours, table
from cloneproof.runs.estimate import Estimate

ANA = "ana"
HIT_OR_MISS = Discrete([0, 1], [0.5, 0.5])
QUARTERS = Discrete([0.25, 0.75], [0.5, 0.5])
ORDERS: tuple[Order, ...] = ("round-robin", "block", "index")
FACTORS = (2, 8)  # of L ln 2T: the theorem's m, and the proof's, four times as long
ROUNDING = 1e-11  # of a tail: far more than sums of a few thousand positive terms lose
VISIBLE = 1e-30  # the engine leaves out tails far below this, so that a ratio of such tails says nothing
SWEEP_ROUNDING = 1e-10  # of a payoff that is at most the horizon: a few thousand positive terms in floats
NAME = "h-etc-r"
MEANS = (0.75, 0.25)
TIED = (1.0, 0.5)  # means with which the best arm may tie with a worse one at the highest score


@dataclass(frozen=True)
class Attack:
    """A market in which Ana copies one of her two originals, and how long H-ETC-R's trial is: mL, or √(T ln T)."""

    name: str
    market: Market
    copies: CopyVector
    long_trial: bool = False

    @property
    def arm_rounds(self) -> int:
        """Theorem 4's m, at the gap of Ana's prior and L = 2."""
        low, high = (value for value, _ in self.market.agents[0].priors[0].atoms or ())
        return etc_rounds(2, high - low, self.market.horizon)

    @property
    def agent_rounds(self) -> int:
        """M, the least that Theorem 4 allows, or Theorem 5's."""
        m = self.arm_rounds
        return trial_rounds(m, 2, self.market.horizon) if self.long_trial else 2 * m

    def papers_mechanism(self, setting: RowSetting) -> Mechanism:
        return setting.mechanism("h-etc-r", agent_rounds=self.agent_rounds, arm_rounds=self.arm_rounds)

    def witness(self, mechanism: Mechanism) -> Witness:
        """Return the deviation under any mechanism, both payoffs by the closed form."""
        paid = by_law(self.market, mechanism, self.copies)
        return Witness.of(CopiesOf(ANA, self.copies), self.market, paid)


def attacks(million: int = 10**6) -> dict[str, Attack]:
    """Return the counterexamples to Theorem 4, by a name that can be a file's."""
    short, long = "M = mL", "M = √(T ln T)"
    honest = [Agent(name, prior=[Point(1.0), Point(0.0)]) for name in ("bo", "cy")]
    return {
        "short-trial": Attack(f"{short}, T = 4,000", _duel(HIT_OR_MISS, 0.6, 4000, "deterministic"), (2, 1)),
        "short-trial-noise": Attack(f"{short}, T = 4,000, Bernoulli", _duel(HIT_OR_MISS, 0.6, 4000), (2, 1)),
        "short-trial-10000": Attack(f"{short}, T = 10,000", _duel(HIT_OR_MISS, 0.6, 10**4, "deterministic"), (2, 1)),
        "short-trial-quarters": Attack(f"{short}, means 1/4 or 3/4, T = 4,000", _duel(QUARTERS, 0.55, 4000), (3, 1)),
        "long-trial": Attack(f"{long}, T = 10⁶", _duel(HIT_OR_MISS, 0.988, million, "deterministic"), (100, 1), True),
        "long-trial-honest-rivals": Attack(
            f"{long}, T = 10⁶, two rivals of means (1, 0)",
            Market([Agent(ANA, 2, HIT_OR_MISS), *honest], horizon=million, rewards="deterministic"),
            (100, 1),
            True,
        ),
        "long-trial-quarters": Attack(
            f"{long}, means 1/4 or 3/4, T = 10⁶", _duel(QUARTERS, 0.73, million), (40, 1), True
        ),
    }


def _duel(prior: Discrete, rival: float, horizon: int, rewards: str = "bernoulli") -> Market:
    return Market([Agent(ANA, 2, prior), Agent("bo", 1, Point(rival))], horizon=horizon, rewards=rewards)


class HarderAttack(NamedTuple):
    """One order of exploration and one factor of L ln 2T; payoffs of honest and of copied registration, share 1."""

    order: Order
    factor: int
    honest: Estimate
    declared: Estimate
    read_off: Estimate

    @property
    def gains(self) -> tuple[Estimate, Estimate]:
        """Gain of the copies if L = 2 is declared, and if L is the most arms that an agent registered."""
        return self.declared - self.honest, self.read_off - self.honest


def harder_attacks(setting: RowSetting) -> list[HarderAttack]:
    """Try every order with either factor."""
    market = attacks()["short-trial"].market
    cases = (((1, 1), 2), ((2, 1), 2), ((2, 1), 3))  # what is registered, and L
    return [
        HarderAttack(order, factor, *(_payoff(setting, market, *case, factor, order) for case in cases))
        for factor in FACTORS
        for order in ORDERS
    ]


def _payoff(
    setting: RowSetting, market: Market, copies: tuple[int, int], largest: int, factor: int, order: Order
) -> Estimate:
    m = math.ceil(factor * largest * math.log(2 * market.horizon))
    mechanism = setting.mechanism("h-etc-r", agent_rounds=m * largest, arm_rounds=m, order=order)
    return evaluate(market, mechanism, {ANA: copies}).payoff[ANA]


Tail = np.ndarray[Any, Any]  # P(sum of the trial's rewards >= s) for s = 0, 1, .., M
Reading = Literal["own arms", "best arm"]


def score_tail(mechanism: Mechanism, means: Sequence[float], copies: Sequence[int]) -> Tail:
    """Return q: by the exact engine, Bernoulli rewards, for an agent of these means.

    >>> from cloneproof.mechanisms import mechanism
    >>> tail = score_tail(mechanism("h-etc-r", agent_rounds=72, arm_rounds=36), (1, 0), (2, 1))
    >>> [round(float(tail[s]), 9) for s in (48, 49)]
    [1.0, 0.0]
    """
    assert isinstance(mechanism, Committing)
    trial = mechanism.agent_rounds
    originals = [CopiedOriginal(((mean, Fraction(1)),), count) for mean, count in zip(means, copies, strict=True)]
    score = agent_score(originals, Phases(mechanism, trial, 1), Bernoulli())
    law = np.zeros(trial + 1)
    at = score.scores >= 0
    law[score.scores[at].astype(int)] = score.chances[at].astype(float)
    return _from_above(law)


def psi_tail(mechanism: Mechanism, means: Sequence[float], reading: Reading = "own arms") -> Tail:
    """Return psi: m rewards of each arm and the rest of the best one, or all M of the best arm, as printed."""
    m, own = mechanism.parameters["arm_rounds"], means if reading == "own arms" else ()
    left = mechanism.parameters["agent_rounds"] - len(own) * m
    law = binom.pmf(np.arange(left + 1), left, max(means))
    for mean in own:
        law = np.convolve(law, binom.pmf(np.arange(m + 1), m, mean))
    return _from_above(law)


class TailComparison(NamedTuple):
    """Two tails at one y, the average to be reached; a claim says that `less` is at most `more`."""

    y: float
    less: float
    more: float

    @property
    def excess(self) -> float:
        """By how much the claim fails (negative: the room that it has)."""
        return self.less - self.more


def worst_comparisons(less: Tail, more: Tail) -> tuple[TailComparison, TailComparison]:
    """Return where the claim fails most, or comes closest to failing: absolutely, and by the largest part of `less`."""
    visible = less > VISIBLE
    ratio = np.divide(more, less, out=np.ones_like(more), where=visible)
    absolute, relative = int(np.argmax(np.where(visible, less - more, -1.0))), int(np.argmin(ratio))
    first, second = (TailComparison(k / (len(less) - 1), float(less[k]), float(more[k])) for k in (absolute, relative))
    return first, second


def tail_upper(mechanism: Mechanism, means: Sequence[float], copies: Sequence[int], reading: Reading) -> TailComparison:
    """Check `cl:tail_upper`: q <= psi at every y, for these copies."""
    return worst_comparisons(score_tail(mechanism, means, copies), psi_tail(mechanism, means, reading))[0]


def tail_lower(mechanism: Mechanism, means: Sequence[float], reading: Reading) -> tuple[TailComparison, TailComparison]:
    """Check `cl:tail_lower`: honest q >= psi (1 - 2 sum exp(-delta^2 m / 2))."""
    best, m = max(means), mechanism.parameters["arm_rounds"]
    factor = max(0.0, 1 - sum(mistake_paper(best - mean, m) for mean in means if mean < best))
    honest = score_tail(mechanism, means, (1,) * len(means))
    return worst_comparisons(factor * psi_tail(mechanism, means, reading), honest)


def _from_above(law: Tail) -> Tail:
    return np.asarray(np.cumsum(law[::-1])[::-1])


def threshold_gains(market: Market, mechanism: Mechanism, vectors: Iterable[tuple[int, ...]]) -> list[Estimate]:
    """Return the largest gain of each vector of Ana's copies over all scores that any opponents may set."""
    game = TwoPhases.of(market, mechanism, ANA)
    honest, error = profile(game, (1,) * len(game.priors)), SWEEP_ROUNDING * market.horizon
    return [
        Estimate(largest_gain(game, honest, copied), error, "exact", "sweep over thresholds")
        for copied in (profile(game, copies) for copies in vectors)
    ]


def run(setting: RowSetting) -> Findings:
    """Try attacks, both tail claims, and copies that fit into the trial or do not."""
    played = attacks()
    witnesses = {name: attack.witness(attack.papers_mechanism(setting)) for name, attack in played.items()}
    paying = {name: witness for name, witness in witnesses.items() if witness.gain.low > 0}
    fitting, beyond = _by_fit(setting)
    upper, lower = _claims(setting)
    last_line = {(l_, t): l_ * math.log(2 * t) - l_ - 0.25 for l_ in range(1, 20) for t in (1, 2)}
    footnote, harder = _footnote(setting), harder_attacks(setting)
    most, most_beyond = (max(gains, key=by_value) for gains in (fitting, beyond))
    return Findings(
        computed=(
            f"{len(played)} attacks by one agent of two originals, both payoffs by the closed form, m as the theorem "
            "asks, M = mL (the least it allows) and M = √(T ln T) (Theorem 5's). Of the proof: the chance q(y) that an "
            "agent's trial averages at least y, exactly, against both readings of ψ, at every y. Then the gain at "
            f"every score that opponents may set, for {len(fitting)} vectors of copies whose exploration fits into the "
            f"trial and {len(beyond)} of which it does not."
        ),
        checks=(
            claim(
                "H-ETC-R with M ≥ mL and m = (2/gap²) L ln 2T is replication-proof.",
                False if paying else AUDITED[_audit(setting, played["short-trial"]).verdict],
                *(
                    (f"{played[name].name}: gain of copies {witness.copies}", witness.gain)
                    for name, witness in paying.items()
                ),
            ),
            detail(
                "Claim tail_upper, ψ as the text describes it (m rewards of each arm, then the best): q ≤ ψ for all "
                "copies.",
                _holds(upper["own arms"]),
                *_evidence("q", "ψ", upper["own arms"]),
            ),
            detail(
                "Claim tail_lower, ψ as described: honest q ≥ ψ (1 - 2 Σ exp(-δ² m/2)) for every y.",
                _holds(lower["own arms"]),
                *_evidence("bound", "q", lower["own arms"]),
            ),
            detail(
                "Claim tail_upper, ψ as printed (M rewards of the best arm).",
                _holds(upper["best arm"]),
                *_evidence("q", "ψ", upper["best arm"]),
            ),
            detail(
                "Claim tail_lower, ψ as printed.",
                _holds(lower["best arm"]),
                *_evidence("bound", "q", lower["best arm"]),
            ),
            detail(
                "The end of the proof: l ln(2T) - l - 1/4 ≥ 0, “from T ≥ 1”.",
                all(last_line[l_, 1] >= 0 for l_ in range(1, 20)),
                ("its value for l = 2, T = 1", rounded(last_line[2, 1], ROUNDING)),
                ("T = 2", rounded(last_line[2, 2], ROUNDING)),
            ),
            detail(
                "Footnote: the mechanism can be made prior-independent (here m = ⌊ln⁴ T⌋, L replaced by ln T).",
                False if footnote.low > 0 else None,
                ("gain of 50 copies of one original, T = 10⁹, rival of mean 0.97", footnote),
            ),
            ours(
                "It fails as well where L is read off the registrations, in every order of exploration, and with the "
                "proof's four times longer m: copies (2, 1), rival 0.6, T = 4,000.",
                all_of([above(gain) for case in harder for gain in case.gains]),
                ("variants", 2 * len(harder)),
                ("honest payoff, all of them", harder[0].honest),
                ("copies (2, 1), L read off, the theorem's m", harder[0].read_off),
                ("least gain of a variant", min((gain for case in harder for gain in case.gains), key=by_value)),
            ),
            ours(
                "With the assumption that the copies' exploration fits into the trial, m |S_i| ≤ M, no copies pay at "
                "any threshold.",
                all_of([at_most(gain) for gain in fitting]),
                ("vectors of copies", len(fitting)),
                ("largest gain over all of them", most),
            ),
            ours(
                "Without that assumption copies pay.",
                above(most_beyond),
                ("vectors of copies", len(beyond)),
                ("largest gain over all of them", most_beyond),
            ),
            ours(
                "The proof's factor 4 in m is not needed: exp(-gap² m/2) ≤ 1/(4 l T) holds at the theorem's m.",
                all((2.0 * t) ** -l_ <= 1 / (4 * l_ * t) for l_ in range(2, 30) for t in (2, 10, 10**3, 10**9)),
            ),
        ),
        tables=(_table(played, witnesses),),
    )


def _footnote(setting: RowSetting) -> Estimate:
    """Try fifty copies on a prior-independent H-ETC-R: m = ⌊ln⁴ T⌋, M = max(m ln T, √(T ln T))."""
    horizon = 10**9
    m = math.floor(math.log(horizon) ** 4)
    trial = max(math.ceil(m * math.log(horizon)), math.ceil(math.sqrt(horizon * math.log(horizon))))
    market = Market([Agent(ANA, 2, HIT_OR_MISS), Agent("bo", 1, Point(0.97))], horizon, rewards="deterministic")
    return by_law(market, setting.mechanism(NAME, agent_rounds=trial, arm_rounds=m), (50, 1)).gain


def _audit(setting: RowSetting, attack: Attack) -> Audit:
    return audit(attack.market, attack.papers_mechanism(setting), agent=ANA, search=Search(copies=3), opponents="any")


def _claims(setting: RowSetting) -> tuple[dict[Reading, list[TailComparison]], dict[Reading, list[TailComparison]]]:
    """Check both claims in both readings, where each fails most, over a few means and copies."""
    apart = setting.mechanism(NAME, agent_rounds=288, arm_rounds=144)
    tied = setting.mechanism(NAME, agent_rounds=96, arm_rounds=24)
    tried = [(apart, MEANS, copies) for copies in ((2, 1), (1, 2), (3, 1), (10, 1))] + [(tied, TIED, (2, 1))]
    upper: dict[Reading, list[TailComparison]] = {}
    lower: dict[Reading, list[TailComparison]] = {}
    for reading in get_args(Reading):
        upper[reading] = [tail_upper(*case, reading) for case in tried]
        lower[reading] = [*tail_lower(apart, MEANS, reading), *tail_lower(tied, TIED, reading)]
    return upper, lower


def _holds(cases: Sequence[TailComparison]) -> bool:
    """Return whether the claim holds everywhere, up to roundings that are a small part of either tail."""
    return all(case.excess <= ROUNDING * max(case.less, case.more) + 1e-30 for case in cases)


def _evidence(less: str, more: str, cases: Sequence[TailComparison]) -> tuple[tuple[str, Estimate], ...]:
    plain = max(cases, key=lambda case: case.excess)
    worst = plain if plain.excess > 0.01 else max(cases, key=lambda case: case.excess / max(case.less, 1e-300))
    return (
        (f"{less} at y = {worst.y:.3g}", rounded(worst.less, ROUNDING)),
        (f"{more} there", rounded(worst.more, ROUNDING)),
    )


def _by_fit(setting: RowSetting) -> tuple[list[Estimate], list[Estimate]]:
    """Sweep copies whose exploration fits into the trial and some whose exploration does not."""
    fitting: list[Estimate] = []
    beyond: list[Estimate] = []
    horizon = setting.pick(quick=10**5, full=10**6)
    for name in ("long-trial-quarters", "long-trial"):
        attack = attacks(horizon)[name]
        mechanism, fit = attack.papers_mechanism(setting), attack.agent_rounds // attack.arm_rounds
        step = setting.pick(quick=5, full=2) if fit > 10 else 1
        every = [(a, b) for k in range(3, fit + 1, step) for b in range(1, k // 2 + 1, step) if (a := k - b) >= b]
        more = [(k, 1) for k in (fit, fit + 1, 3 * fit // 2, 2 * fit, 4 * fit)]
        swept = threshold_gains(attack.market, mechanism, [*every, *more])
        fitting += swept[: len(every)]
        beyond += swept[len(every) :]
    return fitting, beyond


def _table(played: dict[str, Attack], witnesses: dict[str, Witness]) -> FindingsTable:
    return table(
        "The attacks, by the closed form (share 1)",
        "market | m | M | copies | honest payoff | with the copies | gain",
        (
            (attack.name, attack.arm_rounds, attack.agent_rounds, str(attack.copies), at.honest, at.copied, at.gain)
            for attack, at in zip(played.values(), witnesses.values(), strict=True)
        ),
    )


@dataclass(frozen=True)
class TwoPhases:
    """H-ETC-R for one agent: its priors, the phases and the law of its rewards. Laws of scores are computed once."""

    share: float
    priors: tuple[ExactAtoms, ...]
    phases: Phases
    rewards: RewardLaw
    _scores: dict[MeanCounts, tuple[FloatArray, FloatArray]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, market: Market, mechanism: Mechanism, agent: str) -> TwoPhases:
        """Return the game of one agent: bernoulli or deterministic rewards, and a horizon beyond the trial."""
        priors = tuple(exact_points(prior, 0) for prior in next(a for a in market.agents if a.name == agent).priors)
        assert isinstance(mechanism, Committing)
        trial = mechanism.agent_rounds
        award = market.horizon - len(market.agents) * trial
        assert award > 0
        means = {value for atoms in priors for value, _ in atoms}
        coins = market.family.law == "coin"
        rewards = Bernoulli() if coins else Deterministic.of(means)
        return cls(float(market.share), priors, Phases(mechanism, trial, award), rewards)


@dataclass(frozen=True)
class CopiesInTwoPhases:
    """A vector of copies, in rewards before the share: what the trial pays, and the award's reward by score.

    `varied` counts only realisations in which the originals differ; it has the scores and E[award's reward; score].
    """

    trial: float
    varied: tuple[FloatArray, FloatArray]


def profile(game: TwoPhases, copies: tuple[int, ...]) -> CopiesInTwoPhases:
    """Return what these copies earn in the trial, and in the award at each score."""
    arms, phases = sum(copies), game.phases
    originals = [CopiedOriginal(atoms, count) for atoms, count in zip(game.priors, copies, strict=True)]
    mean = sum((prior_mean(original.atoms) * original.copies for original in originals), Fraction(0)) / arms
    ordered, excess, laws = phases.order_matters(arms), 0.0, []
    for weight, runs in realisations(originals, ordered):
        if len({value for value, _ in runs}) == 1:
            continue
        explored = sum((Fraction(value) * count for value, count in runs), Fraction(0)) / arms
        groups, chosen = commitment_of_types(merge_equal_means(runs), phases.arm_rounds, game.rewards)
        committed = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
        excess += float(weight) * (committed - float(explored))
        scores, awards = _award(game, runs, ordered)
        laws.append((scores, float(weight) * awards))
    late = max(0, phases.trial - arms * phases.arm_rounds)
    scores = np.unique(np.concatenate([scores for scores, _ in laws]))
    awards = np.zeros(len(scores))
    for own, parts in laws:
        awards[np.searchsorted(scores, own)] += parts
    return CopiesInTwoPhases(float(mean * phases.trial) + excess * late, (scores, awards))


def _award(game: TwoPhases, runs: MeanCounts, ordered: bool) -> tuple[FloatArray, FloatArray]:
    key = runs if ordered else merge_equal_means(runs)
    if key not in game._scores:
        points = [CopiedOriginal(((mean, Fraction(1)),), count) for mean, count in key]
        law = agent_score(points, game.phases, game.rewards)
        game._scores[key] = (law.scores, law.awards)
    return game._scores[key]


def largest_gain(game: TwoPhases, honest: CopiesInTwoPhases, copied: CopiesInTwoPhases) -> float:
    """Return what the copies gain at the best threshold, a score that nobody reaches included."""
    grid = np.append(np.union1d(honest.varied[0], copied.varied[0]), np.inf)
    won = _won(copied, grid) - _won(honest, grid)
    return game.share * float((won + (copied.trial - honest.trial)).max())


def _won(paid: CopiesInTwoPhases, at: FloatArray) -> FloatArray:
    """Return what the award pays with a score of at least each threshold."""
    scores, awards = paid.varied
    sums = np.append(np.cumsum(awards[::-1])[::-1], 0.0)
    return np.asarray(sums[np.searchsorted(scores, at)])


ROW = Row(
    9,
    "Theorem 4: H-ETC-R",
    "Theorem 4: “Consider a stochastically ordered family of arms, and discrete support of prior distributions. "
    "Consider H-ETC-R with M ≥ mL and m = (2/Δ²) L ln(2T), and τ = Mn. Then, H-ETC-R is replication-proof”; its claims "
    "on the tails of scores; its footnote on a prior-independent version.",
    run,
    summary={
        "refuted as stated": (
            "Copies pay, also where L is read off the registrations; with m, M and a cap of ⌊M/m⌋ arms declared "
            "beforehand, none pay."
        )
    },
)
