"""Seasons by a script, which Python and JavaScript play: random cases of each rule, and what is decided in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.mechanisms.mechanism import Mechanism

MODULE = Path(str(files("cloneproof"))) / "js" / "cloneproof.js"
HERE = Path(__file__).parent.parent / "js"
RANKED = ("ucb1", "kl-ucb", "thompson", "epsilon-greedy", "h-ucb", "h-thompson")
NAMES = (*RANKED, "reservoir", "reservoir-bars", "reservoir-index")
PAGED = (*RANKED, "reservoir")


def needed(program: str, package: str) -> str:
    """The path of a program; without it a skip, or a failure where skipping is not allowed."""
    found = shutil.which(program)
    if found is None:
        sentence = f"expected {program} on the path, got none; apt-get install {package}"
        if os.environ.get("CLONEPROOF_CI") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return found


def in_node(cases: Sequence[Mapping[str, Any]], module: Path = MODULE) -> Any:
    """What Node plays with a module."""
    command = [needed("node", "nodejs"), str(HERE / "run_cases.js"), str(module)]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def random_options(name: str, rng: np.random.Generator, paged: bool) -> dict[str, Any]:
    """Parameters of a mechanism, often those left out."""
    draws, rounds = int(rng.integers(1, 5)), int(rng.integers(1, 25))
    constant = {"constant": round(float(rng.uniform(0.2, 3)), 3)} if rng.random() < 0.5 else {}
    if name == "reservoir":
        given: dict[str, Any] = {"rounds": rounds, "draws": draws}
        if paged:
            return given | ({"rank_rounds": int(rng.integers(1, 20))} if rng.random() < 0.6 else {})
        if rng.random() < 0.7:
            given["threshold"] = int(rng.integers(max(1, rounds // 2), rounds + 1))
        return given
    if name == "reservoir-bars":
        bar, stake = (round(float(rng.uniform(*ends)), 3) for ends in ((0.05, 1), (0.2, 3)))
        return {"bars": bar, "stake": stake, "draws": draws}
    if name == "reservoir-index":
        return {"draws": draws, "constant": round(float(rng.uniform(0.3, 3)), 2)}
    if name in ("thompson", "h-thompson"):
        return {"alpha": 2.5, "beta": 1.5} if rng.random() < 0.5 else {}
    if name == "epsilon-greedy":
        return {"c": round(float(rng.uniform(0.2, 40)), 2)} if rng.random() < 0.7 else {}
    clocks = ("clock", "arm_clock") if name == "h-ucb" else ("clock",)
    return constant | {clock: ("current", "completed")[int(rng.integers(2))] for clock in clocks}


def random_case(name: str, number: int, rounds: int, paged: bool = False) -> dict[str, Any]:
    """A season with copies, weights, windows and ends at random; of even numbers with segments and late rewards."""
    rng = np.random.default_rng([number, rounds, paged, *name.encode()])
    slots = name.startswith("reservoir")
    registered = [[f"agent {k}", int(arms)] for k, arms in enumerate(rng.integers(1, 5, int(rng.integers(1, 6))))]
    names = [] if number % 2 else ["code", "2", "1"]
    rest: dict[str, Any] = {"seed": int(rng.integers(0, 1 << 52)), "share": round(float(rng.uniform(0.1, 1)), 3)}
    rest["seed"] = str(int(rng.integers(0, 1 << 63))) if rng.random() < 0.5 else rest["seed"]
    if slots and rng.random() < 0.6:
        rest["weights"] = {agent: [1, *rng.integers(0, 5, arms - 1).tolist()] for agent, arms in registered[:2]}
    if names:
        rest["segments"] = [["code", 0.5], ["2", 0.3], ["1", 0.2]]
    if rng.random() < 0.4:
        rest["window"] = int(rng.integers(1, 60))
    if paged:
        rest["positions"] = int(rng.integers(1, 5))
        if rng.random() < 0.6:
            seen = sorted((round(float(each), 2) for each in rng.uniform(0.05, 1, rest["positions"])), reverse=True)
            rest["positions"] = [*seen, 0.0] if rng.random() < 0.2 else seen
    if rng.random() < 0.5:
        rest["ends"] = "at-random"
    rates = rng.random()
    rewards = (rng.random(2003) < rates).astype(float)
    if rng.random() < 0.5:
        rewards = np.where(rng.random(2003) < 0.5, rewards, rng.random(2003))
    delays = rng.integers(0, int(rng.choice([1, 2, 40])) if number % 2 else 40, 1009)
    case = {
        "name": name,
        "options": random_options(name, rng, paged),
        "registered": registered,
        "horizon": 1000 * rounds,
        "rest": rest,
        "begin": 0,
        "end": rounds,
        "segments": [names[k] for k in rng.choice(3, 701, p=[0.5, 0.3, 0.2])] if names else [],
        "delays": delays.tolist(),
        "rewards": rewards.tolist(),
    }
    if names and rng.random() < 0.5:
        case["segmented"] = [
            {"segment": one, "name": name, "options": random_options(name, rng, paged)} for one in names
        ]
    return case


def opened(case: Mapping[str, Any]) -> cp.Session:
    """The session of a case."""
    rest = dict(case["rest"])
    made: Mechanism | dict[str, Mechanism] = cp.mechanism(case["name"], **case["options"])
    if "segmented" in case:
        made = {own["segment"]: cp.mechanism(own["name"], **own["options"]) for own in case["segmented"]}
    rest["seed"] = int(rest.get("seed", 0))
    if "segments" in rest:
        rest["segments"] = dict(rest["segments"])
    return cp.session(made, dict(case["registered"]), case["horizon"], **rest)


def played(case: Mapping[str, Any], live: cp.Session | None = None) -> dict[str, Any]:
    """What Python plays, as js/driver.js does."""
    shown: list[list[Any]] = []
    due: dict[int, list[int]] = {}
    segments, delays, rewards = case["segments"], case["delays"], case["rewards"]
    live = opened(case) if live is None else live
    for number in sorted(live.pending):  # where a round shows one arm
        due.setdefault(number - 1 + delays[(number - 1) % len(delays)], []).append(number)
    for step in range(case["begin"], case["end"]):
        for number in due.pop(step, ()):
            if number in live.pending:
                live.reward(number, rewards[(number - 1) % len(rewards)])
        segment = segments[step % len(segments)] if segments else None
        page = [live.decide(segment)] if live.positions is None else live.decide_slate(segment)
        for one in page:
            shown.append([one.agent, one.arm, one.phase, one.slot, one.place])
            delay = delays[(one.id - 1) % len(delays)]
            if delay:
                due.setdefault(step + delay, []).append(one.id)
            else:
                live.reward(one.id, rewards[(one.id - 1) % len(rewards)])
    return {"shown": shown, "payoff": live.payoff, "last": live.last, "file": live.to_json()}
