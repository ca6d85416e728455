"""The open problem: must an algorithm be non-adaptive to be TRP? No: the reservoir; and searches on tiny horizons.

*Exploring rules.* Every arm pays its mean, always. In a round a rule explores (pulls a new arm, uniformly among those
left) or pulls the best arm seen. It decides by the round and by how often each distinct value was seen, best first: it
knows neither the values' sizes nor how many arms there are. The first round explores. TRP is asked for two and three
originals, all copies up to k arms, at every horizon up to T. Between values that are fixed in order the gain of copies
is linear in them, so it is at most 0 for all values if the copies pull the j best values no more often, for each j;
equal values are cases of their own. Adaptive: in some round the rule explores or not depending on what it has seen.

*Index rules* rank the cells (n, s), n pulls of which s succeeded, and pull an arm of the highest cell, ties uniformly.
Ranks are decided lazily: follow all states that two, three or four arms can reach under what is decided so far, and at
the first one whose highest cell is open, branch on which of its cells is the highest. Regret is counted in whole
numbers: means are multiples of 1/4, ties divide by at most 4, so every chance of t rounds is a multiple of 48^-t.

*First success*: pull at random until a success, then stay. It is TRP at every horizon, for all copies, where rewards
are Bernoulli and the realised means take two values g > b: let x be the share of arms of mean g, so that a round of
exploration succeeds with probability s = b + (g - b) x. Round t + 1 is lost with probability
h(x) = (1 - x) [(1 - s)^t + b sum_{j<t} (1 - s)^j], a product of nonnegative, falling, convex functions, so convex; and
copies make x random without changing its mean. By Jensen that does not lower E h(x). With b > 0 its regret is linear.

*The reservoir*: what copies change of its RP-regret, and whether its runs can come from a fixed schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations
from typing import Any, NamedTuple

import numpy as np

from cloneproof.analysis.properties.permutations import Instance, rp_regrets, sorted_copies
from cloneproof.engines.estimate import Estimate
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.session import session
from cloneproof.report.plots import Bars, Series
from cloneproof.reproduce.evidence import by_low, rounded
from cloneproof.reproduce.findings import Check, Findings, FindingsTable, Row, Setting, answer, ours, table
from cloneproof.reproduce.trp import average_gap

SeenValues = tuple[int, ...]  # how often each distinct value was seen, best first
ExploringRule = dict[tuple[int, SeenValues], bool]  # (round, seen) to whether it explores
RANKS = ((0, 1), (0, 1, 2), (0, 0, 1), (0, 1, 1))  # of the originals' values, the best is 0


class ExploringCounts(NamedTuple):
    """How many rules there are, how many of them are TRP, and how many of those are adaptive."""

    horizon: int
    most_arms: int
    rules: int
    truthful: int
    adaptive: int


class _Undecided(Exception):  # noqa: N818 (not an error: the state at which to branch)
    """A state that the rule has no decision for."""


def count_rules(horizon: int, most_arms: int) -> ExploringCounts:
    """The exhaustive table's row for that horizon and that many arms.

    >>> count_rules(3, 4)
    ExploringCounts(horizon=3, most_arms=4, rules=6, truthful=4, adaptive=0)
    """
    rules = list(exploring_rules(horizon, most_arms))
    truthful = [rule for rule in rules if is_truthful(rule, horizon, most_arms)]
    return ExploringCounts(horizon, most_arms, len(rules), len(truthful), sum(map(explores_adaptively, truthful)))


def exploring_rules(horizon: int, most_arms: int) -> Iterator[ExploringRule]:
    """Every rule that differs from all others in a state that some instance reaches with an arm left."""
    instances = sorted({arms for ranks, copies in _instances(most_arms) for arms in _assigned(ranks, copies)})
    open_: list[ExploringRule] = [{}]
    while open_:
        rule = open_.pop()
        try:
            for arms in instances:
                pulls(rule, horizon, arms)
        except _Undecided as state:
            open_ += [{**rule, state.args[0]: explores} for explores in (False, True)]
        else:
            yield rule


def pulls(rule: ExploringRule, horizon: int, arms: Sequence[int]) -> list[list[Fraction]]:
    """The chance to pull each value (columns, best first) in each round, with so many arms of each."""
    states = {(0,) * len(arms): Fraction(1)}
    found = []
    for round_ in range(1, horizon + 1):
        following: dict[SeenValues, Fraction] = {}
        pulled = [Fraction(0)] * len(arms)
        for seen, chance in states.items():
            left = sum(arms) - sum(seen)
            if _explores(rule, round_, seen, left):
                for value, count in enumerate(arms):
                    if count > seen[value]:
                        share = chance * Fraction(count - seen[value], left)
                        after = (*seen[:value], seen[value] + 1, *seen[value + 1 :])
                        following[after] = following.get(after, Fraction(0)) + share
                        pulled[value] += share
            else:
                pulled[next(value for value, count in enumerate(seen) if count)] += chance
                following[seen] = following.get(seen, Fraction(0)) + chance
        found.append(pulled)
        states = following
    return found


def _explores(rule: ExploringRule, round_: int, seen: SeenValues, left: int) -> bool:
    if not any(seen) or left == 0:
        return left > 0
    state = (round_, tuple(count for count in seen if count))
    if state not in rule:
        raise _Undecided(state)
    return rule[state]


def is_truthful(rule: ExploringRule, horizon: int, most_arms: int) -> bool:
    """Whether no copies pull the best values more often, on average over who got them, up to any round."""
    known = cache(lambda arms: pulls(rule, horizon, arms))
    average = cache(lambda ranks, copies: _average([known(arms) for arms in _assigned(ranks, copies)]))
    for ranks, copies in _instances(most_arms):
        honest, copied = average(ranks, (1,) * len(ranks)), average(ranks, copies)
        more = [Fraction(0)] * len(honest[0])
        for own, other in zip(copied, honest, strict=True):
            more = [before + a - b for before, a, b in zip(more, own, other, strict=True)]
            if any(sum(more[:best], Fraction(0)) > 0 for best in range(1, len(more))):
                return False
    return True


def explores_adaptively(rule: ExploringRule) -> bool:
    """Whether in some round it explores or not depending on what it has seen."""
    decided: dict[int, set[bool]] = {}
    for (round_, _), explores in rule.items():
        decided.setdefault(round_, set()).add(explores)
    return any(len(answers) > 1 for answers in decided.values())


def _average(every: Sequence[list[list[Fraction]]]) -> list[list[Fraction]]:
    """The mean of some tables of the same shape, cell by cell."""
    rounds = zip(*every, strict=True)
    return [[sum(column, Fraction(0)) / len(every) for column in zip(*rows, strict=True)] for rows in rounds]


def _assigned(ranks: Sequence[int], copies: Sequence[int]) -> list[tuple[int, ...]]:
    """How many arms each value has, for each assignment of copies to originals."""
    values = range(max(ranks) + 1)
    return [
        tuple(sum(count for rank, count in zip(ranks, order, strict=True) if rank == value) for value in values)
        for order in permutations(copies)
    ]


def _instances(most_arms: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Ranks of the originals' values and their copies, honest registration included."""
    return [
        (ranks, copies)
        for ranks in RANKS
        for copies in combinations_with_replacement(range(1, most_arms), len(ranks))
        if sum(copies) <= most_arms
    ]


def first_success_regrets(means: Sequence[Fraction], copies: Sequence[int], horizon: int) -> list[Fraction]:
    """Expected regret up to each round, against the best original; exactly.

    >>> half = Fraction(1, 2)
    >>> [str(own) for own in first_success_regrets([Fraction(1), half], [1, 1], 3)]
    ['1/4', '7/16', '39/64']
    """
    arms, best = sum(copies), max(means)
    shares = [Fraction(count, arms) for count in copies]
    success = sum((share * mean for share, mean in zip(shares, means, strict=True)), Fraction(0))
    explored = sum((share * (best - mean) for share, mean in zip(shares, means, strict=True)), Fraction(0))
    committed = sum((share * mean * (best - mean) for share, mean in zip(shares, means, strict=True)), Fraction(0))
    total, going, regrets = Fraction(0), Fraction(1), []
    stayed = Fraction(0)  # sum of (1 - s)^j over the rounds so far
    for _ in range(horizon):
        total += explored * going + committed * stayed
        regrets.append(total)
        stayed += going
        going *= 1 - success
    return regrets


def first_success_margins(means: Sequence[Fraction], copies: Sequence[int], horizon: int) -> list[Fraction]:
    """RP-regret with these copies minus honest RP-regret, up to each round."""
    honest = first_success_regrets(means, [1] * len(means), horizon)
    orders = sorted(set(permutations(copies)))
    weights = [sum(1 for permuted in permutations(copies) if permuted == order) for order in orders]
    every = [first_success_regrets(means, order, horizon) for order in orders]
    total = sum(weights)
    return [
        sum((weight * regrets[t] for weight, regrets in zip(weights, every, strict=True)), Fraction(0)) / total
        - honest[t]
        for t in range(horizon)
    ]


QUARTERS, TIES = 4, 12  # the denominators of a mean and of a tie among up to four arms
PAIRS = tuple((high, low) for high in range(QUARTERS + 1) for low in range(high))  # in quarters
VECTORS = ((2, 1), (2, 2), (3, 1))
ARMS = (2, 3, 4)
Whole = np.ndarray[Any, np.dtype[np.int64]]
RuleCell = tuple[int, int]
RuleState = tuple[int, ...]  # the cells of the arms, sorted


@dataclass(frozen=True)
class IndexRule:
    """A ranking of cells as far as states of two to four arms need it.

    above   for each cell, the cells known to rank above it, as bits
    """

    cells: tuple[RuleCell, ...]
    above: tuple[int, ...]

    def highest(self, present: set[int]) -> list[int]:
        """The cells that none of those present is known to rank above."""
        return sorted(cell for cell in present if not any(self.above[cell] >> other & 1 for other in present))

    def ranking(self) -> list[RuleCell]:
        """One ranking that it stands for, the highest cell first."""
        return [self.cells[c] for c in sorted(range(len(self.cells)), key=lambda c: (self.above[c].bit_count(), c))]

    def with_above(self, high: int, low: int) -> IndexRule | None:
        """The same with one more decision and all that follows from it; None where it contradicts an earlier one."""
        if self.above[high] >> low & 1:
            return None
        more = self.above[high] | 1 << high
        return IndexRule(
            self.cells,
            tuple(
                mask | more if cell == low or mask >> low & 1 else mask  # what is below `low` is below `high` too
                for cell, mask in enumerate(self.above)
            ),
        )


def index_rules(horizon: int) -> Iterator[IndexRule]:
    """Every index rule that differs from all others in some reachable state of at most `horizon` rounds.

    >>> [sum(1 for _ in index_rules(horizon)) for horizon in (1, 2, 3, 4)]
    [1, 4, 18, 209]
    """
    cells = tuple((n, s) for n in range(horizon) for s in range(n + 1))
    open_ = [IndexRule(cells, (0,) * len(cells))]
    while open_:
        rule = open_.pop()
        tied = _first_tie(rule, horizon)
        if tied is None:
            yield rule
            continue
        for first in tied:
            mechanism: IndexRule | None = rule
            for other in tied:
                if mechanism is not None and other != first:
                    mechanism = mechanism.with_above(first, other)
            if mechanism is not None:
                open_.append(mechanism)


def _first_tie(rule: IndexRule, horizon: int) -> list[int] | None:
    """The cells that compete for the highest rank in the first state where that is open."""
    number = {cell: at for at, cell in enumerate(rule.cells)}
    states: list[RuleState] = [(0,) * arms for arms in ARMS]
    for round_ in range(horizon):
        following: set[RuleState] = set()
        for state in states:
            highest = rule.highest(set(state))
            if len(highest) > 1:
                return highest
            if round_ < horizon - 1:
                n, s = rule.cells[highest[0]]
                following.update(_replace_cell(state, highest[0], number[n + 1, s + reward]) for reward in (0, 1))
        states = sorted(following)
    return None


def _replace_cell(state: RuleState, cell: int, to: int) -> RuleState:
    at = state.index(cell)
    return tuple(sorted((*state[:at], to, *state[at + 1 :])))


def regrets(rule: IndexRule, horizon: int, good: int, bad: int) -> Whole:
    """Expected regret up to each round (rows) for each pair of means (columns), in units of 48^-horizon.

    `good` arms of the higher mean and `bad` ones of the lower, Bernoulli rewards.
    """
    high, low = (np.array([pair[k] for pair in PAIRS], dtype=np.int64) for k in (0, 1))
    number = {cell: at for at, cell in enumerate(rule.cells)}
    states: dict[tuple[RuleState, RuleState], Whole] = {((0,) * good, (0,) * bad): np.ones(len(PAIRS), dtype=np.int64)}
    total = np.zeros((horizon, len(PAIRS)), dtype=np.int64)
    for round_ in range(horizon):
        following: dict[tuple[RuleState, RuleState], Whole] = {}
        for (goods, bads), weight in states.items():
            (cell,) = rule.highest({*goods, *bads})
            tied = goods.count(cell) + bads.count(cell)
            total[round_] += weight * (TIES // tied * bads.count(cell)) * (high - low)
            if round_ == horizon - 1:
                continue
            n, s = rule.cells[cell]
            for side, arms, mean in ((0, goods, high), (1, bads, low)):
                share = weight * (TIES // tied * arms.count(cell))
                for reward, chance in ((1, mean), (0, QUARTERS - mean)) if arms.count(cell) else ():
                    moved = _replace_cell(arms, cell, number[n + 1, s + reward])
                    key = (moved, bads) if side == 0 else (goods, moved)
                    following[key] = following.get(key, np.zeros_like(weight)) + share * chance
        total[round_] *= (QUARTERS * TIES) ** (horizon - 1 - round_)
        states = following
    return np.asarray(np.cumsum(total, axis=0))


def trp_margin(rule: IndexRule, horizon: int) -> Whole:
    """Twice (RP-regret with copies - honest RP-regret), the least over VECTORS: up to each round, for each pair."""
    honest = regrets(rule, horizon, 1, 1)
    margins = [regrets(rule, horizon, a, b) + regrets(rule, horizon, b, a) - 2 * honest for a, b in VECTORS]
    return np.asarray(np.minimum.reduce(margins))


def is_adaptive(rule: IndexRule, horizon: int) -> bool:
    """Whether two arms are not explored on a fixed schedule and then committed to.

    Not adaptive: up to some round the sequence of arms is the same whatever the rewards, and from then on a single arm
    is pulled (which one may depend on the rewards seen so far). The first arm is called 0; of two tied ones 0 is taken,
    as they are equal in everything.
    """
    number = {cell: at for at, cell in enumerate(rule.cells)}
    runs: list[tuple[list[int], list[int]]] = [([0, 0], [])]
    for round_ in range(horizon):
        following = []
        for state, pulls in runs:
            arm = state.index(rule.highest(set(state))[0])
            n, s = rule.cells[state[arm]]
            for reward in (0, 1) if round_ < horizon - 1 else (0,):
                after = [number.get((n + 1, s + reward), 0) if a == arm else before for a, before in enumerate(state)]
                following.append((after, [*pulls, arm]))
        runs = following
    pulled = [pulls for _, pulls in runs]
    return not any(
        len({tuple(pulls[:first]) for pulls in pulled}) == 1 and all(len(set(pulls[first:])) <= 1 for pulls in pulled)
        for first in range(horizon + 1)
    )


def copy_margins(
    mechanism: Mechanism, means: Sequence[Sequence[float]], most_copies: int, horizons: Sequence[int]
) -> Iterator[Estimate]:
    """RP-regret with copies minus honest RP-regret, for every set of means, sorted copies and horizon."""
    for own in means:
        honest = rp_regrets(mechanism, Instance(tuple(own), (1,) * len(own)), horizons, "bernoulli")
        for copies in sorted_copies(len(own), most_copies):
            copied = rp_regrets(mechanism, Instance(tuple(own), copies), horizons, "bernoulli")
            yield from (copied[horizon] - honest[horizon] for horizon in horizons)


def means_on_a_grid(parts: int, originals: int) -> list[tuple[float, ...]]:
    """All multisets of means 0, 1/parts, .., 1 that are not all equal."""
    grid = [k / parts for k in range(parts + 1)]
    return [own for own in combinations_with_replacement(grid, originals) if len(set(own)) > 1]


def arms_pulled(mechanism: Mechanism, arms: int, horizon: int, reward: Callable[[int], float], seed: int) -> list[int]:
    """Which arms one run pulls if round t pays reward(t); the seed decides all else."""
    run = session(mechanism, {"agent": arms}, horizon, seed=seed)
    pulled = []
    for round_ in range(horizon):
        decision = run.decide()
        pulled.append(decision.arm)
        run.reward(decision.id, reward(round_))
    return pulled


def on_a_schedule(runs: Sequence[Sequence[int]]) -> bool:
    """Whether the runs can come from a fixed schedule that is followed by a single arm.

    >>> on_a_schedule([[0, 1, 0, 0], [0, 1, 1, 1]]), on_a_schedule([[0, 0, 0, 0], [0, 0, 1, 2]])
    (True, False)
    """
    return any(
        len({tuple(run[:first]) for run in runs}) == 1 and all(len(set(run[first:])) <= 1 for run in runs)
        for first in range(len(runs[0]) + 1)
    )


MEANS = (0.25, 0.75)
ROUNDING = 1e-9
NUMBERS = ((1, 2, 1), (2, 3, 2), (3, 4, 2))  # pulls, draws and threshold of the reservoirs that are tried
MOST_COPIES = 4


def run(setting: Setting) -> Findings:
    """The reservoir; all small rules of two kinds; the rule of the first success; exploring, then the best so far."""
    answers = _reservoir_checks(setting)
    tables = [count_rules(*sizes) for sizes in setting.pick(quick=((4, 5),), full=((4, 5), (5, 4)))]
    longest = setting.pick(quick=4, full=5)
    searches = {horizon: _search(horizon) for horizon in range(2, longest + 1)}
    adaptive = [rule for rule, is_so in searches[longest] if is_so]
    eighths = setting.pick(quick=4, full=8)
    two, tried = _first_success(eighths, 2, setting.pick(quick=12, full=25))
    three, tried_three = _first_success(eighths, 3, setting.pick(quick=8, full=12))
    m, horizon = setting.pick(quick=(6, 60), full=(10, 100))
    slack = greedy_slack(setting, m, horizon)
    return Findings(
        computed=(
            "The reservoir (first pass, best count as fallback) for one agent: its regret in closed form, with and "
            f"without copies, for {len(NUMBERS)} choices of its numbers, all means on a grid and copies up to "
            f"{MOST_COPIES} of each, at horizons inside and after its tests; and its arms in one run under two reward "
            "sequences. Then all rules that explore or exploit on sure rewards without looking at the number of arms, "
            f"in fractions. Then all index rules on horizons up to {longest}: a rule ranks (pulls, successes) and "
            f"pulls the highest arm, ties uniformly. TRP is checked in whole numbers for all {len(PAIRS)} pairs of "
            f"means in quarters, copies {', '.join(map(str, VECTORS))}, at every horizon. Adaptive: not a fixed "
            "schedule followed by a single arm. Then the rule that pulls at random until the first success and stays "
            "there, in exact fractions; and ETC that goes on with the best arm so far instead of committing "
            f"(m = {m}, every horizon up to {horizon}), by the state tree. That the reservoir is TRP for all means, "
            "copies and horizons is proved in the textbook and checked by machine (`make prove`)."
        ),
        checks=(
            *answers,
            *(_table_check(counts) for counts in tables),
            ours(
                f"Some index rule that is TRP on {longest} rounds is adaptive.",
                len(adaptive) > 0,
                ("index rules", sum(1 for _ in index_rules(longest))),
                ("of them TRP on the grid", len(searches[longest])),
                ("of those adaptive", len(adaptive)),
            ),
            ours(
                "“Until the first success, then stay” is adaptive, and TRP for two different means at every horizon "
                "tried (there is a proof for all horizons and all copies).",
                two >= 0,
                ("instances in fractions", tried),
                ("smallest margin", rounded(float(two), 2.0**-52, "proven", "exact fractions")),
            ),
            ours(
                "With three different means no violation of it was found either (no proof).",
                three >= 0,
                ("instances in fractions", tried_three),
                ("smallest margin", rounded(float(three), 2.0**-52, "proven", "exact fractions")),
            ),
            ours(
                "Exploring every arm m times and then following the best arm so far, for ever adaptively, is TRP for "
                "all copies: its honest regret leaves them no room at any horizon up to T.",
                slack.low >= -ROUNDING,
                (f"least room, m = {m}, T up to {horizon}, means 1/4 and 3/4", slack),
            ),
        ),
        figures=(_figure(searches),),
        tables=(_table(adaptive, longest),),
    )


def _reservoir_checks(setting: Setting) -> tuple[Check, Check]:
    """TRP by exact computation, and two reward sequences that lead to different arms on no common schedule."""
    rules = [setting.mechanism("reservoir", rounds=n, draws=s, threshold=top) for n, s, top in NUMBERS]
    margins = []
    for rule, (n, s, _) in zip(rules, NUMBERS, strict=True):
        horizons = (n * s, n * s + 5, 200) if setting.scale == "quick" else (n, n * s - 1, n * s, n * s + 5, 200)
        for originals, parts in setting.pick(quick=((2, 4), (3, 2)), full=((2, 8), (3, 4))):
            margins += list(copy_margins(rule, means_on_a_grid(parts, originals), MOST_COPIES, horizons))
    runs = [arms_pulled(rules[-1], 8, 12, constant, setting.seed) for constant in (lambda _: 0.0, lambda _: 1.0)]
    adaptive = not on_a_schedule(runs)
    least = min(margins, key=by_low)
    return (
        answer(
            "The reservoir is TRP: on no instance tried do copies lower its RP-regret.",
            least.low >= -ROUNDING,
            ("instances, copies and horizons", len(margins)),
            ("smallest margin", least),
        ),
        answer(
            "It is adaptive: under two reward sequences and the same dice it pulls different arms, on no common "
            "schedule that a single arm follows.",
            adaptive,
            *(
                (f"arms pulled if every round pays {reward}", ", ".join(map(str, run)))
                for reward, run in zip((0, 1), runs, strict=True)
            ),
        ),
    )


def _table_check(counts: ExploringCounts) -> Check:
    return answer(
        f"Of all rules that explore or exploit on {counts.horizon} rounds of sure rewards, without looking at the "
        f"number of arms, some are TRP for all copies up to {counts.most_arms} arms and adaptive.",
        counts.adaptive > 0,
        ("rules", counts.rules),
        ("of them TRP", counts.truthful),
        ("of those adaptive", counts.adaptive),
    )


def _search(horizon: int) -> list[tuple[IndexRule, bool]]:
    """The TRP rules, and whether each is adaptive."""
    truthful = (rule for rule in index_rules(horizon) if (trp_margin(rule, horizon) >= 0).all())
    return [(rule, is_adaptive(rule, horizon)) for rule in truthful]


def _first_success(denominator: int, originals: int, horizon: int) -> tuple[Fraction, int]:
    """The smallest margin over all sets of different means with that denominator, and copies up to three of each."""
    grid = [Fraction(k, denominator) for k in range(denominator + 1)]
    instances = [(v, copies) for v in combinations(grid, originals) for copies in sorted_copies(originals, 3)]
    return min(min(first_success_margins(v, copies, horizon)) for v, copies in instances), len(instances)


def greedy_slack(setting: Setting, m: int, horizon: int) -> Estimate:
    """The least of min(H, (l + 1) m) D - honest regret over all H <= T: nothing of it needs a commitment."""
    mechanism = setting.mechanism("etc", arm_rounds=m, choice="greedy")
    regrets = rp_regrets(mechanism, Instance(MEANS, (1, 1)), range(1, horizon + 1), "bernoulli")
    room = {h: min(h, 3 * mechanism.arm.explore) * average_gap(MEANS) for h in regrets}
    slacks = [
        Estimate(room[h] - regret.value, regret.error + 1e-12 * room[h], regret.kind, regret.method)
        for h, regret in regrets.items()
    ]
    return min(slacks, key=by_low)


def _table(adaptive: list[IndexRule], horizon: int) -> FindingsTable:
    rankings = sorted(rule.ranking() for rule in adaptive)[:8]
    return table(
        f"Some adaptive TRP rules on {horizon} rounds: (pulls, successes) from the highest rank down",
        "rule | ranking",
        ((number, " > ".join(map(str, ranking))) for number, ranking in enumerate(rankings, 1)),
        "Cells that never compete are listed in an order of no meaning.",
    )


def _figure(searches: dict[int, list[tuple[IndexRule, bool]]]) -> Bars:
    groups = tuple(f"T = {horizon}" for horizon in searches)
    x = tuple(map(float, range(len(groups))))
    fixed = tuple(float(sum(not is_so for _, is_so in answers)) for answers in searches.values())
    free = tuple(float(sum(is_so for _, is_so in answers)) for answers in searches.values())
    return Bars(
        "TRP index rules on tiny horizons",
        "How many index rules are TRP for every pair of means in quarters, at every horizon up to T: those that "
        "explore on a fixed schedule and commit, and adaptive ones.",
        groups,
        "index rules that are TRP",
        (Series("fixed schedule", x, fixed, mechanism="etc"), Series("adaptive", x, free, mechanism="ucb1")),
    )


ROW = Row(
    13,
    "The open problem: adaptive and TRP?",
    "Section 1.1: “It remains as a major open problem whether it is necessary for the algorithm to have non-adaptive "
    "structure in order to satisfy TRP.” A question, no claim.",
    run,
    summary={
        "answered": (
            "No: the reservoir is adaptive and TRP, for all means, copies and horizons by a machine-checked "
            "proof, and on every instance tried by computation."
        )
    },
)
