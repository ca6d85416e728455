"""A point of a grid: one question about one market, checked, and the parts that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.sweeps.configuration import Part, runs_part, whole_part

Query = Literal["evaluate", "gain", "audit"]

COMMON: Final = ("question", "market", "mechanism", "horizon", "seed", "runs")
OWN: Final[Mapping[Query, tuple[str, ...]]] = {
    "evaluate": ("copies", "engine", "arithmetic", "confidence"),
    "gain": ("copies", "agent", "confidence"),
    "audit": ("agent", "max_copies", "opponents", "withhold", "tolerance"),
}
DEFAULTS: Final[Mapping[str, Any]] = {
    "question": "evaluate", "copies": None, "horizon": None, "seed": 0, "runs": 1000, "engine": "auto",
    "arithmetic": "float", "confidence": 0.99, "agent": None, "max_copies": 4, "opponents": "market",
    "withhold": False, "tolerance": 0.0,
}  # fmt: skip
AXES: Final = ("question", "market", "mechanism", "copies", "horizon", "seed", *dict.fromkeys(k for k in DEFAULTS))


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A question, its market and mechanism as they are at its horizon, and its options; numbered from 1.

    `copies` are those of everybody. `label` is what the grid calls the market, `texts` are market and mechanism as
    text, which many points share.
    """

    number: int
    question: Query
    label: str
    market: Market
    mechanism: Mechanism
    texts: tuple[str, str]
    copies: Mapping[str, tuple[int, ...]]
    options: Mapping[str, Any]
    strata: int = 1  # runs of a pass over them; 1 where means are drawn

    @property
    def runs(self) -> int:
        """The runs that it asks for."""
        return int(self.options["runs"])

    @property
    def runs_needed(self) -> int:
        """The runs that it takes: whole passes over the strata."""
        return -(-self.runs // self.strata) * self.strata

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.options["seed"])

    def whole_part(self) -> Part | None:
        """What is computed whole: an audit, or the attempt without sampling."""
        if self.question == "audit":
            names = ("agent", "max_copies", "opponents", "withhold", "tolerance", "runs", "seed")
            return whole_part("audit", self.market, self.texts, {name: self.options[name] for name in names})
        if self.question == "gain" or self.options["engine"] == "monte-carlo":
            return None
        engine = "closed-form" if self.options["arithmetic"] == "ball" else self.options["engine"]
        asked = {"copies": self.copies, "engine": engine, "arithmetic": self.options["arithmetic"]}
        return whole_part("exact", self.market, self.texts, asked)

    def runs_parts(self) -> tuple[Part, ...]:
        """What is sampled: the runs of the market; of a gain, those without and with the deviation."""
        if self.question == "gain":
            worlds = (self.honest, self.copies)
            stratified = self.strata > 1
            return tuple(runs_part(self.market, self.texts, world, self.seed, stratified) for world in worlds)
        if self.question == "audit":
            return ()
        if self.options["engine"] not in ("auto", "monte-carlo") or self.options["arithmetic"] == "ball":
            return ()
        return (runs_part(self.market, self.texts, self.copies, self.seed, stratified=False),)

    @property
    def honest(self) -> dict[str, tuple[int, ...]]:
        """The copies of everybody, the deviating agent's honest."""
        return {
            name: (1,) * len(counts) if name == self.options["agent"] else counts
            for name, counts in self.copies.items()
        }
