"""How long a request would take, roughly, so that an endless one is refused before it starts."""

from __future__ import annotations

import math

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic
from cloneproof.engines.closed_form.laws.tie_breaking import node_count
from cloneproof.engines.closed_form.phases.commitment import EqualArms
from cloneproof.engines.closed_form.phases.committed_sums import MeanCounts
from cloneproof.engines.closed_form.phases.cut_exploration import merge_equal_means
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal, count_realisations, realisations
from cloneproof.engines.closed_form.phases.round_schedule import Binomial
from cloneproof.engines.closed_form.phases.trial_score import Phases
from cloneproof.errors import EngineError
from cloneproof.mechanisms.rule import Order

SECONDS = 60.0
GIBIBYTES = 8.0
REACH = 14.4  # standard deviations of a binomial law's window, on either side
MOST_REALISATIONS = 100_000


def check_levels(groups: list[EqualArms], arm_rounds: list[int], arithmetic: Arithmetic) -> None:
    """Refuse commitments over too many arms, one for each number of exploration rounds."""
    means = [value for group in groups for value, _ in group.atoms]
    arms = sum(group.copies * group.number for group in groups)
    seconds = 0.0
    for rounds in arm_rounds:
        seconds += _commitment_seconds(means, arms, rounds, arithmetic)
        seconds += sum(window(rounds, mean) for mean in set(means)) * 1e-5
    _refuse_beyond(seconds, 0.0, f"a commitment over {arms} arms after {max(arm_rounds, default=0)} rounds each")


def check_random_rounds(rounds: Binomial, cap: int) -> None:
    """Refuse an expected minimum whose cap lies among too many likely numbers of rounds."""
    mean, chance = rounds.rounds * float(rounds.chance), float(rounds.chance)
    reach = REACH * math.sqrt(rounds.rounds * chance * (1 - chance))
    terms = max(0.0, reach - abs(cap - mean))
    _refuse_beyond(terms * 6e-6, 0.0, f"{terms:.2g} likely numbers of rounds beyond the exploration's end")


def check_trials(agents: list[tuple[CopiedOriginal, ...]], phases: Phases, arithmetic: Arithmetic) -> None:
    """Refuse scores of too many realisations, or of too long trials."""
    scored = phases.mechanism.scoring.counted_in(phases.trial)
    what = f"the scores of {len(agents)} agents over {scored} rounds"
    seconds = memory = entries = 0.0
    size = 200.0 if arithmetic.proven else 8.0
    for originals in set(agents):
        ordered = phases.order_matters(sum(original.copies for original in originals))
        number = count_realisations(list(originals), ordered)
        if number > MOST_REALISATIONS:
            _refuse_beyond(number * 2e-3, 0.0, f"{number:.2g} realisations of an agent's means")
        for _, runs in realisations(list(originals), ordered):
            seconds += _realisation_seconds(runs, phases, scored, arithmetic)
            entries += window(scored, 0.5)
            if seconds > 100 * SECONDS:
                break
    grid = min(scored + 1.0, entries)
    seconds += (
        grid * len(agents) * node_count(len(agents) - 1, arithmetic.proven) * (2e-6 if arithmetic.proven else 1e-8)
    )
    memory += (entries + 5 * grid * len(agents)) * size
    _refuse_beyond(seconds, memory / 2**30, what)


def window(rounds: int, mean: float) -> float:
    """The numbers that a binomial law keeps, about."""
    return min(rounds + 1.0, 2 * REACH * math.sqrt(rounds * mean * (1 - mean)) + 20)


def _realisation_seconds(runs: MeanCounts, phases: Phases, scored: int, arithmetic: Arithmetic) -> float:
    types = merge_equal_means(runs)
    arms, m = sum(count for _, count in types), phases.arm_rounds
    seconds = _commitment_seconds([mean for mean, _ in types], arms, m, arithmetic) + 2e-4
    if not phases.mechanism.scoring.fresh and len(types) > 1:
        if phases.trial >= arms * m:
            seconds += _joint_seconds(types, m, arithmetic)
        else:
            seconds += _cut_seconds(types, phases.mechanism.arm.order, phases.trial, m, arithmetic)
    return seconds + sum(window(scored, mean) for mean, _ in types) * (1e-5 if arithmetic.proven else 3e-7)


def _commitment_seconds(means: list[float], arms: int, arm_rounds: int, arithmetic: Arithmetic) -> float:
    """Every value as the winner, against all others whose windows meet its own."""
    values = set(means)
    kept = sum(window(arm_rounds, mean) for mean in values)
    meeting = min(len(means), 2 + len(means) * kept / len(values) / (arm_rounds + 1))
    numbers = node_count(arms - 1, arithmetic.proven) * kept * meeting
    return 1e-4 * len(means) + 3e-5 * len(values) * len(means) + numbers * (2e-6 if arithmetic.proven else 3e-8)


def _joint_seconds(types: MeanCounts, arm_rounds: int, arithmetic: Arithmetic) -> float:
    """Products of truncated polynomials, for each best value at which two types may tie and each tie-breaker."""
    ends = []
    for mean, _ in types:
        reach = REACH * math.sqrt(arm_rounds * mean * (1 - mean))
        ends.append((max(0.0, arm_rounds * mean - reach), min(arm_rounds * 1.0, arm_rounds * mean + reach)))
    lowest = max(low for low, _ in ends)
    ties = max(0.0, sorted(high for _, high in ends)[-2] - lowest + 1)
    active = [t for t, (_, high) in enumerate(ends) if high >= lowest]
    active_arms = sum(types[t][1] for t in active)
    arms = sum(count for _, count in types)
    products = 0.4 * (sum(2 + math.log2(types[t][1]) for t in active) + len(active) ** 2)  # many are short
    cases = ties * node_count(arms - 1, arithmetic.proven)
    return cases * _products_seconds(
        products, window(active_arms * arm_rounds, 0.4) / 2, arithmetic
    ) + _products_seconds(len(types) * (4 + 2 * math.log2(arms)), window(arms * arm_rounds, 0.4), arithmetic)


def _cut_seconds(types: MeanCounts, order: Order, trial: int, arm_rounds: int, arithmetic: Arithmetic) -> float:
    """Products of binomial laws, for each hypergeometric way to share the last rounds among the types."""
    products, reached = float(len(types)), 1.0
    if order != "index":
        draws = trial // arm_rounds if order == "block" else trial % sum(count for _, count in types)
        for _, count in types[:-1]:
            each = min(count, draws) + 1.0
            products += reached * each
            reached = min(reached * each, draws + 1.0)
        products *= len(types) if order == "block" else 1
    return _products_seconds(products, window(trial, 0.5) / 2, arithmetic)


def _products_seconds(products: float, length: float, arithmetic: Arithmetic) -> float:
    if arithmetic.proven:
        return products * (5e-5 + length * 1e-6 + length * length * 1e-8)
    return products * (2e-5 + length * length * 5e-10)


def _refuse_beyond(seconds: float, gibibytes: float, what: str) -> None:
    if seconds > SECONDS or gibibytes > GIBIBYTES:
        raise EngineError(
            f"the closed-form engine expects work of at most {SECONDS:.0f} s and {GIBIBYTES:.0f} GiB, got {what} that "
            f"would take about {seconds:.2g} s and {gibibytes:.2g} GiB; use engine='monte-carlo', or fewer copies, "
            "fewer values of the priors or fewer rounds of exploration"
        )
