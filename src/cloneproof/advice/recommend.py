"""`cp.recommend`: which mechanism to run in a market, with which parameters, what it costs and promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from cloneproof._checks import number_in, one_of
from cloneproof._clock import budget_clock
from cloneproof.advice.assessment import (
    DECLARED,
    GAMEABLE,
    INFORMED,
    RESERVOIRS,
    SLOW,
    TOLERANCE,
    TOO_SLOW,
    SamplingBudget,
    assess,
    box_judgement,
    enough_rounds,
    exploration,
    over_time,
    random_regret,
    regret_of,
    relative_gain,
    seen,
    tuned_mechanisms,
)
from cloneproof.advice.assumptions import account_floor, season_words, second_account_gain, wrong_declarations
from cloneproof.advice.declared import RELATIVE_GAP, asked_market
from cloneproof.advice.recommendation import (
    Accounts,
    AssessedMechanism,
    PriceOfHonesty,
    Providers,
    Recommendation,
)
from cloneproof.analysis.audit.audit import audit
from cloneproof.analysis.audit.copy_vectors import kinds_of, ladders
from cloneproof.analysis.audit.result import Verdict
from cloneproof.analysis.equilibrium import Equilibrium, Strategies, iterate, payoff_table
from cloneproof.analysis.evaluate import check_mechanism_or_box
from cloneproof.analysis.search import SEARCH, Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline, interrupts_raised
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, MarketError
from cloneproof.market.market import Agent, Market, full_copies
from cloneproof.market.priors import Point
from cloneproof.mechanisms.mechanism import Mechanism

LADDER = (2, 4, 8)  # Copies of one original or of all that best responses try,
SAMPLED_LADDER = (8,)  # and those they try if payoffs are sampled.
PULLS = 10**7  # One sampled gain has this many pulls.
SLACK = 1e-6  # A gain up to this part of the payoff counts as none.
LOOSE = 0.5  # A larger error, as a part of a regret, leaves open which mechanism is best.
REALISATIONS = 3  # Informed agents are audited at this many realisations of everybody's means.
SECONDS = 6.0  # Counted work, if nobody says how long it may take.
PATIENT = 30.0  # From this many seconds on slow mechanisms are sampled too.
FIRST_PATIENCE = 1.0  # Exact figures of the first mechanism may take this many seconds beyond the budget.
LONGEST_SLOW = 10**5  # Longer runs of slow mechanisms are not sampled.
TOO_LATE = "there was no time left for it"
INTERRUPTED = "Interrupted: this is what was found by then."
LONGER = 0.25  # This part of the time is for sampling what is about as good as the best.
LEARNED = 0.5  # A mechanism that costs more than this part of random play has learned little.


def price_of_honesty(
    market: Market, candidates: Sequence[Mechanism], sampling: SamplingBudget, seconds: float
) -> tuple[PriceOfHonesty | None, list[str]]:
    """Return the candidate with the smallest honest regret, and its regret at best responses; and those not judged."""
    best: tuple[Estimate, Mechanism] | None = None
    unknown = []
    for made in candidates:
        regret = regret_of(market, made, sampling)
        if regret is None or regret.error > LOOSE * regret.value:
            unknown.append(made.name)
        elif best is None or regret.value < best[0].value:
            best = regret, made
    if best is None:
        return None, unknown
    honest, made = best
    responses = best_responses(market, made, sampling, Deadline(seconds))
    if responses is None:
        return None, unknown
    exact = responses.evaluation.engine != "monte-carlo"
    at_best = responses.evaluation.regret if exact else regret_of(market, made, sampling, responses.copies)
    copies = sorted({" ".join(map(str, own)) for own in responses.copies.values()})
    drawn = over_time(market, made, sampling, responses.copies)
    ladder = LADDER if exact else SAMPLED_LADDER
    still = "nobody gains by moving" if exact else "no further gain is surely above zero"
    end = {"equilibrium": still, "cycle": "best responses go round in a circle"}
    how = (
        f"best responses to each other, up to {max(ladder)} copies of one item or of all, "
        f"{'exact' if exact else 'sampled'}: {end.get(responses.status, 'stopped for lack of time')}"
    )
    price = PriceOfHonesty(made, honest, at_best or responses.evaluation.regret, " / ".join(copies), how, drawn)
    return price, unknown


def best_responses(market: Market, made: Mechanism, sampling: SamplingBudget, clock: Deadline) -> Equilibrium | None:
    """Iterated best responses over a few vectors of copies, exact or with as many runs as time allows."""
    runs = max(20, PULLS // market.horizon)
    honest = full_copies(market.agents, None)
    try:
        table = payoff_table(market, made, runs, sampling.seed, sampling.seconds)
        ladder = LADDER if table.exact else SAMPLED_LADDER
        kinds = {agent.name: kinds_of(agent, not made.permutation_invariant) for agent in market.agents}
        rungs = {name: [vector for rung in ladders(own, max(ladder)) for vector in rung] for name, own in kinds.items()}
        vectors = {name: [kinds[name].honest, *(v for v in own if max(v) in ladder)] for name, own in rungs.items()}
        strategies = Strategies(vectors, kinds, SLACK, damping=1.0)
        return iterate(table, strategies, honest, 12, clock, max(ladder), "a ladder of copies")
    except CloneproofError:
        return None


def assess_informed(market: Market, made: Mechanism, sampling: SamplingBudget) -> AssessedMechanism | str:
    """`assess` for agents who know their means: audited at a few realisations of them."""
    regret = regret_of(market, made, sampling)
    if regret is None:
        return TOO_SLOW
    verdict: Verdict = "clone-proof"
    gain = 0.0
    for known in realised_markets(market, sampling.seed):
        try:
            audited = audit(known, made, tolerance=TOLERANCE, search=sampling.search(0.3))
        except CloneproofError as refusal:
            return str(refusal)
        gain = max(gain, relative_gain(audited))
        if audited.verdict != "clone-proof" and verdict != "exploitable":
            verdict = audited.verdict
    said = {
        "clone-proof": f"No provider that knows its items gains by copies, at {REALISATIONS} draws of all rates.",
        "undecided": (
            f"No copies were found to pay for providers that know their items, at {REALISATIONS} draws of everybody's "
            f"rates; gains up to {gain:.1%} are not ruled out."
        ),
        "exploitable": "Copies pay for providers that know their items.",
    }[verdict]
    claims = "; ".join(str(claim) for claim in made.claims if "informed" in claim.property)
    return AssessedMechanism(
        made, regret, verdict, gain, *exploration(market, made), f"{said} Claimed: {claims}." if claims else said,
        seen=seen(market, made),
    )  # fmt: skip


def realised_markets(market: Market, seed: int) -> list[Market]:
    """Return a few realisations of everybody's means, as markets of points."""
    generator = np.random.default_rng([seed, 18])
    drawn = []
    for _ in range(REALISATIONS):
        agents = [
            Agent(agent.name, prior=[Point(float(prior.quantile(generator.random()))) for prior in agent.priors])
            for agent in market.agents
        ]
        drawn.append(Market(agents, market.horizon, market.share, market.rewards, ends=market.ends))
    return drawn


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
    accounts: Accounts = "checked",
    drift: float | None = None,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
    search: Search = SEARCH,
    progress: Callable[[int, int, str], None] | None = None,
) -> Recommendation:
    """Recommend what to run: the mechanisms that are clone-proof in this market, with tuned parameters.

    First what keeps its promise whatever was declared (the reservoir family), the cheapest of it first; then what needs
    a declaration to be right.

    Parameters
    ----------
    market : Market, optional
        The market; or leave it out and declare the next five.
    agents, originals, horizon : int, optional
        How many agents there are, how many items each may have, and how many rounds.
    rates : (float, float), optional
        The lowest and the highest click rate. Rates in between are taken in equal ratios, and as equally likely.
    relative_gap : float, default 0.25
        Two different items differ by at least this part of the lower rate.
    values : sequence of float, optional
        The possible rates themselves, in place of `rates`.
    providers : {"bayesian", "informed"}, default "bayesian"
        Whether agents know which of their items are better ("informed") or only the odds.
    accounts : {"checked", "cheap"}, default "checked"
        "cheap": providers can open second accounts, so mechanisms rank by the larger of their regret and what a second
        account with the same items gains. Where rates repeat no mechanism prevents that gain, and a note says so.
    drift : float, optional
        The rounds after which an item's rate changes, on average. `seasons` then says how often to restart.
    own : mapping of str to Mechanism or BlackBox, optional
        What you run now, or might: judged beside ours. A black box can be found to be exploitable, never clone-proof.
    search : Search, optional
        Its `seconds` say how long to take, besides what the first call on a machine takes to compile. Left out, work is
        counted, so that one seed gives one answer; it takes about ten seconds, less where engines are exact. Its `seed`
        is used where something is sampled.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Recommendation
        Its `choice` has the mechanism and its parameters; `cheaper` one that costs less if a declaration is right, with
        what happens if it is not; `price` says what is best among honest agents, and what that one costs if they
        do what pays. Ctrl-C returns what is known by then, marked `interrupted`.

    References
    ----------
    The reservoir, docs/textbook/reservoir.md; the hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> from cloneproof import Search, recommend
    >>> rates = (0.002, 0.004, 0.006)
    >>> advised = recommend(agents=20, originals=3, horizon=10**8, values=rates, search=Search(seconds=1))
    >>> advised.choice.verdict, advised.fits
    ('clone-proof', True)
    """
    market = asked_market(market, agents, originals, horizon, rates, relative_gap, values)
    one_of(providers, get_args(Providers), "providers", MarketError)
    one_of(accounts, get_args(Accounts), "accounts", MarketError)
    lifetime = None if drift is None else number_in(drift, "drift", 1, error=MarketError)
    with budget_clock(search.seconds):
        clock = Deadline(SECONDS if search.seconds is None else search.seconds, progress)
        return _recommended(market, providers, accounts, lifetime, own, search.seed, clock)


def _recommended(
    market: Market,
    providers: Providers,
    accounts: Accounts,
    lifetime: float | None,
    own: Mapping[str, Mechanism | BlackBox] | None,
    seed: int,
    clock: Deadline,
) -> Recommendation:
    """`recommend` for checked arguments, until the clock says so."""
    boxes, made = _own(own)
    so_far = Recommendation(market, providers, (), {}, None, random_regret(market), False, "", accounts=accounts)
    so_far = replace(so_far, account_floor=account_floor(market))
    try:
        with interrupts_raised():
            stages = _stages(so_far, boxes, made, seed, clock)
            with Deadline((clock.left or 0.0) + FIRST_PATIENCE).for_engines():
                so_far = next(stages)  # something is said of the first one in any case
            with clock.for_engines():
                for stage in stages:
                    so_far = stage
    except KeyboardInterrupt:
        if not so_far.ranked:
            raise
        so_far = replace(so_far, interrupted=True, notes=(*so_far.notes, INTERRUPTED))
    fits = bool(so_far.ranked) and so_far.choice.regret.value <= LEARNED * so_far.random_regret
    if lifetime is not None and so_far.ranked:
        quick = SamplingBudget((clock.budget or SECONDS) / 100, seed)
        so_far = replace(so_far, seasons=season_words(market, so_far.choice, lifetime, quick))
    advice = "" if fits else _advice(market, so_far.ranked, so_far.random_regret, clock)
    return replace(so_far, fits=fits, advice=advice, seconds=clock.elapsed)


def _stages(
    so_far: Recommendation, boxes: Mapping[str, BlackBox], made: list[Mechanism], seed: int, clock: Deadline
) -> Iterator[Recommendation]:
    """Yield what is known after each step, the most important first; nothing starts once the time is over."""
    market, budget, informed = so_far.market, clock.budget or SECONDS, so_far.providers == "informed"
    sampling, quick = SamplingBudget(budget / 20, seed), SamplingBudget(budget / 100, seed)
    clock.tell(0, 4, "tuning and auditing")
    fixed_end = market.ends == "at-horizon"
    names = INFORMED if informed else (*RESERVOIRS[:2], *DECLARED) if fixed_end else RESERVOIRS[::-1]
    for name in (names[0], *(each.name for each in made), *boxes, *names[1:]):
        if clock.spent and so_far.ranked:
            so_far = _with(so_far, name, TOO_LATE)
            continue
        if name in boxes:
            so_far = _with(so_far, name, box_judgement(market, boxes[name], sampling))
            continue
        candidates = [each for each in made if each.name == name]
        if not candidates:
            with clock.share(2).for_engines():
                candidates, refused = tuned_mechanisms([name], market)
            so_far = replace(so_far, others=so_far.others | refused)
        for candidate in candidates:
            so_far = _with(so_far, name, _assessed(so_far, candidate, sampling))
            yield so_far
    so_far = so_far if clock.spent else _sampled_longer(so_far, SamplingBudget(budget * LONGER, seed))
    clock.tell(2, 4, "best responses")
    slow = budget >= PATIENT and market.horizon <= LONGEST_SLOW
    unknown = [] if slow else list(SLOW)
    if not clock.spent and fixed_end:
        gameable, _ = tuned_mechanisms((*GAMEABLE, *SLOW) if slow else GAMEABLE, market)
        gameable += [each for each in made if market.horizon <= LONGEST_SLOW]
        price, more = price_of_honesty(market, gameable, sampling, clock.within(budget / 3))
        so_far, unknown = replace(so_far, price=price), more + unknown
    so_far = replace(so_far, notes=_notes(unknown))
    yield so_far
    clock.tell(3, 4, "what may be wrong")
    if so_far.ranked and so_far.choice.account_gain is None and not clock.spent:
        gain = second_account_gain(market, so_far.choice.mechanism, quick)
        so_far = _replaced(so_far, so_far.choice, replace(so_far.choice, account_gain=gain))
        yield so_far
    for chosen in [so_far.choice, so_far.cheaper] if so_far.ranked else []:
        if chosen is not None and not clock.spent:
            so_far = _replaced(so_far, chosen, _detailed(market, chosen, quick, informed))
            yield so_far
    for each in so_far.ranked:
        if not each.over_time and each.regret.value < LEARNED * so_far.random_regret and not clock.spent:
            curve = over_time(market, each.mechanism, quick, points=4, at_end=each.regret)
            so_far = _replaced(so_far, each, replace(each, over_time=curve))
    if clock.spent:
        over = f"The {clock.words} were over before everything was looked at."
        so_far = replace(so_far, notes=(*so_far.notes, over), left=True)
    clock.tell(4, 4, "done")
    yield so_far


def _assessed(so_far: Recommendation, made: Mechanism, sampling: SamplingBudget) -> AssessedMechanism | str:
    """Assess what a mechanism costs and promises; or say why it is not ranked."""
    market, informed = so_far.market, so_far.providers == "informed"
    assessed = assess_informed(market, made, sampling) if informed else assess(market, made, sampling)
    if isinstance(assessed, str):
        return assessed
    ceiling = market.ends == "at-random"  # is known, if without a guarantee: the promise says so
    if assessed.verdict == "exploitable" or (assessed.verdict == "undecided" and not informed and not ceiling):
        return f"{assessed.verdict}: copies gain up to {assessed.gain:.1%} of the honest payoff"
    if so_far.accounts == "cheap":
        return replace(assessed, account_gain=second_account_gain(market, made, sampling))
    return assessed


def _with(so_far: Recommendation, name: str, assessed: AssessedMechanism | str) -> Recommendation:
    if isinstance(assessed, str):
        return replace(so_far, others=so_far.others | {name: assessed})
    return _sorted(so_far, (*so_far.ranked, assessed))


def _sorted(so_far: Recommendation, ranked: Sequence[AssessedMechanism]) -> Recommendation:
    """Those that learn come first, of these the ones that need no declaration."""
    learned = LEARNED * so_far.random_regret

    def place(each: AssessedMechanism) -> tuple[bool, bool, float]:
        gain = math.inf if each.account_gain is None else each.account_gain.value
        cost = max(each.regret.value, gain) if so_far.accounts == "cheap" else each.regret.value
        return each.regret.value > learned, each.needs != "", cost

    return replace(so_far, ranked=tuple(sorted(ranked, key=place)))


def _sampled_longer(so_far: Recommendation, sampling: SamplingBudget) -> Recommendation:
    """Sample the first two longer if their errors leave open which costs less."""
    if len(so_far.ranked) < 2:
        return so_far
    first, second = so_far.ranked[:2]
    if second.regret.low > first.regret.high or second.needs != first.needs:
        return so_far
    ranked = list(so_far.ranked)
    for place, each in enumerate((first, second)):
        if each.regret.kind == "asymptotic":
            longer = regret_of(so_far.market, each.mechanism, sampling)
            ranked[place] = each if longer is None else replace(each, regret=longer)
    return _sorted(so_far, ranked)


def _replaced(so_far: Recommendation, old: AssessedMechanism, new: AssessedMechanism) -> Recommendation:
    return replace(so_far, ranked=tuple(new if each is old else each for each in so_far.ranked))


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


def _detailed(market: Market, each: AssessedMechanism, sampling: SamplingBudget, informed: bool) -> AssessedMechanism:
    """Add its curve, and what happens if a declaration is wrong."""
    wrong = wrong_declarations(market, each.mechanism, sampling, informed)
    return replace(each, wrong=wrong, over_time=over_time(market, each.mechanism, sampling, at_end=each.regret))


def _advice(market: Market, ranked: Sequence[AssessedMechanism], at_random: float, clock: Deadline) -> str:
    """Return what would have to change for a clone-proof mechanism to learn."""
    rounds = enough_rounds(market, LEARNED, clock)
    enough = (
        f"From about {rounds:,} rounds on the reservoir would cost less than half of that; or with fewer providers, or "
        "with items that differ more."
        if rounds is not None
        else "More rounds, fewer providers or larger differences may help."
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
