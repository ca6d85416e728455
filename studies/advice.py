"""Eight markets that were drawn at random, and what `recommend` says of them; `played_advice.py` plays it.

    python studies/advice.py [NUMBER ..]          ask about all markets, or these, and write `advice.json`
    python studies/advice.py busy [NUMBER ..]     ask again beside busy loops: is every answer the same, to the byte?

A market is drawn with the seed (SEED, k), k one of DRAWN: one has segments, two have pages of several places, the
rates of two are listed and their ends random, those of one drift, and two are plain.
"""

import hashlib
import json
import multiprocessing
import os
import sys
from typing import Any

import numpy as np

import cloneproof as cp
from cloneproof.market.segments import law_from_dict
from played_advice import ADVICE, ALL, described

SEED, LOOPS = 2044, 6
DRAWN = (0, 2, 3, 5, 6, 7, 8, 9)
SEGMENTS, POSITIONS, LISTED, DRIFT, PLAIN = (0, 1), (2, 3), (5, 6), (7,), (8, 9)
MARKETS = len(DRAWN)
AT_RANDOM = (1, *LISTED, 9)
FREE = ("reservoir", "reservoir-contest")
FREE_AT_RANDOM = (*FREE, "reservoir-index", "reservoir-bars")


def asked(number: int) -> dict[str, Any]:
    """The question of that number, as data, drawn at random."""
    number = DRAWN[number]
    dice = np.random.default_rng([SEED, number])
    found: dict[str, Any] = {
        "agents": int(dice.integers(5, 11)),
        "originals": int(dice.integers(2, 5)),
        "horizon": int(round(10 ** dice.uniform(4.3, 5.3), -3)),
        "ends": "at-random" if number in AT_RANDOM else "at-horizon",
        "prior": drawn_beta(dice),
        "segments": {},
        "positions": None,
        "drift": None,
    }
    if number in SEGMENTS:
        parts = dice.dirichlet([4.0] * int(dice.integers(2, 4))).round(2)
        parts[0] = round(1 - parts[1:].sum(), 2)
        found["segments"] = {f"s{k}": float(part) for k, part in enumerate(parts)}
        spreads = [round(dice.uniform(0.3, 0.8), 2) for _ in range(2)]
        found["prior"] = {"log_odds": [round(dice.uniform(0.02, 0.2), 3), *spreads]}
        if number == SEGMENTS[1]:
            found["prior"] = {"segment_priors": {name: drawn_beta(dice) for name in found["segments"]}}
    elif number in POSITIONS:
        places, decay = int(dice.integers(3, 9)), dice.uniform(0.3, 1.0)
        found["positions"] = [round(place**-decay, 2) for place in range(1, places + 1)]
    elif number in LISTED:
        values = np.sort(dice.choice(np.arange(1, 13), 3, replace=False)) / (100 if number == LISTED[0] else 20)
        found["prior"] = {"values": values.tolist(), "weights": [0.5, 0.25, 0.25]}
    elif number in DRIFT:
        found["drift"] = float(round(found["horizon"] * dice.uniform(1, 4), -3))
    elif number in PLAIN and dice.random() < 0.5:
        low = round(dice.uniform(0.0, 0.3), 2)
        found["prior"] = {"uniform": [low, round(low + dice.uniform(0.1, 0.5), 2)]}
    return found


def drawn_beta(dice: np.random.Generator) -> dict[str, list[float]]:
    """A Beta prior of click rates."""
    return {"beta": [round(dice.uniform(1, 4), 1), round(dice.uniform(10, 100), 1)]}


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """What `recommend` says, and the plays to compare, as data: the advice first."""
    law: Any = law_from_dict(question["prior"])
    if "segment_priors" in question["prior"]:
        law = dict(zip(law.names, law.priors, strict=True))
    market = cp.Market(
        [cp.Agent(f"a{k}", question["originals"], law) for k in range(question["agents"])],
        question["horizon"],
        ends=question["ends"],
        segments=question["segments"],
        positions=question["positions"],
    )
    found = cp.recommend(market, drift=question["drift"])
    season = found.market.horizon if found.seasons is not None else None
    tuned = {each.name: each.mechanism for each in found.ranked}
    for name in FREE[:1] if market.places else FREE if market.ends == "at-horizon" else FREE_AT_RANDOM:
        tuned.setdefault(name, cp.mechanism(name, market=found.market))
    plays = [(name, made, season) for name, made in tuned.items()]
    if found.pooled is not None:
        plays.append((f"{found.pooled.name} for all segments", found.pooled.mechanism, None))
    if season is not None:
        for length in (season // 2, min(2 * season, market.horizon)):
            made = cp.mechanism(found.choice.name, market=market.with_horizon(length))
            plays.append((f"{found.choice.name}, seasons of {length:,}", made, length))
    advice = found.choice.name + (f", seasons of {season:,}" if season else "")
    answer = json.dumps(untimed(found.to_dict()), sort_keys=True)
    return {
        "asked": question,
        "advice": advice + ("" if found.settled else " (open)"),
        "said": [found.cost.value, found.cost.error],
        "plays": [
            {"label": label, "parts": parts_of(question, label, made), "season": own} for label, made, own in plays
        ],
        "sha256": hashlib.sha256(answer.encode()).hexdigest(),
    }


def parts_of(question: dict[str, Any], label: str, made: cp.Mechanism) -> dict[str, list[Any]]:
    """The worlds in which a mechanism runs, with its numbers in each."""
    worlds = question["segments"] if question["segments"] and "for all" not in label else [ALL]
    own = {world: made.in_segment(world) if question["segments"] and world != ALL else made for world in worlds}
    return {world: [each.name, dict(each.parameters)] for world, each in own.items()}


def untimed(data: Any) -> Any:
    """Data without what a clock told."""
    if isinstance(data, dict):
        return {key: untimed(value) for key, value in data.items() if key != "seconds"}
    return [untimed(value) for value in data] if isinstance(data, list) else data


def spin() -> None:
    """Keep a core busy, behind whatever else runs at this machine."""
    os.nice(10)
    while True:
        pass


def ask_again(markets: list[int]) -> int:
    """Ask beside busy loops and compare with what was written; the exit code."""
    loops = [multiprocessing.Process(target=spin, daemon=True) for _ in range(LOOPS)]
    for loop in loops:
        loop.start()
    written, other = json.loads(ADVICE.read_text()), 0
    for number in markets:
        same = json.loads(json.dumps(answered(asked(number)))) == written[number]
        print(f"market {number}: {'the same' if same else 'another'} answer beside {LOOPS} busy loops", flush=True)
        other += not same
    return bool(other)


def main(*given: str) -> int:
    """Write or compare answers; the exit code."""
    markets = [int(number) for number in given if number != "busy"] or list(range(MARKETS))
    if "busy" in given:
        return ask_again(markets)
    written = json.loads(ADVICE.read_text()) if len(markets) < MARKETS else [None] * MARKETS
    for number in markets:
        written[number] = answered(asked(number))
        print(f"{described(asked(number))}: {written[number]['advice']}", flush=True)
        ADVICE.write_text(json.dumps(written, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
