"""A recommendation as one page: the choice, its cost, the alternatives, and the parameters to copy."""

from __future__ import annotations

from typing import Any

from cloneproof._version import __version__
from cloneproof.advice.recommendation import AssessedMechanism, Recommendation, terms_toml
from cloneproof.report.page import render
from cloneproof.report.style import Lines, Series, draw_figure
from cloneproof.report.words import (
    account_sentence,
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


def recommendation_page(found: Recommendation) -> str:
    """Return the page as text; equal recommendations give equal texts."""
    market, figure = found.market, regret_over_time(found)
    choice = found.choice if found.ranked else None
    start = "" if choice is None else starts_words(choice)
    if choice is not None and choice.starts is not None:
        start = f"The choice is made {start}"
    facts = {
        "title": f"Run {choice.name}" if choice is not None and found.fits else "Nothing clone-proof fits",
        "verdict": "clone-proof" if found.fits else "undecided",
        "question": _question(found),
        "sentence": sentence(f"It costs {cost_words(found)}") if found.fits else choice_sentence(found),
        "advice": found.advice,
        "tiles": [] if choice is None else _tiles(found, choice),
        "promise": "" if choice is None else choice.promise,
        "seen": "" if choice is None else choice.seen,
        "seasons": found.seasons,
        "accounts": "" if choice is None else account_sentence(found),
        "cheaper": cheaper_sentence(found),
        "starts": start and sentence(start),
        "price": price_sentence(found),
        "price_how": "" if found.price is None else sentence(found.price.how),
        "figure": None if figure is None else draw_figure(figure, "regret"),
        "alternatives": [ranked_row(each, found.random_regret) for each in found.ranked[:4]],
        "wrong": [
            (sentence(printable(each.what)), regret_words(each.regret), gain_words(each.gain), printable(each.why))
            for each in (() if choice is None else choice.wrong)
        ],
        "terms": "" if choice is None else printable_lines(terms_toml(market, choice)),
        "others": [(name, sentence(printable_lines(why))) for name, why in found.others.items()],
        "notes": found.notes,
        "claims": [] if choice is None else [printable(claim) for claim in choice.mechanism.claims],
        "footer": f"cloneproof {__version__} · {number(found.seconds)} s",
    }
    return render("recommendation_page.html", facts)


def regret_over_time(found: Recommendation) -> Lines | None:
    """Return the regret up to each round: the choice, the alternatives, and the honest favourite at best responses."""
    series = [
        Series.of(each.name, [at for at, _ in each.over_time], _drawn(each), mechanism=each.name)
        for each in found.ranked[:4]
        if len(each.over_time) > 1
    ]
    price = found.price
    if price is not None and len(price.over_time) > 1:
        x = tuple(float(at) for at, _ in price.over_time)
        y = tuple(max(LOWEST, regret.value) for _, regret in price.over_time)
        series.append(Series(f"{price.mechanism.name}, all copying", x, y, mechanism=price.mechanism.name))
    if not series:
        return None
    return Lines(
        title="Regret over time",
        caption="Expected rewards lost against always playing the best item, up to each round; on logarithmic axes. "
        "Providers are honest under clone-proof mechanisms; under the other one all register what pays.",
        x_label="rounds",
        y_label="regret (rewards)",
        series=tuple(series),
        log_x=True,
        log_y=True,
    )


def _drawn(each: AssessedMechanism) -> list[Any]:
    return [
        type(regret)(max(LOWEST, regret.value), min(regret.error, max(0.0, regret.value - LOWEST)), regret.kind, "")
        for _, regret in each.over_time
    ]


def _question(found: Recommendation) -> str:
    market = found.market
    supports = [agent.support for agent in market.agents]
    values = sorted({value for support in supports if support is not None for value in support})
    rates = f", mean rewards from {values[0]:.3g} to {values[-1]:.3g}" if values else ""
    known = "the odds of their items" if found.providers == "bayesian" else "which of their items are better"
    return (
        f"{len(market.agents):,} providers with up to {market.most_originals:,} items each{rates}, {market.horizon:,} "
        f"rounds; they know {known}."
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
