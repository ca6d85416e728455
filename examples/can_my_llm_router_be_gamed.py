"""Can my LLM router be gamed? A provider lists one model under eight names, and LiteLLM's adaptive router decides.

LiteLLM's own functions are played: Thompson sampling for each type of request. Needs LiteLLM 1.100 or newer,
pip install 'cloneproof[litellm]'. With 1.109 it prints, after two minutes:

    Ana's share of the requests under one name, and under 8 (at 95 %, 100 pairs of runs):
      code_generation, 75 % of users pleased: 7 ± 3 %, 33 ± 6 % under LiteLLM 1.109.1's adaptive router
        and 6.4 %, 6.4 % under a reservoir for each type
      writing, 80 % of users pleased: 25 ± 8 %, 70 ± 7 % under LiteLLM 1.109.1's adaptive router
        and 25.0 %, 25.0 % under a reservoir for each type
    Users of 8000 who could have been pleased and were not, if nobody knows the models beforehand:
      106 ± 25 under LiteLLM 1.109.1's adaptive router
      106 under reservoir
"""

from __future__ import annotations

import sys

import cloneproof as cp

TYPES = {"code_generation": 0.5, "writing": 0.5}
RIVALS = [cp.Agent(name, 1, cp.Point(0.8)) for name in ("bo", "cy", "di")]  # they please 80 % of users
ANA = cp.Agent("ana", 1, {"code_generation": cp.Point(0.75), "writing": cp.Point(0.8)})
MARKET = cp.Market([ANA, *RIVALS], horizon=8000, segments=TYPES)
NAMES = (8,)
UNKNOWN = cp.Beta(40, 10)  # what a platform knows of a model before it tries it: it pleases 80 % of users, ± 6 %
RUNS = 100  # pairs


def shares(part: cp.Market, *payoffs: cp.results.Estimate, digits: int) -> str:
    """Write what Ana is paid as shares of what all requests would pay her."""
    whole = part.horizon * part.agents[0].prior.mean / 100
    errors = [f" ± {each.error / whole:.{digits}f}" if each.error > whole / 100 else "" for each in payoffs]
    return ", ".join(f"{each.value / whole:.{digits}f}{said} %" for each, said in zip(payoffs, errors, strict=True))


def main() -> None:
    """Print what names earn in each type of request, and what it costs to make them worthless."""
    try:
        router = cp.adapters.litellm_router()  # the costs, quality tiers and weights of yours go here
    except cp.errors.EngineError as missing:
        sys.exit(str(missing))
    search = cp.Search(runs=RUNS, bounds="asymptotic")
    alike = cp.Market([cp.Agent(agent.name, 1, UNKNOWN) for agent in MARKET.agents], MARKET.horizon, segments=TYPES)
    reservoir = cp.mechanism("reservoir", market=alike)
    print(f"Ana's share of the requests under one name, and under {NAMES[0]} (at 95 %, {RUNS} pairs of runs):")
    for name, part in MARKET.by_segment.items():
        gain = cp.gain(part, router, "ana", NAMES, confidence=0.95, stop_when_decided=False, search=search)
        ours = [cp.evaluate(part, reservoir.in_segment(name), {"ana": names}).payoff["ana"] for names in ((1,), NAMES)]
        theirs = shares(part, gain.honest, gain.copied, digits=0)
        print(f"  {name}, {100 * part.agents[0].prior.mean:.0f} % of users pleased: {theirs} under {router}")
        print(f"    and {shares(part, *ours, digits=1)} under a reservoir for each type")
    print(f"Users of {alike.horizon} who could have been pleased and were not, if nobody knows the models beforehand:")
    missed = cp.evaluate(alike, router, confidence=0.95, search=search).regret
    print(f"  {missed.value:.0f} ± {missed.error:.0f} under {router}")
    print(f"  {cp.evaluate(alike, reservoir).regret.value:.0f} under reservoir")


if __name__ == "__main__":
    main()
