"""How many copies does everybody end up with? Equilibria of etc, h-etc-r and ucb1 for one to five equal agents.

Each agent has two originals, each of mean .2 or .8 with equal odds, and may register each of them up to a cap. `etc`
and `h-etc-r` have the parameters of their theorems and are exact; `ucb1` is sampled, over a shorter horizon.

    python studies/replication_equilibria.py quick     up to two agents, ucb1 left out
    python studies/replication_equilibria.py           all of it, as the table of the docs
"""

from __future__ import annotations

import sys

import cloneproof as cp

PRIOR = cp.Discrete([0.2, 0.8], [0.5, 0.5])
EXACT_CAP, EXACT_ROUNDS = 8, 4000
SAMPLED_CAP, SAMPLED_ROUNDS, RUNS = 4, 500, 4000


def solve(name: str, agents: int) -> cp.results.Equilibrium:
    """The equilibrium of so many equal agents."""
    sampled = name == "ucb1"
    providers = [cp.Agent(f"agent {k + 1}", 2, PRIOR) for k in range(agents)]
    market = cp.Market(providers, SAMPLED_ROUNDS if sampled else EXACT_ROUNDS)
    made = cp.mechanism(name) if sampled else cp.mechanism(name, market=market)
    return cp.equilibrium(
        market, made, max_copies=SAMPLED_CAP if sampled else EXACT_CAP, runs=RUNS if sampled else None
    )


def line(name: str, found: cp.results.Equilibrium) -> str:
    """A line of the table."""
    copies = sorted({", ".join(map(str, own)) for own in found.copies.values()})
    ends = found.status if found.status != "cycle" else f"cycle of {len(found.cycle)}"
    incentive = f"{found.largest_incentive:.0e}" if found.largest_incentive > 0 else "0"
    cells = (
        f"`{name}`",
        f"{len(found.copies)}",
        ends,
        f"({') ('.join(copies)})",
        "yes" if found.at_cap else "no",
        regret_words(found.honest.regret),
        regret_words(found.evaluation.regret),
        incentive,
    )
    return f"| {' | '.join(cells)} |"


def regret_words(regret: cp.results.Estimate) -> str:
    """With its error where it was sampled."""
    return f"{regret.value:,.0f}" + (f" ± {regret.error:,.0f}" if regret.error > 0.5 else "")


def main(size: str = "all") -> None:
    """Print the table."""
    columns = ("mechanism", "agents", "ends in", "copies", "at the cap", "honest regret", "regret there", "incentive")
    print(f"| {' | '.join(columns)} |")
    print("|---|---:|---|---|---|---:|---:|---:|")
    for name in ("etc", "h-etc-r") if size == "quick" else ("etc", "h-etc-r", "ucb1"):
        for agents in range(1, 3 if size == "quick" else 6):
            print(line(name, solve(name, agents)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
