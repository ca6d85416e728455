"""Files as the present code writes them: databases with ledgers and snapshots, and saved sessions.

`python tests/support/formats.py FOLDER` writes them. Those in `tests/serve/formats` were written by earlier versions,
and `test_formats.py` reads them; after a change of a format, add files of the version before it under a new folder.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import cloneproof as cp
from cloneproof.serve.market.dice import MarketDice, make_secret
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import take_snapshot
from cloneproof.serve.market.terms import MarketSpec, complete
from cloneproof.serve.storage import SqliteStorage

SEED = 7_777_777_777_777_777_777
ARMS = {"ana": ("news", "sports", "news-2"), "bo": ("music",), "cy": ("film", "art")}
RESERVOIR = {"rounds": 3, "draws": 2, "threshold": 2}
INDEX = {"draws": 3, "constant": 0.5}
CONTEST = {"rounds": 8, "draws": 3, "horizon": 500}

MARKETS: dict[str, dict[str, Any]] = {
    "reservoir": {"mechanism": "reservoir", "parameters": RESERVOIR, "horizon": 30, "beacon": "drand",
                  "wait_rounds": 4},
    "contest": {"mechanism": "reservoir-contest", "parameters": CONTEST, "horizon": 500, "uniform_traffic": 0.2},
    "index": {"mechanism": "reservoir-index", "parameters": INDEX, "horizon": 30, "ends": "at-random"},
    "commitment": {"mechanism": "h-etc-r", "parameters": {"agent_rounds": 6, "arm_rounds": 2}, "horizon": 30,
                   "wait_seconds": 2.0, "share": 0.4, "rewards": "bernoulli"},
    "gaussian": {"mechanism": "ucb1", "horizon": 10**6, "rewards": {"family": "gaussian", "sd": 0.5},
                 "default_reward": -2.0},
    "open": {"mechanism": "thompson", "horizon": 40},
}  # fmt: skip
SETTLED = ("reservoir", "index", "commitment")  # whose first season is played to its end; the others are not settled


def play(market: LiveMarket, season: int, rounds: int, at: int) -> int:
    """Decide some rounds, with rewards that come late, out of order or never; the time afterwards."""
    missed = []  # whose reward comes after its default
    for number in range(rounds):
        at += 300
        missed += market.expire(at)
        decided, defaults, refusal = market.decide_in_windows([f"view {season}.{number}"], at)
        missed += defaults
        if refusal is not None:
            return at
        due = decided[0].id - number % 3
        if number % 5 and market.awaits(due):
            market.reward(f"click {season}.{number}", due, float(number % 4 == 1), at, None)
        elif missed and number % 2:
            late = missed.pop()
            market.reward(f"late {season}.{number}", late.id, 1.0, at, late)
    return at


def write_database(path: Path, name: str) -> None:
    """One market in a file of its own: its snapshot is older than the end of its ledger."""
    terms = complete(MarketSpec(market=name, **MARKETS[name]))
    market = LiveMarket.open(terms, 1000, MarketDice(make_secret(SEED)))
    storage = SqliteStorage(str(path))

    def store() -> None:
        new = market.chain.take()
        assert new is not None
        storage.commit([(1, name, new._replace(secret=market.dice.secret if new.first == 1 else None))])

    beacon = "value of season {}".format if "beacon" in MARKETS[name] else lambda season: None
    for agent, arms in ARMS.items():
        market.register_agent(agent, 1000)
        for arm in arms:
            market.register_arm(agent, arm, 1000)
    if name != "open":
        market.start(1500, beacon(1))
        at = play(market, 1, 10, 2000)
        store()
        storage.checkpoint({1: take_snapshot(market)})
        market.register_agent("di", at)
        market.register_arm("di", "new", at)
        if name in SETTLED:
            at = play(market, 1.5, 10**6, at)
            list(market.expire(at + 10**6))
            market.settle(at + 10**6)
            market.open_season(2, at + 10**6)
            market.start(at + 10**6, beacon(2))
            play(market, 2, 5, at + 10**6)
        else:
            play(market, 1.5, 20, at)
    store()
    storage.close()


SESSIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "reservoir": ("reservoir", RESERVOIR, {"window": 4}),
    "contest": ("reservoir-contest", CONTEST, {"uniform_traffic": 0.2, "seed": bytes(range(32))}),
    "index": ("reservoir-index", INDEX, {"ends": "at-random", "seed": 3}),
    "commitment": ("h-etc-r", {"agent_rounds": 6, "arm_rounds": 2}, {"share": 0.4}),
    "holdout": ("holdout-h-etc", {"arm_rounds": 2, "score_rounds": 2, "max_arms": 3}, {"history": False}),
    "thompson": ("thompson", {}, {"rewards": "bernoulli"}),
    "kl-ucb": ("kl-ucb", {}, {}),
}


def step(live: cp.Session) -> list[Any]:
    """One decision, and the reward of an earlier one."""
    made = live.decide()
    due = made.id - made.id % 3
    if made.id % 5 and due in live.pending:
        live.reward(due, float(made.id % 4 == 1))
    return [made.agent, made.arm, made.phase, live.probability]


def written_session(name: str) -> dict[str, Any]:
    """A session after some rounds as text, the decisions that follow, and the text after them."""
    mechanism, parameters, terms = SESSIONS[name]
    live = cp.session(
        cp.mechanism(mechanism, **parameters), {name: len(arms) for name, arms in ARMS.items()}, 60, **terms
    )
    for _ in range(12):
        step(live)
    text = live.to_json()
    return {"text": text, "then": [step(live) for _ in range(20)], "payoff": live.payoff, "after": live.to_json()}


def main(folder: Path) -> None:
    for name in MARKETS:
        with tempfile.TemporaryDirectory() as inner:
            write_database(Path(inner) / "market.db", name)
            (folder / f"{name}.db.gz").write_bytes(gzip.compress((Path(inner) / "market.db").read_bytes(), mtime=0))
    for name in SESSIONS:
        (folder / f"{name}.json").write_text(json.dumps(written_session(name)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
