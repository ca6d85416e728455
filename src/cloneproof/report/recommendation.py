"""A recommendation in sections: the choice, its cost, the alternatives, what may be wrong, and what to copy.

The frontier is a table and a figure: clicks lost against the most that copies gain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cloneproof._lib.sections import Figure, Paragraph, Points, Section, SectionPart, Table, Tiles, Verbatim
from cloneproof.advice.recommendation import (
    NOTHING,
    TOLERANCE,
    AssessedMechanism,
    FrontierRow,
    Recommendation,
    terms_toml,
)
from cloneproof.advice.regret import best_reward
from cloneproof.market.priors import Mixture, Prior
from cloneproof.mechanisms.catalogue import CATALOGUE
from cloneproof.report.style import MUTED, ends_of, look, powers
from cloneproof.report.words import FIXED, MINUS, names_words, number, regret_words, rounded, sentence, what_to_do
from cloneproof.runs.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

if TYPE_CHECKING:
    pass


COLUMNS = ("mechanism", "lost, %", "copies gain", "best item", "account", "best")
CAPTION = (
    "Lost: of what perfect knowledge earns, everybody honest. Copies: what one provider gains of its honest payoff, by "
    "copies or by leaving items out. Best item: what listing it alone gains who knows it. Account: the rewards that a "
    "second one gains. ● no other row is as good in promise, loss and gain, and better in one of them; what is only "
    "measured beats nothing that is proven. ± at 99 %."
)
LEAST_LOST, NEAR = 0.1, 10.0  # percent: where the axis of losses starts, and up to where that of gains is linear


def frontier_section(rows: Sequence[FrontierRow]) -> Iterator[Section]:
    """Yield the table and the figure, if there are rows."""
    if rows:
        table = Table.of(COLUMNS, map(_cells, rows), left=["copies gain", "best"])
        yield Section("What honesty costs", [table, frontier_figure(rows), Paragraph(CAPTION, role="note")])


def price_rows(rows: Sequence[FrontierRow], first: str) -> Iterator[tuple[str, str]]:
    """Yield the price of a promise: what a weaker one loses, what a usual bandit pays, and what to do about each.

    Such as "h-thompson loses 6.6 % where reservoir, proven, loses 25.5 %; nothing tried pays there".
    """
    own = next((row for row in rows if row.name == first), None)
    if own is None:
        return
    others = [row for row in rows if row is not own and row.found is not None]
    if calm := [row for row in others if row.keeps("measured") and row.lost.value < own.lost.value]:
        least = min(calm, key=lambda row: row.lost.value)
        named = "" if least.naming is None else f"; naming its best item: {_percent(least.naming)}, measured"
        under = "nothing tried pays there" if least.at_most is None else "copies have a proven ceiling there"
        kind = "measured" if least.at_most is None else "ceiling"
        said = f"{least.name} loses {_lost(least)} % where {own.name}, {own.promise}, loses {_lost(own)} %"
        yield f"{said}; {under}{named}", f"its promise is weaker: {kind}"
    if paying := [row for row in others if row.pays]:
        least = min(paying, key=lambda row: row.lost.value)
        yield f"{least.name} loses {_lost(least)} % and pays a copier {_percent(least.found)}", "do not run it"


def copies_words(row: FrontierRow) -> str:
    """Return what copies gain: nothing, at most a ceiling, or what was found.

    >>> from cloneproof import mechanism
    >>> copies_words(FrontierRow(mechanism("ucb1"), Estimate(0.1, 0, "exact", ""), at_most=0.0))
    'nothing, proven'
    """
    if row.promise == "proven":
        return "nothing, proven"
    ceiling = "" if row.at_most is None else f"at most {_percent(row.at_most)} (proven)"
    if row.pays:
        return f"pays {_percent(row.found)}{f', {ceiling}' if ceiling else ''}"
    if ceiling or row.found is None:
        return ceiling or "–"
    if not row.tried:
        return f"at most {_percent(row.found.value)}, computed"
    return f"most found {_percent(row.found)}, of {row.tried}"


def frontier_figure(rows: Sequence[FrontierRow]) -> Figure:
    """Return clicks lost against the most that copies gain; full marks are on the frontier."""
    shown = [row for row in rows if math.isfinite(row.gain)]

    def draw(axes: Axes, narrow: bool) -> None:
        for row in shown:
            lost, gain = (100 * value for value in (row.lost.value, row.gain))
            x, colour = max(LEAST_LOST, lost), look(row.name).colour
            wide = 100 * (ends_of(row.lost)[1] - row.lost.value)
            sideways = [[min(wide, x - LEAST_LOST)], [wide]]
            up = (
                0.0 if row.found is None or row.at_most is not None else 100 * (ends_of(row.found)[1] - row.found.value)
            )
            axes.errorbar(
                x, gain, xerr=sideways, yerr=[[min(up, gain)], [up]], color=colour, elinewidth=0.8, alpha=0.9,
                marker={"proven": "s", "ceiling": "D", "measured": "o"}[row.promise], linestyle="none",
                markersize=7 if row.best else 5, markerfacecolor=colour if row.best else "white", label=row.name,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=NEAR)
        axes.set_ylim(bottom=-1)
        axes.set_xlim(LEAST_LOST, 100)
        axes.set_xlabel("% of the clicks lost, everybody honest", color=MUTED)
        axes.set_ylabel("% that copies gain", color=MUTED)
        powers(axes.xaxis)
        powers(axes.yaxis)

    caption = (
        "The most that copies gain: squares proven to be nothing, diamonds a proven ceiling, circles what was found. "
        "Full marks are on the frontier; bars are 99 % intervals. Further left costs less."
    )
    return Figure("Clicks lost against what copies gain", caption, draw, (3.9, 4.6 + 0.1 * len(shown)))


def _cells(row: FrontierRow) -> tuple[str, ...]:
    error = f" ± {100 * row.lost.error:.1f}" if 0.0005 <= row.lost.error < math.inf else ""
    named = "" if row.naming is None else _percent(row.naming)
    account = "–" if row.account is None else regret_words(row.account)
    return row.name, _lost(row) + error, copies_words(row), named or "–", account, "●" if row.best else ""


def _lost(row: FrontierRow) -> str:
    return f"{100 * row.lost.value:.1f}".replace("-", MINUS)


def _percent(gain: Estimate | float | None) -> str:
    if gain is None:
        return "unknown"
    if isinstance(gain, float):
        return f"{gain:+.1%}" if gain < 0.1 else f"{gain:+,.0%}"
    if not math.isfinite(gain.error):
        return "unknown"
    return f"{100 * gain.value:+,.0f} ± {math.ceil(100 * gain.error):,}{FIXED}%".replace("-", MINUS)


MOST_VALUES = 6  # of a prior in a sentence
RANKING = ("mechanism", "regret", "of random play", "exploring", "copies gain")
OPTIONS = ("what you can choose", "best mechanism", "it costs", "copies gain")
MOST_SEGMENTS = 12  # in a table


def sections(advice: Recommendation) -> Iterable[Section]:
    """Return what the recommendation says."""
    choice = advice.choice if advice.ranked else None
    tone = "clone-proof" if advice.fits and advice.settled else "undecided"
    yield Section(_title(advice), [Paragraph(_answer(advice))], tone=tone)
    yield from what_to_do([*price_rows(advice.frontier, choice.name if choice else ""), *finding_rows(advice)])
    if choice is not None:
        title = f"{choice.name}, the cheapest as far as is known" if advice.unsettled else f"What {choice.name} does"
        yield Section(title, _details(advice, choice))
    if len(advice.options) > 1:
        yield Section("What you can choose", [_options(advice)])
    if advice.by_segment:
        yield Section("In each segment", [_segments(advice)])
    yield from frontier_section(advice.frontier)
    if choice is not None:
        rows = [ranked_row(entry, advice.random_regret) for entry in advice.ranked]
        over = f"Over {advice.market.horizon:,} rounds{'' if advice.seasons is None else ', a season'}."
        yield Section("The choice and its alternatives", [Table.of(RANKING, rows, over, first=advice.settled)])
        if choice.wrong:
            yield Section("If a declaration is wrong", _wrong(choice))
        words = Paragraph("Terms with which a service creates the market:")
        terms = Verbatim(terms_toml(advice.market, choice))
        yield Section(f"The parameters of {choice.name}", [words, terms])
    yield Section("Small print", [Points(tuple(_small_print(advice, choice)))])


def _title(advice: Recommendation) -> str:
    if advice.unsettled:
        return f"Not settled: {' or '.join(advice.candidates)}"
    nothing = "There was no time for an answer" if advice.left and not advice.ranked else "Nothing clone-proof fits"
    return f"Run {advice.choice.name}" if advice.ranked and advice.fits else nothing


def _answer(advice: Recommendation) -> str:
    if not (advice.fits and advice.settled):
        return choice_sentence(advice)
    copies = (
        "copies gain nothing there, proven" if advice.choice.verdict == "clone-proof" else "copies have a ceiling there"
    )
    return f"It costs {cost_words(advice)}; {copies}."


def _details(advice: Recommendation, choice: AssessedMechanism) -> list[SectionPart]:
    """Say what was asked, and what the choice does and promises."""
    parts: list[SectionPart] = [Paragraph(_question(advice), "Asked")]
    parts.append(Paragraph(choice.seen, "What visitors see"))
    start = starts_words(choice) if choice.starts is None else f"the choice is made {starts_words(choice)}"
    numbers = ", ".join(f"{key} = {value}" for key, value in choice.parameters.items())
    said = {"Seasons": season_sentence(advice), "Parameters": numbers}
    promise = Paragraph(f"{choice.promise} {sentence(start)}", "The promise", "promise")
    more = (Paragraph(text, lead) for lead, text in said.items() if text)
    return [*parts, Tiles(tuple(_tiles(advice, choice)), large=True), promise, *more]


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
            "at most a ceiling" if option.gain is None else _at_most(option.gain),
        )
        for option in advice.options
    ]
    return Table.of(OPTIONS, rows, left=["best mechanism"])


def _at_most(gain: float) -> str:
    return f"at most {max(gain, 0.001):.1%}" if NOTHING < gain < math.inf else gain_words(gain)


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


def _question(advice: Recommendation) -> str:
    market = advice.market
    laws = {law for agent in market.agents for law in agent.laws}
    priors = {prior for own in market.by_segment.values() for agent in own.agents for prior in agent.priors}
    # as declared where laws have quantiles, else as each segment has them
    same: set[Any] = laws if all(hasattr(law, "quantile") for law in laws) else priors
    rates = f", {rates_words(same.pop())}" if len(same) == 1 else ""
    rates += f", {len(market.segments):,} segments" if market.segments else ""
    rounds = market.horizon if advice.seasons is None else advice.seasons.rounds
    return (
        f"{len(market.agents):,} providers with up to {market.most_originals:,} items each{rates}, {rounds:,} "
        "rounds; they know the odds of their items."
    )


def _tiles(advice: Recommendation, choice: AssessedMechanism) -> list[tuple[str, str, str]]:
    at_random = advice.random_regret if advice.seasons is None else advice.seasons.gap * advice.seasons.rounds
    fraction = advice.cost.value / at_random if at_random > 0 else 0.0
    return [
        ("It costs", regret_words(advice.cost), f"rewards, {fraction:.1%} of what random play costs"),
        ("Spent on finding out", exploring_words(choice), "of the rounds, expected"),
    ]


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
    most = rounds / market.horizon * best_reward(market)
    fraction = f", {advice.cost.value / most:.1%} of what perfect knowledge would earn" if most > 0 else ""
    drift = "" if seasons is None else f", drift included, in seasons of {seasons.length:,} rounds"
    return f"{regret_words(advice.cost)} rewards in {rounds:,} rounds{fraction}{drift}"


def finding_rows(advice: Recommendation) -> Iterator[tuple[str, str]]:
    """Yield what was found besides the answer, and what to do about it."""
    own = [name for name in advice.others if name not in CATALOGUE]
    yield from ((f"{name}, yours: {advice.others[name]}", "compare it with what is recommended") for name in own)
    if advice.advice:
        yield advice.advice, "change one of these, and ask again"
    rivals = ", ".join(name for name in advice.candidates if not advice.ranked or name != advice.choice.name)
    if rivals and not advice.settled:
        yield f"{rivals} may cost over 5 % less", "give more time (`--seconds`), or run the first: it is as safe"
    if advice.left:
        yield "time was over before everything was looked at", "give more time (`--seconds`)"
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


def season_sentence(advice: Recommendation) -> str:
    """Describe how long seasons are if rates drift, and what variety costs; else empty."""
    seasons = advice.seasons
    if seasons is None:
        return ""
    several = f"in seasons of {seasons.length:,} rounds, with the parameters below, after each of which it restarts"
    run = several if seasons.length < seasons.rounds else "in one season of all rounds"
    return (
        f"If a rate changes after {seasons.lifetime:,.0f} rounds on average, run it {run}. The cost above is about "
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
        low, high = (f"{100 * prior.quantile(u):.2g}%" for u in (0.05, 0.95))
        return f"nine of ten click rates from {low} to {high} ({_law_words(prior)})"
    values = [f"{100 * value:.3g}%" for value, _ in prior.atoms]
    if len(values) > MOST_VALUES:
        return f"{len(values)} different click rates from {values[0]} to {values[-1]}"
    return f"click rates {', '.join(values[:-1])} or {values[-1]}" if len(values) > 1 else f"click rates {values[0]}"


def _law_words(prior: Prior) -> str:
    """Write a continuous prior as it is made.

    >>> from cloneproof import Beta, Mixture
    >>> _law_words(Mixture([0.9, 0.1], [Beta(2, 98), Beta(20, 180)]))
    '0.9 Beta(2, 98) + 0.1 Beta(20, 180)'
    """
    if isinstance(prior, Mixture):
        if len(prior.parts) > MOST_VALUES:
            return f"a mixture of {len(prior.parts)} laws"
        return " + ".join(f"{weight:g} {_law_words(part)}" for weight, part in prior.parts)
    parameters = next(iter(prior.to_dict().values()))
    numbers = ", ".join(f"{parameter:g}" for parameter in parameters) if isinstance(parameters, Sequence) else ""
    return f"{type(prior).__name__}({numbers})"
