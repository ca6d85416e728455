"""`cp.recommend`: which mechanism to run in a market, with which numbers, what it costs and what it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from cloneproof._checks import real
from cloneproof.advice.assessment import SamplingLimits, assess, box_judgement, over_time
from cloneproof.advice.candidates import (
    LONGEST_SAMPLED,
    SLOW,
    clone_proof_candidates,
    gameable_candidates,
    informed_candidates,
)
from cloneproof.advice.declared_market import RELATIVE_GAP, declared_market
from cloneproof.advice.honesty import price_of_honesty
from cloneproof.advice.informed import assess_informed, if_bayesian, if_informed
from cloneproof.advice.recommendation import AssessedMechanism, Providers, Recommendation
from cloneproof.advice.traffic import enough_rounds, random_regret
from cloneproof.advice.wrong_declarations import wrong_declarations
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.black_box_runs import check_mechanism_or_box
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.errors import CloneproofError, MarketError, brief, did_you_mean
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed

PATIENT = 30.0  # seconds from which on slow mechanisms are sampled too
RIVAL = 10.0  # times the smallest regret: who costs more is no rival
LEARNED = 0.5  # of what random play costs: a mechanism that costs more has learned little


def recommend(
    market: Market | None = None,
    *,
    agents: int | None = None,
    originals: int | None = None,
    horizon: int | None = None,
    rates: Sequence[float] | None = None,
    relative_gap: float = RELATIVE_GAP,
    values: Sequence[float] | None = None,
    providers: Providers = "bayesian",
    seconds: float = 6.0,
    seed: int = 0,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Recommendation:
    """What to run: the mechanisms that are clone-proof in this market, with tuned numbers, the smallest regret first.

    Parameters
    ----------
    market : Market, optional
        The market; or leave it out and declare the next five.
    agents, originals, horizon : int, optional
        How many agents there are, how many items each may have, and how many rounds.
    rates : (float, float), optional
        The lowest and the highest click rate. Rates in between are taken in equal ratios, and as equally likely.
    relative_gap : float, default 0.25
        Two items that differ, differ by at least this part of the lower rate.
    values : sequence of float, optional
        The possible rates themselves, in place of `rates`.
    providers : {"bayesian", "informed"}, default "bayesian"
        Whether agents know which of their items are better ("informed") or only the odds.
    seconds : float, default 6.0
        About how long to take; where engines are exact it is less. The first call on a machine also compiles.
    seed : int, default 0
        The seed, where something is sampled.
    own : mapping of str to Mechanism or BlackBox, optional
        What you run now, or might: judged beside ours. A black box can be found to be exploitable, never clone-proof.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Recommendation
        Its `choice` has the mechanism and its parameters; `price` says what is best among honest agents, and what that
        one costs if they do what pays.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense.

    References
    ----------
    The reservoir, docs/textbook/reservoir.md; the hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> from cloneproof import recommend
    >>> advised = recommend(agents=20, originals=3, horizon=10**8, values=(0.002, 0.004, 0.006), seconds=1)
    >>> advised.choice.name, advised.fits, advised.choice.regret.value < 250, advised.price.ratio > 5
    ('reservoir', True, True, True)
    """
    market = _asked_market(market, agents, originals, horizon, rates, relative_gap, values)
    if providers not in get_args(Providers):
        known = get_args(Providers)
        raise MarketError(
            f"unknown providers {brief(providers)}; {did_you_mean(str(providers), known)}known are {', '.join(known)}"
        )
    budget = real(seconds)
    if budget is None or budget <= 0:
        raise CloneproofError(f"expected seconds above 0, got {brief(seconds)}; 6 is usual")
    clock = Deadline(budget, progress)
    limits = SamplingLimits(budget / 15, checked_seed(seed))
    clock.tell(0, 4, "tuning")
    informed = providers == "informed"
    slow = budget >= PATIENT and market.horizon <= LONGEST_SAMPLED
    candidates, others = informed_candidates(market) if informed else clone_proof_candidates(market, slow)
    boxes, made = _own(own)
    candidates = candidates + made
    clock.tell(1, 4, "auditing")
    ranked = _ranked(market, candidates, others, limits, informed)
    others |= {name: box_judgement(market, box, limits) for name, box in boxes.items()}
    clock.tell(2, 4, "best responses")
    gameable, _ = gameable_candidates(market, slow)
    gameable = gameable + [each for each in made if market.horizon <= LONGEST_SAMPLED]
    price, unknown = price_of_honesty(market, gameable, limits, budget / 3)
    unknown += [] if slow else SLOW
    clock.tell(3, 4, "what may be wrong")
    at_random = random_regret(market)
    ranked = [
        _detailed(market, each, limits, informed, each.regret.value <= RIVAL * ranked[0].regret.value)
        if k == 0 or each.regret.value < LEARNED * at_random
        else each
        for k, each in enumerate(ranked)
    ]
    fits = bool(ranked) and ranked[0].regret.value <= LEARNED * at_random
    clock.tell(4, 4, "done")
    return Recommendation(
        market=market,
        providers=providers,
        ranked=tuple(ranked),
        others=others,
        price=price,
        random_regret=at_random,
        fits=fits,
        advice="" if fits else _advice(market, ranked, at_random),
        notes=_notes(unknown),
        seconds=clock.seconds,
    )


def _own(own: Mapping[str, Mechanism | BlackBox] | None) -> tuple[dict[str, BlackBox], list[Mechanism]]:
    """Black boxes by name, and mechanisms under their names."""
    boxes, made = dict[str, BlackBox](), list[Mechanism]()
    for name, each in {} if own is None else dict(own).items():
        check_mechanism_or_box(each)
        if isinstance(each, BlackBox):
            boxes[name] = each
        else:
            made.append(replace(each, name=name))
    return boxes, made


def _asked_market(
    market: Market | None,
    agents: int | None,
    originals: int | None,
    horizon: int | None,
    rates: Sequence[float] | None,
    relative_gap: float,
    values: Sequence[float] | None,
) -> Market:
    declared = {"agents": agents, "originals": originals, "horizon": horizon, "rates": rates, "values": values}
    given = [name for name, value in declared.items() if value is not None]
    if market is not None:
        if given:
            raise MarketError(f"expected a market or what to make one of, got a market and {given[0]}; leave one out")
        checked_market(market)
        if market.horizon < len(market.agents):
            raise MarketError(
                f"expected at least as many rounds as there are agents, {len(market.agents)}, got {market.horizon}; "
                "give more rounds, or fewer agents"
            )
        return market
    missing = [name for name in ("agents", "originals", "horizon") if declared[name] is None]
    if missing or agents is None or originals is None or horizon is None:
        raise MarketError(
            f"expected a market, or agents, originals, horizon and rates, got no {' and no '.join(missing)}; give "
            "them, e.g. agents=20, originals=3, horizon=10**8, rates=(0.002, 0.006)"
        )
    return declared_market(agents, originals, horizon, rates=rates, relative_gap=relative_gap, values=values)


def _ranked(
    market: Market, candidates: list[Mechanism], others: dict[str, str], limits: SamplingLimits, informed: bool
) -> list[AssessedMechanism]:
    """The clone-proof ones, the smallest regret first; the others get a reason."""
    ranked = []
    for made in candidates:
        assessed = assess_informed(market, made, limits) if informed else assess(market, made, limits)
        if isinstance(assessed, str):
            others[made.name] = assessed
        elif assessed.verdict == "exploitable" or (assessed.verdict == "undecided" and not informed):
            others[made.name] = f"{assessed.verdict}: copies gain up to {assessed.gain:.1%} of the honest payoff"
        else:
            ranked.append(assessed)
    return sorted(ranked, key=lambda each: each.regret.value)


def _detailed(
    market: Market, each: AssessedMechanism, limits: SamplingLimits, informed: bool, rival: bool
) -> AssessedMechanism:
    """With its curve; what may be wrong is asked of the choice and its rivals, for others it does not matter."""
    if not rival:
        return replace(each, over_time=over_time(market, each.mechanism, limits, points=4))
    wrong = wrong_declarations(market, each.mechanism, limits)
    wrong += (if_bayesian if informed else if_informed)(market, each.mechanism, limits)
    return replace(each, over_time=over_time(market, each.mechanism, limits), wrong=wrong)


def _advice(market: Market, ranked: list[AssessedMechanism], at_random: float) -> str:
    """What would have to change for a clone-proof mechanism to learn anything."""
    rounds = enough_rounds(market, LEARNED)
    enough = (
        f"From about {rounds:,} rounds on the reservoir would cost less than half of that; or with fewer providers, or "
        "with items that differ more."
        if rounds is not None
        else "More rounds alone do not help up to a thousand times as many; fewer providers or larger differences may."
    )
    if not ranked:
        return f"Nothing clone-proof fits this traffic. {enough}"
    part = ranked[0].regret.value / at_random if at_random > 0 else 0.0
    return (
        f"Nothing clone-proof fits this traffic: the best of them costs {part:.0%} of what playing items at random "
        f"costs. {enough}"
    )


def _notes(unknown: list[str]) -> tuple[str, ...]:
    if not unknown:
        return ()
    return (
        f"Not compared, as sampling them takes longer than there was: {', '.join(unknown)}. Among honest providers "
        "they may cost less than the one named.",
    )
