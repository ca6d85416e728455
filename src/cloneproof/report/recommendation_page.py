"""A recommendation as one page that can be handed on: the choice, its price, the alternatives, the numbers to copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from cloneproof._version import __version__
from cloneproof.advice.recommendation import AssessedMechanism, Recommendation, terms_toml
from cloneproof.report.audit_page import render, write_page
from cloneproof.report.style import Picture, look, picture, powers
from cloneproof.report.words import (
    cheaper_sentence,
    choice_sentence,
    cost_words,
    exploring_words,
    gain_words,
    number,
    price_sentence,
    printable,
    printable_lines,
    ranked_row,
    regret_words,
    sentence,
    starts_words,
)

LOWEST = 0.1  # of a logarithmic axis of rewards


def write_recommendation_page(found: Recommendation, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_page(recommendation_page(found), path)


def recommendation_page(found: Recommendation) -> str:
    """The page as text: the same recommendation, the same text."""
    return render("recommendation_page.html", recommendation_facts(found))


def recommendation_facts(found: Recommendation) -> dict[str, Any]:
    """All that the template says."""
    market = found.market
    choice = found.choice if found.ranked else None
    return {
        "title": f"Run {choice.name}" if choice is not None and found.fits else "Nothing clone-proof fits",
        "verdict": "clone-proof" if found.fits else "undecided",
        "question": _question(found),
        "sentence": sentence(f"It costs {cost_words(found)}") if found.fits else choice_sentence(found),
        "advice": found.advice,
        "tiles": [] if choice is None else _tiles(found, choice),
        "promise": "" if choice is None else choice.promise,
        "seen": "" if choice is None else choice.seen,
        "cheaper": cheaper_sentence(found),
        "starts": ""
        if choice is None
        else sentence(f"The choice is made {starts_words(choice)}")
        if choice.starts is not None
        else sentence(starts_words(choice)),
        "price": price_sentence(found),
        "price_how": "" if found.price is None else sentence(found.price.how),
        "figure": regret_over_time(found),
        "alternatives": [ranked_row(each, found.random_regret) for each in found.ranked[:4]],
        "wrong": [] if choice is None else _wrong(choice),
        "terms": "" if choice is None else printable_lines(terms_toml(market, choice)),
        "others": [(name, sentence(printable_lines(why))) for name, why in found.others.items()],
        "notes": found.notes,
        "claims": [] if choice is None else [printable(claim) for claim in choice.mechanism.claims],
        "footer": f"cloneproof {__version__} · {number(found.seconds)} s",
    }


def regret_over_time(found: Recommendation) -> Picture | None:
    """The regret up to each round: the choice, the alternatives, and the honest favourite at best responses."""
    curves = [(each.name, each.name, each.over_time) for each in found.ranked[:4] if len(each.over_time) > 1]
    if found.price is not None and len(found.price.over_time) > 1:
        name = found.price.mechanism.name
        curves.append((f"{name}, all copying", name, found.price.over_time))
    if not curves:
        return None

    def draw(axes: Axes, narrow: bool) -> None:
        for label, name, over_time in curves:
            style, x = look(name), [at for at, _ in over_time]
            low, value, high = (
                [max(LOWEST, getattr(regret, bound)) for _, regret in over_time] for bound in ("low", "value", "high")
            )
            axes.fill_between(x, low, high, color=style.colour, alpha=0.2, linewidth=0)
            axes.plot(x, value, color=style.colour, linestyle=style.dashes, marker="o", markersize=3.5, label=label)
        axes.set(xscale="log", yscale="log", xlabel="rounds", ylabel="regret (rewards)")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(10, numticks=5 if narrow else 8))
            powers(axis)

    caption = (
        "Expected rewards lost against always playing the best item, up to each round; on logarithmic axes. "
        "Providers are honest under clone-proof mechanisms; under the other one all register what pays."
    )
    return picture("Regret over time", caption, draw, "regret", (3.6, 3.1 + 0.2 * -(-len(curves) // 2)))


def _question(found: Recommendation) -> str:
    market = found.market
    supports = [agent.support for agent in market.agents]
    values = sorted({value for support in supports if support is not None for value in support})
    rates = f", mean rewards from {values[0]:.3g} to {values[-1]:.3g}" if values else ""
    know = {
        "bayesian": "they know the odds of their items",
        "informed": "they know which of their items are better",
    }[found.providers]
    return (
        f"{len(market.agents):,} providers with up to {market.most_originals:,} items each{rates}, {market.horizon:,} "
        f"rounds; {know}."
    )


def _tiles(found: Recommendation, choice: AssessedMechanism) -> list[tuple[str, str, str]]:
    part = choice.regret.value / found.random_regret if found.random_regret > 0 else 0.0
    tiles = [
        ("It costs", regret_words(choice.regret), f"rewards, {part:.1%} of what random play costs"),
        ("Spent on finding out", exploring_words(choice), "of the rounds, expected"),
    ]
    if found.price is not None:
        price = found.price
        how_much = f"{number(price.ratio)} times"
        tiles.append((f"{price.mechanism.name} costs", how_much, "its honest regret once all do what pays"))
    return tiles


def _wrong(choice: AssessedMechanism) -> list[tuple[str, ...]]:
    return [
        (
            sentence(printable(each.what)),
            regret_words(each.regret),
            gain_words(each.gain),
            printable(each.why),
        )
        for each in choice.wrong
    ]
