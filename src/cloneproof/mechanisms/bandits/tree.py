"""Tree engine: ex-ante payoffs and regret by recursion over all that can happen, at many horizons in one pass.

A second computation beside closed forms and samples, for tiny markets: rewards are Bernoulli or deterministic, and
arrive at once. Means are not enumerated. Given the history an original's next reward follows its predictive law, so
one law over states, moved by picks and predictive laws, is the ex-ante one. Rules are asked as the session asks them,
in floats, and ties are shared evenly.

A *state* has a tuple for each agent: whether it won the award, and its originals. An original is its arms, the rewards
ever seen of it, and their sum (deterministic rewards: 1 + the number of its atom, 0 if unknown). An arm is the rewards
that its level counts, their sum, and whether the level has committed to it. Copies are exchangeable, and so are
originals of one agent with equal priors and copies, and agents with equal originals: such parts are sorted, so that
equal futures meet. A reward that no later pick depends on is not looked at, since predictive means are a martingale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cloneproof._lib.checks import count
from cloneproof._lib.clock import check_time
from cloneproof._lib.ticks import ONE, TICK_BITS, ticks
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import PART, legendre_nodes
from cloneproof.laws.best import best_mean
from cloneproof.laws.logarithm import ln
from cloneproof.market.market import FullCopies, Market
from cloneproof.market.priors import Beta, Prior, Uniform
from cloneproof.mechanisms.bandits.rule import Levels, PriorityInputs, Rule, broken_rule, checked_chances
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate, Evaluation, weighted_sum

METHOD = "state tree: forward recursion over statistics"
MOST_WORK = 1_000_000  # arms looked at, for each that may be picked in a state: some five seconds; more is refused
FIRST_LOOK = 20_000  # after which the growth is extrapolated
NEGLIGIBLE = 1e-30  # a chance of a state; all of those together are far below PART
MOST_NODES = 500  # of a uniform prior

TreeState = tuple[tuple[bool, tuple[Any, ...]], ...]
ArmPlace = tuple[int, int, int]  # an agent, one of its originals, one of that one's arms
FRESH = (0, 0, False)  # statistics of an arm


def tree(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Sequence[int] | None = None
) -> dict[int, Evaluation]:
    """Evaluate a mechanism made of rules at the market's horizon, or at each of the given ones.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> ana = Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))
    >>> tree(Market([ana], horizon=7), mechanism("ucb1"), {"ana": (1, 1)})[7].payoff["ana"].value
    4.25
    """
    wanted = [count(one, "a horizon", error=EngineError) for one in horizons or [market.horizon]]
    levels = mechanism.levels(max(wanted))
    if levels is None:
        raise _refusal("rules on arms, and scores of all rewards", repr(mechanism.name))
    _check(market, levels[0].rules)
    return _in_epochs(market, levels, copies, wanted) if len(levels) > 1 else _of(market, levels[0], copies, wanted)


def _of(market: Market, levels: Levels, copies: FullCopies, wanted: Sequence[int]) -> dict[int, Evaluation]:
    """Evaluate levels that run from the prior on."""
    running = Recursion(market, levels, copies, max(wanted))
    best, share = best_mean([prior for agent in market.agents for prior in agent.priors]), market.share
    found = {}
    for horizon, rewards in running.rewards(wanted).items():
        error = PART * horizon * running.largest
        payoff = {
            agent.name: Estimate(share * paid, share * error, "exact", METHOD)
            for agent, paid in zip(market.agents, rewards, strict=True)
        }
        lost = Estimate(horizon * best[0] - math.fsum(rewards), error + horizon * best[1], "exact", METHOD)
        found[horizon] = Evaluation(payoff, lost, "tree")
    return {horizon: found[horizon] for horizon in wanted}


def _refusal(expected: str, got: str, advice: str = "use engine 'runs'") -> EngineError:
    return EngineError(f"the tree expects {expected}, got {got}", advice)


def _check(market: Market, rules: Sequence[Rule]) -> None:
    """Refuse what the recursion does not know."""
    if market.places:
        raise _refusal("one arm a round", "positions of a page")
    if market.ends == "at-random":
        raise _refusal("a fixed end", "a market that ends at random")
    if market.family.law not in ("coin", "point"):
        raise _refusal("bernoulli or deterministic rewards", market.family.name)
    for rule in rules:
        if rule.randomised and rule.chance is None:
            raise _refusal("rules that are random in ties only, or declare the `chance` of each pick", repr(rule.name))
        if rule.binarise and market.family.law == "point":
            raise _refusal("rules that take rewards as they are", f"{rule.name!r}, which flips a coin for each")


def _in_epochs(
    market: Market, plan: Sequence[Levels], copies: FullCopies, horizons: Sequence[int]
) -> dict[int, Evaluation]:
    """Add up trees of the epochs: each begins at the prior, whatever was learnt before."""
    parts: dict[int, list[Evaluation]] = {horizon: [] for horizon in horizons}
    begin = 0
    for epoch in plan:
        rounds_of = {horizon: min(epoch.rounds, horizon - begin) for horizon in horizons if horizon > begin}
        evaluated = _of(market, epoch, copies, sorted(set(rounds_of.values())))
        for horizon, rounds in rounds_of.items():
            parts[horizon].append(evaluated[rounds])
        begin += epoch.rounds
    names = [agent.name for agent in market.agents]
    return {
        horizon: Evaluation(
            {name: weighted_sum([(1.0, own.payoff[name]) for own in epochs]) for name in names},
            weighted_sum([(1.0, own.regret) for own in epochs]),
            "tree",
        )
        for horizon, epochs in parts.items()
    }


class Recursion:
    """A mechanism facing registered originals, and the law of its states round by round."""

    def __init__(self, market: Market, levels: Levels, copies: FullCopies, longest: int) -> None:
        self.agent, self.arm, self.clears = levels.agent, levels.arm, levels.clears
        self.sure = market.family.law == "point"
        alone = len(market.agents) == 1 and not self.clears
        self.flat = self.agent is None or alone  # an agents' level with nobody to compare is none
        self.sees_agents, self.award = False, 0
        if self.agent is not None and not alone and not self.agent.uniform:
            self.sees_agents, awards = True, self.agent.commits or self.clears
            self.award = len(market.agents) * self.agent.tries + 1 if awards else 0
        kept = [
            [(prior, own) for prior, own in zip(agent.priors, copies[agent.name], strict=True) if own]
            for agent in market.agents
        ]
        registered = [sum(own for _, own in originals) for originals in kept]
        if all(rule.commits for rule in levels.rules):  # nothing is seen after that
            longest = min(longest, levels.exploration(registered) + 1)
        self.beliefs = [[_belief(prior, longest, self.sure) for prior, _ in originals] for originals in kept]
        self.largest = max(max(values) for of_agent in self.beliefs for values, *_ in of_agent)
        self.start: TreeState = tuple(
            (False, tuple(((FRESH,) * own, 0, 0) for _, own in originals)) for originals in kept
        )
        # explored by index and cleared, arms are explored in that order once more: originals then stay in place
        anew = self.arm.order == "index" and self.clears
        self.alike = [[] if anew else _groups(originals) for originals in kept]
        ordered = (self.arm if self.flat else levels.rules[0]).order == "index"
        self.agents_alike = [] if ordered else _groups([tuple(originals) for originals in kept])
        self._priorities: dict[Any, float] = {}

    def rewards(self, horizons: Sequence[int]) -> dict[int, list[float]]:
        """Return each agent's expected reward up to each of the horizons.

        A state that nothing changes any more leaves the recursion, and pays the same in every later round.
        """
        states, played, work, sizes = {self.start: 1.0}, 0, 0, [1]
        arms = sum(len(copies) for _, originals in self.start for copies, *_ in originals)
        total, rate = [[0.0] for _ in self.start], [[0.0] for _ in self.start]
        found: dict[int, list[float]] = {}
        for horizon in sorted(set(horizons)):
            while played < horizon and states:
                played += 1
                after: dict[TreeState, float] = {}
                for state, weight in states.items():
                    if weight < NEGLIGIBLE:
                        continue
                    earned, following = self._round(state, played)
                    check_time("tree")
                    work += len(earned) * arms
                    self._check_growth(work, sizes, max(horizons))
                    stays = [*following] == [state] and played >= self.award
                    for agent, reward in earned:
                        (rate if stays else total)[agent].append(weight * reward)
                    for one, chance in () if stays else following.items():
                        after[one] = after.get(one, 0.0) + weight * chance
                for agent, paid in enumerate(rate):
                    rate[agent] = [math.fsum(paid)]
                    total[agent] = [math.fsum([*total[agent], *rate[agent]])]
                states = after
                sizes.append(len(states))
            for agent, paid in enumerate(rate):
                total[agent].append(paid[0] * (horizon - played))
            played = horizon
            values = [math.fsum(paid) for paid in total]
            for group in self.agents_alike:  # in sorted states only their sum is known
                for agent in group:
                    values[agent] = math.fsum(math.fsum(total[k]) for k in group) / len(group)
            found[horizon] = values
        return found

    def _check_growth(self, work: int, sizes: list[int], longest: int) -> None:
        """Refuse what would take too long: states grow like a power of the rounds, as since half as many."""
        expected, played = float(work), len(sizes) - 1
        if work > FIRST_LOOK and played:
            power = max(0.0, math.log2(max(1, sizes[-1]) / max(1, sizes[played // 2])))
            expected *= (longest / (played + 1)) ** (power + 1)
        if max(work, expected if sizes[-1] > 1 else 0) > MOST_WORK:
            limit = f"at most {MOST_WORK:.0e} looks at an arm in all states together"
            raise _refusal(limit, f"about {expected:.0e}", "use engine 'runs', or a shorter horizon")

    def _round(self, state: TreeState, round_: int) -> tuple[list[tuple[int, float]], dict[TreeState, float]]:
        """Return what is earned by whom in a round, and the states after it with their chances."""
        earned, following = [], dict[TreeState, float]()
        for agent, at, chance in self._agents(state, round_):
            for arm, share, committing in self._arms(at, agent, round_):
                owner, o, a = arm
                (won, originals), belief = at[owner], self.beliefs[owner][o]
                arms, seen, total = originals[o]
                settled = committing or self.arm.uniform or arms[a][2] or (not self.flat and _single(originals))
                values, odds = _predicted(belief, seen, total, self.sure)
                earned.append((owner, chance * share * math.fsum(v * p for v, p in zip(values, odds, strict=True))))
                moved = self._committed(at, agent, arm) if committing else at
                if settled and (won or not self.sees_agents):  # nothing depends on the reward
                    self._add(following, moved, chance * share)
                    continue
                originals = moved[owner][1]
                arms, counts = originals[o][0], not settled
                for place, odd in enumerate(odds):
                    value = 0 if self.sure else place
                    known = (total or place + 1) if self.sure else total + value
                    told = (arms[a][0] + counts, arms[a][1] + value * counts, arms[a][2])
                    original = ((*arms[:a], told, *arms[a + 1 :]), seen + 1, known)
                    changed = (won, (*originals[:o], original, *originals[o + 1 :]))
                    if odd:
                        self._add(following, (*moved[:owner], changed, *moved[owner + 1 :]), chance * share * odd)
        return earned, following

    def _add(self, law: dict[TreeState, float], state: TreeState, chance: float) -> None:
        """Add a chance to a state, in its canonical form: pulls first, so that nobody loses a turn by index."""
        agents = []
        for (won, originals), groups in zip(state, self.alike, strict=True):
            sorted_ = [(tuple(sorted(arms, reverse=True)), seen, total) for arms, seen, total in originals]
            _sort_within(sorted_, groups)
            agents.append((won, tuple(sorted_)))
        _sort_within(agents, self.agents_alike)
        key = tuple(agents)
        law[key] = law.get(key, 0.0) + chance

    def _agents(self, state: TreeState, round_: int) -> Iterator[tuple[int, TreeState, float]]:
        """Yield who may have the round, the state as the award leaves it, and the chance."""
        if not self.sees_agents:
            agents = range(1 if self.flat else len(state))
            yield from ((agent, state, 1.0 / len(agents)) for agent in agents)
            return
        assert self.agent is not None
        decided = [sum(seen for _, seen, _ in originals) for _, originals in state]
        means = [self._agent_mean(k, originals) for k, (_, originals) in enumerate(state)]
        winner = next((k for k, (won, _) in enumerate(state) if won), None)
        for agent, chance, _ in self._picks(self.agent, round_, decided, means, winner):
            at = state
            if round_ == self.award and self.clears:
                at = tuple(
                    (won, tuple(((FRESH,) * len(arms), seen, total) for arms, seen, total in originals))
                    for won, originals in at
                )
            if round_ == self.award and self.agent.commits:
                at = tuple((True, own[1]) if k == agent else self.start[k] for k, own in enumerate(at))
            yield agent, at, chance

    def _agent_mean(self, agent: int, originals: tuple[Any, ...]) -> float:
        seen = sum(own for _, own, _ in originals)
        if not self.sure:
            return float(sum(total for *_, total in originals) / max(1, seen))
        worth: int = sum(n * ticks(self.beliefs[agent][o][0][at - 1]) for o, (_, n, at) in enumerate(originals) if n)
        average: float = worth / (max(1, seen) << TICK_BITS)
        return average

    def _arms(self, state: TreeState, agent: int, round_: int) -> Iterator[tuple[ArmPlace, float, bool]]:
        """Yield the arms that the level may pick, their chances, and whether it commits to them."""
        owners = range(len(state)) if self.flat else (agent,)
        arms = [
            (k, o, a, *statistics, at)
            for k in owners
            for o, (own, _, at) in enumerate(state[k][1])
            for a, statistics in enumerate(own)
        ]
        pulls = [n for _, _, _, n, *_ in arms]
        if self.sure:
            means = [ticks(self.beliefs[k][o][0][at - 1]) / ONE if n else 0.0 for k, o, _, n, _, _, at in arms]
        else:
            means = [total / n if n else 0.0 for _, _, _, n, total, *_ in arms]
        chosen = next((number for number, arm in enumerate(arms) if arm[5]), None)
        clock = round_ if self.flat else sum(pulls) + 1
        for number, chance, committing in self._picks(self.arm, clock, pulls, means, chosen):
            yield arms[number][:3], chance, committing

    def _committed(self, state: TreeState, agent: int, arm: ArmPlace) -> TreeState:
        """Return the state after a level committed to an arm: what was counted on the level is forgotten."""
        return tuple(
            (
                won,
                tuple(
                    (tuple((0, 0, (k, o, a) == arm) for a in range(len(arms))), seen, total)
                    for o, (arms, seen, total) in enumerate(originals)
                ),
            )
            if self.flat or k == agent
            else (won, originals)
            for k, (won, originals) in enumerate(state)
        )

    def _picks(
        self, rule: Rule, clock: int, decided: list[int], means: list[float], chosen: int | None
    ) -> list[tuple[int, float, bool]]:
        """Return the candidates that the rule may pick, their chances, and whether that is for good.

        Exploration first: least-pulled with ties uniform, block after block in random order, or as registered.
        """
        if chosen is not None:
            return [(chosen, 1.0, False)]
        owed = [k for k, n in enumerate(decided) if n < rule.tries]
        if owed:
            least = min(decided[k] for k in owed)
            first = {
                "index": owed[:1],
                "block": [k for k in owed if decided[k]] or owed,
                "round-robin": [k for k in owed if decided[k] == least],
            }[rule.order]
            return [(k, 1.0 / len(first), False) for k in first]
        clock -= rule.clock == "completed"
        if rule.randomised:
            now = np.array(clock), np.array(decided), np.array(means)
            odds = checked_chances(rule, *now, np.zeros(len(decided))).tolist()
            return [(k, odd, False) for k, odd in enumerate(odds) if odd]
        values = [self._priority(rule, clock, n, m, len(means)) for n, m in zip(decided, means, strict=True)]
        top = max(values)
        ties = [k for k, value in enumerate(values) if value == top]
        return [(k, 1.0 / len(ties), rule.commits) for k in ties]

    def _priority(self, rule: Rule, clock: int, pulls: int, mean: float, size: int) -> float:
        key = (rule is self.arm, clock, pulls, mean, size)
        known = self._priorities.get(key)
        if known is None:
            inputs = PriorityInputs(clock, ln(clock) if clock > 0 else -math.inf, pulls, mean, 0.5, 0.5, size)
            try:
                value = rule.priority(inputs, *rule.parameters)
            except Exception as problem:
                raise broken_rule(rule, clock, pulls, mean, problem) from problem
            if not isinstance(value, int | float | np.number) or value != value:
                raise broken_rule(rule, clock, pulls, mean, value)
            known = self._priorities[key] = float(value)
        return known


def _single(originals: tuple[Any, ...]) -> bool:
    return sum(len(arms) for arms, *_ in originals) == 1


def _groups(kinds: Sequence[Any]) -> list[list[int]]:
    """Return the places of equal kinds, where there are several."""
    distinct = [kind for k, kind in enumerate(kinds) if kind not in kinds[:k]]
    return [places for kind in distinct if len(places := [k for k, own in enumerate(kinds) if own == kind]) > 1]


def _sort_within(parts: list[Any], groups: list[list[int]]) -> None:
    """Sort the parts in each group of places, downwards."""
    for places in groups:
        for place, part in zip(places, sorted((parts[k] for k in places), reverse=True), strict=True):
            parts[place] = part


Belief = tuple[tuple[float, ...], tuple[float, ...], tuple[float, float] | None]  # atoms and weights, or of Beta(a, b)


def _belief(prior: Prior, rounds: int, sure: bool) -> Belief:
    """Return what is believed of an original at the start.

    A uniform prior becomes the nodes of Gauss and Legendre, which are exact for as many rewards.
    """
    if prior.atoms is not None:
        total = math.fsum(weight for _, weight in prior.atoms)
        return tuple(v for v, _ in prior.atoms), tuple(w / total for _, w in prior.atoms), None
    elsewhere = "use engine 'law' where the mechanism commits, else 'runs'"
    if sure:
        raise _refusal("discrete priors for deterministic rewards", repr(prior), elsewhere)
    if isinstance(prior, Beta):
        return (1.0,), (1.0,), (prior.a, prior.b)
    if isinstance(prior, Uniform):
        if rounds // 2 + 2 > MOST_NODES:
            raise _refusal(f"at most {2 * MOST_NODES - 4} rounds under a uniform prior", str(rounds), elsewhere)
        nodes, weights = legendre_nodes(rounds // 2 + 2)
        values = prior.low + (prior.high - prior.low) * nodes
        return tuple(values.tolist()), tuple((weights / weights.sum()).tolist()), None
    raise _refusal("discrete, uniform or beta priors", repr(prior))


@lru_cache(maxsize=1 << 16)
def _predicted(belief: Belief, seen: int, total: int, sure: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return what the next reward of an original may be, and the chances."""
    values, weights, shape = belief
    if sure:
        return (values, weights) if total == 0 else ((values[total - 1],), (1.0,))
    if shape is not None:
        a, b = shape
        return (0.0, 1.0), ((b + seen - total) / (a + b + seen), (a + total) / (a + b + seen))
    posterior = [w * v**total * (1 - v) ** (seen - total) for v, w in zip(values, weights, strict=True)]
    if math.fsum(posterior) < 1e-250:
        logs = [_log(w) + _log(v, total) + _log(1 - v, seen - total) for v, w in zip(values, weights, strict=True)]
        posterior = [math.exp(one - max(logs)) for one in logs]
    up = math.fsum(p * v for p, v in zip(posterior, values, strict=True))
    down = math.fsum(p * (1 - v) for p, v in zip(posterior, values, strict=True))
    return (0.0, 1.0), (down / (up + down), up / (up + down))


def _log(value: float, times: int = 1) -> float:
    return 0.0 if times == 0 else times * math.log(value) if value > 0 else -math.inf
