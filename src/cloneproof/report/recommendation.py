"""A recommendation in sections: the choice, its cost, the alternatives, and the parameters to copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cloneproof._sections import Facts, Figure, Paragraph, Points, Section, SectionPart, Table, Verbatim
from cloneproof.advice.recommendation import AssessedMechanism, Recommendation, terms_toml
from cloneproof.report.advice_words import (
    choice_sentence,
    cost_words,
    exploring_words,
    finding_rows,
    gain_words,
    price_sentence,
    ranked_row,
    rates_words,
    season_sentence,
    starts_words,
    traffic_sentence,
)
from cloneproof.report.frontier import frontier_section, price_rows
from cloneproof.report.style import MUTED, RULE, Lines, Series, lines_figure, look, powers
from cloneproof.report.words import names_words, number, regret_words, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWEST = 0.1  # of a logarithmic axis of rewards
FINDINGS = ("finding", "what to do")
RANKING = ("mechanism", "regret", "of random play", "exploring", "copies gain")
OPTIONS = ("what you can choose", "best mechanism", "it costs", "copies gain")
MOST_SEGMENTS = 12  # in a table
PLACES = ("the provider shown most", "the second", "the third")


def sections(advice: Recommendation) -> Iterable[Section]:
    """Return what the recommendation says."""
    choice = advice.choice if advice.ranked else None
    tone = "clone-proof" if advice.fits and advice.settled else "undecided"
    yield Section(_title(advice), [Paragraph(_answer(advice))], tone=tone)
    if findings := [*price_rows(advice.frontier, choice.name if choice else ""), *finding_rows(advice)]:
        yield Section("What to do", [Table.of(FINDINGS, findings, left=FINDINGS)])
    if choice is not None:
        title = f"{choice.name}, the cheapest as far as is known" if advice.unsettled else f"What {choice.name} does"
        yield Section(title, _details(advice, choice))
    if choice is not None and (figure := traffic_figure(choice)) is not None:
        yield Section(figure.title, [figure])
    if len(advice.options) > 1:
        yield Section("What you can choose", [_options(advice)])
    if advice.by_segment:
        yield Section("In each segment", [_segments(advice)])
    if (costs := frontier_section(advice.frontier)) is not None:
        yield costs
    how = [] if advice.price is None else [Paragraph(sentence(advice.price.how), role="note")]
    if how or not advice.frontier:
        yield Section("The price of honesty", [Paragraph(price_sentence(advice)), *how])
    if (lines := regret_over_time(advice)) is not None:
        yield Section(lines.title, [lines_figure(lines)])
    if choice is not None:
        rows = [ranked_row(entry, advice.random_regret) for entry in advice.ranked]
        over = f"Over {advice.market.horizon:,} rounds{'' if advice.seasons is None else ', a season'}."
        yield Section("The choice and its alternatives", [Table.of(RANKING, rows, over, first=advice.settled)])
        if choice.wrong:
            yield Section("If a declaration is wrong", _wrong(choice))
        words = Paragraph("Terms with which a service creates the market:")
        terms = Verbatim(terms_toml(advice.market, choice))
        yield Section(f"The parameters of {choice.name}", [words, terms], background=True)
    yield Section("Small print", [Points(tuple(_small_print(advice, choice)))])


def _title(advice: Recommendation) -> str:
    if advice.unsettled:
        return f"Not settled: {' or '.join(advice.candidates)}"
    nothing = "There was no time for an answer" if advice.left and not advice.ranked else "Nothing clone-proof fits"
    return f"Run {advice.choice.name}" if advice.ranked and advice.fits else nothing


def _answer(advice: Recommendation) -> str:
    if not (advice.fits and advice.settled):
        return choice_sentence(advice)
    copies = {"proven": "copies gain nothing there, proven", "measured": "no copies that were tried pay there"}
    kept = advice.promise if advice.choice.verdict == "undecided" else "proven"
    return f"It costs {cost_words(advice)}; {copies.get(kept, 'what copies gain there has a proven ceiling')}."


def _details(advice: Recommendation, choice: AssessedMechanism) -> list[SectionPart]:
    """Say what was asked, and what the choice does and promises."""
    parts: list[SectionPart] = [Paragraph(_question(advice), "Asked")]
    parts.append(Paragraph(f"{choice.seen} {traffic_sentence(choice)}".strip(), "What visitors see"))
    start = starts_words(choice) if choice.starts is None else f"the choice is made {starts_words(choice)}"
    numbers = ", ".join(f"{key} = {value}" for key, value in choice.parameters.items())
    said = {"Seasons": season_sentence(advice), "Parameters": numbers}
    promise = Paragraph(f"{choice.promise} {sentence(start)}", "The promise", "promise")
    more = (Paragraph(text, lead) for lead, text in said.items() if text)
    return [*parts, Facts(tuple(_tiles(advice, choice)), large=True), promise, *more]


def _segments(advice: Recommendation) -> Table:
    """One row for each segment, those that are alike together: the parameters and the regret of the choice there."""
    alike: dict[int, list[str]] = {}
    for name, segment in advice.by_segment.items():
        alike.setdefault(id(segment), []).append(name)
    rows = []
    for names in list(alike.values())[:MOST_SEGMENTS]:
        segment = advice.by_segment[names[0]]
        own = next((entry for entry in segment.ranked if advice.ranked and entry.name == advice.choice.name), None)
        if own is not None:
            given = {key: value for key, value in own.parameters.items() if not isinstance(value, bool | str)}
            numbers = ", ".join(f"{key} {value}" for key, value in given.items())
            suffix = " each" if len(names) > 1 else ""
            rows.append(
                (names_words(names), f"{segment.market.horizon:,}{suffix}", regret_words(own.regret) + suffix, numbers)
            )
    left = sum(map(len, list(alike.values())[MOST_SEGMENTS:]))
    caption = f"{left:,} further segments are not shown." if left > 0 else ""
    return Table.of(("segment", "rounds", "regret", "parameters"), rows, caption, left=["parameters"])


def _options(advice: Recommendation) -> Table:
    """One row for each option of a choice that the platform has; the best mechanism of each, and its cost."""
    rows = [
        (
            sentence(f"{option.choice} {option.option}{' (as asked)' if option.asked else ''}"),
            option.mechanism,
            regret_words(advice.cost_of(option.regret)),
            "at most a ceiling" if option.gain is None else gain_words(option.gain),
        )
        for option in advice.options
    ]
    return Table.of(OPTIONS, rows, left=["best mechanism"])


def traffic_figure(choice: AssessedMechanism) -> Figure | None:
    """Return how providers share the traffic over the run, on average over the same runs."""
    course = [point for point in choice.over_time if point.shares]
    if len(course) < 2:
        return None
    rounds = [course[0].rounds / 2, *(point.rounds for point in course)]
    kept = [[point.shares[k] if k < len(point.shares) else 0.0 for point in course] for k in range(len(PLACES))]
    bands = [*kept, [max(0.0, 1 - sum(shares)) for shares in zip(*kept, strict=True)]]
    names = [*PLACES, "all others"]

    def draw(axes: Axes, narrow: bool) -> None:
        colour, below = look(choice.name).colour, [0.0] * len(rounds)
        for name, shares, alpha in zip(names, bands, (0.9, 0.55, 0.3, 0.0), strict=True):
            above = [low + 100 * share for low, share in zip(below, [shares[0], *shares], strict=True)]
            fill = RULE if alpha == 0 else colour
            axes.fill_between(rounds, below, above, step="pre", color=fill, alpha=alpha or 1, linewidth=0, label=name)
            below = above
        axes.set_xscale("log")
        axes.set_xlim(rounds[0], rounds[-1])
        axes.set_ylim(0, 100)
        axes.set_xlabel("rounds", color=MUTED)
        axes.set_ylabel("% of the traffic", color=MUTED)
        powers(axes.xaxis)

    caption = "Shares of the rounds between two moments (a logarithmic axis), ranked anew each time; averages of runs."
    return Figure("Who is shown over the run", caption, draw, (2.4, 2.9))


def _wrong(choice: AssessedMechanism) -> list[SectionPart]:
    """One row for each wrong declaration: the truth, the regret there, what an agent gains, and why."""
    rows = [(sentence(row.what), regret_words(row.regret), gain_words(row.gain), row.why) for row in choice.wrong]
    stay = Paragraph("The numbers stay as they are, and the truth is another one.")
    return [stay, Table.of(("truth", "regret", "a provider gains", "why"), rows, left=["why"])]


def _small_print(advice: Recommendation, choice: AssessedMechanism | None) -> Iterable[Paragraph]:
    yield from (Paragraph(f"Claimed: {claim}") for claim in (() if choice is None else choice.mechanism.claims))
    for why in dict.fromkeys(advice.others.values()):
        names = [name for name, own in advice.others.items() if own == why]
        are = "is" if len(names) == 1 else "are"
        yield Paragraph(sentence(why), f"{', '.join(names)} {are} not among them")
    yield from map(Paragraph, advice.notes)
    yield Paragraph("Gains up to half a percent of a payoff count as none.")


def regret_over_time(advice: Recommendation) -> Lines | None:
    """Return the regret up to each round: the choice, the alternatives, and the honest favourite at best responses."""
    series = [
        Series.of(entry.name, [point.rounds for point in entry.over_time], _drawn(entry), mechanism=entry.name)
        for entry in advice.ranked[:4]
        if len(entry.over_time) > 1
    ]
    price = advice.price
    if price is not None and len(price.over_time) > 1:
        x = tuple(float(point.rounds) for point in price.over_time)
        y = tuple(max(LOWEST, point.regret.value) for point in price.over_time)
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


def _drawn(assessment: AssessedMechanism) -> list[Any]:
    regrets = [point.regret for point in assessment.over_time]
    return [
        type(regret)(max(LOWEST, regret.value), min(regret.error, max(0.0, regret.value - LOWEST)), regret.kind, "")
        for regret in regrets
    ]


def _question(advice: Recommendation) -> str:
    market = advice.market
    laws = {law for agent in market.agents for law in agent.laws}
    priors = {prior for own in market.by_segment.values() for agent in own.agents for prior in agent.priors}
    # as declared where laws have quantiles, else as each segment has them
    same: set[Any] = laws if all(hasattr(law, "quantile") for law in laws) else priors
    rates = f", {rates_words(same.pop())}" if len(same) == 1 else ""
    rates += f", {len(market.segments):,} segments" if market.segments else ""
    rounds = market.horizon if advice.seasons is None else advice.seasons.rounds
    knowledge = "the odds of their items" if advice.providers == "bayesian" else "which of their items are better"
    return (
        f"{len(market.agents):,} providers with up to {market.most_originals:,} items each{rates}, {rounds:,} "
        f"rounds; they know {knowledge}."
    )


def _tiles(advice: Recommendation, choice: AssessedMechanism) -> list[tuple[str, str, str]]:
    at_random = advice.random_regret if advice.seasons is None else advice.seasons.gap * advice.seasons.rounds
    fraction = advice.cost.value / at_random if at_random > 0 else 0.0
    tiles = [
        ("It costs", regret_words(advice.cost), f"rewards, {fraction:.1%} of what random play costs"),
        ("Spent on finding out", exploring_words(choice), "of the rounds, expected"),
    ]
    if advice.price is not None:
        price = advice.price
        how_much = f"{number(price.ratio)} times"
        tiles.append((f"{price.mechanism.name} costs", how_much, "its honest regret once all do what pays"))
    return tiles
