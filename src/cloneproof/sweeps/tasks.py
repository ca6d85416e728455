"""Tasks of a sweep: parts as text that can be hashed, sent and stored, and what a worker makes of them.

A part is a market, a mechanism and what is asked of them. Its key is a hash of that text and of the code version; a
chunk of it is named by the key and a range of runs. Kinds of parts:

    runs     the outcome of each run of a job; any range of runs is a chunk of its own
    exact    an evaluation without sampling, or the reason why there is none
    audit    an audit, whole

A rule of one's own is in the text as the name that `cp.rule` took, its options, and a digest of its module and of the
modules beside it that it imports: results of another version of it are never mixed with these.

Results are bytes, ready for the store. Nothing in them depends on where a range was cut or how long anything took.
"""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._sources import code_version, source_digest
from cloneproof.analysis.audit.audit import audit
from cloneproof.analysis.audit.question import AlsoName
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.search import Search
from cloneproof.engines.monte_carlo.job import Job, strata_of
from cloneproof.engines.monte_carlo.sampler import DeviceName, first_chunk, run_source
from cloneproof.errors import CloneproofError, EngineError, SweepError
from cloneproof.market.market import Market
from cloneproof.market.toml import market_from_toml
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_from_dict
from cloneproof.mechanisms.rule import Rule, installed_rules, rule, rule_from_dict
from cloneproof.report.words import scope_words

STEP_SECONDS = 0.25  # between two looks at the clock
COMPILING = 60.0  # seconds; a first step that takes longer is not compiling, but slow
EXACT_ENGINES = {"auto": ("closed-form", "tree"), "closed-form": ("closed-form",), "tree": ("tree",)}

PartKind = Literal["runs", "exact", "audit"]


@dataclass(frozen=True, slots=True)
class Part:
    """Unit of computation: `market` and `mechanism` are texts that many parts share, `rest` is the part's own JSON."""

    kind: PartKind
    market: str
    mechanism: str
    rest: str
    agents: int  # how many

    @property
    def columns(self) -> int:
        """Length of a row of its runs: payoffs, regret, rounds."""
        return 2 * self.agents + 1

    @property
    def text(self) -> str:
        return json.dumps([self.kind, self.market, self.mechanism, self.rest])

    def key(self, version: str) -> str:
        """Return the hash of the configuration and of the code version."""
        texts = (version, self.kind, self.market, self.mechanism, self.rest)
        lengths = ",".join(str(len(text)) for text in texts)  # so that no two ways of cutting look the same
        return blake2b("".join([lengths, *texts]).encode(), digest_size=16).hexdigest()


def part(kind: PartKind, market: Market, texts: tuple[str, str], options: Mapping[str, Any]) -> Part:
    """Return the part with these options; `texts` are those of market and mechanism."""
    return Part(kind, *texts, json.dumps(options, default=_plain), len(market.agents))


def mechanism_text(mechanism: Mechanism) -> str:
    """Return the mechanism as text, from which a worker makes it again; refuse one with somebody's own function."""
    if not _can_be_made_again(mechanism):
        raise SweepError(
            f"expected a mechanism made of rules that a worker can make again, got {str(mechanism)!r} with a function "
            "of its own; put the rule into a module and take it from there: cp.rule('mymodule:my_rule')"
        )
    return json.dumps(with_own_rules(mechanism), sort_keys=True, default=_plain)


def _can_be_made_again(mechanism: Mechanism) -> bool:
    named = all(rule.source or rule.to_dict() is not None for rule in mechanism.rules)
    return named and (mechanism.fallback is None or _can_be_made_again(mechanism.fallback))


@dataclass(frozen=True)
class Configuration:
    """A part as a worker has it: objects again, made from the text alone."""

    kind: PartKind
    market: Market
    mechanism: Mechanism
    rest: Mapping[str, Any]

    def job(self) -> Job:
        copies = {name: tuple(counts) for name, counts in self.rest["copies"].items()}
        strata = strata_of(self.market).means if self.rest["stratified"] else ()
        return Job(self.market, self.mechanism, copies, self.rest["seed"], strata)


@lru_cache(maxsize=256)
def configuration(text: str) -> Configuration:
    """Invert `Part.text`."""
    kind, market, mechanism, rest = json.loads(text)
    running = mechanism_from_dict(json.loads(mechanism), _rule)
    return Configuration(kind, market_from_toml(market), running, json.loads(rest))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return a number of NumPy as one of Python."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is no JSON")


def with_own_rules(mechanism: Mechanism) -> dict[str, Any]:
    """Return `Mechanism.to_dict` with own rules as a worker can import them."""
    data = mechanism.to_dict()
    for level in ("agent", "arm"):
        used = getattr(mechanism, level)
        if used is not None and used.source:
            data[level] = {"own": used.source, "options": dict(used.options), "digest": rule_digest(used.source)}
    if mechanism.fallback is not None:
        data["fallback"] = with_own_rules(mechanism.fallback)
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


class Chunk(NamedTuple):
    """A range of runs of a part, by its key; `runs` 0 stands for a part that is computed whole."""

    key: str
    first: int
    runs: int

    @property
    def name(self) -> str:
        """Name of the chunk in messages.

        >>> Chunk("ab12", 64, 100).name
        'ab12-64-100'
        """
        return f"{self.key}-{self.first}-{self.runs}"

    @property
    def stop(self) -> int:
        return self.first + self.runs


class ChunkDone(NamedTuple):
    """Rows that were computed (the chunk may be shorter than asked), and how long it took."""

    chunk: Chunk
    contents: bytes
    seconds: float


class TaskFailed(NamedTuple):
    """An error, as words: exceptions and their tracebacks do not always survive the way from a worker."""

    kind: str
    message: str
    ours: bool  # a sentence for the user already


def attempt(version: str, *task: Any) -> ChunkDone | TaskFailed:  # noqa: ANN401
    """Run `work`, with an error as a value; this is what executors run, also on machines with other code."""
    try:
        if code_version() != version:
            raise SweepError(
                f"expected every worker to have the driver's version ({version}), got another ({code_version()}); "
                "install the same one on all and start the workers again"
            )
        return work(*task)
    except Exception as error:
        return TaskFailed(type(error).__name__, str(error), isinstance(error, CloneproofError))


def work(
    text: str, chunk: Chunk, seconds: float, device: DeviceName = "cpu", stop: Callable[[], bool] = lambda: False
) -> ChunkDone:
    """Compute as much of the chunk as fits into about `seconds` seconds; a part computed whole takes what it takes."""
    begun, config = time.perf_counter(), configuration(text)
    if config.kind == "runs":
        rows = _runs(config, chunk, seconds, device, stop)
        chunk, contents = chunk._replace(runs=len(rows)), rows.astype("<f8").tobytes()
    else:
        result = _exact(config) if config.kind == "exact" else _audit(config)
        contents = json.dumps(result).encode()
    return ChunkDone(chunk, contents, time.perf_counter() - begun)


def _runs(
    config: Configuration, chunk: Chunk, seconds: float, device: DeviceName, stop: Callable[[], bool]
) -> FloatArray:
    """Return the rows (the outcomes, side by side) of as many runs as the time allows.

    Steps grow to a quarter of a second. The time of the first does not count, since it may compile a kernel. On a GPU
    they begin with thousands of runs, which take it no longer than one.
    """
    job, rows, done = config.job(), [], 0
    source = run_source(device, [job], chunk.runs)
    step, spent = first_chunk(source.largest), 0.0
    while done < chunk.runs:
        step = min(step, chunk.runs - done, source.largest)
        begun = time.perf_counter()
        outcomes = source.outcomes(job, chunk.first + done, step)
        took = max(time.perf_counter() - begun, 1e-9)
        rows.append(outcomes.rows)
        done += step
        spent += took if len(rows) > 1 or took > COMPILING else 0.0
        if spent >= seconds or stop():
            break
        step = max(1, int(step * min(4.0, STEP_SECONDS / took)))
    return np.concatenate(rows)


def _exact(config: Configuration) -> dict[str, Any]:
    """Evaluate by the first exact engine that takes it, with why others did not; or return only the latter."""
    options = config.rest
    refusals: list[str] = []
    for engine in EXACT_ENGINES[options["engine"]]:
        try:
            evaluation = evaluate(config.market, config.mechanism, options["copies"], engine, options["arithmetic"])  # type: ignore[arg-type]
        except EngineError as refusal:
            refusals.append(str(refusal))
        else:
            return {"evaluation": evaluation.to_dict(), "refusals": refusals}
    return {"refusals": refusals}


def _audit(config: Configuration) -> dict[str, Any]:
    """Return the verdict, its witness and its scope; or why there is none."""
    options = dict(config.rest)
    copies, runs, seed = (options.pop(name) for name in ("max_copies", "runs", "seed"))
    also: tuple[AlsoName, ...] = ("withholding",) if options.pop("withhold") else ()
    search = Search(copies, runs=runs, seed=seed, device="cpu")  # its notes are stored
    try:
        result = audit(config.market, config.mechanism, **options, also=also, search=search)
    except EngineError as refusal:
        return {"refusals": [str(refusal)]}
    return {
        "verdict": result.verdict,
        "scope": scope_words(result.scope),
        "worst": result.worst.to_dict(),
        "also": {name: witness.to_dict() for name, witness in result.also.items()},
        "notes": list(result.notes),
        "refusals": [],
    }
