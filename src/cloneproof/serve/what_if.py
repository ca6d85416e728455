"""What would a copy earn? The audit of a market's own mechanism, under a prior that is given or fitted to the season.

The service runs this file in a process of its own (`python -m cloneproof.serve.what_if`, a task on stdin, an answer on
stdout), below its own priority and for a limited time: an audit is seconds of work, a decision microseconds.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import msgspec

from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.history import ArmRewards, audit_past
from cloneproof.errors import CloneproofError
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.serve.protocol import MarketSpec, made_mechanism
from cloneproof.serve.questions import Belief, Deviation, Failed, PairView, PriorView, Task, WhatIfView

_MOST_SHOWN = 200
_ATOMS = 2  # of a fitted prior: somebody is waiting


def answer(task: Task) -> WhatIfView:
    """Audit the market of a task.

    >>> from cloneproof.serve.questions import WhatIf
    >>> spec = MarketSpec(market="feed", mechanism="ucb1", horizon=7)
    >>> asked = WhatIf(Belief(0.0, 1.0, 0.5, originals=2, agents=1), max_copies=2)
    >>> found = answer(Task(spec, asked, [], 60.0))
    >>> found.verdict, found.worst.copies, round(found.worst.gain, 6)
    ('exploitable', [2, 1], 0.25)
    """
    spec, asked = task.spec, task.question
    horizon = spec.horizon if asked.horizon is None else asked.horizon
    machine, limits = made_mechanism(spec), {"budget_seconds": task.seconds}
    if asked.belief is None:
        arms = [ArmRewards(*arm) for arm in task.arms]
        past = audit_past(
            arms,
            machine,
            horizon,
            spec.share,
            spec.family,
            asked.copy_odds,
            atoms=_ATOMS,
            agent=asked.agent,
            max_copies=asked.max_copies,
            **limits,
        )
        pairs = [PairView(one.agent, one.arms, one.probability, one.bayes_factor) for one in past.pairs]
        return _view(past.audit, pairs[:_MOST_SHOWN], [f"Assumed: {past.assumed}."])
    market = _believed(asked.belief, horizon, spec)
    return _view(audit(market, machine, "agent 1", asked.max_copies, **limits), [], [])  # type: ignore[arg-type]


def _believed(belief: Belief, horizon: int, spec: MarketSpec) -> Market:
    """All agents alike, with the believed prior."""
    low, high = sorted((belief.low, belief.high))
    chance = belief.chance if belief.high >= belief.low else 1 - belief.chance
    atoms = {low: 1 - chance, high: chance} if low < high else {low: 1.0}
    kept = {value: weight for value, weight in atoms.items() if weight > 0}
    prior = Point(next(iter(kept))) if len(kept) == 1 else Discrete(list(kept), list(kept.values()))
    agents = [Agent(f"agent {number + 1}", belief.originals, prior) for number in range(belief.agents)]
    return Market(agents, horizon, spec.share, "bernoulli" if spec.rewards is None else spec.rewards)


def _view(found: Audit, pairs: list[PairView], notes: list[str]) -> WhatIfView:
    order = sorted(found.tried, key=lambda one: (sum(one.copies), one.copies))
    return WhatIfView(
        found.verdict,
        found.scope,
        found.worst.horizon,
        _deviation(found.worst),
        [_deviation(one) for one in order[:_MOST_SHOWN]],
        [PriorView(one.name, one.count, list(one.priors[0].atoms or ())) for one in found.market.agents],
        pairs,
        [*found.notes, *notes],
        found.seconds,
    )


def _deviation(one: Witness) -> Deviation:
    relative = one.relative_gain if math.isfinite(one.relative_gain) else None
    return Deviation(
        one.agent, list(one.copies), one.honest.value, one.gain.value, one.gain.error, one.gain.kind, relative
    )


def main() -> None:
    """One task from stdin, one answer to stdout."""
    os.nice(10)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    reply: Any
    try:
        reply = answer(task)
    except CloneproofError as problem:
        reply = Failed(str(problem))
    sys.stdout.buffer.write(msgspec.json.encode(reply))


if __name__ == "__main__":
    main()
