"""A recommendation in sections: the choice, its cost, the alternatives, and the parameters to copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cloneproof._sections import Facts, Paragraph, Points, Section, SectionPart, Table, Verbatim
from cloneproof.advice.recommendation import AssessedMechanism, Recommendation, terms_toml
from cloneproof.report.style import Lines, Series, lines_figure
from cloneproof.report.words import (
    account_sentence,
    cheaper_sentence,
    choice_sentence,
    cost_words,
    exploring_words,
    gain_words,
    number,
    price_sentence,
    ranked_row,
    regret_words,
    sentence,
    starts_words,
)

LOWEST = 0.1  # of a logarithmic axis of rewards
RANKING = ("mechanism", "regret", "of random play", "exploring", "copies gain")


def sections(found: Recommendation) -> Iterable[Section]:
    """Return what the recommendation says."""
    choice = found.choice if found.ranked else None
    title = f"Run {choice.name}" if choice is not None and found.fits else "Nothing clone-proof fits"
    yield Section(title, _answer(found, choice), _question(found), "clone-proof" if found.fits else "undecided")
    how = [] if found.price is None else [Paragraph(sentence(found.price.how), role="note")]
    yield Section("The price of honesty", [Paragraph(price_sentence(found)), *how])
    if (lines := regret_over_time(found)) is not None:
        yield Section(lines.title, [lines_figure(lines)])
    if choice is not None:
        rows = [ranked_row(each, found.random_regret) for each in found.ranked]
        yield Section("The choice and its alternatives", [Table.of(RANKING, rows, first=True)])
        if choice.wrong:
            yield Section("If a declaration is wrong", _wrong(choice))
        words = Paragraph("Terms with which a service creates the market:")
        terms = Verbatim(terms_toml(found.market, choice))
        yield Section("The parameters to copy", [words, terms], background=True)
    yield Section("Small print", [Points(tuple(_small_print(found, choice)))])


def _answer(found: Recommendation, choice: AssessedMechanism | None) -> list[SectionPart]:
    cost = sentence(f"It costs {cost_words(found)}") if found.fits else choice_sentence(found)
    parts: list[SectionPart] = [Paragraph(cost)]
    if found.advice:
        parts.append(Paragraph(found.advice, "What would have to change", "promise"))
    if choice is None:
        return parts
    start = starts_words(choice) if choice.starts is None else f"the choice is made {starts_words(choice)}"
    numbers = ", ".join(f"{key} = {value}" for key, value in choice.parameters.items())
    said = {
        "What visitors and sellers see": choice.seen,
        "Drift": found.seasons,
        "Second accounts": account_sentence(found),
        "Cheaper, on a condition": cheaper_sentence(found),
        "Parameters": numbers,
    }
    promise = Paragraph(f"{choice.promise} {sentence(start)}", "The promise", "promise")
    more = (Paragraph(text, lead) for lead, text in said.items() if text)
    return [*parts, Facts(tuple(_tiles(found, choice)), large=True), promise, *more]


def _wrong(choice: AssessedMechanism) -> list[SectionPart]:
    """One row for each wrong declaration: the truth, the regret there, what an agent gains, and why."""
    rows = [(sentence(each.what), regret_words(each.regret), gain_words(each.gain), each.why) for each in choice.wrong]
    stay = Paragraph("The numbers stay as they are, and the truth is another one.")
    return [stay, Table.of(("truth", "regret", "a provider gains", "why"), rows, left=["why"])]


def _small_print(found: Recommendation, choice: AssessedMechanism | None) -> Iterable[Paragraph]:
    yield from (Paragraph(f"Claimed: {claim}") for claim in (() if choice is None else choice.mechanism.claims))
    yield from (Paragraph(sentence(why), f"{name} is not among them") for name, why in found.others.items())
    yield from map(Paragraph, found.notes)
    yield Paragraph("Gains up to half a percent of a payoff count as none.")


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
