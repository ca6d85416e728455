"""A mechanism: the platform's whole algorithm.

It sees only how many arms each agent registered, and the horizon. Each family is a folder with classes of its own:
`bandits`, `committing`, `reservoir`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from cloneproof.errors import EngineError, MechanismError, brief
from cloneproof.market.market import Market
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.terms import Feature, Terms
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Kernel

if TYPE_CHECKING:
    from cloneproof.mechanisms.bandits.rule import Levels
    from cloneproof.mechanisms.proof import Case, Proof
    from cloneproof.runs.estimate import Evaluation


@dataclass(frozen=True)
class Claim:
    """A claim about a mechanism, its source, and what we found.

    Parameters
    ----------
    property : str
        What is claimed.
    source : str
        Where it is claimed.
    finding : str, optional
        What we found.
    """

    property: str
    source: str
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.property} ({self.source}{'; ' + self.finding if self.finding else ''})"


Given = Mapping[str, Any]


class Derived(NamedTuple):
    """What a theorem derives from a market and given parameters: the missing ones, and the claims.

    Empty claims leave the mechanism's own.
    """

    parameters: Mapping[str, Any]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A platform's whole algorithm: what a session, an engine, an audit and a recommendation ask.

    It sees how many arms each agent registered, and the horizon; it sees neither means nor priors nor which arms are
    copies. Made by `cp.mechanism(name, ..)`, or of rules by `cp.bandit`.

    Parameters
    ----------
    name : str, optional
        What tables and pages call it; left out, that of its kind.
    parameters : mapping of str to Any, optional
        The numbers that it was made from, for display.
    claims : tuple of Claim, optional
        What is claimed of it.
    """

    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()

    kind: ClassVar[str]
    """What it is, in files."""

    def __post_init__(self) -> None:
        if self.name == "":
            object.__setattr__(self, "name", self._usual_name)
        if not isinstance(self.name, str) or not isinstance(self.parameters, Mapping):
            raise MechanismError(
                f"expected a name as text and parameters by name, got {brief(self.name)} and "
                f"{brief(self.parameters)}; or leave them out"
            )
        if not isinstance(self.claims, tuple) or not all(isinstance(claim, Claim) for claim in self.claims):
            raise MechanismError(f"expected claims as a tuple of Claim, got {brief(self.claims)}; or leave them out")

    @property
    def _usual_name(self) -> str:
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as data, which `catalogue.mechanism_from_dict` reads back; its claims are not part."""
        return {"kind": self.kind} | {own.name: getattr(self, own.name) for own in fields(self) if own.name != "claims"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the mechanism of this kind that `to_dict` wrote."""
        return cls(**{own.name: data[own.name] for own in fields(cls) if own.name != "claims"})

    @property
    def exchangeable(self) -> bool:
        """Whether relabelling agents and arms relabels the run (the paper's PI), so that an agent's arms are alike."""
        return True

    def takes(self, what: Feature, terms: Terms) -> str | None:
        """Return why it cannot have a feature on these terms, as a sentence; None if it can (`terms.refusal`)."""
        asked = set[tuple[int, int]]()
        for name, own in terms.parts.items():
            running = self if name is None else self.in_segment(name)
            if (key := (id(running), id(own))) not in asked:
                asked.add(key)
                why = running.takes_in_one(what, own)
                if why is not None:
                    return why if name is None else f"in segment {name!r}: {why}"
        return None

    @property
    def sources(self) -> tuple[str, ...]:
        """Names under which somebody's own code in it was found."""
        return ()

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        """Return what `takes` says on terms without segments."""
        match what:
            case Feature.PLACES:
                return (
                    f"mechanism {self.name!r} takes no positions: of those on draws only 'reservoir' and "
                    "'reservoir-streams' do, and of the others those that never commit, as 'ucb1' and 'h-thompson'; "
                    "leave positions out"
                )
            case Feature.WEIGHTS:
                return (
                    "weights expect a mechanism that draws from arms, such as 'reservoir', got "
                    f"{self.name!r}; leave them out, or use another mechanism"
                )
            case Feature.JOINS:
                return f"mechanism {self.name!r} takes no agents while it runs; register for the next season or session"
            case _:
                return None

    @abstractmethod
    def open(self, setup: StateSetup) -> State:
        """Return the state that decides and is told rewards: in a session, in the service, in the reference."""

    @abstractmethod
    def law(self, job: Job) -> Evaluation | str:
        """Return everybody's exact payoff and the regret in a market without segments; or a sentence why not."""

    def tree(self, job: Job, horizons: Sequence[int]) -> dict[int, Evaluation]:
        """Return the same by recursion over all that can happen, at these horizons; an `EngineError` says why not."""
        raise EngineError(f"the tree expects rules on arms, got {self.name!r}", "use engine 'runs'")

    @abstractmethod
    def facts(self, setting: Setting) -> Facts:
        """Return what visitors see, how long it explores, when a newcomer is shown, and what it relies on."""

    def proof(self, case: Case) -> Proof:
        """Return what is proven of an agent's lists, whatever the others are and register."""
        if not case.market.segments:
            return self.proof_in_one(case)
        parts = case.market.by_segment.items()
        from cloneproof.mechanisms.proof import in_every_segment  # late: it is about mechanisms

        return in_every_segment(
            {name: self.in_segment(name).proof(replace(case, market=own, segment=True)) for name, own in parts}
        )

    @abstractmethod
    def proof_in_one(self, case: Case) -> Proof:
        """Return what is proven in a market without segments."""

    def runs(self, job: Job) -> Kernel | None:
        """Return what plays many runs of a job in compiled code; None if nothing does, or one segment after another."""
        return None if job.market.segments else self.kernel(job)

    @abstractmethod
    def kernel(self, job: Job) -> Kernel | None:
        """Return what plays a market without segments."""

    def levels(self, horizon: int) -> list[Levels] | None:
        """Return the rules on arms that run one after the other, each for some rounds; None if it is none of these."""
        return None

    def in_segment(self, name: str) -> Mechanism:
        """Return what runs in a segment of a market: the same everywhere, unless its parameters are tuned to each."""
        return self

    def __str__(self) -> str:
        return self.name


def checked_mechanism(value: object) -> Mechanism:
    """Return the value if it is a mechanism; otherwise raise an error that says how to make one."""
    if isinstance(value, Mechanism):
        return value
    raise MechanismError(
        f"expected a mechanism, got {brief(value)}; make one with cp.mechanism(name, ..), or of a policy of your own: "
        "cp.BlackBox(MyPolicy)"
    )


def mechanism_for(given: Mechanism | Callable[[Market], Mechanism], market: Market) -> Mechanism:
    """Return a mechanism as it is, or the one that a function of the market makes."""
    if isinstance(given, Mechanism):
        return given
    if isinstance(given, type) or not callable(given):
        raise MechanismError(
            f"expected a mechanism, a black box or a function of the market, got {brief(given)}; "
            "make one with cp.mechanism(name, ..), or wrap a policy of your own: cp.BlackBox(MyPolicy)"
        )
    made: object = given(market)
    if isinstance(made, Mechanism):
        return made
    raise MechanismError(
        f"expected the function of the market to return a mechanism, got {brief(made)}; "
        "return cp.mechanism(name, market=market)"
    )
