"""Catalogue of mechanisms by name, with parameters given or derived for a market by a theorem."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from cloneproof._lib.checks import known, one_of, whole
from cloneproof._lib.discovery import check_options, imported
from cloneproof.errors import MechanismError, brief
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.bandits.bandit import Bandit
from cloneproof.mechanisms.bandits.prior import prior_parameters
from cloneproof.mechanisms.bandits.rule import Choice, Clock, Order, Rule, positive, rounds_number
from cloneproof.mechanisms.bandits.rules import epsilon_greedy as epsilon_greedy_rule
from cloneproof.mechanisms.bandits.rules import kl_ucb as kl_ucb_rule
from cloneproof.mechanisms.bandits.rules import known_rule, rule, rule_from_dict, rule_names, ucb
from cloneproof.mechanisms.bandits.rules import thompson as thompson_rule
from cloneproof.mechanisms.committing.committing import Committing
from cloneproof.mechanisms.committing.parameters import (
    etc_parameters,
    h_etc_r_parameters,
    uniform_etc_parameters,
)
from cloneproof.mechanisms.mechanism import Claim, Derived, Mechanism
from cloneproof.mechanisms.reservoir.parameters import (
    BARS_CLONE_PROOF,
    CLONE_PROOF,
    CONTEST_CLONE_PROOF,
    INDEX_CEILING,
    STREAMS_CLONE_PROOF,
    reservoir_bars_parameters,
    reservoir_contest_parameters,
    reservoir_index_parameters,
    reservoir_parameters,
    streams_parameters,
)
from cloneproof.mechanisms.reservoir.reservoirs import Bars, Contest, ContestBy, Index, Scan, Streams
from cloneproof.mechanisms.segments import SegmentedMechanism

ChampionRule = Literal["first-pass", "best"]
BonusFunction = Callable[[float, float], float]
SHIN_2022 = "Shin, Lee and Ok 2022"
MEASURED = (
    Claim("not clone-proof", "docs/which_mechanism.md", "listing less can pay: exploration lowers one's record"),
    Claim("what copies gain is measured for your rates and horizon, not proven", "docs/which_mechanism.md"),
)
_THEOREMS: Mapping[str, Callable[..., Derived]] = {
    "etc": etc_parameters, "uniform-etc": uniform_etc_parameters, "h-etc-r": h_etc_r_parameters,
    "reservoir": reservoir_parameters, "reservoir-contest": reservoir_contest_parameters,
    "reservoir-index": reservoir_index_parameters, "reservoir-bars": reservoir_bars_parameters,
    "h-thompson": prior_parameters,
    "reservoir-streams": streams_parameters,
}  # fmt: skip
_KINDS: Mapping[str, type[Mechanism]] = {own.kind: own for own in (Committing, Scan, Contest, Index, Bars, Streams)}
_NO_MARKET_NEEDED = ("reservoir", "reservoir-contest")  # own bounds will do


def ucb1(
    constant: float = 2.0, clock: Clock = "current", bonus: BonusFunction | None = None, one_place_each: bool = False
) -> Mechanism:
    """UCB1 over all arms (Algorithm 1)."""
    claims = (
        Claim("not clone-proof", "Theorem 1", "confirmed, not at the paper's own T; see docs/reading.md#ucb1"),
        Claim("regret O(K ln T)", "Auer et al. 2002"),
    )
    return Bandit(ucb(constant, clock, bonus), one_place_each=one_place_each, claims=claims)


def etc(arm_rounds: int, choice: Choice = "commit", order: Order = "round-robin") -> Mechanism:
    """Explore then commit over all arms (Algorithm 3)."""
    claims = (
        Claim("clone-proof for one agent", "Theorems 2 and 3", "less exploration is enough; see docs/reading.md#etc"),
        Claim("regret O(l^2 ln T / gap^2)", "Theorem 3"),
    )
    return Committing(arm_rounds, choice=choice, order=order, claims=claims)


def prior_independent_etc(power: float = 4.0, choice: Choice = "commit", order: Order = "round-robin") -> Mechanism:
    """ETC in doubling epochs, no parameter of the market needed (Algorithm 4)."""
    claims = (Claim("clone-proof for one agent and large T", "Proposition 2", "late for small gaps"),)
    return Committing(power=power, choice=choice, order=order, claims=claims)


def h_ucb(
    constant: float = 2.0, clock: Clock = "current", arm_clock: Clock = "completed", bonus: BonusFunction | None = None
) -> Mechanism:
    """UCB over agents, UCB inside the agent (Algorithm 2); the arms' clock is the agent's number of earlier pulls."""
    claims = (
        Claim("clone-proof for fully informed agents", SHIN_2022),
        Claim("not clone-proof", "Theorem 1", "confirmed; see docs/reading.md#h-ucb"),
    )
    return Bandit(ucb(constant, arm_clock, bonus), ucb(constant, clock, bonus), claims=claims)


def uniform_etc(arm_rounds: int, order: Order = "round-robin", choice: Choice = "commit") -> Mechanism:
    """An agent uniformly at random in every round, ETC inside it (section 5)."""
    claims = (
        Claim(
            "clone-proof",
            "section 5, by Theorems 2 and 3",
            "confirmed at the theorem's m; see docs/reading.md#uniform-choice",
        ),
        Claim("linear regret", "section 5"),
    )
    return Committing(arm_rounds, uniform=True, choice=choice, order=order, claims=claims)


def h_etc_r(
    agent_rounds: int,
    arm_rounds: int,
    choice: Choice = "commit",
    order: Order = "round-robin",
    agent_order: Order = "round-robin",
) -> Mechanism:
    """ETC over agents, ETC inside the agent, arm statistics cleared in between (Algorithm 5)."""
    claims = (
        Claim("clone-proof", "Theorem 4", "refuted as stated; see docs/reading.md#h-etc-r"),
        Claim(
            "regret O(n L^3 sqrt(T ln T) / gap^3)",
            "Theorem 5",
            "refuted as stated; holds with a gap between agents, see docs/errata.md",
        ),
    )
    rounds = rounds_number(agent_rounds, "the rounds of a trial")
    how: dict[str, Any] = {"choice": choice, "order": order, "agent_order": agent_order}
    return Committing(arm_rounds, rounds, clears=True, claims=claims, **how)


def kl_ucb(constant: float = 1.0, clock: Clock = "current", one_place_each: bool = False) -> Mechanism:
    """KL-UCB over all arms (Garivier and Cappe 2011), with exploration ln t."""
    return Bandit(kl_ucb_rule(constant, clock), one_place_each=one_place_each)


def epsilon_greedy(c: float = 1.0) -> Mechanism:
    """A random arm with probability min(1, cK/t), else the best so far."""
    return Bandit(epsilon_greedy_rule(c))


def thompson(one_place_each: bool = False, alpha: float = 1.0, beta: float = 1.0) -> Mechanism:
    """Thompson sampling over all arms with the prior Beta(alpha, beta)."""
    return Bandit(thompson_rule(alpha, beta), one_place_each=one_place_each)


def h_thompson(alpha: float = 1.0, beta: float = 1.0) -> Mechanism:
    """Thompson sampling over agents by all their rewards, and among the arms of the agent.

    Both posteriors have the prior Beta(alpha, beta), uniform unless it is given or matched to a market. A copy adds
    nothing to its agent's record, and costs rounds that tell the agent's own arms apart.
    """
    rule = thompson_rule(alpha, beta)
    return Bandit(rule, rule, claims=MEASURED)


def reservoir(
    rounds: int,
    draws: int,
    threshold: float | None = None,
    choose: ChampionRule = "first-pass",
    coins: bool = True,
) -> Mechanism:
    """Test draws of all agents in turn; the first that passes gets every later round, else the best of all does.

    An agent's arms are reached only through uniform draws with replacement, on a schedule that does not depend on how
    many arms it has. Copies shift the odds of each draw, but averaged over which item is better they stay even.
    `choose="best"` tests all draws. Rewards in [0, 1] count as coins; with `coins=False` their sums count, for Gaussian
    rewards.

    On pages of several places all places are the laboratory: providers rotate through them, `rounds` views of each draw
    in each place. After that places go by score, which counts the clicks of one provider a page
    (docs/textbook/slates.md).
    """
    return Scan(rounds, draws, _threshold(threshold, choose), coins, claims=(CLONE_PROOF,))


def reservoir_streams(rotations: int, blocks: int, turns: int | None = None) -> Mechanism:
    """Each provider shows one draw as long as its clicks pay for its views, then the next; places go by balance.

    For pages of several places. A block costs a draw one click, so 1 / (attention of a block) is the bar, a rate that
    is good enough. The laboratory has `blocks` blocks of `rotations` pages in each place; then a provider is designated
    on each page, and `turns` of these are a block (docs/textbook/slates.md).
    """
    return Streams(rotations, blocks, turns, claims=(STREAMS_CLONE_PROOF,))


def reservoir_contest(
    rounds: int,
    draws: int,
    horizon: int,
    threshold: float | None = None,
    choose: ChampionRule = "first-pass",
    contest: ContestBy = "kl-ucb",
    constant: float = 1.0,
    coins: bool = True,
) -> Mechanism:
    """Every agent finds a champion in draws * rounds rounds; the champions then compete on fresh rewards.

    For platforms that cannot name one threshold for all agents. The contest is steady KL-UCB or steady UCB, whose
    indices depend only on an agent's own fresh rewards, for any constant; with a market the constant is tuned, since
    one below 1 often costs less. With `coins=False` steady UCB sums Gaussian rewards.
    """
    tests = rounds, draws, _threshold(threshold, choose), coins
    return Contest(*tests, horizon, contest, constant, claims=(CONTEST_CLONE_PROOF,))


def reservoir_index(draws: int, constant: float) -> Mechanism:
    """Slots of all agents in one contest by the KL-UCB index, for a market that ends at random.

    Each agent has `draws` slots, uniform draws from its arms with replacement. A slot counts with the lowest index that
    it has had, which only affects ties. In a market that ends at random, what copies and withholding can gain has a
    proven ceiling (docs/textbook/index-on-slots.md). With a fixed end nothing is claimed.
    """
    return Index(draws, constant, claims=(INDEX_CEILING,))


def reservoir_bars(bars: float, stake: float = 1.0, draws: int = 16) -> Mechanism:
    """Each draw starts with a stake, a view costs it 1 point, a click earns it 1 / bar; who failed least is shown.

    Each agent has `draws` slots, uniform draws from its arms with replacement, and the slot that has failed least often
    is shown until its points are used up. The bar is a rate that is good enough, the stake is in clicks. In a market
    that ends at random copies and withholding gain nothing, for any number of originals
    (docs/textbook/bars-on-slots.md).
    """
    made = Bars(bars, stake, draws, claims=(BARS_CLONE_PROOF,))
    return replace(made, parameters={"bars": made.bars, "stake": made.stake, "draws": made.draws})


def _threshold(threshold: float | None, choose: ChampionRule) -> float | None:
    one_of(choose, get_args(ChampionRule), "choose", MechanismError)
    if choose == "best" and threshold is not None:
        raise MechanismError(f"choose='best' expects no threshold, got {brief(threshold)}; leave it out")
    return threshold


AT_RANDOM_ONLY = ("reservoir-index", "reservoir-bars")  # nothing is claimed of them with a fixed end
ON_PAGES_ONLY = ("reservoir-streams",)  # elsewhere others cost less
CATALOGUE: Mapping[str, Callable[..., Mechanism]] = {
    build.__name__.replace("_", "-"): build
    for build in (
        ucb1, etc, prior_independent_etc, h_ucb, uniform_etc, h_etc_r, reservoir, reservoir_streams, reservoir_contest,
        reservoir_index, reservoir_bars, kl_ucb, epsilon_greedy, thompson, h_thompson,
    )
}  # fmt: skip


def mechanism(name: str, *, market: Market | None = None, **options: Any) -> Mechanism:  # noqa: ANN401
    """Make a mechanism by name, its parameters given or from the theorem for a market.

    Parameters
    ----------
    name : str
        One of "ucb1", "etc", "prior-independent-etc", "h-ucb", "uniform-etc",
        "h-etc-r", "reservoir", "reservoir-streams", "reservoir-contest",
        "reservoir-index", "reservoir-bars", "kl-ucb", "epsilon-greedy", "thompson", "h-thompson";
        `cloneproof mechanisms` says what each does.
    market : Market, optional
        Parameters that are not given follow from it, by the mechanism's theorem. The mechanism keeps the numbers,
        never the market. In a market with segments they are tuned to each: `made.in_segment(name)` is what runs there.
    **options
        The mechanism's parameters. With a market, `factor` sets the constant in m = (factor / gap^2) l ln(2T), 2 in the
        theorems. "h-thompson" matches the prior of its posteriors to the market by two moments.

    Returns
    -------
    Mechanism
        With its `parameters` and what is claimed of it, `claims`.

    References
    ----------
    The paper, Algorithms 1 to 5 and Theorems 3 to 5; Shin, Lee and Ok (2022); docs/textbook/reservoir.md.

    Examples
    --------
    >>> from cloneproof import mechanism
    >>> mechanism("h-etc-r", agent_rounds=80, arm_rounds=40).parameters["arm_rounds"]
    40
    """
    known(name, CATALOGUE, "mechanism", MechanismError)
    if market is not None and checked_market(market).segments:
        alike = {id(own): own for own in market.by_segment.values()}
        tuned_to = {key: mechanism(name, market=own, **options) for key, own in alike.items()}
        return SegmentedMechanism.of({part: tuned_to[id(own)] for part, own in market.by_segment.items()})
    build, theorem = CATALOGUE[name], _THEOREMS.get(name)
    own = list(inspect.signature(build).parameters)
    derivable = theorem is not None and (market is not None or name in _NO_MARKET_NEEDED)
    tuning = list(inspect.signature(theorem).parameters)[2:] if theorem is not None and derivable else []
    check_options(f"mechanism {name!r}", options, own + tuning, MechanismError)
    given = {key: value for key, value in options.items() if key in own}
    tuned = {key: value for key, value in options.items() if key in tuning}
    if "factor" in options:
        positive(options["factor"], "the factor of m")
    derived = Derived({})
    if theorem is not None and derivable and (market is not None or tuned):
        derived = theorem(market, given, **tuned)
    given = dict(derived.parameters) | given
    signature = inspect.signature(build).parameters
    needed = [key for key, p in signature.items() if p.default is p.empty and key not in given]
    if needed:
        raise MechanismError(
            f"mechanism {name!r} needs {' and '.join(needed)}; give them, or market=.. to take them from its theorem"
        )
    defaults = {key: p.default for key, p in signature.items() if p.default is not None}
    counts = {
        key: whole(given[key]) for key, p in signature.items() if key in given and p.annotation in ("int", "int | None")
    }
    given |= {key: number for key, number in counts.items() if number is not None}  # 40.0 is kept as 40
    made = build(**given)
    parameters = defaults | given | dict(made.parameters)  # lists of numbers are kept as lists
    return replace(made, name=name, parameters=parameters, claims=derived.claims or made.claims)


def known_mechanism(name: str, options: Mapping[str, Any], market: Market | None = None) -> Mechanism:
    """Make a mechanism of the catalogue, or one level with a rule that is known by name; import nothing else.

    >>> known_mechanism("ucb1", {}).name, known_mechanism("ucb", {"constant": 1}).parameters
    ('ucb1', {'constant': 1.0, 'clock': 'current'})
    """
    if name in CATALOGUE:
        return mechanism(name, market=market, **options)
    if ":" not in name:
        known(name, [*CATALOGUE, *rule_names()], "mechanism", MechanismError)
    arm = known_rule(name, options)
    return Bandit(arm, name=name, parameters=arm.options)


def own_mechanism(name: str, **options: Any) -> Mechanism:  # noqa: ANN401
    """Make a user's own mechanism: one level with a rule that `cp.rule` can find, or a mechanism at MODULE:NAME.

    >>> str(own_mechanism("ucb", constant=1.0))
    'ucb'
    """
    made = imported(name, "a rule", "my_rule", MechanismError) if isinstance(name, str) and ":" in name else None
    if isinstance(made, Mechanism):
        if options:
            raise MechanismError(
                f"expected no options for the mechanism {name!r}, got {', '.join(options)}; leave them out"
            )
        return replace(made, name=name)
    return Bandit(rule(name, **options), name=name, parameters=options)


def mechanism_from_dict(
    data: Mapping[str, Any], rule_of: Callable[[Mapping[str, Any]], Rule] = rule_from_dict
) -> Mechanism:
    """Rebuild a mechanism from `Mechanism.to_dict`; needs named rules, or rules that `rule_of` knows."""
    kind = known(data["kind"], ("segments", "bandit", *_KINDS), "kind of mechanism", MechanismError)
    if kind == "segments":
        return SegmentedMechanism.of(
            {name: mechanism_from_dict(own, rule_of) for name, own in data["segments"].items()}
        )
    if kind != "bandit":
        return _KINDS[kind].from_dict(data)
    agent, arm = (None if level is None else rule_of(level) for level in (data["agent"], data["arm"]))
    assert arm is not None
    return Bandit(arm, agent, data["one_place_each"], name=data["name"], parameters=data["parameters"])
