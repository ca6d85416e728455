"""Result of a recommendation: the choice, the alternatives, costs, promises and risks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import tomli_w

from cloneproof._lib.data import Data, columns_of
from cloneproof._lib.tables import Tabular
from cloneproof.audits.result import Verdict
from cloneproof.bounds import season_cost
from cloneproof.errors import MechanismError
from cloneproof.market.market import Market
from cloneproof.market.toml import market_to_toml
from cloneproof.mechanisms.facts import AwardStart
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate

Promise = Literal["proven", "ceiling", "measured"]  # the strongest first
TOLERANCE = 0.005  # Gains up to this part of the honest payoff count as none.
NOTHING = 1e-9  # a relative gain that is none but for rounding
LEAST = 1e-9  # A regret that is not below 0.
UNKNOWN = Estimate(math.inf, math.inf, "exact", "not known yet")
QUOTA = 100  # Registration quota of an agent, where the mechanism has no number of its own.


@dataclass(frozen=True)
class OfMechanism(Data):
    """What is said of a mechanism with its numbers."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters to copy; those without a value are left out."""
        return {key: value for key, value in self.mechanism.parameters.items() if value is not None}


@dataclass(frozen=True)
class WrongDeclaration:
    """A mechanism whose numbers were made for another market than the true one."""

    what: str  # what was declared wrongly, in words
    regret: Estimate | None  # in the true market, everybody honest; None if no engine can compute it
    # the most that an agent gains there by copies or withholding, relative to its honest payoff, error included
    gain: float
    why: str  # where the gain comes from: a theorem or a computation, with its scope
    usual: bool = False  # whether one must reckon with it: it is in the range beside the regret


@dataclass(frozen=True)
class AssessedMechanism(OfMechanism):
    """A mechanism with numbers for the market: what it costs, what it promises, and for how long it explores."""

    keys_of_data = (
        "mechanism=name", "parameters", "regret", "verdict", "gain", "exploring", "starts", "promise", "needs",
        "seen", "wrong", "account_gain",
    )  # fmt: skip

    regret: Estimate  # expected, everybody honest
    verdict: Verdict  # of the audit in this market
    gain: float  # the largest relative gain by copies that it could not rule out
    # the expected share of the rounds before the award or the contest; None if it explores all along
    exploring: float | None
    starts: AwardStart | None  # the rounds after which these start: expected, and at the latest
    promise: str  # what is promised under which declared numbers, in a sentence
    needs: str = ""  # what has to be declared rightly for that; "" for the reservoir family
    seen: str = ""  # what visitors and sellers will see, and what is assumed to stay
    wrong: tuple[WrongDeclaration, ...] = ()  # what happens if a declaration is wrong
    # what a second account with the same items gains, in rewards; None if it was not computed
    account_gain: Estimate | None = None


@dataclass(frozen=True)
class FrontierRow(OfMechanism):
    """A mechanism on the frontier, or not: what it loses, and what copies gain."""

    keys_of_data = (
        "mechanism=name", "parameters", "lost", "promise", "pays", "gain", "at_most", "found", "copies", "tried",
        "naming", "account", "best",
    )  # fmt: skip

    lost: Estimate  # its regret, everybody honest, as a part of what perfect knowledge earns
    # the most that copies gain, as a part of the honest payoff: proven, 0 for nothing; None if nothing is proven
    at_most: float | None = None
    # the most that copies or items left out were found to gain; None if nothing was tried
    found: Estimate | None = None
    copies: tuple[int, ...] = ()  # the list that gains it
    tried: int = 0  # how many lists were tried
    naming: Estimate | None = None  # what listing its best item alone gains a provider that knows it
    # what a second account with the same items gains, in rewards; None if it was not computed
    account: Estimate | None = None
    best: bool = False  # whether no other row is as good in promise, loss and gain, and better in one of them

    @property
    def promise(self) -> Promise:
        """What is known of copies."""
        return "measured" if self.at_most is None else "ceiling" if self.at_most else "proven"

    @property
    def pays(self) -> bool:
        """Whether copies surely pay."""
        return self.found is not None and self.found.low > TOLERANCE

    @property
    def gain(self) -> float:
        """The most that copies gain: proven, else as found, and at least 0."""
        if self.at_most is not None:
            return self.at_most
        return math.inf if self.found is None else max(0.0, self.found.value)

    def keeps(self, promise: Promise) -> bool:
        """Return whether the promise is as strong as that one, and no copies were found to gain beyond it."""
        kinds, found = get_args(Promise), self.found
        calm = self.at_most is not None or (found is not None and found.value <= TOLERANCE)
        return calm and not self.pays and kinds.index(self.promise) <= kinds.index(promise)


@dataclass(frozen=True)
class PlatformOption:
    """Something that a platform can choose, and what the best mechanism costs then."""

    choice: str  # what is chosen, such as the end of a season
    option: str  # what it may be
    mechanism: str  # the name of the cheapest mechanism then, or of the cheapest under which copies gain nothing
    regret: Estimate  # its regret
    # the largest relative gain by copies that is not ruled out; None for a ceiling that was not computed
    gain: float | None
    asked: bool  # whether this is the market that was asked about


@dataclass(frozen=True)
class CheapestSeasons:
    """Seasons for rates that drift: the mechanism restarts after each.

    `cp.bounds.season_length` has the model.
    """

    lifetime: float  # the rounds after which a rate changes, on average
    rounds: int  # of all seasons together
    length: int  # the rounds of one
    gap: float  # the expected best mean minus an average one
    one_season: float  # what a single season of all rounds costs, in rewards: that of a tuned reservoir

    def cost(self, regret: Estimate) -> Estimate:
        """Return the cost of all rounds, drift included, given the regret of a season as it starts."""
        seasons = self.rounds / self.length
        value = self.rounds * season_cost(self.length, max(LEAST, regret.value), self.gap, self.lifetime)
        return Estimate(value, seasons * regret.error, regret.kind, f"{regret.method}, and a model of seasons")


@dataclass(frozen=True, repr=False)
class Recommendation(Tabular):
    """Which mechanism to run in a market, and why: the result of `cp.recommend`.

    As a table (`to_frame`, `to_markdown`, `to_latex`) it has a row for each mechanism that is clone-proof here.

    Attributes
    ----------
    market : Market
        The market that was asked about; with drift, one season of it.
    ranked : tuple of AssessedMechanism
        What is clone-proof in this market: first what needs no declaration for that, and of each the smallest regret
        first. The first one is the choice.
    others : dict of str to str
        Mechanisms that were looked at and are not among them, and why.
    settled : bool
        Whether the choice costs, at 99 %, at most 5 % more than any other mechanism that could be chosen.
    candidates : tuple of str
        The choice and, if it is not settled, the mechanisms that may cost less, or of which no cost is known.
    options : tuple of PlatformOption
        What else the platform can choose, and what the best mechanism costs then.
    random_regret : float
        What playing items at random costs: a mechanism that costs half of that has learned little.
    fits : bool
        Whether the choice costs at most half of that.
    advice : str
        What would have to change, where nothing fits; else nothing.
    notes : tuple of str
        What a reader must know.
    seconds : float
        How long it took.
    interrupted : bool
        Whether somebody pressed Ctrl-C: more would have been looked at.
    left : bool
        Whether time was over before everything was looked at.
    account_floor : float or None
        What a second account gains in the long run under every mechanism that learns, in rewards; None where providers
        differ.
    seasons : CheapestSeasons or None
        How long seasons should be for the drift that was declared.
    by_segment : dict of str to Recommendation
        The recommendation of each segment, of which regrets are the sums; empty in a market without segments.
    pooled : AssessedMechanism or None
        The best mechanism of one market for all segments, with its regret against the best original of each.
    frontier : tuple of FrontierRow
        Every mechanism that could be played: what it loses, what copies gain, and a mark on those that no other beats.
    """

    keys_of_data = (
        "market=market_file", "choice=_if_ranked.choice.name", "cost=_if_ranked.cost",
        "cost_range=_if_ranked.cost_range", "cheaper=_if_ranked.cheaper.name", "ranked", "others",
        "random_regret", "fits", "advice", "notes", "interrupted", "account_floor", "seasons",
        "left", "settled", "candidates", "options", "by_segment?", "pooled?by_segment",
        "frontier",
    )  # fmt: skip

    said_in = "recommendation"
    market: Market
    ranked: tuple[AssessedMechanism, ...]
    others: dict[str, str]
    random_regret: float
    fits: bool
    advice: str
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False
    account_floor: float | None = None
    seasons: CheapestSeasons | None = None
    left: bool = False
    settled: bool = False
    candidates: tuple[str, ...] = ()
    options: tuple[PlatformOption, ...] = ()
    by_segment: dict[str, Recommendation] = field(default_factory=dict)
    pooled: AssessedMechanism | None = None
    frontier: tuple[FrontierRow, ...] = ()

    def __repr__(self) -> str:
        if self.unsettled:
            return f"Recommendation(not settled: {' or '.join(map(repr, self.candidates))}, fits={self.fits})"
        if not self.ranked:
            return f"Recommendation(nothing, {self.advice!r})"
        numbers = ", ".join(f"{key}={value}" for key, value in self.choice.parameters.items())
        return (
            f"Recommendation({self.choice.name!r}, {numbers},\n"
            f"               regret {self.choice.regret.value:,.6g}, fits={self.fits})"
        )

    @property
    def market_file(self) -> str:
        """Market as the text of a market file."""
        return market_to_toml(self.market)

    @property
    def _if_ranked(self) -> Recommendation | None:
        return self if self.ranked else None

    @property
    def choice(self) -> AssessedMechanism:
        """Recommended mechanism; where that is not settled, the cheapest as far as is known."""
        return self.ranked[0]

    @property
    def unsettled(self) -> bool:
        """Whether another candidate may be the one to run: something fits, or the cost of one is not known."""
        names = {entry.name for entry in self.ranked}
        return not self.settled and (self.fits or not names.issuperset(self.candidates))

    @property
    def cost(self) -> Estimate:
        """What the choice costs over all rounds, drift included."""
        return self.cost_of(self.choice.regret)

    @property
    def random_cost(self) -> float:
        """What playing items at random costs over all rounds, drift included."""
        return self.cost_of(Estimate(self.random_regret, 0.0, "exact", "")).value

    def cost_of(self, regret: Estimate) -> Estimate:
        """Return what a regret in the market amounts to over all rounds, drift included."""
        return regret if self.seasons is None else self.seasons.cost(regret)

    @property
    def cost_range(self) -> tuple[float, float] | None:
        """Smallest and largest cost of the choice if rates are half or twice as high, or its threshold or bar off."""
        usual = [wrong.regret for wrong in self.choice.wrong if wrong.usual]
        regrets = [regret for regret in usual if regret is not None]
        costs = [self.cost_of(regret).value for regret in [self.choice.regret, *regrets]]
        return (min(costs), max(costs)) if regrets and len(regrets) == len(usual) else None

    @property
    def cheaper(self) -> AssessedMechanism | None:
        """Cheapest mechanism that costs less than the choice, if the declaration its promise depends on is right."""
        below = [entry for entry in self.ranked[1:] if entry.needs and entry.regret.value < self.choice.regret.value]
        return min(below, key=lambda entry: entry.regret.value, default=None)

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each mechanism that is clone-proof here, the smallest regret first."""
        numbers = ("regret=regret.value", "error=regret.error")
        return columns_of(self.ranked, "mechanism=name", *numbers, "verdict", "exploring", "promise", "needs")


def terms_toml(market: Market, chosen: AssessedMechanism, name: str = "market") -> str:
    """Return the fields of `serve.market.terms.MarketSpec` as TOML text: the mechanism with all its parameters."""
    parameters = {key: value for key, value in chosen.parameters.items() if not isinstance(value, Mapping)}
    by_segment = {key: value for key, value in chosen.parameters.items() if isinstance(value, Mapping)}
    if any(not isinstance(value, int | float | str | list) for value in parameters.values()):
        raise MechanismError(f"expected parameters that are numbers or words, got {parameters}; terms have no others")
    terms: dict[str, Any] = {
        "market": name,
        "mechanism": chosen.name,
        "horizon": market.horizon,
        "ends": market.ends,
        "share": market.share,
        "rewards": market.family.to_dict(),
        "max_agents": len(market.agents),
        "max_arms": int(parameters.get("max_arms", max(QUOTA, market.most_originals))),
        "parameters": parameters,
    }
    if market.positions is not None:
        terms["positions"] = market.positions
    if market.delays != "none":
        terms["wait_rounds"] = market.horizon  # how late a reward may be is not declared, so that none counts as zero
    if market.segments:  # each with what differs between them
        terms["segments"] = {
            name: {"fraction": fraction, "parameters": {key: value[name] for key, value in by_segment.items()}}
            if by_segment
            else fraction
            for name, fraction in market.segments.items()
        }
    return tomli_w.dumps(terms)
