"""The five experiments of Shin, Lee and Ok (2022), fully informed agents: five Bernoulli agents of .9, .8, .7, .6, .5.

a, b: what the agent of .5 (or .9) earns when it registers N copies of its item. c, d: the regret when .5, or all but
.9, register 1,000 copies. e: every agent has items of .2 and .1 as well; the best two register (10, 100, 100), the
other three 1,000 of each. T = 100,000, 100 repetitions (`python examples/shin_2022.py 10000 20` changes both).
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import cloneproof as cp
from cloneproof.cli.output import new_table, print_table, progress_bar
from cloneproof.engines import SampleMean
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import outcomes
from cloneproof.market import full_copies

BEST = (0.9, 0.8, 0.7, 0.6, 0.5)
NAMES = ("ucb1", "h-ucb", "rh-ucb", "s-ucb")
CHUNK = 5
SAMPLE_FACTORS = {"rh-ucb": {"e": 3.0}, "s-ucb": {"e": 15.0}}


def market(horizon: int, extra: tuple[float, ...] = ()) -> cp.Market:
    """Five agents who know their means; `extra` are further items that each of them has."""
    return cp.Market(
        [cp.Agent(f"{best:.1f}", prior=[cp.Point(mean) for mean in (best, *extra)]) for best in BEST], horizon=horizon
    )


def experiments(horizon: int) -> list[tuple[str, str, cp.Market, dict[str, tuple[int, ...]], str | None]]:
    """(figure, label, market, copies, the agent whose payoff is shown; None for the regret)."""
    plain, rich = market(horizon), market(horizon, (0.2, 0.1))
    thousand = dict.fromkeys(("0.8", "0.7", "0.6", "0.5"), (1000,))
    many = {"0.9": (10, 100, 100), "0.8": (10, 100, 100), "0.7": (1000,) * 3, "0.6": (1000,) * 3, "0.5": (1000,) * 3}
    return [
        *[("a", f"payoff of .5 at N = {n}", plain, {"0.5": (n,)}, "0.5") for n in (1, 100, 500)],
        *[("b", f"payoff of .9 at N = {n}", plain, {"0.9": (n,)}, "0.9") for n in (1, 500)],
        ("c", "regret, .5 x 1000", plain, {"0.5": (1000,)}, None),
        ("d", "regret, all but .9 x 1000", plain, thousand, None),
        ("e", "regret, items of .2 and .1 too", rich, many, None),
    ]


def sampled(job: Job, runs: int, agent: str | None) -> SampleMean:
    """The mean payoff of an agent, or the regret, over the runs; chunks of them on threads."""
    starts = range(0, runs, CHUNK)
    with ThreadPoolExecutor() as pool:
        chunks = list(pool.map(lambda first: outcomes(job, first, min(CHUNK, runs - first)), starts))
    if agent is None:
        return SampleMean.of([float(value) for chunk in chunks for value in chunk.regret])
    column = [each.name for each in job.market.agents].index(agent)
    return SampleMean.of([float(row[column]) for chunk in chunks for row in chunk.payoff])


def main(horizon: int = 100_000, runs: int = 100) -> None:
    """Print the table, in thousands, with standard errors."""
    start = time.perf_counter()
    rows = experiments(horizon)
    table = new_table(f"Shin, Lee and Ok 2022: thousands, {runs} runs of {horizon} rounds", "figure", *NAMES)
    with progress_bar() as bar:
        task = bar.add_task("sampling", total=len(rows) * len(NAMES))
        for figure, label, world, copies, agent in rows:
            cells = []
            for name in NAMES:
                factor = SAMPLE_FACTORS.get(name, {}).get(figure)
                mechanism = cp.mechanism(name, **({} if factor is None else {"sample_factor": factor}))
                bar.update(task, description=f"figure {figure}, {name}")
                shown = sampled(Job(world, mechanism, full_copies(world.agents, copies)), runs, agent)
                cells.append(f"{shown.mean / 1000:.2f} ± {shown.standard_error / 1000:.2f}")
                bar.advance(task)
            table.add_row(f"{figure}: {label}", *cells)
    print_table(table)
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
