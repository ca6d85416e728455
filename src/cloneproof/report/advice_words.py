"""A recommendation in sentences: what to run, what it costs, who is shown, and what may be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cloneproof.advice.recommendation import TOLERANCE, AssessedMechanism, Recommendation
from cloneproof.advice.regret import expected_best
from cloneproof.market.priors import Prior
from cloneproof.mechanisms.catalogue import CATALOGUE
from cloneproof.report.words import number, regret_words, rounded

MOST_VALUES = 6  # of a prior in a sentence


def exploring_words(assessment: AssessedMechanism) -> str:
    """Return the share of rounds before the award or contest. These rounds earn rewards too."""
    if assessment.exploring is None:
        return "all along"
    return f"{assessment.exploring:.2%}" if assessment.exploring < 0.1 else f"{assessment.exploring:.0%}"


def gain_words(gain: float) -> str:
    """Write a relative gain."""
    if not math.isfinite(gain):
        return "unknown"
    return "nothing" if gain <= TOLERANCE else f"{gain:.1%}" if gain < 1 else f"{gain:,.0%}"


def starts_words(assessment: AssessedMechanism) -> str:
    """When the award or the contest starts."""
    if assessment.starts is None:
        return "there is no award: every round is decided on what has been learned so far"
    expected, latest = assessment.starts
    if latest - expected < 1:
        return f"after {expected:,.0f} rounds"
    return f"after about {expected:,.0f} rounds, {latest:,.0f} at the latest"


def choice_sentence(advice: Recommendation) -> str:
    """Describe what to run in a sentence."""
    if not advice.ranked and not advice.unsettled:
        return "No mechanism was judged by then." if advice.left else "Nothing clone-proof was found for this market."
    if not advice.settled:
        return unsettled_sentence(advice)
    verb = "Run" if advice.fits else "The least bad is"
    return f"{verb} {advice.choice.name}: it costs {cost_words(advice)}."


def cost_words(advice: Recommendation) -> str:
    """Describe what the choice costs."""
    market, seasons = advice.market, advice.seasons
    rounds = market.horizon if seasons is None else seasons.rounds
    most = sum(rounds / market.horizon * own.horizon * expected_best(own) for own in market.by_segment.values())
    fraction = f", {advice.cost.value / most:.1%} of what perfect knowledge would earn" if most > 0 else ""
    drift = "" if seasons is None else f", with what changes included, in seasons of {seasons.length:,} rounds"
    return f"{regret_words(advice.cost)} rewards in {rounds:,} rounds{fraction}{drift}"


def finding_rows(advice: Recommendation) -> Iterator[tuple[str, str]]:
    """Yield what was found besides the answer, and what to do about it."""
    own = [name for name in advice.others if name not in CATALOGUE]
    yield from ((f"{name}, yours: {advice.others[name]}", "compare it with what is recommended") for name in own)
    if advice.advice:
        yield advice.advice, "change one of these, and ask again"
    rivals = ", ".join(name for name in advice.candidates if not advice.ranked or name != advice.choice.name)
    if rivals and not advice.settled:
        yield f"{rivals} may cost over 5 % less", "give more time (`--thorough`), or run the first: it is as safe"
    if advice.left:
        yield "time was over before everything was looked at", "give more time (`--thorough`)"
    if not advice.ranked:
        return
    if off := _range_words(advice):
        yield f"{advice.choice.name} costs {off}", "measure rates; the numbers may stay, the promise does"
    if cheaper := cheaper_sentence(advice):
        yield cheaper, "run it only if that is sure"
    if saved := segments_sentence(advice):
        yield saved, "run one market for each segment"
    yield account_sentence(advice), "check identities"


def _range_words(advice: Recommendation) -> str:
    """Describe what the choice may cost if declarations are off by as much as one must reckon with."""
    if advice.cost_range is None:
        return ""
    low, high = (rounded(cost) for cost in advice.cost_range)
    usual = " ".join(mistake.what for mistake in advice.choice.wrong if mistake.usual)
    steps = {"threshold": " or the threshold is a step off", "the bar ": " or the bar is a fifth off"}
    step = "".join(words for what, words in steps.items() if what in usual)
    return f"about {low} to {high} if rates are half or twice as high{step}"


def segments_sentence(advice: Recommendation) -> str:
    """Describe what segments save against one market for all; empty if there are none."""
    if advice.pooled is None or not advice.ranked:
        return ""
    one, apart = advice.pooled.regret.value, advice.cost.value
    saved = f"segments save {1 - apart / one:.0%}" if apart < one else "segments save nothing"
    return (
        f"One market for all segments ({advice.pooled.name}) would cost {number(one)}, as it finds what is best on "
        f"average; one for each costs {number(apart)}: {saved}."
    )


def unsettled_sentence(advice: Recommendation) -> str:
    """Describe which mechanisms may be the cheapest, with intervals."""
    by_name = {assessment.name: assessment for assessment in advice.ranked}
    costs = [
        f"{name} costs {regret_words(advice.cost_of(by_name[name].regret))}"
        if name in by_name
        else f"what {name} costs is not known ({advice.others.get(name, 'it was not sampled')})"
        for name in advice.candidates
    ]
    return f"One of these may cost over 5 % less than the others: {'; '.join(costs)}."


def traffic_sentence(assessment: AssessedMechanism) -> str:
    """Describe how providers share the last rounds, of which the figure has all."""
    if not assessment.over_time or not assessment.over_time[-1].shares:
        return ""
    since = assessment.over_time[-2].rounds if len(assessment.over_time) > 1 else 0
    first, *others = assessment.over_time[-1].shares
    second = f", the next one {others[0]:.0%}" if others and others[0] >= 0.005 else ""
    return f"From round {since:,} on, the provider shown most has {first:.0%} of the traffic{second}."


def season_sentence(advice: Recommendation) -> str:
    """Describe how long seasons are if rates drift or items arrive, and what variety costs; else empty."""
    seasons = advice.seasons
    if seasons is None:
        return ""
    several = f"in seasons of {seasons.length:,} rounds, with the parameters below, after each of which it restarts"
    run = several if seasons.length < seasons.rounds else "in one season of all rounds"
    changes = [] if seasons.lifetime is None else [f"a rate changes after {seasons.lifetime:,.0f} rounds"]
    changes += [] if seasons.arrivals is None else [f"an item arrives every {seasons.arrivals:,.0f} rounds"]
    return (
        f"If {' and '.join(changes)} on average, run it {run}. The cost above is about "
        f"the most that this loses; a reservoir in one season of all rounds would lose {rounded(seasons.one_season)}. "
        "The promise is for each season, and for rates that stay within it. Each 1 % of traffic kept for variety (a "
        f"provider at random, then one of its items) costs about {rounded(seasons.gap * seasons.rounds / 100)} "
        "rewards and is neutral to copies."
    )


def cheaper_sentence(advice: Recommendation) -> str:
    """Describe what costs less if a declaration is right, and the risk if it is wrong; empty if nothing does."""
    cheaper = advice.cheaper if advice.ranked else None
    if cheaper is None:
        return ""
    words = f"{cheaper.name} would cost {regret_words(cheaper.regret)}, but only as long as {cheaper.needs}."
    breaks = [wrong for wrong in cheaper.wrong if 0 < wrong.gain < math.inf]
    if breaks:
        worst = max(breaks, key=lambda wrong: wrong.gain)
        gain = gain_words(worst.gain)
        words += f" Where that is wrong copies can pay: if {worst.what}, a provider gains up to {gain} ({worst.why})."
    return words


def account_sentence(advice: Recommendation) -> str:
    """Describe what a second account gains under the choice, and in the long run if the mechanism learns."""
    if advice.market.places:
        return "A second account may have a second place on every page; its gain was not computed."
    gain, floor = advice.choice.account_gain if advice.ranked else None, advice.account_floor
    gained = "not computed" if gain is None else f"{regret_words(gain)} rewards"
    if floor is None:
        least = "not known, as providers differ"
    elif floor == 0:
        least = "0, as rates do not repeat"
    else:
        least = (
            f"{number(floor)}, as rates repeat and accounts share ties: no mechanism that learns pays less in the long "
            "run, and only identity checks help"
        )
    return f"If a provider opens a second account: gain {gained}; floor {least}."


def joint_copies_words(copies: str) -> str:
    """Describe what everybody registers.

    >>> joint_copies_words("8 / 8 8"), joint_copies_words("1 / 8 1")
    ('each registers every item 8 times', 'copies 1 / 8 1')
    """
    numbers = set(copies.replace("/", " ").split())
    if len(numbers) > 1:
        return f"copies {copies}"
    (often,) = numbers
    return "which is honesty" if often == "1" else f"each registers every item {often} times"


def price_sentence(advice: Recommendation) -> str:
    """Describe the price of honesty in a sentence or two."""
    price = advice.price
    if price is None:
        return "What honest providers would allow was not computed."
    name = price.mechanism.name
    after = (
        f"{regret_words(price.at_best_responses)} ({price.ratio:.1f} times as much) once everybody does what pays "
        f"({joint_copies_words(price.copies)})"
    )
    first = f"If everybody were honest, {name} would cost {regret_words(price.honest)}; it costs {after}."
    if not advice.ranked:
        return first
    more = advice.choice.regret.value - price.honest.value
    less = f"{number(more)} more than honest {name}" if more > 0 else "less even among honest providers"
    return f"{first} {advice.choice.name} costs {less}, and nobody gains there by copies."


def ranked_row(entry: AssessedMechanism, at_random: float) -> tuple[str, ...]:
    """Return a row of the ranking: the regret, also relative to random play, the exploration, and the gains."""
    fraction = f"{entry.regret.value / at_random:.1%}" if at_random > 0 else "0 %"
    return entry.name, regret_words(entry.regret), fraction, exploring_words(entry), gain_words(entry.gain)


def rates_words(prior: Prior) -> str:
    """Describe click rates that all items have in common.

    >>> from cloneproof import Beta, Discrete, LogOdds
    >>> rates_words(Beta(2, 60))
    'nine of ten click rates from 0.59% to 7.5% (Beta(2, 60))'
    >>> rates_words(LogOdds(0.03, 0.5, 0.35))
    'nine of ten click rates from 1.1% to 7.8% (LogOdds(0.03, 0.5, 0.35))'
    >>> rates_words(Discrete([0.01, 0.02], [0.5, 0.5]))
    'click rates 1% or 2%'
    """
    if prior.atoms is None:
        (parameters,) = prior.to_dict().values()
        low, high = (f"{100 * prior.quantile(u):.2g}%" for u in (0.05, 0.95))
        numbers = ", ".join(f"{parameter:g}" for parameter in parameters) if isinstance(parameters, Sequence) else ""
        return f"nine of ten click rates from {low} to {high} ({type(prior).__name__}({numbers}))"
    values = [f"{100 * value:.3g}%" for value, _ in prior.atoms]
    if len(values) > MOST_VALUES:
        return f"{len(values)} different click rates from {values[0]} to {values[-1]}"
    return f"click rates {', '.join(values[:-1])} or {values[-1]}" if len(values) > 1 else f"click rates {values[0]}"
