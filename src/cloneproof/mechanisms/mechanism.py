"""A mechanism: the platform's whole algorithm, as data.

Each algorithm of the paper combines the same parts: a rule for agents and a rule for arms (or one rule over all arms),
when statistics are cleared, and which rewards count towards an agent's score. A mechanism sees only how many arms each
agent registered, and the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cloneproof._lib.checks import known
from cloneproof._lib.schedules import Bar
from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.bandits.rule import Rule, rule_from_dict
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.part import (
    RESTARTS_PACKAGE,
    SCORES_PACKAGE,
    Restart,
    Score,
    restart_from,
    score_from,
    short_spelling,
)
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Kernel

if TYPE_CHECKING:
    from cloneproof.market.market import FullCopies, Market
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


@dataclass(frozen=True)
class Mechanism:
    """A platform's whole algorithm, composed of rules and of data about them.

    Parameters
    ----------
    arm : Rule
        How an arm is chosen: among the arms of the agent, or among all arms in a flat mechanism.
    agent : Rule, optional
        How an agent is chosen; left out, the mechanism is flat, one level over all arms.
    restart : {"award"} or Doubling, optional
        "award": arm statistics are cleared when the agents' exploration is over. `Doubling()`: everything restarts in
        doubling epochs (flat mechanisms). Left out: never.
    score : {"all"} or Champions, default "all"
        "all": every reward of an agent counts towards its score. `Champions(..)`: only fresh rewards of the slot that
        its tests have found.
    name : str, optional
        What tables and pages call it; left out, a flat mechanism has its rule's name, and one of two levels "composed".
    parameters : mapping of str to Any, optional
        The numbers that it was made from, for display.
    claims : tuple of Claim, optional
        What is claimed of it.
    one_place_each : bool, default False
        Whether an agent has at most one place of a page with positions, under a rule that ranks all arms; the
        reservoir and mechanisms of two levels always give it one.

    Notes
    -----
    A mechanism sees how many arms each agent registered, and the horizon; it sees neither means nor priors nor which
    arms are copies. `restart` and `score` keep their short spellings; `clearing` and `scoring` are the parts.

    References
    ----------
    The paper, Algorithms 1 to 5: UCB1 is flat UCB, H-UCB is UCB over UCB, H-ETC-R is ETC over ETC with a restart.

    Examples
    --------
    >>> from cloneproof import Mechanism, rule
    >>> made = Mechanism(agent=rule("etc", rounds=80), arm=rule("etc", rounds=40), restart="award")
    >>> str(made), made.restart, made.clearing.at_award
    ('etc(80) x etc(40), restart at the award', 'award', True)
    """

    arm: Rule
    agent: Rule | None = None
    restart: str | Restart | None = None
    score: str | Score = "all"
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    one_place_each: bool = False

    def __post_init__(self) -> None:
        for level in (self.agent, self.arm):
            if not isinstance(level, Rule) and not (level is None and level is self.agent):
                raise MechanismError(
                    f"expected a rule such as cp.rule('ucb') for each level, got {brief(level)}; compose two rules"
                )
        if self.name == "":
            object.__setattr__(self, "name", self.arm.name if self.flat else "composed")
        if not isinstance(self.name, str) or not isinstance(self.parameters, Mapping):
            raise MechanismError(
                f"expected a name as text and parameters by name, got {brief(self.name)} and "
                f"{brief(self.parameters)}; or leave them out"
            )
        if not isinstance(self.claims, tuple) or not all(isinstance(claim, Claim) for claim in self.claims):
            raise MechanismError(f"expected claims as a tuple of Claim, got {brief(self.claims)}; or leave them out")
        clearing, scoring = self.clearing, self.scoring
        object.__setattr__(self, "restart", short_spelling(clearing, RESTARTS_PACKAGE))
        object.__setattr__(self, "score", short_spelling(scoring, SCORES_PACKAGE))
        clearing.check(self.agent, self.arm)
        scoring.check(self.agent, self.arm)
        if self.draws and not self.never_clears:
            raise MechanismError(
                f"rule {self.arm.name!r} draws from the arms and expects no restart, got {self.restart!r}; leave it out"
            )
        above = self.rules[0]
        if above.draws and not self.flat:
            raise MechanismError(f"rule {above.name!r} draws from arms, got it for agents; use it as arm=..")

    @cached_property
    def clearing(self) -> Restart:
        """When statistics are cleared."""
        return restart_from(self.restart)

    @cached_property
    def scoring(self) -> Score:
        """Which rewards count towards an agent's score."""
        return score_from(self.score)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    @property
    def flat(self) -> bool:
        """Whether one level holds the arms of all agents."""
        return self.agent is None

    @property
    def draws(self) -> int:
        """Slots of each agent, which are draws from its arms; 0 if the arms themselves are candidates."""
        return self.arm.draws

    @property
    def arm_rounds(self) -> int:
        """Rounds that every arm or slot is explored for; the paper's m."""
        return self.arm.explore

    @property
    def agent_rounds(self) -> int:
        """Rounds that every agent is tried for; the paper's M, and 0 in a flat mechanism."""
        return 0 if self.flat else self.rules[0].explore

    @property
    def uniform_agents(self) -> bool:
        """Whether agents share the rounds, whatever their rewards."""
        return not self.flat and self.rules[0].uniform

    @property
    def goes_on_comparing(self) -> bool:
        """Whether agents are compared in every round after their trials."""
        return not self.flat and not self.rules[0].commits

    @property
    def scans(self) -> bool:
        """Whether the slots of all agents are tested in one timetable, until one passes or all were tested."""
        return self.flat and self.draws > 0 and self.commits_to_arm

    @property
    def ranks_slots(self) -> bool:
        """Whether the slots of all agents are shown by rank, and ranks never fall."""
        return self.arm.slots.falling

    @property
    def bar(self) -> Bar | None:
        """What slots start with and earn, if they are ranked by balances."""
        return self.arm.slots.bar

    @property
    def streams(self) -> bool:
        """Whether each agent shows one draw as long as its clicks pay for its views, then the next."""
        return self.arm.slots.streams

    def laboratory_pages(self, agents: int) -> int:
        """Return the pages of several places on which all agents rotate through the places; slots are found there."""
        return agents * self.draws * self.arm.explore

    @property
    def commits_to_agent(self) -> bool:
        """Whether one agent has all rounds after the agents were tried."""
        return not self.flat and self.rules[0].commits

    @property
    def commits_to_arm(self) -> bool:
        """Whether a level of arms keeps to one arm or slot after its exploration."""
        return self.arm.commits

    @property
    def explores_as_registered(self) -> bool:
        """Whether arms are explored in the order of registration."""
        return self.arm.order == "index"

    @property
    def clears_at_award(self) -> bool:
        """Whether arm statistics are cleared once the agents were tried."""
        return self.clearing.at_award

    @property
    def awards(self) -> bool:
        """Whether trials of the agents are followed by a phase of another kind."""
        return self.commits_to_agent or self.clears_at_award

    @property
    def flat_restart(self) -> Restart | None:
        """Restart of a flat mechanism that begins anew in epochs, each with rounds per arm of its own; else None."""
        return self.clearing if self.clearing.flat_epochs else None

    @property
    def never_clears(self) -> bool:
        """Whether statistics are kept to the end."""
        return self.restart is None

    @property
    def ranks_pages(self) -> bool:
        """Whether it can fill pages of several places by priority: all rewards count, and nothing is committed to."""
        usual = not self.draws and self.never_clears and self.scoring.counts_all
        return usual and not any(rule.commits or rule.explore > 1 or rule.siblings for rule in self.rules)

    def exploration(self, registered: Collection[int]) -> int:
        """Return the rounds after which all is explored: all agents, then the arms of the largest; or all arms."""
        compared = sum(registered) if self.flat else max(registered)
        return len(registered) * self.agent_rounds + compared * self.arm_rounds

    @property
    def exchangeable(self) -> bool:
        """Whether relabelling agents and arms relabels the run (the paper's PI); not if it goes by registration."""
        return all(rule.order != "index" for rule in self.rules)

    @property
    def uncommitted_part(self) -> str | None:
        """Part that does something else than explore and then commit to means; None if there is none.

        Agents may also be chosen uniformly.
        """
        if not self.arm.commits_to_mean:
            return f"the arm rule {_describe(self.arm)}"
        if not self.flat and not self.uniform_agents and not self.rules[0].commits_to_mean:
            return f"the agent rule {_describe(self.rules[0])}"
        return None if self.scoring.counts_all else f"the score {self.scoring.name!r}"

    def no_joiners(self, ends: str, agents: int, places: int = 0) -> str | None:
        """Return why others cannot join so many agents while it runs, as a sentence; None if they can.

        They can where the slots of all agents are in one timetable, or in one index until a random end: there nobody
        gains by waiting (docs/textbook/seasons.md). On pages of so many places they can where a laboratory ends, if
        they change neither its places nor the last of these, by whose attention clicks count.
        """
        if places and self.flat and self.draws:
            if 1 < places <= agents:
                return None
            return (
                f"expected at least as many agents as places, and two of these, where others join, got {agents} "
                f"agents and places that somebody sees: {places}; register for the next season or session"
            )
        if not self.flat or not (self.scans or self.ranks_slots):
            return f"mechanism {self.name!r} takes no agents while it runs; register for the next season or session"
        if not self.commits_to_arm and ends != "at-random":
            return (
                f"mechanism {self.name!r} takes agents while it runs only if it ends at random; register for the next"
            )
        return None

    def no_pauses(self, pages: bool = False) -> str | None:
        """Return why arms cannot be paused, as a sentence: blocks of pages show everybody equally. None if they can."""
        if self.draws and (pages or (self.flat and self.streams)):
            return f"mechanism {self.name!r} takes no pauses where its draws are tested in blocks of pages; withdraw"
        return None

    def law(self, market: Market, copies: FullCopies) -> Evaluation | str:
        """Return everybody's exact payoff and the regret in a market without segments; or a sentence why there is none.

        Copies are those of every agent, as from `full_copies`.
        """
        from cloneproof.mechanisms.committing import law as committing
        from cloneproof.mechanisms.expectations import law_or_reason
        from cloneproof.mechanisms.reservoir import law as reservoir

        family = reservoir if self.draws else committing
        return law_or_reason(lambda: family.law(self, market, copies))

    def facts(self, setting: Setting) -> Facts:
        """Return what visitors see, how long it explores, when a newcomer is shown, and what it relies on."""
        from cloneproof.mechanisms.bandits.facts import bandit_facts
        from cloneproof.mechanisms.committing.facts import committing_facts
        from cloneproof.mechanisms.reservoir.facts import reservoir_facts

        if self.draws:
            return reservoir_facts(self, setting)
        commits = self.commits_to_arm or self.uniform_agents or self.agent_rounds > 1
        return (committing_facts if commits else bandit_facts)(self, setting)

    def proof(self, case: Case) -> Proof:
        """Return what is proven of an agent's lists, whatever the others are and register."""
        from cloneproof.mechanisms.bandits import proof as bandits
        from cloneproof.mechanisms.committing import proof as committing
        from cloneproof.mechanisms.proof import in_every_segment
        from cloneproof.mechanisms.reservoir import proof as reservoir

        if case.market.segments:
            parts = case.market.by_segment.items()
            return in_every_segment(
                {name: self.in_segment(name).proof(replace(case, market=own)) for name, own in parts}
            )
        above = self.rules[0]
        explores = above.uniform or (above.index == "mean" and above.explore > 0)
        known = reservoir.proof if self.draws else committing.proof if explores else bandits.proof
        return known(self, case)

    def runs(self, job: Job) -> Kernel | None:
        """Return what plays many runs of a job in compiled code; None if nothing does, or one segment after another."""
        from cloneproof.mechanisms.bandits.kernel import bandit_kernel  # late: kernels read what is defined here
        from cloneproof.mechanisms.committing.kernel import block_kernel
        from cloneproof.mechanisms.reservoir.kernel import reservoir_kernel

        if job.market.segments:
            return None
        if self.draws:
            return reservoir_kernel(self, job)
        return block_kernel(self, job) or bandit_kernel(self, job)

    def in_segment(self, name: str) -> Mechanism:
        """Return what runs in a segment of a market: the same everywhere, unless its parameters are tuned to each."""
        return self

    def flat_epochs(self, horizon: int) -> list[tuple[int, int]]:
        """Return the rounds and the rounds per arm of each epoch of a flat mechanism, the last one cut at the horizon.

        A mechanism without such epochs has a single one.
        """
        restart = self.flat_restart
        if restart is None:
            return [(horizon, self.arm_rounds)]
        return [(rounds, restart.arm_rounds(number)) for number, rounds in enumerate(restart.lengths(horizon), 1)]

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as data; a level with a user's own function is None."""
        data: dict[str, Any] = {
            "name": self.name,
            "agent": self.agent and (self.agent.to_dict() or {"rule": None}),
            "arm": self.arm.to_dict() or {"rule": None},
            "parameters": {key: value for key, value in self.parameters.items() if not callable(value)},
        }
        if not self.never_clears:
            data["restart"] = self.clearing.to_dict()
        if self.score != "all":
            data["score"] = self.scoring.to_dict()
        if self.one_place_each:
            data["one_place_each"] = True
        return data

    def __str__(self) -> str:
        words = [self.clearing.words(" x ".join(_brief(rule) for rule in self.rules))]
        if self.scoring.words:
            words.append(self.scoring.words)
        if self.one_place_each:
            words.append("one place each")
        return ", ".join(words)


@dataclass(frozen=True)
class SegmentedMechanism(Mechanism):
    """A mechanism for a market with segments, with parameters of its own in each.

    It runs once in each segment, on rewards of that segment, and the slots of a segment are the first of one list of
    draws that all share. What it says of itself as a whole (rules, name, claims) is what its first segment says; of
    its parameters, those that differ are mappings from segments to numbers.
    """

    by_segment: Mapping[str, Mechanism] = field(default_factory=dict)

    @classmethod
    def of(cls, by_segment: Mapping[str, Mechanism]) -> Mechanism:
        """Return a mechanism that runs each of these in its segment; the mechanism itself if all are equal."""
        first, *others = by_segment.values()
        if all(other == first for other in others):
            return first
        values = {own.name: getattr(first, own.name) for own in fields(Mechanism)}
        values["parameters"] = {
            key: value
            if all(other.parameters.get(key) == value for other in others)
            else {name: own.parameters.get(key) for name, own in by_segment.items()}
            for key, value in first.parameters.items()
        }
        return cls(**values, by_segment=dict(by_segment))

    def in_segment(self, name: str) -> Mechanism:
        return self.by_segment[known(name, self.by_segment, "segment", MechanismError)]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "segments": {name: own.to_dict() for name, own in self.by_segment.items()}}

    def __str__(self) -> str:
        return f"{super().__str__()}, tuned to each of {len(self.by_segment)} segments"


def checked_mechanism(value: object) -> Mechanism:
    """Return the value if it is a mechanism; otherwise raise an error that says how to make one."""
    if isinstance(value, Mechanism):
        return value
    raise MechanismError(f"expected a mechanism, got {brief(value)}; make one with cp.mechanism(name, ..)")


def _describe(rule: Rule) -> str:
    undecided = rule.index == "mean" and rule.explore and not rule.commits
    return f"{rule.name} that does not commit" if undecided else rule.name


def _brief(rule: Rule) -> str:
    if rule.index != "mean" or rule.draws:
        return rule.name
    return f"{rule.name}({rule.explore})" if rule.commits else f"greedy {rule.name}({rule.explore})"


def mechanism_from_dict(
    data: Mapping[str, Any], rule_of: Callable[[Mapping[str, Any]], Rule] = rule_from_dict
) -> Mechanism:
    """Rebuild a mechanism from `Mechanism.to_dict`; needs named rules, or rules that `rule_of` knows."""
    if "segments" in data:
        parts = data["segments"].items()
        return SegmentedMechanism.of({name: mechanism_from_dict(own, rule_of) for name, own in parts})
    return Mechanism(
        name=data["name"],
        parameters=data.get("parameters", {}),
        agent=None if data["agent"] is None else rule_of(data["agent"]),
        arm=rule_of(data["arm"]),
        restart=restart_from(data.get("restart")),
        score=score_from(data.get("score", "all")),
        one_place_each=data.get("one_place_each", False),
    )


class Epoch(NamedTuple):
    """One epoch: its number, its rounds (fewer than planned in the last one), and the mechanism that runs in it."""

    number: int
    rounds: int
    mechanism: Mechanism


def plain_epochs(mechanism: Mechanism, horizon: int) -> list[Epoch]:
    """Return the epochs up to the horizon, each with a mechanism that knows of none; a single epoch 0 without restarts.

    >>> from cloneproof.mechanisms.restarts.doubling import Doubling
    >>> from cloneproof.mechanisms.rules.etc import etc
    >>> [(epoch.rounds, str(epoch.mechanism)) for epoch in plain_epochs(Mechanism(etc(1), restart=Doubling(2)), 9)]
    [(2, 'etc(1)'), (2, 'etc(1)'), (4, 'etc(4)'), (1, 'etc(7)')]
    """
    if mechanism.flat_restart is None:
        return [Epoch(0, horizon, mechanism)]
    return [
        Epoch(k, rounds, replace(mechanism, arm=replace(mechanism.arm, explore=explored), restart=None))
        for k, (rounds, explored) in enumerate(mechanism.flat_epochs(horizon), 1)
    ]
