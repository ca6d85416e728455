"""Ten markets that were drawn at random, and how near to the cheapest mechanism is what `recommend` names.

    python studies/advice.py [RUNS] [NUMBER ..]     the table of docs/which_mechanism.md, or these rows of it
    python studies/advice.py busy [NUMBER ..]       is the advice the same beside six busy loops?

Market k is drawn with the seed (SEED, k): six with continuous rates (two of them end at random), two with repeated
rates, one whose rates drift, one whose agents are informed. The mechanisms that are clone-proof there, with tuned
numbers, are played by the short programs below, which share no code with the package, in the same worlds. Everybody is
honest. A row: the advice, the regret that it names, the regret by simulation, the cheapest of the catalogue, and the
ratio. With drift the mechanisms restart as advised, and the best one is also tried with half and twice that season.
Errors are 2.58 standard errors, and the study exits with 1 if a regret or a ratio is wrong beyond `SURE` of them.
"""

import json
import math
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

import cloneproof as cp
from cloneproof.advice.recommendation import Recommendation
from cloneproof.advice.tuning import DECLARED, INFORMED, RESERVOIRS, tuned_mechanisms
from cloneproof.engines.estimate import Estimate

RUNS, SEED, MARKETS, LOOPS = 1000, 38, 10, 6
NORMAL_99, SURE = 2.58, 4.9  # SURE: one wrong alarm in a million
CLOSE = 1.1  # the ratio to the cheapest that is allowed
Costs = NDArray[np.float64]


class World(NamedTuple):
    """Rates [piece, agent, item], the best of each piece, and the rounds at which pieces end."""

    rates: NDArray[np.float64]
    best: NDArray[np.float64]
    ends: NDArray[np.int64]


class Asked(NamedTuple):
    """A market, and what else `recommend` is told."""

    market: cp.Market
    options: dict[str, Any]


class Row(NamedTuple):
    """What was advised and said, and the regrets of each run: of the advice first, then of the others."""

    where: str
    advice: str
    said: Estimate
    names: list[str]
    costs: Costs


def asked(number: int) -> Asked:
    """The market of that number, drawn at random."""
    dice = np.random.default_rng([SEED, number])
    agents, originals = int(dice.integers(5, 11)), int(dice.integers(2, 5))
    horizon, low = int(round(10 ** dice.uniform(4.3, 5.3), -3)), round(dice.uniform(0.0, 0.3), 2)
    options: dict[str, Any] = {}
    prior: cp.Prior = cp.Beta(round(dice.uniform(1, 4), 1), round(dice.uniform(10, 100), 1))
    if number in (1, 4):
        prior = cp.Uniform(low, round(low + dice.uniform(0.1, 0.5), 2))
    elif number in (6, 7):
        values = np.sort(dice.choice(np.arange(1, 13), 3, replace=False)) / (100, 20)[number - 6]
        prior = cp.Discrete(values.tolist(), [0.5, 0.25, 0.25])
    elif number == 8:
        options = {"drift": float(round(horizon * dice.uniform(1, 4), -3))}
    elif number == 9:
        options = {"providers": "informed"}
    ends = "at-random" if number in (2, 4) else "at-horizon"
    return Asked(cp.Market([cp.Agent(f"a{k}", originals, prior) for k in range(agents)], horizon, ends=ends), options)


@nb.njit
def pull(world, t, agent, item, number):
    """Show an item for some rounds from round t on: its ones, and what is lost to the best item."""
    ones, lost, piece = 0, 0.0, np.searchsorted(world.ends, t, side="right")
    while number > 0:
        now, mean = min(number, world.ends[piece] - t), world.rates[piece, agent, item]
        ones += int(np.random.random() < mean) if now == 1 else np.random.binomial(now, mean)
        lost += now * (world.best[piece] - mean)
        number, t, piece = number - now, t + now, piece + 1
    return ones, lost


@nb.njit
def reservoir(world, t, stop, pulls, draws, threshold):
    """Test draws of all agents in turn; the first that passes is shown from then on, else the best of all."""
    _, agents, items = world.rates.shape
    most, lost, champion = -1, 0.0, (0, 0)
    for _ in range(draws):
        for agent in np.random.permutation(agents):
            item, now = np.random.randint(items), min(pulls, stop - t)
            ones, missed = pull(world, t, agent, item, now)
            t, lost = t + now, lost + missed
            if ones > most:
                most, champion = ones, (agent, item)
            if now < pulls or (threshold > 0 and ones >= threshold):
                champion = (agent, item) if now == pulls else champion
                return lost + pull(world, t, champion[0], champion[1], stop - t)[1]
    return lost + pull(world, t, champion[0], champion[1], stop - t)[1]


@nb.njit
def draw_champion(world, t, stop, agent, pulls, draws, threshold):
    """One agent tests draws until one passes and shows that one for the rest: its champion, and what is lost."""
    most, lost, champion = -1, 0.0, 0
    for _ in range(draws):
        item, now = np.random.randint(world.rates.shape[2]), min(pulls, stop - t)
        ones, missed = pull(world, t, agent, item, now)
        t, lost = t + now, lost + missed
        if ones > most:
            most, champion = ones, item
        if threshold > 0 and ones >= threshold:
            champion = item
            break
    return champion, lost + pull(world, t, agent, champion, stop - t)[1]


@nb.njit
def explore_then_commit(world, t, stop, agent, rounds):
    """One agent shows each item for some rounds, then the best one: that one, all ones, later ones, what is lost."""
    items = world.rates.shape[2]
    each, found, lost = min(rounds, (stop - t) // items), np.zeros(items), 0.0
    for item in range(items):
        ones, missed = pull(world, t, agent, item, each)
        t, found[item], lost = t + each, ones + np.random.random() / 2, lost + missed
    best = int(np.argmax(found))
    later, missed = pull(world, t, agent, best, stop - t)
    return best, int(np.floor(found).sum()) + later, later, lost + missed


@nb.njit
def divergence(mean, q):
    """kl(mean, q) of coins, 0 for q up to the mean."""
    if q <= mean:
        return 0.0
    if q >= 1.0:
        return math.inf
    return (1 - mean) * math.log((1 - mean) / (1 - q)) + (mean * math.log(mean / q) if mean > 0 else 0.0)


@nb.njit
def upper(mean, pulls, width):
    """The KL-UCB index, by bisection."""
    low, high = mean, 1.0
    for _ in range(40):
        q = (low + high) / 2
        low, high = (q, high) if pulls * divergence(mean, q) <= width else (low, q)
    return low


@nb.njit
def kl_ucb(world, t, stop, champions, width):
    """KL-UCB over one item of each agent, on fresh rewards; what is lost."""
    agents, lost, leader, second = len(champions), 0.0, 0, 1.0
    n, k, index = np.zeros(agents), np.zeros(agents), np.ones(agents)
    for now in range(t, stop):
        one, missed = pull(world, now, leader, champions[leader], 1)
        n[leader], k[leader], lost = n[leader] + 1, k[leader] + one, lost + missed
        if n[leader] * divergence(k[leader] / n[leader], second) > width:  # its index is below the second one
            index[leader] = upper(k[leader] / n[leader], n[leader], width)
            leader, second = int(np.argmax(index)), 0.0
            for other in range(agents):
                second = max(second, index[other]) if other != leader else second
    return lost


@nb.njit
def contest(world, t, stop, pulls, draws, threshold, width):
    """Champions of all agents by tests of draws, then KL-UCB of the champions."""
    agents, lost = world.rates.shape[1], 0.0
    each, champions = min(pulls * draws, (stop - t) // agents), np.zeros(agents, np.int64)
    for agent in range(agents):
        champions[agent], missed = draw_champion(world, t, t + each, agent, pulls, draws, threshold)
        t, lost = t + each, lost + missed
    return lost + kl_ucb(world, t, stop, champions, width)


@nb.njit
def holdout_contest(world, t, stop, rounds, width):
    """Champions of all agents by explore-then-commit, then KL-UCB of the champions."""
    agents, lost = world.rates.shape[1], 0.0
    each, champions = min(rounds * world.rates.shape[2], (stop - t) // agents), np.zeros(agents, np.int64)
    for agent in range(agents):
        champions[agent], _, _, missed = explore_then_commit(world, t, t + each, agent, rounds)
        t, lost = t + each, lost + missed
    return lost + kl_ucb(world, t, stop, champions, width)


@nb.njit
def award(world, t, stop, rounds, trial, fresh):
    """Trials of explore-then-commit; the agent with most ones (later ones if `fresh`) gets the rest, begun afresh."""
    agents, lost = world.rates.shape[1], 0.0
    scores = np.zeros(agents)
    for agent in range(agents):
        _, ones, later, missed = explore_then_commit(world, t, t + trial, agent, rounds)
        t, lost = t + trial, lost + missed
        scores[agent] = (later if fresh else ones) + np.random.random() / 2
    return lost + explore_then_commit(world, t, stop, int(np.argmax(scores)), rounds)[3]


@nb.njit
def uniform_agents(world, t, stop, rounds):
    """An agent at random in each round, explore-then-commit inside; rates must not drift."""
    agents, lost = world.rates.shape[1], 0.0
    for agent in range(agents):
        own = np.random.binomial(stop - t, 1 / (agents - agent))
        lost += explore_then_commit(world, t, t + own, agent, rounds)[3]
        t += own
    return lost


@nb.njit
def on_slots(world, t, stop, draws, width):
    """The KL-UCB index on slots, which never rises; what is lost."""
    _, agents, items = world.rates.shape
    slots = agents * draws
    item, n, k, lost = np.random.randint(0, items, slots), np.zeros(slots), np.zeros(slots), 0.0
    index = 2 + np.random.random(slots)
    while t < stop:
        i = int(np.argmax(index))
        now = min(max(1, int(n[i]) // 16), stop - t)
        ones, missed = pull(world, t, i // draws, item[i], now)
        n[i], k[i], t, lost = n[i] + now, k[i] + ones, t + now, lost + missed
        index[i] = min(index[i], upper(k[i] / n[i], n[i], width))
    return lost


@nb.njit
def on_bars(world, t, stop, draws, stakes, points):
    """Bars on slots: a balance of W points lasts for W views at least; what is lost."""
    _, agents, items = world.rates.shape
    slots = agents * draws
    item, failures, lost = np.random.randint(0, items, slots), np.zeros(slots, np.int64), 0.0
    order, balance = np.random.random(slots), np.full(slots, stakes[0])
    while t < stop:
        i = int(np.argmin(failures + order))
        now, level = min(balance[i], stop - t), min(failures[i], len(stakes) - 1)
        ones, missed = pull(world, t, i // draws, item[i], now)
        more = np.random.binomial(int(ones), points[level] % 1)
        t, lost, balance[i] = t + now, lost + missed, balance[i] - now + int(ones) * int(points[level]) + more
        if balance[i] == 0:
            failures[i] += 1
            balance[i] = stakes[min(failures[i], len(stakes) - 1)]
    return lost


@nb.njit
def nested_ucb(world, t, stop, constant, power, current):
    """UCB over agents, of bonus root(constant t^power ln t / n), and UCB with constant 2 inside; what is lost."""
    _, agents, items = world.rates.shape
    n, k, lost = np.zeros((agents, items)), np.zeros((agents, items)), 0.0
    pulls, ones = np.zeros(agents), np.zeros(agents)
    for now in range(t, stop):
        clock, best, agent = now - t + current, -1.0, 0
        bonus = constant * clock**power * math.log(clock) if clock > 0 else 0.0
        for i in range(agents):
            index = ones[i] / pulls[i] + math.sqrt(bonus / pulls[i]) if pulls[i] > 0 else 1e9 + np.random.random()
            if index > best:
                best, agent = index, i
        best, item = -1.0, 0
        bonus = 2 * math.log(pulls[agent]) if pulls[agent] > 0 else 0.0
        for j in range(items):
            seen = n[agent, j]
            index = k[agent, j] / seen + math.sqrt(bonus / seen) if seen > 0 else 1e9 + np.random.random()
            if index > best:
                best, item = index, j
        one, missed = pull(world, now, agent, item, 1)
        n[agent, item], k[agent, item], lost = n[agent, item] + 1, k[agent, item] + one, lost + missed
        pulls[agent], ones[agent] = pulls[agent] + 1, ones[agent] + one
    return lost


@nb.njit
def set_seed(seed):
    """Seed the compiled programs."""
    np.random.seed(seed)


def bars_of(given: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The stakes in points, and what a click earns, of each bar; none of other mechanisms."""
    points = 1 / np.atleast_1d(given.get("bars", ())).astype(float)
    return np.maximum(1, np.rint(given.get("stake", 1.0) * points)).astype(np.int64), points


def program(made: cp.Mechanism) -> tuple[Callable[..., float], tuple[Any, ...]]:
    """The program that plays a mechanism, and its numbers."""
    given: Any = made.parameters
    width = given.get("constant", 0.0) * math.log(given.get("horizon", 1))
    tests = given.get("rounds"), given.get("draws"), given.get("threshold") or 0
    rounds, fresh = given.get("arm_rounds", 0), given.get("score_rounds", 0)
    programs: dict[str, tuple[Callable[..., float], tuple[Any, ...]]] = {
        "reservoir": (reservoir, tests),
        "reservoir-contest": (contest, (*tests, width)),
        "reservoir-index": (on_slots, (given.get("draws"), given.get("constant"))),
        "reservoir-bars": (on_bars, (given.get("draws"), *bars_of(given))),
        "holdout-kl-ucb": (holdout_contest, (rounds, width)),
        "holdout-h-etc": (award, (rounds, rounds * (given.get("max_arms") or 0) + fresh, True)),
        "h-etc-r": (award, (rounds, given.get("agent_rounds"), False)),
        "uniform-etc": (uniform_agents, (rounds,)),
        "h-ucb": (nested_ucb, (2.0, 0.0, 1)),
        "rh-ucb": (nested_ucb, (1.0, 0.5, 0)),  # of a sample of ln T arms, which is all of them
    }
    return programs[made.name]


def played(made: cp.Mechanism, world: World, rounds: int, season: int) -> float:
    """The regret of one run, with a new start after each season."""
    play, numbers = program(made)
    if made.name == "holdout-h-etc" and numbers[1] * world.rates.shape[1] > min(
        season, rounds
    ):  # too short for an award
        play, numbers = uniform_agents, numbers[:1]
    return sum(play(world, t, min(t + season, rounds), *numbers) for t in range(0, rounds, season))


def drawn_world(question: Asked, dice: np.random.Generator) -> tuple[World, int]:
    """Rates of all items, with the rounds at which one is drawn anew if rates drift; and the number of rounds."""
    market, lifetime = question.market, question.options.get("drift")
    prior, shape = market.agents[0].priors[0], (len(market.agents), market.most_originals)
    rounds = market.horizon if market.ends == "at-horizon" else int(dice.geometric(1 / market.horizon))
    changes = 0 if lifetime is None else int(dice.poisson(rounds * market.originals / lifetime))
    ends = np.append(np.unique(dice.integers(1, max(2, rounds), changes)), rounds)
    rates = np.empty((len(ends), *shape))
    rates[0] = [[prior.quantile(u) for u in own] for own in dice.random(shape)]
    for piece in range(1, len(ends)):
        rates[piece] = rates[piece - 1]
        rates[piece, dice.integers(shape[0]), dice.integers(shape[1])] = prior.quantile(dice.random())
    return World(rates, rates.max(axis=(1, 2)), ends), rounds


def simulated(question: Asked, plays: list[tuple[cp.Mechanism, int]], runs: int, seed: int) -> Costs:
    """The regret of each run of each mechanism, restarted after its season, in the same worlds."""
    dice, costs = np.random.default_rng([SEED, seed, 1]), np.zeros((runs, len(plays)))
    set_seed(seed)
    for run in range(runs):
        world, rounds = drawn_world(question, dice)
        costs[run] = [played(made, world, rounds, season) for made, season in plays]
    return costs


def advised(question: Asked) -> Recommendation:
    """What `recommend` says."""
    return cp.recommend(question.market, **question.options)


def row(number: int, runs: int) -> Row:
    """The row of a market."""
    question = asked(number)
    found, market = advised(question), question.market
    choice, informed = found.choice, question.options.get("providers") == "informed"
    names = INFORMED if informed else RESERVOIRS if market.ends == "at-random" else (*RESERVOIRS, *DECLARED)
    season = found.market.horizon if found.seasons is not None else sys.maxsize
    others = [made for made in tuned_mechanisms(names, found.market)[0] if made.name != choice.name]
    plays = [(each, season) for each in (choice.mechanism, *others)]
    labels = [each.name for each, _ in plays]
    if found.seasons is not None:
        for length in (season // 2, min(2 * season, market.horizon)):
            plays += [(cp.mechanism(choice.name, market=market.with_horizon(length)), length)]
            labels += [f"{choice.name}, seasons of {length:,}"]
    prior, ends = market.agents[0].priors[0], "random end" if market.ends == "at-random" else "fixed end"
    more = ", informed" if informed else f", drift {question.options['drift']:,.0f}" if found.seasons else ""
    where = f"{len(market.agents)} x {market.most_originals}, {prior}, {market.horizon:,} rounds, {ends}{more}"
    advice = choice.name + (f", seasons of {season:,}" if found.seasons else "") + ("" if found.settled else " (open)")
    return Row(where, advice, found.cost, labels, simulated(question, plays, runs, number))


def half_width(costs: Costs, errors: float = NORMAL_99) -> float:
    """So many standard errors of a mean."""
    return errors * float(costs.std(ddof=1)) / len(costs) ** 0.5


def ratio(found: Row, errors: float = NORMAL_99) -> tuple[float, float, int]:
    """The advice's regret relative to the smallest, with so many standard errors; and whose that is."""
    means = found.costs.mean(axis=0)
    best = int(means.argmin())
    share = float(means[0] / means[best])
    return share, half_width(found.costs[:, 0] - share * found.costs[:, best], errors) / float(means[best]), best


def problems(found: Row) -> list[str]:
    """What the simulation surely contradicts: the regret that was said, or that the advice is among the cheapest."""
    wrong, (share, half, best) = [], ratio(found, SURE)
    own = found.costs[:, 0]
    if abs(own.mean() - found.said.value) > half_width(own, SURE) + found.said.error:
        wrong.append(f"{found.where}: said {found.said.value:,.0f}, simulated {own.mean():,.0f}")
    if share - half > CLOSE:
        wrong.append(f"{found.where}: {found.names[best]} costs less than {found.advice}")
    return wrong


def shown(found: Row) -> str:
    """The row as a line of a table."""
    share, half, best = ratio(found)
    said = f"{found.said.value:,.0f} ± {found.said.error:,.0f}"
    own, least = (f"{cost.mean():,.0f} ± {half_width(cost):,.0f}" for cost in (found.costs[:, 0], found.costs[:, best]))
    cheapest = "the same" if best == 0 else f"{found.names[best]}, {least}"
    return f"| {found.where} | {found.advice} | {said} | {own} | {cheapest} | {share:.2f} ± {half:.2f} |"


def untimed(data: Any) -> Any:
    """Data without what a clock told."""
    if isinstance(data, dict):
        return {key: untimed(value) for key, value in data.items() if key != "seconds"}
    return [untimed(value) for value in data] if isinstance(data, list) else data


def spin() -> None:
    """Keep a core busy."""
    while True:
        pass


def beside_loops(number: int) -> bool:
    """Whether the advice for a market is the same, to the last digit, beside busy loops."""
    command = [sys.executable, __file__, "json", str(number)]
    quiet = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loops = [multiprocessing.Process(target=spin, daemon=True) for _ in range(LOOPS)]
    for loop in loops:
        loop.start()
    try:
        return quiet == subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        for loop in loops:
            loop.kill()


def main(first: str = str(RUNS), *numbers: str) -> int:
    """Print the table, or say whether advice depends on how busy the machine is; the exit code."""
    markets = [int(number) for number in numbers] or list(range(MARKETS))
    if first == "json":
        print(json.dumps(untimed(advised(asked(markets[0])).to_dict()), indent=1))
        return 0
    wrong: list[str] = []
    if first == "busy":
        for number in markets:
            same = beside_loops(number)
            print(f"market {number}: {'the same' if same else 'another'} answer beside {LOOPS} busy loops", flush=True)
            wrong += [] if same else [str(number)]
        return bool(wrong)
    print("| market | advice | said | simulated | cheapest | ratio |\n|---|---|---:|---:|---|---:|")
    for number in markets:
        start = time.process_time()
        found = row(number, int(first))
        print(shown(found), f"<!-- market {number}, {time.process_time() - start:.0f} CPU seconds -->", flush=True)
        wrong += problems(found)
    print("\n".join(wrong), file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
