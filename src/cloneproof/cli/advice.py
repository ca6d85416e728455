"""`cloneproof compare` (every mechanism in one market) and `cloneproof recommend` (which one to run)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from cloneproof._files import check_place, write_whole
from cloneproof.advice.comparison import SECONDS, ComparedMechanism
from cloneproof.advice.recommendation import Recommendation, terms_toml
from cloneproof.analysis.audit.verdict import AuditState
from cloneproof.analysis.search import Search
from cloneproof.cli.options import (
    UNANSWERED,
    AsJson,
    MarketFile,
    OwnPolicies,
    OwnRules,
    Seconds,
    check_page,
    option,
    own_by_name,
)
from cloneproof.cli.output import command_progress, new_table, note, print_json, print_table, working
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, MarketError
from cloneproof.market.toml import load_market
from cloneproof.report.page import write_page
from cloneproof.report.words import (
    account_sentence,
    cheaper_sentence,
    choice_sentence,
    price_sentence,
    ranked_row,
    wrong_rows,
)

WIDTH = 96  # of a remark
MUCH = 100.0  # times the honest payoff: samples that rule out no less say nothing


def show_comparison(rows: Iterable[ComparedMechanism], source: str, tolerance: float, given: str = "") -> None:
    """Print the table; `given` says what sampled mechanisms had."""
    columns = ("mechanism", "verdict", "gain, %", "with copies", "regret", "attacked", "time")
    title = f"{source}: the best attack by copies on each mechanism"
    print_table(new_table(title, *columns, right=2, rows=map(_comparison_cells, rows)))
    print(f"Gains of up to {tolerance:.1%} count as none. Copies are the fewest whose gain is within 1 % of the best.")
    if given:
        print(given)
    for row in rows:
        if (remark := _remark(row)) != "":
            print("  " + remark[:WIDTH])


def _comparison_cells(row: ComparedMechanism) -> tuple[str, ...]:
    time = f"{row.seconds:.1f} s"
    if row.verdict is None:
        return row.name, "not audited", "", "", _number(row.regret, row.exact), "", time
    gain = f"{100 * row.relative_gain:+.1f}" if math.isfinite(row.relative_gain) else "from nothing"
    copies, verdict = f"{row.agent} {','.join(map(str, row.copies))}", str(row.verdict)
    if row.verdict == "undecided":  # what the samples do not rule out
        gain = f"at most {100 * row.relative_gain:+.2g}" if row.relative_gain < MUCH else "unknown"
    if row.verdict == "clone-proof" and not row.exact:  # samples of one deviation add nothing
        gain, copies = "none", "proven" if row.state == AuditState.PROOF else "at 99 %"
    if row.state == AuditState.NONE_TRIED_PAYS:
        copies, verdict = f"{row.tried} tried", "none pays"
    return row.name, verdict, gain, copies, _number(row.regret, row.exact), _number(row.attacked, row.exact), time


def _number(estimate: Estimate | None, exact: bool) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:,.0f}" if exact else f"{estimate.value:,.0f} ± {estimate.error:,.0f}"


def _remark(row: ComparedMechanism) -> str:
    if row.remark:
        return f"{row.name}: {row.remark}"
    if row.exact or row.gain is None:
        return ""
    if row.state == AuditState.SAMPLED_PROOF:
        return f"{row.name}: that copies do not pay holds at 99 %, by sampled worlds that stand for all copies"
    if row.verdict == "clone-proof":
        return f"{row.name}: that copies do not pay is proven; its regret is sampled"
    return (
        f"{row.name}: {row.tried} deviations sampled, this one's gain is {row.gain.value:+.1f} ± {row.gain.error:.0f}"
    )


def compare(
    market_file: MarketFile,
    mechanism: Annotated[
        list[str] | None, option("NAME", "Compare only this one; repeatable.", "--mechanism", "-m")
    ] = None,
    rule: OwnRules = None,
    policy: OwnPolicies = None,
    seconds: Seconds = None,
    tolerance: Annotated[float, option("PART", "Ignore relative gains up to this.")] = 0.005,
    seed: Annotated[int, option("N", "When sampling: the seed.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit every mechanism in a market, side by side.

    The table shows verdict, best attack, gain, regret without and with that attack, and time. Each mechanism has its
    theorem's parameters; `recommend` tunes them. The first run on a machine also compiles.

    Exit codes: 0 done, 3 no time was left for some of them, 2 bad input.
    """
    from cloneproof.advice.comparison import compare as run_compare
    from cloneproof.mechanisms.catalogue import CATALOGUE

    search, market = Search(seconds=seconds, seed=seed), load_market(market_file)
    names, own = mechanism or list(CATALOGUE), own_by_name(rule, policy)
    with command_progress() as bar:
        task = bar.add_task("auditing", total=len(names) + len(own))

        def tell(rows: list[ComparedMechanism]) -> None:
            bar.advance(task, len(rows))

        rows = run_compare(market, names, tolerance=tolerance, search=search, processes=2, own=own, done=tell)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        each = f"Sampled mechanisms had {SECONDS:g} s of counted work each:"
        show_comparison(rows, market_file, tolerance, each if seconds is None else f"All had {seconds:g} s together:")
    if rows.interrupted:
        note(f"interrupted: {len(rows)} of {len(names) + len(own)} mechanisms")
        raise typer.Exit(130)
    if rows.left:
        raise typer.Exit(UNANSWERED)


def show_recommendation(found: Recommendation, source: str | None) -> None:
    """Print it."""
    market = found.market
    name = (
        source or f"{len(market.agents)} providers, up to {market.most_originals} items each, {market.horizon:,} rounds"
    )
    print(choice_sentence(found))
    if found.advice:
        print(found.advice)
    if found.ranked:
        print(found.choice.promise)
        print(f"What visitors and sellers see: {found.choice.seen}")
        print(account_sentence(found))
        if found.seasons:
            print(f"Drift: {found.seasons}")
        if cheaper := cheaper_sentence(found):
            print(f"Cheaper, on a condition: {cheaper}")
        print("Parameters: " + ", ".join(f"{key}={value}" for key, value in found.choice.parameters.items()))
    print("Price of honesty: " + price_sentence(found))
    if found.ranked:
        columns = ("mechanism", "regret", "of random play", "exploring", "copies gain")
        rows = [ranked_row(each, found.random_regret) for each in found.ranked]
        print_table(new_table(f"Clone-proof for {name}", *columns, rows=rows))
        if found.choice.wrong:
            wrong = wrong_rows(found.choice)
            print_table(new_table("If a declaration is wrong", "truth", "regret", "a provider gains", rows=wrong))
    for mechanism, why in found.others.items():
        note(f"{mechanism} is not among them: {why}")
    for text in found.notes:
        note(text)


def recommend(
    market_file: Annotated[
        str | None, typer.Argument(metavar="MARKET.toml", help="A market file, or the options below.")
    ] = None,
    agents: Annotated[int | None, option("N", "How many providers you have.")] = None,
    originals: Annotated[int | None, option("N", "How many items each may have.")] = None,
    rates: Annotated[
        str | None, option("LOW:HIGH", "The lowest and highest click rate, or a list such as .002,.004,.006.")
    ] = None,
    relative_gap: Annotated[
        float, option("PART", "Different items differ by at least this part of the lower rate.")
    ] = 0.25,
    rounds: Annotated[int | None, option("N", "How many rounds (page views), such as 1e8.")] = None,
    providers: Annotated[
        str, option("KIND", "bayesian: they know only odds; informed: which of their items are better.")
    ] = "bayesian",
    accounts: Annotated[
        str, option(None, "checked; or cheap: rank by the larger of regret and what a second account gains.")
    ] = "checked",
    drift: Annotated[
        int | None, option("N", "Rounds after which an item's rate is another one, on average, e.g. 1e6.")
    ] = None,
    rule: OwnRules = None,
    policy: OwnPolicies = None,
    seconds: Seconds = None,
    seed: Annotated[int, option("N", "When sampling: the seed.")] = 0,
    html: Annotated[str | None, option("FILE", "Write the answer as a web page.")] = None,
    toml: Annotated[str | None, option("FILE", "Write the terms of a live market.")] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend a mechanism, with parameters, cost and promise.

    First come mechanisms that are clone-proof whatever you declared, the cheapest first; then those that rely on a
    declaration. For comparison: the best one if everybody were honest, and its cost if everybody does what pays.

    Exit codes: 0 found, 1 nothing clone-proof fits the traffic, 3 out of time before everything was looked at, 2 bad
    input.
    """
    if html is not None:
        check_page(html)
    if toml is not None:
        check_place(toml)
    from cloneproof.advice.recommend import recommend as run_recommend

    question: dict[str, Any] = {"providers": providers, "search": Search(seconds=seconds, seed=seed)}
    question |= {"own": own_by_name(rule, policy), "accounts": accounts, "drift": drift}
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
    with working("looking") as tell:
        found = run_recommend(progress=tell, **question)
    if as_json:
        print_json(found.to_dict())
    else:
        show_recommendation(found, market_file)
    if toml is not None:
        write_terms(found, toml)
    if html is not None:
        from cloneproof.report.recommendation_page import recommendation_page  # late: drawing loads slowly

        write_page(recommendation_page(found), html)
    raise typer.Exit(130 if found.interrupted else UNANSWERED if found.left else 0 if found.fits else 1)


def write_terms(found: Recommendation | None, path: str) -> None:
    """Write the terms of a live market that runs what is recommended."""
    if found is None or not found.ranked:
        raise CloneproofError("expected a mechanism to write terms for, got none that is clone-proof here; see above")
    write_whole(path, terms_toml(found.market, found.choice))


def parsed_rates(text: str) -> dict[str, tuple[float, ...]]:
    """Parse rates such as `.002:.006` or `.002,.004,.006`.

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
