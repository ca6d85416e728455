"""Replication-proof bandits: whether a platform can be gamed by registering the same thing twice.

>>> import cloneproof as cp
>>> market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)

1. Can my bandit be gamed? (Your own: `cp.BlackBox(MyPolicy)`.)

>>> cp.audit(market, cp.mechanism("ucb1")).verdict
'exploitable'

2. What does a provider earn with copies, and what without?

>>> [cp.evaluate(market, cp.mechanism("ucb1"), {"ana": copies}).payoff["ana"].value for copies in ((1, 1), (2, 1))]
[4.25, 4.5]

3. Which items of my table, or of my log, look like one? (`cloneproof log` goes on from there.)

>>> items = {"shop": ["ana", "ana", "bo"], "title": ["Stone mug", "NEW: stone mug", "Kettle"]}
>>> cp.same_items(items, owner="shop").groups
((0, 1),)

4. What should I run, and what does it cost? (Some ten seconds; by name: `cp.mechanism("reservoir", market=market)`.)

>>> advised = cp.recommend(market)  # doctest: +SKIP
>>> advised.choice, advised.cost  # doctest: +SKIP

5. Do variants pay on my leaderboard? (`cloneproof board` has all of it.)

>>> board = cp.boards.Panel(cp.boards.read_board(cp.examples.board(), owners="first-word"))
>>> cp.boards.Standing(board, cp.boards.BestListing(votes=600)).gain("cobalt", "best", variants=5).ranks.value > 0.2
True

6. How do I deploy it? (`cloneproof serve` is the same over HTTP.)

>>> live = cp.session(cp.mechanism("reservoir", market=market), registered={"ana": 2}, horizon=7, share=0.4)
>>> live.reward(live.decide().id, 1.0)
>>> live
Session(reservoir, 2 arms of 1 agents, 1 decisions of 7, 0 wait for a reward)

A market: `Agent`, `Market`, the priors `Point`, `Discrete`, `Uniform`, `Beta`, `Empirical`, `LogOdds` and `Mixture`,
rates by segment as `SegmentVectors`; `load_market` and `save_market`.
A mechanism: `mechanism` by name, or `bandit` of one or two of `rule`; `BlackBox` for somebody else's bandit.
Questions: `evaluate`, `gain`, `audit`, `smallest_attack`, `equilibrium`, `simulate`, `sweep`; `check_mechanism`;
`Search` says how far and how long. What to run: `recommend`. A platform's own log: `read_log`; `same_items` of any
table. Live: `session` and `Session`.
Modules: `adapters` (LiteLLM's router), `boards` (leaderboards), `bounds` (formulas), `errors`, `examples`,
`paper` (what only its statements need), `results` (types of answers); `cloneproof.testing`
(for tests).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloneproof._version import __version__ as __version__

if TYPE_CHECKING:  # every name loads when it is first asked for, with what it needs and nothing else
    from cloneproof import adapters, boards, bounds, errors, examples, paper, results
    from cloneproof.advice.recommend import recommend
    from cloneproof.audits.audit import audit
    from cloneproof.audits.equilibrium import equilibrium
    from cloneproof.audits.gain import gain
    from cloneproof.audits.smallest import smallest_attack
    from cloneproof.evaluation.conformance import check_mechanism
    from cloneproof.evaluation.evaluate import evaluate
    from cloneproof.evaluation.reference import simulate
    from cloneproof.evaluation.search import Search
    from cloneproof.logs.reading import read_log
    from cloneproof.logs.same import same_items
    from cloneproof.market import (
        Agent,
        Beta,
        Discrete,
        Empirical,
        LogOdds,
        Market,
        Mixture,
        Point,
        SegmentVectors,
        Uniform,
        load_market,
        save_market,
    )
    from cloneproof.mechanisms import Mechanism, Session, bandit, mechanism, rule, session
    from cloneproof.mechanisms.own.black_box import BlackBox
    from cloneproof.sweeps.sweep import sweep

__all__ = [
    "Agent", "Beta", "BlackBox", "Discrete", "Empirical", "LogOdds", "Market", "Mechanism", "Mixture", "Point",
    "Search", "SegmentVectors", "Session", "Uniform",
    "adapters", "audit", "bandit", "boards", "bounds", "check_mechanism", "equilibrium", "errors", "evaluate",
    "examples", "gain", "load_market", "mechanism", "paper", "read_log", "recommend", "results", "rule",
    "same_items", "save_market", "session", "simulate", "smallest_attack", "sweep",
]  # fmt: skip

_FROM = {  # a module, and the names that it has
    "cloneproof": "adapters boards bounds errors examples paper results",
    "cloneproof.advice.recommend": "recommend",
    "cloneproof.audits.audit": "audit",
    "cloneproof.audits.equilibrium": "equilibrium",
    "cloneproof.audits.gain": "gain",
    "cloneproof.audits.smallest": "smallest_attack",
    "cloneproof.evaluation.conformance": "check_mechanism",
    "cloneproof.evaluation.evaluate": "evaluate",
    "cloneproof.evaluation.reference": "simulate",
    "cloneproof.evaluation.search": "Search",
    "cloneproof.logs.reading": "read_log",
    "cloneproof.logs.same": "same_items",
    "cloneproof.market": "Agent Beta Discrete Empirical LogOdds Market Mixture Point SegmentVectors Uniform"
    " load_market save_market",
    "cloneproof.mechanisms": "Mechanism Session bandit mechanism rule session",
    "cloneproof.mechanisms.own.black_box": "BlackBox",
    "cloneproof.sweeps.sweep": "sweep",
}
_LATE = {name: module for module, names in _FROM.items() for name in names.split()}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _LATE:
        raise AttributeError(f"module 'cloneproof' has no attribute {name!r}")
    place = _LATE[name]
    value = import_module(f"cloneproof.{name}") if place == "cloneproof" else getattr(import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))])
