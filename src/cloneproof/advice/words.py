"""A recommendation in words, for a terminal and for the page."""

from __future__ import annotations

import math

from cloneproof.advice.assessment import TOLERANCE
from cloneproof.advice.recommendation import AssessedMechanism, Recommendation
from cloneproof.advice.traffic import expected_best
from cloneproof.engines.estimate import Estimate


def number(value: float) -> str:
    """To the digits that a reader can use.

    >>> number(1787.62), number(99.69), number(0.25)
    ('1,788', '99.7', '0.25')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def regret_words(regret: Estimate | None) -> str:
    """A regret, with its error where that can be seen."""
    if regret is None:
        return "not computed"
    visible = regret.error > 0.005 * abs(regret.value)
    return f"{number(regret.value)} ± {number(regret.error)}" if visible else number(regret.value)


def exploring_words(each: AssessedMechanism) -> str:
    """The share of traffic that is spent on finding out.

    It is counted up to the award; before that, rounds pay too.
    """
    if each.exploring is None:
        return "all along"
    return f"{each.exploring:.2%}" if each.exploring < 0.1 else f"{each.exploring:.0%}"


def gain_words(gain: float) -> str:
    """A relative gain."""
    if not math.isfinite(gain):
        return "unknown"
    return "nothing" if gain <= TOLERANCE else f"{gain:.1%}" if gain < 1 else f"{gain:,.0%}"


def starts_words(each: AssessedMechanism) -> str:
    """When the award or the contest starts."""
    if each.starts is None:
        return "there is no award: it goes on choosing as in the beginning"
    expected, latest = each.starts
    if latest - expected < 1:
        return f"after {expected:,.0f} rounds"
    return f"after about {expected:,.0f} rounds, {latest:,.0f} at the latest"


def choice_sentence(found: Recommendation) -> str:
    """What to run, in a sentence."""
    if not found.ranked:
        return "Nothing clone-proof was found for this market."
    verb = "Run" if found.fits else "The least bad is"
    return f"{verb} {found.choice.name}: it costs {cost_words(found)}."


def cost_words(found: Recommendation) -> str:
    """What the choice costs."""
    choice, market = found.choice, found.market
    most = market.horizon * expected_best(market)
    part = f", {choice.regret.value / most:.2%} of what perfect knowledge would earn" if most > 0 else ""
    return f"{regret_words(choice.regret)} rewards in {market.horizon:,} rounds{part}"


def copies_sentence(copies: str) -> str:
    """What everybody registers.

    >>> copies_sentence("8 / 8 8"), copies_sentence("1 / 8 1")
    ('each registers every item 8 times', 'copies 1 / 8 1')
    """
    numbers = set(copies.replace("/", " ").split())
    if len(numbers) > 1:
        return f"copies {copies}"
    (often,) = numbers
    return "which is honesty" if often == "1" else f"each registers every item {often} times"


def price_sentence(found: Recommendation) -> str:
    """The price of honesty, in a sentence or two."""
    price = found.price
    if price is None:
        return "What honest providers would allow was not computed."
    name = price.mechanism.name
    after = (
        f"{regret_words(price.at_best_responses)} ({price.ratio:.1f} times as much) once everybody does what pays "
        f"({copies_sentence(price.copies)})"
    )
    first = f"If everybody were honest, {name} would cost {regret_words(price.honest)}; it costs {after}."
    if not found.ranked:
        return first
    more = found.choice.regret.value - price.honest.value
    less = f"{number(more)} more than honest {name}" if more > 0 else "less even among honest providers"
    return f"{first} {found.choice.name} costs {less}, and nobody gains there by copies."


def wrong_rows(each: AssessedMechanism) -> list[tuple[str, str, str]]:
    """What happens if a declaration is wrong, a row each: the truth, the regret there, what an agent gains."""
    return [(wrong.what, regret_words(wrong.regret), gain_words(wrong.gain)) for wrong in each.wrong]
