"""(e) A second account: what it earns, and which fee or cap removes it.

The hold-out mechanism with parameters for n agents, all alike; one of them appears under two names. The best split of
its originals over the two accounts (each one's, or shared) is found by the exact engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from drawing import Panel, figure, logarithmic, save

import cloneproof as cp
from cloneproof.analysis.audit.copy_vectors import OriginalKinds
from cloneproof.analysis.deviations import SECOND_NAME, Split, splits
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.market import full_copies

GRIDS = {
    "two": ("two values", (0.25, 0.75), "#cc6677"),
    "five": ("five values", (0.1, 0.3, 0.5, 0.7, 0.9), "#4477aa"),
}


@dataclass(frozen=True)
class Second:
    """What an agent earns honestly, with the best split, and what an entrant who is never good earns."""

    honest: float
    split: float
    owners: tuple[int, ...]
    weak: float

    @property
    def fee(self) -> float:
        """The fee per account from which on one account is best."""
        return max(0.0, self.split - self.honest)


def market(values: tuple[float, ...], originals: int, agents: int, horizon: int) -> cp.Market:
    """Like agents, all values equally likely."""
    prior = cp.Discrete(list(values), [1 / len(values)] * len(values))
    return cp.Market([cp.Agent(f"a{i}", originals, prior) for i in range(agents)], horizon=horizon)


def both_accounts(honest_market: cp.Market, mechanism: cp.Mechanism, split: Split) -> float:
    """What the two accounts of the first agent earn together, averaged over its means where they share originals."""
    first = honest_market.agents[0]
    atoms = first.priors[0].atoms
    assert atoms is not None
    worlds = [(1.0, None)]
    if any(owner == 3 for owner in split.owners):
        sizes = np.ndindex(*(len(atoms),) * first.count)
        worlds = [(math.prod(atoms[k][1] for k in at), tuple(atoms[k][0] for k in at)) for at in sizes]
    total = 0.0
    for weight, means in worlds:
        drawn = honest_market if means is None else honest_market.at({first.name: means})
        two = split.market(drawn)
        paid = closed_form(two, mechanism, full_copies(two.agents, None)).payoff
        total += weight * (paid[first.name].value + paid[first.name + SECOND_NAME].value)
    return total


def second_account(values: tuple[float, ...], originals: int, agents: int, horizon: int) -> Second | None:
    """The best split; None where the horizon has no award for n + 1 accounts."""
    honest_market = market(values, originals, agents, horizon)
    made = cp.mechanism("holdout-h-etc", market=honest_market)
    if made.agent is None or horizon <= (agents + 1) * made.agent.explore:
        return None
    honest = closed_form(honest_market, made, full_copies(honest_market.agents, None)).payoff["a0"].value
    payoffs = {
        owners: both_accounts(honest_market, made, Split(honest_market.agents[0].name, owners))
        for owners in splits(OriginalKinds((0,) * originals))
    }
    best = max(payoffs, key=lambda owners: payoffs[owners])
    low = cp.Market([cp.Agent("a0", originals, cp.Point(values[0])), *honest_market.agents[1:]], horizon=horizon)
    weak = closed_form(low, made, full_copies(low.agents, None)).payoff["a0"].value
    return Second(honest, payoffs[best], best, weak)


def limit(values: tuple[float, ...], originals: int, agents: int) -> tuple[float, float]:
    """Payoffs per round for T without end, honest and with everything under two names: ties of best means decide."""
    below = [(k / len(values)) ** originals for k in range(len(values) + 1)]
    honest = split = 0.0
    for k, value in enumerate(values):
        mass, less = below[k + 1] - below[k], below[k]
        for ties in range(agents):
            chance = mass * math.comb(agents - 1, ties) * mass**ties * less ** (agents - 1 - ties)
            honest += value * chance / (ties + 1)
            split += value * chance * 2 / (ties + 2)
    return honest, split


def entry_chance(agents: int, horizon: int) -> float:
    """The chance of a good original (of two values) below which an agent cannot earn the fee, by bisection."""
    values = (0.25, 0.75)
    account, honest_market = second_account(values, 2, agents, horizon), market(values, 2, agents, horizon)
    assert account is not None
    made, low, high = cp.mechanism("holdout-h-etc", market=honest_market), 0.0, 0.5
    while high - low > 1e-4:
        chance = (low + high) / 2
        entrant = cp.Agent("a0", 2, cp.Discrete(list(values), [1 - chance, chance]))
        among = cp.Market([entrant, *honest_market.agents[1:]], horizon=horizon)
        paid = closed_form(among, made, full_copies(among.agents, None)).payoff["a0"].value
        low, high = (low, chance) if paid >= account.fee else (chance, high)
    return high


def main(quick: bool, folder: str) -> dict[str, object]:
    """Draw the figure; give back the table."""
    rows, over_n, over_t = [], {}, {}
    numbers = (2, 3) if quick else (2, 3, 5, 8)
    horizons = [10**4, 10**6] if quick else [10**p for p in range(3, 9)]
    for name, (words, values, _) in GRIDS.items() if not quick else [("two", GRIDS["two"])]:
        for agents in numbers:
            account = second_account(values, 2, agents, 10**6)
            if account is not None:
                over_n[name, agents] = account
                rows.append(_row(words, agents, 10**6, account, limit(values, 2, agents)))
        for horizon in horizons:
            account = second_account(values, 2, 3, horizon)
            if account is not None:
                over_t[name, horizon] = account
                rows.append(_row(words, 3, horizon, account, limit(values, 2, 3)))
    for agents in numbers[:1] if quick else (2, 3, 8):
        chance = entry_chance(agents, 10**6)
        rows.append(
            f"two values, n = {agents}: the fee keeps out agents whose originals are good with chance < {chance:.3f}"
        )
    with figure("splitting", 2) as (made, (left, right)):
        _draw_agents(left, over_n)
        _draw_horizons(right, over_t)
        save(made, folder, "splitting")
    return {"rows": rows, "over_n": over_n, "over_t": over_t}


def _row(words: str, agents: int, horizon: int, account: Second, ends: tuple[float, float]) -> str:
    return (
        f"{words}, n = {agents}, T = {horizon}: honest {account.honest:.1f}, best split {account.owners} "
        f"{account.split:.1f}, fee {account.fee:.1f} = {account.fee / account.honest:.1%} of the honest payoff "
        f"(T -> inf: {ends[1] / ends[0] - 1:.1%}), an agent that is never good earns {account.weak:.1f}: "
        f"{'enters' if account.weak >= account.fee else 'stays out'}"
    )


def _draw_agents(axes: Panel, accounts: dict[tuple[str, int], Second]) -> None:
    for name in dict.fromkeys(name for name, _ in accounts):
        words, values, colour = GRIDS[name]
        x = [n for key, n in accounts if key == name]
        y = [100 * accounts[name, n].fee / accounts[name, n].honest for n in x]
        every = range(min(x), max(x) + 1)
        ends = [limit(values, 2, n) for n in every]
        axes.plot(every, [100 * (b / a - 1) for a, b in ends], color=colour, linewidth=1, linestyle=(0, (5, 2)))
        axes.plot(x, y, "o", color=colour, markersize=5)
        axes.annotate(words, (x[-1], y[-1]), (-2, 7), textcoords="offset points", color=colour, ha="right")
    for many, colour in ((20, "#117733"), (100, "#999933")):
        values = tuple((k + 0.5) / many for k in range(many))
        ends = [limit(values, 2, n) for n in every]
        y = [100 * (b / a - 1) for a, b in ends]
        axes.plot(every, y, color=colour, linewidth=1, linestyle=(0, (5, 2)))
        axes.annotate(
            f"{many} values", (every[-1], y[-1]), (-2, 5), textcoords="offset points", color=colour, ha="right"
        )
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.set_xlabel("agents n")
    axes.set_ylabel("gain (% of the honest payoff)")
    axes.set_title("a second account, T = 10⁶ (dashes: T → ∞)")


def _draw_horizons(axes: Panel, accounts: dict[tuple[str, int], Second]) -> None:
    for name in dict.fromkeys(name for name, _ in accounts):
        words, _, colour = GRIDS[name]
        x = [T for key, T in accounts if key == name]
        axes.plot(
            x,
            [100 * accounts[name, T].fee / accounts[name, T].honest for T in x],
            color=colour,
            marker="o",
            markersize=4,
        )
        weak = [100 * accounts[name, T].weak / accounts[name, T].honest for T in x]
        axes.plot(x, weak, color=colour, linestyle=(0, (1, 1)), marker="o", markersize=2.5)
        axes.annotate(f"fee, {words}", (x[-1], 100 * accounts[name, x[-1]].fee / accounts[name, x[-1]].honest), (-2, 6),
                      textcoords="offset points", color=colour, ha="right")  # fmt: skip
    axes.annotate("dots: what a never-good\nentrant earns", (x[0], weak[0]), (10, 6), textcoords="offset points",
                  color="#5b6475")  # fmt: skip
    logarithmic(axes.xaxis, [T for _, T in accounts])
    axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    axes.set_xlabel("horizon T (rounds)")
    axes.set_ylabel("% of the honest payoff")
    axes.set_title("the fee against what entrants have (n = 3)")
