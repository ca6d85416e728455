"""Tasks of a sweep: a point as text that can be hashed and sent, and the answer that a worker makes of it.

The text has the question, market, mechanism, copies and options; the key of an answer is a hash of it and of the code
version. A rule of one's own is in the text as the name that `cp.rule` took, its options, and a digest of its module and
of the modules beside it that it imports: answers by another version of it are never mixed with these.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, NamedTuple

from cloneproof._lib.files import code_version, source_digest
from cloneproof.audits.audit import audit
from cloneproof.audits.deviations import CopiesOf
from cloneproof.audits.gain import PairedSampling, sampled_gain
from cloneproof.audits.question import AlsoName
from cloneproof.errors import CloneproofError, EngineError, SweepError
from cloneproof.evaluation.evaluate import evaluate
from cloneproof.evaluation.search import Search
from cloneproof.market.market import FullCopies, Market
from cloneproof.market.toml import market_from_toml
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.bandits.rules import installed_rules, rule, rule_from_dict
from cloneproof.mechanisms.catalogue import mechanism_from_dict
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.sampler import DeviceName

Answer = dict[str, Any]
"""What is known of a point, as JSON has it: `estimates` as (quantity, agent, estimate), `engine`, `notes`, and of an
audit `verdict`, `scope` and the copies of its `witness`. A point that an engine refused has no estimates."""


def key_of(text: str, version: str) -> str:
    """Return the key of a point's answer."""
    return blake2b(f"{version}\n{text}".encode(), digest_size=16).hexdigest()


def mechanism_text(mechanism: Mechanism) -> str:
    """Return the mechanism as text, from which a worker makes it again; refuse one with somebody's own function."""
    data = with_own_rules(mechanism)
    if {"rule": None} in data.values() or "policy" in data:
        raise SweepError(
            f"expected a mechanism made of rules that a worker can make again, got {str(mechanism)!r} with a function "
            "of its own; put the rule into a module and take it from there: cp.rule('mymodule:my_rule')"
        )
    return json.dumps(data, sort_keys=True, default=plain)


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a number of NumPy as one of Python."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is no JSON")


def with_own_rules(mechanism: Mechanism) -> dict[str, Any]:
    """Return `Mechanism.to_dict` with own rules as a worker can import them."""
    data = mechanism.to_dict()
    for level in data.keys() & {"agent", "arm"}:
        used = getattr(mechanism, level)
        if used is not None and used.source:
            data[level] = {"own": used.source, "options": dict(used.options), "digest": rule_digest(used.source)}
    return data


def _rule(data: Mapping[str, Any]) -> Rule:
    if "own" not in data:
        return rule_from_dict(data)
    own = rule(data["own"], **data["options"])
    if (digest := rule_digest(data["own"])) != data["digest"]:
        raise SweepError(
            f"expected every worker to have the driver's version of {data['own']!r} (sources {data['digest']}), got "
            f"another ({digest}); put the same files on all and start again"
        )
    return own


def rule_digest(source: str) -> str:
    """Return a digest of the module of a rule, and of the modules beside it that it imports, also indirectly."""
    module = (source if ":" in source else installed_rules()[source]).partition(":")[0]
    top = _file(module.partition(".")[0])
    if top is None:
        raise SweepError(f"expected {source!r} in a file of Python that a digest can cover, got none; put it into one")
    files: dict[str, Path] = {}
    ahead = [module]
    while ahead:
        name = ahead.pop()
        place = _file(name)
        if name not in files and place is not None and _beside(place, top):
            files[name] = place
            ahead += _imports(name, place)
    return source_digest(files.values(), top.parent)


def _beside(place: Path, top: Path) -> bool:
    """Whether a module is the user's: in the package or the folder of the top one, and not among installed packages."""
    folder, installed = top.parent, {"site-packages", "dist-packages"}
    own = place.is_relative_to(folder) and installed.isdisjoint([folder.name, *place.relative_to(folder).parts])
    return own or place == top


def _imports(name: str, place: Path) -> Iterator[str]:
    """Yield the package of a module, and the modules that its imports name; too many rather than too few."""
    above = name.rpartition(".")[0]
    package = name if place.name == "__init__.py" else above
    yield from [above] if above else []
    for node in ast.walk(ast.parse(place.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    """Return the file of a module of Python, if it has one."""
    try:
        spec = find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin).resolve()


class TaskFailed(NamedTuple):
    """An error, as words: exceptions and their tracebacks do not always survive the way from a worker."""

    kind: str
    message: str
    ours: bool  # a sentence for the user already


def attempt(version: str, text: str, device: DeviceName) -> Answer | TaskFailed:
    """Answer a point, with an error as a value; this is what executors run, also on machines with other code."""
    try:
        if code_version() != version:
            raise SweepError(
                f"expected every worker to have the driver's version ({version}), got another ({code_version()}); "
                "install the same one on all and start the workers again"
            )
        return answer(text, device)
    except Exception as error:
        return TaskFailed(type(error).__name__, str(error), isinstance(error, CloneproofError))


def answer(text: str, device: DeviceName) -> Answer:
    """Return the answer of a point, or why an engine refused it."""
    question, market_text, mechanism, listed, options = json.loads(text)
    market, running = market_from_toml(market_text), mechanism_from_dict(json.loads(mechanism), _rule)
    copies = {name: tuple(counts) for name, counts in listed.items()}
    ask = {"evaluate": _evaluation, "gain": _gain, "audit": _audit}[question]
    try:
        return ask(market, running, copies, options, device)
    except EngineError as refusal:
        return _answer([], "refused", [str(refusal)])


def _answer(
    estimates: Iterable[tuple[str, str, Estimate]], engine: str, notes: Iterable[str] = (), **more: object
) -> Answer:
    rows = [[quantity, agent, estimate.to_dict()] for quantity, agent, estimate in estimates]
    return {"estimates": rows, "engine": engine, "notes": list(notes), **more}


def _evaluation(
    market: Market, mechanism: Mechanism, copies: FullCopies, options: Mapping[str, Any], device: DeviceName
) -> Answer:
    found = evaluate(
        market, mechanism, copies, options["engine"], confidence=options["confidence"],
        threads=1, search=Search(runs=options["runs"], seed=options["seed"], device=device),
    )  # fmt: skip
    payoffs = [("payoff", name, estimate) for name, estimate in found.payoff.items()]
    return _answer([*payoffs, ("regret", "", found.regret)], found.engine, found.notes)


def _gain(
    market: Market, mechanism: Mechanism, copies: FullCopies, options: Mapping[str, Any], device: DeviceName
) -> Answer:
    agent, sampled = options["agent"], {name: options[name] for name in ("runs", "confidence", "seed")}
    sampling = PairedSampling(**sampled, stop_when_decided=False, threads=1, device=device)
    found = sampled_gain(market, mechanism, CopiesOf(agent, copies[agent], copies), sampling)
    by_name = {"gain": found.estimate, "honest": found.honest, "copied": found.copied}
    return _answer([(name, agent, estimate) for name, estimate in by_name.items()], "runs")


def _audit(
    market: Market, mechanism: Mechanism, _copies: FullCopies, options: Mapping[str, Any], _device: DeviceName
) -> Answer:
    asked = {name: options[name] for name in ("agent", "opponents", "tolerance")}
    also: tuple[AlsoName, ...] = ("withholding",) if options["withhold"] else ()
    search = Search(options["max_copies"], runs=options["runs"], seed=options["seed"], device="cpu")
    found = audit(market, mechanism, **asked, also=also, search=search)
    worst = found.worst
    estimates = [(name, worst.agent, getattr(worst, name)) for name in ("gain", "honest", "copied")]
    estimates += [(f"{name} gain", one.agent, one.gain) for name, one in found.also.items()]
    witness = {worst.agent: list(worst.copies)}
    words = {"verdict": found.verdict, "scope": str(found.scope), "witness": witness}
    return _answer(estimates, "audit", found.notes, **words)
