"""Replay records: the data behind a sampled verdict, so that anybody can draw the same runs and compare.

A record is not a certificate. It names the pairs of runs that were drawn (market, mechanism, seed, numbers), their
sums, bit for bit, and the confidence sequences that follow. Replaying it shows that the numbers are genuine and give
this verdict. It uses the code that made them, and any sample misleads with probability ALPHA.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, get_args

from cloneproof._version import package_versions
from cloneproof.analysis.audit.question import MechanismOrFactory
from cloneproof.analysis.audit.race_state import ALPHA
from cloneproof.analysis.audit.result import Audit
from cloneproof.analysis.audit.search_result import SampledDeviation, Witness, pays
from cloneproof.analysis.certificate.document import RejectedError, number, require, whole
from cloneproof.analysis.certificate.verification import Verification
from cloneproof.analysis.certificate.writer import (
    checked_certificate,
    interval,
    market_data,
    market_differences,
    mechanism_differences,
    write_json,
)
from cloneproof.analysis.gain import PassLength, gain
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.job import strata_of
from cloneproof.engines.monte_carlo.sampler import kernels_installed
from cloneproof.errors import CertificateError, CloneproofError, brief
from cloneproof.market.market import Market
from cloneproof.market.toml import market_from_toml, market_to_toml
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_from_dict

FORMAT, VERSION = "cloneproof replay record", 4
KEYS = ("verdict", "tolerance", "market", "mechanisms", "worst", "deviations")
MOST_ROUNDS = 10**11  # in all; a record of more is refused, not replayed
PACKAGES = ("cloneproof", "numpy", "scipy", "numba")


def write_replay(audit: Audit, path: str | Path) -> None:
    """Write the replay record of a sampled audit, whole or not at all.

    Parameters
    ----------
    audit : Audit
        One that sampled.
    path : str or Path
        The file to write; `cp.verify` draws its samples again.

    Raises
    ------
    CertificateError
        Where the audit did not sample, or the file cannot be written.
    """
    if not isinstance(audit, Audit):
        raise CertificateError(f"expected an audit, got {brief(audit)}; make one with cp.audit(market, mechanism)")
    write_json(replay_record(audit), path)


def replay_record(audit: Audit) -> dict[str, Any]:
    """Return the record as data."""
    _check_kernels()
    audit.check_every_copy_played()
    if not audit.samples:
        raise CertificateError(f"expected an audit that sampled, got one that did not; {_instead(audit)}")
    mechanisms = {sample.market.horizon: sample.mechanism.to_dict() for sample in audit.samples}
    for data in mechanisms.values():
        try:
            mechanism_from_dict(data)
        except CloneproofError as problem:
            raise CertificateError(f"expected a mechanism that a file can hold, got another: {problem}") from None
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": package_versions("python", *PACKAGES),
        "verdict": audit.verdict,
        "tolerance": audit.tolerance,
        "market": market_to_toml(audit.market),
        "mechanisms": [{"horizon": horizon, "mechanism": made} for horizon, made in mechanisms.items()],
        "worst": _name(audit.worst.agent, audit.worst.copies, audit.worst.horizon),
        "deviations": [_deviation(sample) for sample in audit.samples],
    }


def _instead(audit: Audit) -> str:
    """Return advice on what to write instead of a record, for an audit without samples."""
    try:
        checked_certificate(audit)
    except CertificateError as refusal:
        return f"there is no record of it, and no certificate either: {refusal}"
    return "its exact verdict has a certificate instead: cp.write_certificate(audit, path)"


def _deviation(sample: SampledDeviation) -> dict[str, Any]:
    """Return the counts and sums of one deviation, and the intervals that follow from them."""
    difference, honest, *_ = sample.progress.estimates(sample.confidence, "", sample.bounds)
    return {
        **_name(sample.agent, sample.copies, sample.market.horizon),
        "pairs": sample.progress.runs,
        "seed": sample.seed,
        "confidence": sample.confidence,
        "bounds": sample.bounds,
        "honest": interval(honest),
        "gain": interval(difference),
        "sums": sample.progress.to_dict(),
    }


class ReplayTimeOver(CertificateError):  # noqa: N818 (it names what happened)
    """Raised when the time for a replay has run out."""


def duration(seconds: float) -> str:
    """About how long, in the largest unit that fits."""
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def recorded_rounds(data: dict[str, Any]) -> int:
    """Return how many rounds a replay has to draw, in both worlds of each pair."""
    return sum(2 * whole(deviation["pairs"]) * whole(deviation["horizon"]) for deviation in data["deviations"])


def replay(
    data: dict[str, Any],
    market: Market | None = None,
    mechanism: MechanismOrFactory | None = None,
    seconds: float | None = None,
) -> Verification:
    """Draw everything again and compare: the same bits, and the verdict that follows from them.

    With a market or a mechanism given, a record of another one is rejected first. Nothing is decided if time runs out.
    """
    _check_kernels()
    began = time.monotonic()
    try:
        _check_about(data, market, mechanism)
        statement, same = _replay(data, seconds), True
    except ReplayTimeOver as over:
        return Verification(False, str(over), time.monotonic() - began, "replay record", out_of_time=True)
    except RejectedError as problem:
        statement, same = str(problem), False
    except CloneproofError as problem:
        statement, same = f"it cannot be drawn again: {problem}", False
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
        statement, same = f"its data make no sense ({type(problem).__name__}: {problem})", False
    return Verification(False, statement, time.monotonic() - began, "replay record", same)


def _check_about(data: dict[str, Any], market: Market | None, mechanism: MechanismOrFactory | None) -> None:
    """Reject a record of another market or mechanism."""
    recorded = market_from_toml(data["market"], "the record")
    if market is not None and (recorded.segments or market.segments):
        require(recorded == market, "it is about another market: its segments or what is known of items there differ")
    elif market is not None:
        for words in market_differences(market_data(recorded), market_data(market)):
            raise RejectedError(words)
        require(recorded.agents == market.agents, "it is about another market: a continuous prior differs")
    for entry in data["mechanisms"] if mechanism is not None else ():
        at_horizon = (market or recorded).with_horizon(entry["horizon"])
        declared = mechanism if isinstance(mechanism, Mechanism) else mechanism(at_horizon)  # type: ignore[misc]
        for words in mechanism_differences(entry["mechanism"], json.loads(json.dumps(declared.to_dict()))):
            raise RejectedError(words)


def _replay(data: dict[str, Any], seconds: float | None) -> str:
    listed = data["deviations"]
    tolerance = float(number(data["tolerance"]))
    confidences = [float(number(deviation["confidence"])) for deviation in listed]
    require(data["verdict"] in ("exploitable", "undecided", "clone-proof"), "its verdict is none")
    missed = sum(2 * (1 - confidence) for confidence in confidences)  # a gain and an honest payoff each
    all_at_once = all(0 < confidence < 1 for confidence in confidences) and missed <= ALPHA * (1 + 1e-9)
    require(bool(listed) and all_at_once, "its intervals do not hold all at once at 99 %")
    rounds = recorded_rounds(data)
    require(rounds <= MOST_ROUNDS, f"{rounds:.2g} rounds are more than can be replayed, {MOST_ROUNDS:.0e}")
    market = market_from_toml(data["market"], "the record")
    mechanisms = {entry["horizon"]: mechanism_from_dict(entry["mechanism"]) for entry in data["mechanisms"]}
    witnesses, clock, done = dict[tuple[str, tuple[int, ...], int], Witness](), Deadline(seconds), 0
    for deviation, confidence in zip(listed, confidences, strict=True):
        agent, horizon = deviation["agent"], deviation["horizon"]
        copies = tuple(whole(number, least=0) for number in deviation["copies"])
        at_horizon = market.with_horizon(horizon)
        if clock.spent:
            raise _time_over(clock, done, rounds, len(witnesses), len(listed))
        bounds = deviation["bounds"]
        require(bounds in get_args(BoundsName), f"its bounds are {brief(bounds)}")
        left = None if clock.left is None else max(clock.left, 1e-3)
        drawn = gain(
            at_horizon, mechanisms[horizon], agent, copies,
            confidence=confidence, stratify=_passes(at_horizon, len(deviation["sums"]["weights"])),
            stop_when_decided=False,
            search=Search(seconds=left, runs=deviation["pairs"], seed=deviation["seed"], bounds=bounds),
        )  # fmt: skip
        done += 2 * drawn.runs * horizon
        if drawn.stopped == "interrupted":
            raise KeyboardInterrupt
        if drawn.stopped == "budget":
            raise _time_over(clock, done, rounds, len(witnesses), len(listed))
        who = f"copies {copies} of {agent!r} at horizon {horizon}"
        same_sums = drawn.progress.to_dict() == deviation["sums"]
        require(same_sums, f"{who}: other sums came out{_made_by(data)}")
        for key, estimate in (("honest", drawn.honest), ("gain", drawn.estimate)):
            words = f"{estimate.value} ± {estimate.error}"
            require(interval(estimate) == deviation[key], f"{who}: the interval of {key!r} is {words}")
        require((agent, copies, horizon) not in witnesses, f"{who}: listed twice")
        witnesses[agent, copies, horizon] = Witness(*drawn.finding.numbers, agent, copies, at_horizon, drawn.copies)
    return _follows(data, witnesses, tolerance)


def _time_over(clock: Deadline, done: int, rounds: int, checked: int, of: int) -> ReplayTimeOver:
    words = f"{clock.budget:g} s were over after {done:.3g} of {rounds:.3g} rounds; "
    words += f"{checked} of {of} deviations were drawn whole and came out the same to the last bit"
    if done:
        words += f"; all of it takes about {duration(clock.seconds * rounds / done)} here: allow that much"
    return ReplayTimeOver(words)


def _passes(market: Market, length: int) -> PassLength:
    return "short" if 1 < length < len(strata_of(market).weights) else length > 1


def _follows(data: dict[str, Any], witnesses: dict[tuple[str, tuple[int, ...], int], Witness], tolerance: float) -> str:
    """Check that the verdict follows from these intervals; returns it in words."""
    worst = data["worst"]
    key = (worst["agent"], tuple(worst["copies"]), worst["horizon"])
    pairs = sum(deviation["pairs"] for deviation in data["deviations"])
    drawn = f"{len(witnesses)} deviations, {pairs} pairs of runs: the same sums to the last bit"
    if data["verdict"] != "exploitable":
        replications = [witness for witness in witnesses.values() if 0 not in witness.copies]
        none_pays = not any(pays(witness, tolerance) for witness in replications)
        require(none_pays, "a deviation pays, and it says otherwise")
        rest = "nothing is claimed" if data["verdict"] == "undecided" else "arguments that it rests on are not replayed"
        return f"{drawn}. No sampled deviation surely pays; the verdict is {data['verdict']!r}, and {rest}"
    require(key in witnesses, f"its witness {key} was not sampled")
    require(0 not in key[1], f"its witness {key} leaves originals out, which is no replication")
    best = witnesses[key]
    require(pays(best, tolerance), f"the gain of its witness is {best.gain.value:.6g} ± {best.gain.error:.3g}")
    return (
        f"{drawn}. {best.agent!r} gains {best.gain.value:.6g} ± {best.gain.error:.3g} with copies {best.copies} over "
        f"{best.horizon} rounds, all intervals together at {1 - ALPHA:.0%}: evidence, not a proof"
    )


def _name(agent: str, copies: tuple[int, ...], horizon: int) -> dict[str, Any]:
    return {"agent": agent, "copies": list(copies), "horizon": horizon}


def _made_by(data: dict[str, Any]) -> str:
    """Return a hint if other versions made the record."""
    made = data.get("made_by", {}).get("cloneproof") if isinstance(data.get("made_by"), dict) else None
    return "" if made == package_versions("cloneproof")["cloneproof"] else f" (it was made by cloneproof {made})"


def _check_kernels() -> None:
    """Refuse without compiled kernels, which drew the runs of a record."""
    if not kernels_installed():
        raise CertificateError(
            "expected compiled kernels for a record of runs, got none; pip install 'cloneproof[fast]'"
        )
