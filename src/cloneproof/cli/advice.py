"""`cloneproof recommend`: which mechanism to run in a market."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cloneproof as cp
from cloneproof._lib.files import write_whole
from cloneproof.cli.options import (
    UNANSWERED,
    AsJson,
    HtmlFile,
    OwnPolicies,
    Seconds,
    check_files,
    option,
    own_by_name,
)
from cloneproof.cli.output import deliver, working
from cloneproof.errors import CloneproofError, MarketError

if TYPE_CHECKING:
    from cloneproof.advice.recommendation import Recommendation
    from cloneproof.market.priors import Prior

PRIOR_NAMES = {"beta": "beta", "uniform": "uniform", "logodds": "log_odds"}  # as options and as files write them


def recommend(
    market_file: Annotated[
        str | None, typer.Argument(metavar="MARKET.toml", help="A market file, or the options below.")
    ] = None,
    agents: Annotated[int | None, option("N", "How many providers you have.")] = None,
    originals: Annotated[int | None, option("N", "How many items each may have.")] = None,
    rates: Annotated[
        str | None,
        option(
            "RATES",
            "Click rates: LOW:HIGH, between which nine of ten items lie; a prior such as 'Beta(2, 60)', or by segment "
            "'LogOdds(.03, .5, .35)'; a log; or the list of all, such as .002,.004,.006.",
        ),
    ] = None,
    rounds: Annotated[int | None, option("N", "How many rounds (page views), such as 1e8.")] = None,
    segments: Annotated[
        str | None, option("NAME=PART,..", "The fraction of the rounds in each segment, such as code=.3,writing=.7.")
    ] = None,
    clicks_within: Annotated[
        str | None, option("PART%=TIME,..", "How late clicks are known, such as 50%=30m,95%=6h; with --lasts.")
    ] = None,
    lasts: Annotated[str | None, option("TIME", "How long a season lasts, such as 30d.")] = None,
    drift: Annotated[
        int | None, option("N", "Rounds after which an item's rate is another one, on average, e.g. 1e6.")
    ] = None,
    policy: OwnPolicies = None,
    seconds: Seconds = None,
    seed: Annotated[int, option("N", "When sampling: the seed.")] = 0,
    html: HtmlFile = None,
    toml: Annotated[str | None, option("FILE", "Write the terms of a live market.")] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend a mechanism, with parameters, cost and promise.

    First come mechanisms that are clone-proof whatever you declared, the cheapest first; then those that rely on a
    declaration. For comparison: what every other mechanism loses, and pays a copier.

    Exit codes: 0 found, 1 nothing clone-proof fits the traffic, 3 not settled which one costs least, or out of time
    before everything was looked at, 2 bad input.
    """
    check_files(html, toml)
    search = cp.Search(seconds=seconds, seed=seed)
    if market_file is not None:
        if any(option is not None for option in (agents, originals, rates, rounds, segments)):
            raise CloneproofError(
                "expected MARKET.toml without --agents, --originals, --rates, --rounds and --segments, which stand in "
                "its place; leave one of the two out"
            )
        market = cp.load_market(market_file)
    else:
        if agents is None or originals is None or rates is None or rounds is None:
            raise CloneproofError(
                "expected MARKET.toml, or --agents, --originals, --rates and --rounds; give e.g. --agents 20 "
                "--originals 3 --rates .002:.006 --rounds 1e8"
            )
        named = None if segments is None else parsed_segments(segments)
        market = cp.Market.alike(agents, originals, rounds, segments=named, **parsed_rates(rates))
    if clicks_within is not None or lasts is not None:
        if clicks_within is None or lasts is None:
            raise CloneproofError(
                "expected --clicks-within and --lasts together, got one of them; give e.g. --clicks-within "
                "50%=30m,95%=6h --lasts 30d"
            )
        from cloneproof.market.delays import Delays

        market = market.with_delays(Delays(clicks_within, lasts))
    with working("looking") as tell:
        advice = cp.recommend(market, own=own_by_name(policy), drift=drift, search=search, progress=tell)
    deliver(advice, as_json, html, details=True)
    if toml is not None:
        write_terms(advice, toml)
    unanswered = advice.unsettled or (advice.left and seconds is not None)
    raise typer.Exit(130 if advice.interrupted else UNANSWERED if unanswered else 0 if advice.fits else 1)


def write_terms(advice: Recommendation | None, path: str) -> None:
    """Write the terms of a live market that runs what is recommended."""
    if advice is None or not advice.ranked:
        raise CloneproofError("expected a mechanism to write terms for, got none that is clone-proof here; see above")
    from cloneproof.advice.recommendation import terms_toml

    write_whole(path, terms_toml(advice.market, advice.choice))


def parsed_rates(text: str) -> dict[str, Any]:
    """Parse rates such as `.002:.006`, `.002,.004,.006`, `Beta(2, 60)` or the path of a log.

    >>> parsed_rates(".002:.006"), parsed_rates(".01,.02")
    ({'rates': (0.002, 0.006)}, {'values': (0.01, 0.02)})
    >>> parsed_rates("Beta(2, 60)")
    {'rates': Beta(a=2.0, b=60.0)}
    """
    if (named := re.fullmatch(r"\s*(beta|uniform|logodds)\s*\(([^()]*)\)\s*", text, re.IGNORECASE)) is not None:
        from cloneproof.market.segments import law_from_dict

        return {"rates": law_from_dict({PRIOR_NAMES[named[1].lower()]: _numbers(named[2], ",")})}
    if os.path.exists(text):
        return {"rates": _logged_rates(text)}
    between = ":" in text
    numbers = _numbers(text, ":" if between else ",")
    if not numbers or (between and len(numbers) != 2):
        raise MarketError(
            "expected rates as LOW:HIGH such as .002:.006, as a prior such as 'Beta(2, 60)', as the path of a log, or "
            f"as a list .002,.004,.006, got {text!r}; write one of them"
        )
    return {"rates" if between else "values": numbers}


def parsed_segments(text: str) -> dict[str, float]:
    """Parse segments such as `code=.3,writing=.7`.

    >>> parsed_segments("code=.3, writing=.7")
    {'code': 0.3, 'writing': 0.7}
    """
    pairs = [entry.partition("=") for entry in text.split(",")]
    parts = {name.strip(): _numbers(number, ",") for name, _, number in pairs}
    if len(parts) < len(pairs) or not all(name and number for name, number in parts.items()):
        raise MarketError(f"expected segments as NAME=PART,.. such as code=.3,writing=.7, got {text!r}; write them so")
    return {name: number for name, (number,) in parts.items()}


def _numbers(text: str, separator: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(separator))
    except ValueError:
        return ()


def _logged_rates(path: str) -> Prior:
    """Return the law of the click rates in a log, each item taken as one."""
    from cloneproof.logs.originals import fit_owners, log_owners
    from cloneproof.logs.reading import read_log

    log = read_log(path)
    return fit_owners(log_owners(log, ()), [], log).prior
