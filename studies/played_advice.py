"""Eight markets that were drawn at random, and how near to the cheapest mechanism is what `recommend` named.

    python studies/played_advice.py [RUNS] [--jobs JOBS] [--markets NUMBER ..]     the table of docs/which_mechanism.md

Reads the markets, the advice and its rivals from `advice.json` (`advice.py` writes it) and plays them in the same
worlds, by the short programs below, which share no code with the package: Python, NumPy and Numba are enough. Everybody
is honest. Rivals are every mechanism of the catalogue that is
clone-proof there, with tuned numbers, and the advised one with other numbers: its pulls, draws, threshold, constant,
bar and stake smaller and larger (`FACTORS`), up to two of them at once. One market for all segments and seasons half
and twice as long are among them. The cheapest one is chosen by every other run, and compared with the advice in the
rest, as the least of many averages is too low. Errors are 2.58 standard errors, and the study exits with 1 if the
regret that was said, or the cheapest one, differs by more than `CLOSE` beyond `SURE` standard errors. With drift,
what is said may be too high: in its model nothing is learned after a change, and contests go on learning.
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

RUNS, CHUNK = 1000, 20  # CHUNK: runs of one task
NORMAL_99, SURE = 2.58, 4.9  # SURE: one wrong alarm in a million
CLOSE = 1.1  # the ratio that is allowed
ADVICE = Path(__file__).with_name("advice.json")
HALF = (1.0, 0.5, 2.0)
FIFTH = (1.0, 0.8, 1.25)
FACTORS = {"rounds": HALF, "draws": HALF, "threshold": FIFTH, "constant": HALF, "bars": FIFTH, "stake": HALF}
CHANGED = 2  # numbers that differ from the advised ones at once, at most
ALL = "all"  # the world of all rounds
Costs = NDArray[np.float64]
compiled = nb.njit(cache=True)


class World(NamedTuple):
    """Rates [piece, agent, item], what the best item or page of a piece earns, and the rounds at which pieces end."""

    rates: NDArray[np.float64]
    best: NDArray[np.float64]
    ends: NDArray[np.int64]


class Play(NamedTuple):
    """What is played: a mechanism's name and numbers in each of some worlds, restarted after a season."""

    label: str
    parts: dict[str, list[Any]]
    season: int = sys.maxsize


@compiled
def pull(world, t, agent, item, number):
    """Show an item for some rounds from round t on: its ones, and what is lost to the best item."""
    ones, lost, piece = 0, 0.0, np.searchsorted(world.ends, t, side="right")
    while number > 0:
        now, mean = min(number, world.ends[piece] - t), world.rates[piece, agent, item]
        ones += int(np.random.random() < mean) if now == 1 else np.random.binomial(now, mean)
        lost += now * (world.best[piece] - mean)
        number, t, piece = number - now, t + now, piece + 1
    return ones, lost


@compiled
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


@compiled
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


@compiled
def divergence(mean, q):
    """kl(mean, q) of coins, 0 for q up to the mean."""
    if q <= mean:
        return 0.0
    if q >= 1.0:
        return math.inf
    return (1 - mean) * math.log((1 - mean) / (1 - q)) + (mean * math.log(mean / q) if mean > 0 else 0.0)


@compiled
def upper(mean, pulls, width):
    """The KL-UCB index, by bisection."""
    low, high = mean, 1.0
    for _ in range(40):
        q = (low + high) / 2
        low, high = (q, high) if pulls * divergence(mean, q) <= width else (low, q)
    return low


@compiled
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


@compiled
def contest(world, t, stop, pulls, draws, threshold, width):
    """Champions of all agents by tests of draws, then KL-UCB of the champions."""
    agents, lost = world.rates.shape[1], 0.0
    each, champions = min(pulls * draws, (stop - t) // agents), np.zeros(agents, np.int64)
    for agent in range(agents):
        champions[agent], missed = draw_champion(world, t, t + each, agent, pulls, draws, threshold)
        t, lost = t + each, lost + missed
    return lost + kl_ucb(world, t, stop, champions, width)


@compiled
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


@compiled
def on_bar(world, t, stop, draws, stake, points):
    """A bar on slots: a balance of W points lasts for W views at least; what is lost."""
    _, agents, items = world.rates.shape
    slots = agents * draws
    item, failures, lost = np.random.randint(0, items, slots), np.zeros(slots, np.int64), 0.0
    order, balance = np.random.random(slots), np.full(slots, stake)
    while t < stop:
        i = int(np.argmin(failures + order))
        now = min(balance[i], stop - t)
        ones, missed = pull(world, t, i // draws, item[i], now)
        more = np.random.binomial(int(ones), points % 1)
        t, lost, balance[i] = t + now, lost + missed, balance[i] - now + int(ones) * int(points) + more
        if balance[i] == 0:
            failures[i] += 1
            balance[i] = stake
    return lost


@compiled
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


@compiled
def slates(world, stop, attention, pulls, draws):
    """Test draws in the last place of a page, page by page; in front, agents by the best count of their tests."""
    _, agents, items = world.rates.shape
    rates, filled, tests = world.rates[0], min(len(attention), agents), agents * draws
    order, turns, champions = np.random.permutation(agents), np.random.permutation(agents), np.zeros(agents, np.int64)
    scores, ranking, t, earned = np.full(agents, -np.inf), np.arange(agents), 0, 0.0
    for test in range(tests):
        agent, item, ones, ranked = order[test % agents], np.random.randint(items), 0, min(test, agents)
        waiting = turns[scores[turns] == -np.inf]
        for page in range(t, min(t + pulls, stop)):
            for place in range(filled - 1):
                shown = ranking[place] if place < ranked else waiting[(page + place - ranked) % len(waiting)]
                own = champions[shown] if place < ranked else np.random.randint(items)
                earned += attention[place] * rates[shown, own]
            seen = attention[filled - 1] * rates[agent, item]
            earned, ones = earned + seen, ones + int(np.random.random() < seen)
        t += pulls
        if t > stop:
            break
        if ones * tests - test > scores[agent]:  # of equal counts the earlier one is better
            scores[agent], champions[agent] = ones * tests - test, item
        ranking = np.argsort(-scores)
    for place in range(filled):
        earned += max(0, stop - t) * attention[place] * rates[ranking[place], champions[ranking[place]]]
    return stop * world.best[0] - earned


@compiled
def set_seed(seed):
    """Seed the compiled programs."""
    np.random.seed(seed)


def points_of(given: dict[str, Any]) -> tuple[int, float]:
    """The stake in points, and what a click earns."""
    points = 1 / given["bars"]
    return max(1, round(given["stake"] * points)), points


def played(name: str, given: dict[str, Any], world: World, season: int, attention: list[float] | None) -> float:
    """The regret of one run of a mechanism, with a new start after each season."""
    tests = given.get("rounds"), given.get("draws"), given.get("threshold") or 0
    width = given.get("constant", 0.0) * math.log(given.get("horizon", 1))
    programs: dict[str, Callable[..., float]] = {
        "reservoir": lambda t, stop: reservoir(world, t, stop, *tests),
        "reservoir-contest": lambda t, stop: contest(world, t, stop, *tests, width),
        "reservoir-index": lambda t, stop: on_slots(world, t, stop, given["draws"], given["constant"]),
        "reservoir-bars": lambda t, stop: on_bar(world, t, stop, given["draws"], *points_of(given)),
        "h-ucb": lambda t, stop: nested_ucb(world, t, stop, 2.0, 0.0, 1),
    }
    rounds = int(world.ends[-1])
    if attention is not None:
        return slates(world, rounds, np.array(attention), *tests[:2])
    return sum(programs[name](t, min(t + season, rounds)) for t in range(0, rounds, season))


def drawn_rates(law: dict[str, Any], shape: tuple[int, ...], dice: np.random.Generator) -> NDArray[np.float64]:
    """Rates of items, one draw of the law each."""
    if "values" in law:
        return dice.choice(law["values"], shape, p=law["weights"])
    (kind, numbers), *_ = law.items()
    return {"beta": dice.beta, "uniform": dice.uniform}[kind](*numbers, shape)


def drawn_worlds(asked: dict[str, Any], dice: np.random.Generator) -> dict[str, World]:
    """One draw of all rates: the world of all rounds, and of each segment."""
    law, shape = asked["prior"], (asked["agents"], asked["originals"])
    rounds = asked["horizon"] if asked["ends"] == "at-horizon" else int(dice.geometric(1 / asked["horizon"]))
    if segments := asked["segments"]:
        if "log_odds" in law:
            median, spread, deviation = law["log_odds"]
            level = math.log(median / (1 - median)) + spread * dice.standard_normal(shape)
            own = {name: 1 / (1 + np.exp(-level - deviation * dice.standard_normal(shape))) for name in segments}
        else:
            own = {name: drawn_rates(law["segment_priors"][name], shape, dice) for name in segments}
        arrived = dice.multinomial(rounds, list(segments.values()))
        worlds = {
            name: World(own[name][None], own[name].max(keepdims=True).ravel(), np.array([count]))
            for name, count in zip(segments, arrived, strict=True)
        }
        average, best = (
            sum(part * value for part, value in zip(segments.values(), values, strict=True))
            for values in ([own[name] for name in segments], [worlds[name].best for name in segments])
        )
        return worlds | {ALL: World(average[None], best, np.array([rounds]))}
    lifetime, items = asked["drift"], shape[0] * shape[1]
    changes = 0 if lifetime is None else int(dice.poisson(rounds * items / lifetime))
    ends = np.append(np.unique(dice.integers(1, max(2, rounds), changes)), rounds)
    rates = np.repeat(drawn_rates(law, shape, dice)[None], len(ends), axis=0)
    for piece in range(1, len(ends)):
        rates[piece:, dice.integers(shape[0]), dice.integers(shape[1])] = drawn_rates(law, (), dice)
    best = rates.max(axis=(1, 2))
    if asked["positions"] is not None:
        filled = min(len(asked["positions"]), shape[0])
        best = -np.sort(-rates.max(axis=2), axis=1)[:, :filled] @ np.array(asked["positions"][:filled])
    return {ALL: World(rates, best, ends)}


def scaled(given: dict[str, Any], factors: dict[str, float]) -> dict[str, Any]:
    """A mechanism's numbers times factors; a threshold follows the pulls of a test."""
    found = given | {key: given[key] * factors[key] for key in ("constant", "stake") if key in given}
    if "bars" in given:
        found["bars"] = min(1.0, given["bars"] * factors["bars"])
    for key in ("rounds", "draws"):
        if key in given:
            found[key] = max(1, round(given[key] * factors[key]))
    if given.get("threshold"):
        passes = given["threshold"] * found["rounds"] / given["rounds"] * factors["threshold"]
        found["threshold"] = min(found["rounds"], max(1, round(passes)))
    return found


def neighbours(play: Play) -> Iterator[Play]:
    """The same mechanism with other numbers."""
    given = next(iter(play.parts.values()))[1]
    keys = [key for key in FACTORS if given.get(key)]
    seen = [play.parts]
    for chosen in itertools.product(*(FACTORS[key] for key in keys)):
        factors = dict.fromkeys(FACTORS, 1.0) | dict(zip(keys, chosen, strict=True))
        parts = {world: [name, scaled(numbers, factors)] for world, (name, numbers) in play.parts.items()}
        if sum(factor != 1 for factor in chosen) <= CHANGED and parts not in seen:
            seen.append(parts)
            changes = ", ".join(f"{key} x {factors[key]:g}" for key in keys if factors[key] != 1)
            yield Play(f"{play.label} ({changes})", parts, play.season)


def plays_of(market: dict[str, Any]) -> list[Play]:
    """The advice first, then its rivals, then the advice with other numbers."""
    plays = [Play(each["label"], each["parts"], each["season"] or sys.maxsize) for each in market["plays"]]
    return [*plays, *neighbours(plays[0])]


def simulated(asked: dict[str, Any], plays: list[Play], runs: int, seed: list[int]) -> Costs:
    """The regret of each run of each play, in the same worlds."""
    dice, costs = np.random.default_rng(seed), np.zeros((runs, len(plays)))
    set_seed(int(dice.integers(2**31)))
    for run in range(runs):
        worlds = drawn_worlds(asked, dice)
        for k, play in enumerate(plays):
            costs[run, k] = sum(
                played(name, given, worlds[world], play.season, asked["positions"])
                for world, (name, given) in play.parts.items()
            )
    return costs


def described(asked: dict[str, Any]) -> str:
    """The market in a few words."""
    law = asked["prior"].get("segment_priors", {ALL: asked["prior"]}).values()
    kinds = {"beta": "Beta", "uniform": "Uniform", "log_odds": "LogOdds", "values": "rates"}
    numbers = [
        f"{kinds[key]}({', '.join(f'{n:g}' for n in value)})"
        for own in law
        for key, value in own.items()
        if key in kinds
    ]
    words = [f"{asked['agents']} x {asked['originals']}", " or ".join(numbers), f"{asked['horizon']:,} rounds"]
    words += ["random end"] if asked["ends"] == "at-random" else []
    words += [f"{len(asked['segments'])} segments"] if asked["segments"] else []
    words += [f"{len(asked['positions'])} places"] if asked["positions"] else []
    words += [f"drift {asked['drift']:,.0f}"] if asked["drift"] else []
    return ", ".join(words)


def half_width(costs: Costs, errors: float = NORMAL_99) -> float:
    """So many standard errors of a mean."""
    return errors * float(costs.std(ddof=1)) / len(costs) ** 0.5


def ratio(costs: Costs, errors: float = NORMAL_99) -> tuple[float, float, int]:
    """The first column's mean relative to the cheapest one's, with so many standard errors; and which that is."""
    best, fresh = int(costs[::2].mean(axis=0).argmin()), costs[1::2]
    own, least = fresh[:, 0], fresh[:, best]
    share = float(own.mean() / least.mean())
    return share, half_width(own - share * least, errors) / float(least.mean()), best


def problems(market: dict[str, Any], plays: list[Play], costs: Costs) -> list[str]:
    """What the simulation surely contradicts: the regret that was said, or that the advice is near the cheapest."""
    wrong, (share, half, best) = [], ratio(costs, SURE)
    own, (said, error) = costs[:, 0], market["said"]
    missed = own.mean() - said if market["asked"]["drift"] else abs(own.mean() - said)
    if missed > half_width(own, SURE) + error + (CLOSE - 1) * own.mean():
        wrong.append(f"{described(market['asked'])}: said {said:,.0f}, simulated {own.mean():,.0f}")
    if share - half > CLOSE:
        wrong.append(f"{described(market['asked'])}: {plays[best].label} costs less than {market['advice']}")
    return wrong


def shown(market: dict[str, Any], plays: list[Play], costs: Costs) -> str:
    """The row of a table."""
    (share, half, best), (said, error) = ratio(costs), market["said"]
    own, least = (f"{cost.mean():,.0f} ± {half_width(cost):,.0f}" for cost in (costs[:, 0], costs[:, best]))
    cheapest = "the same" if best == 0 else f"{plays[best].label}, {least}"
    cells = described(market["asked"]), market["advice"], f"{said:,.0f} ± {error:,.0f}", own, cheapest
    return f"| {' | '.join(cells)} | {share:.2f} ± {half:.2f} |"


def main(runs: int, jobs: int, markets: list[int]) -> int:
    """Print the table; the exit code."""
    wrong, asked = list[str](), json.loads(ADVICE.read_text())
    print("| market | advice | said | simulated | cheapest | ratio |\n|---|---|---:|---:|---|---:|")
    with ProcessPoolExecutor(jobs) as pool:
        pending = []
        for number in markets or range(len(asked)):
            plays = plays_of(asked[number])
            play = partial(simulated, asked[number]["asked"], plays, CHUNK)
            pending.append((asked[number], plays, pool.map(play, [[number, k] for k in range(-(-runs // CHUNK))])))
        for market, plays, chunks in pending:
            costs = np.concatenate(list(chunks))
            print(shown(market, plays, costs), flush=True)
            wrong += problems(market, plays, costs)
    print("\n".join(wrong), file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("runs", nargs="?", type=int, default=RUNS)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--markets", nargs="*", type=int, default=[])
    sys.exit(main(**vars(arguments.parse_args())))
