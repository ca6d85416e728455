"""`cloneproof recommend`: what to run in a market, with which numbers, at what cost, and what that promises."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cloneproof._files import check_place
from cloneproof.cli.display.output import print_json, progress_bar
from cloneproof.cli.display.recommend_output import show_recommendation
from cloneproof.cli.options import AsJson, OwnPolicies, OwnRules, own_by_name
from cloneproof.errors import CloneproofError, MarketError
from cloneproof.market.toml import load_market


def recommend(
    market_file: Annotated[str | None, typer.Argument(metavar="[MARKET.toml]", help="A market file.")] = None,
    agents: Annotated[int | None, typer.Option(help="Without a file: how many providers there are.")] = None,
    originals: Annotated[int | None, typer.Option(help="How many items each of them may have.")] = None,
    rates: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="Click rates: the lowest and the highest, or a list .002,.004,.006."),
    ] = None,
    relative_gap: Annotated[
        float, typer.Option(help="Two items that differ, differ by at least this part of the lower rate.")
    ] = 0.25,
    rounds: Annotated[float | None, typer.Option(help="How many rounds (page views), e.g. 1e8.")] = None,
    providers: Annotated[
        str, typer.Option(help="bayesian: they know the odds of their items; informed: which are better.")
    ] = "bayesian",
    rule: OwnRules = None,
    policy: OwnPolicies = None,
    seconds: Annotated[float, typer.Option(help="About how long to take.")] = 6.0,
    seed: Annotated[int, typer.Option(help="The seed, where something is sampled.")] = 0,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write one page to hand on.")] = None,
    toml: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the terms with which a service creates the market.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which mechanism to run in a market.

    With which numbers, at what cost, and what it promises: ranks what is clone-proof in the market by regret,
    with tuned numbers. Beside it: what would be best if everybody were honest, and what that one costs if everybody
    does what pays. Exit code 0: it fits, 1: nothing clone-proof fits the traffic, 2: bad input.
    """
    for path in (html, toml):
        if path is not None:
            check_place(path)
    from cloneproof.advice.recommend import recommend as run_recommend

    question: dict[str, Any] = {"providers": providers, "seconds": seconds, "seed": seed}
    question["own"] = own_by_name(rule, policy)
    if market_file is not None:
        if any(option is not None for option in (agents, originals, rates, rounds)):
            raise CloneproofError(
                "expected MARKET.toml without --agents, --originals, --rates and --rounds, which stand in its place; "
                "leave one of the two out"
            )
        question["market"] = load_market(market_file)
    else:
        if agents is None or originals is None or rates is None or rounds is None:
            raise CloneproofError(
                "expected MARKET.toml, or --agents, --originals, --rates and --rounds; give e.g. --agents 20 "
                "--originals 3 --rates .002:.006 --rounds 1e8"
            )
        question |= {"agents": agents, "originals": originals, "horizon": rounds, "relative_gap": relative_gap}
        question |= parsed_rates(rates)
    with progress_bar() as bar:
        task = bar.add_task("looking", total=None)
        found = run_recommend(
            progress=lambda done, total, what: bar.update(task, total=total, completed=done, description=what),
            **question,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        show_recommendation(found, market_file)
    if toml is not None:
        from cloneproof._files import write_whole
        from cloneproof.advice.terms import terms_toml

        if not found.ranked:
            raise CloneproofError(
                "expected a mechanism to write terms for, got none that is clone-proof here; see above"
            )
        write_whole(toml, terms_toml(found.market, found.choice))
    if html is not None:
        from cloneproof.report.pages.recommendation_page import write_recommendation_page  # late: drawing loads slowly

        write_recommendation_page(found, html)
    raise typer.Exit(0 if found.fits else 1)


def parsed_rates(text: str) -> dict[str, tuple[float, ...]]:
    """The rates of `.002:.006` or `.002,.004,.006`.

    >>> parsed_rates(".002:.006"), parsed_rates(".01,.02")
    ({'rates': (0.002, 0.006)}, {'values': (0.01, 0.02)})
    """
    between = ":" in text
    try:
        numbers = tuple(float(part) for part in text.split(":" if between else ","))
    except ValueError:
        numbers = ()
    if not numbers or (between and len(numbers) != 2):
        raise MarketError(
            f"expected rates as LOWEST:HIGHEST such as .002:.006, or as a list .002,.004,.006, got {text!r}; write one "
            "of them"
        )
    return {"rates": numbers} if between else {"values": numbers}
