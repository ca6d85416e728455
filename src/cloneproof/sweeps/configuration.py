"""Parts: the pure functions that a sweep is made of, as text that can be hashed, sent and stored.

A part is a market, a mechanism and what is asked of them. Its key is a hash of that text and of the code version; a
chunk of it is named by the key and a range of runs. Kinds of parts:

    runs     the outcome of each run of a job; any range of runs is a chunk of its own
    exact    an evaluation without sampling, or the reason why there is none
    audit    an audit, whole
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.statistics.strata import strata_of
from cloneproof.errors import SweepError
from cloneproof.market.market import Market
from cloneproof.market.toml import market_from_toml, market_to_toml
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.sweeps.own_rules import mechanism_with_own_rules, with_own_rules

PartKind = Literal["runs", "exact", "audit"]


@dataclass(frozen=True, slots=True)
class Part:
    """What is computed: `market` and `mechanism` are texts that many parts share, `rest` is the part's own JSON."""

    kind: PartKind
    market: str
    mechanism: str
    rest: str
    agents: int  # how many; a row of runs has two columns for each, and one more

    @property
    def text(self) -> str:
        """All of it, for the hash and for the worker."""
        return json.dumps([self.kind, self.market, self.mechanism, self.rest])

    def key(self, version: str) -> str:
        """The hash of the configuration and of the code version."""
        texts = (version, self.kind, self.market, self.mechanism, self.rest)
        lengths = ",".join(str(len(text)) for text in texts)  # so that no two ways of cutting look the same
        return blake2b("".join([lengths, *texts]).encode(), digest_size=16).hexdigest()


def runs_part(
    market: Market, texts: tuple[str, str], copies: Mapping[str, Sequence[int]], seed: int, stratified: bool
) -> Part:
    """The runs of a market under a mechanism; `texts` are those of the two."""
    rest = json.dumps({"copies": copies, "seed": seed, "stratified": stratified})
    return Part("runs", *texts, rest, len(market.agents))


def whole_part(kind: Literal["exact", "audit"], market: Market, texts: tuple[str, str], options: Any) -> Part:  # noqa: ANN401
    """An evaluation or an audit with the options of the function that makes it."""
    return Part(kind, *texts, json.dumps(options, default=_plain), len(market.agents))


def mechanism_text(mechanism: Mechanism) -> str:
    """The mechanism as text, from which a worker makes it again; refused where it holds somebody's own function."""
    text = json.dumps(with_own_rules(mechanism), sort_keys=True, default=_plain)
    if '{"rule": null}' in text:
        raise SweepError(
            f"expected a mechanism made of rules that a worker can make again, got {str(mechanism)!r} with a function "
            "of its own; put the rule into a module and take it from there: cp.rule('mymodule:my_rule')"
        )
    return text


def texts_of(market: Market, mechanism: Mechanism) -> tuple[str, str]:
    """The texts of a market and a mechanism."""
    return market_to_toml(market), mechanism_text(mechanism)


@dataclass(frozen=True)
class Configuration:
    """A part as a worker has it: objects again, made from the text alone."""

    kind: PartKind
    market: Market
    mechanism: Mechanism
    rest: Mapping[str, Any]

    def job(self) -> Job:
        """The job of a part of runs."""
        copies = {name: tuple(counts) for name, counts in self.rest["copies"].items()}
        strata = strata_of(self.market).means if self.rest["stratified"] else ()
        return Job(self.market, self.mechanism, copies, self.rest["seed"], strata)


@lru_cache(maxsize=256)
def configuration(text: str) -> Configuration:
    """The inverse of `Part.text`."""
    kind, market, mechanism, rest = json.loads(text)
    made = mechanism_with_own_rules(json.loads(mechanism))
    return Configuration(kind, market_from_toml(market), made, json.loads(rest))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """A number of NumPy as one of Python."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is no JSON")
