"""`cloneproof log FILE..`: who seems to copy, what it pays, and what to run instead, from a platform's own log."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof._files import check_place
from cloneproof.cli.display.output import note, print_json, printable, progress_bar
from cloneproof.cli.options import AsJson, Settings, chosen_mechanism, policy_box
from cloneproof.errors import LogError


def log(
    files: Annotated[list[str], typer.Argument(metavar="FILE..", help="CSV, Parquet, JSON lines; globs, folders.")],
    agent: Annotated[str | None, typer.Option(help="The column with the provider; guessed if left out.")] = None,
    arm: Annotated[str | None, typer.Option(help="The column with the item that was served.")] = None,
    reward: Annotated[str | None, typer.Option(help="The column with the reward.")] = None,
    time: Annotated[str | None, typer.Option(help="The column with the time of a round.")] = None,
    propensity: Annotated[
        str | None, typer.Option(help="The column with the probability with which the arm was served.")
    ] = None,
    count: Annotated[str | None, typer.Option(help="Rows of several rounds: the column with their number.")] = None,
    total: Annotated[str | None, typer.Option("--sum", help="Rows of several rounds: the sum of rewards.")] = None,
    owners: Annotated[
        str | None, typer.Option(metavar="FILE", help="Whose arm it is, where the log does not say: arm and agent.")
    ] = None,
    same: Annotated[
        str | None, typer.Option(metavar="COLUMN,..", help="Columns by which items may be recognised, e.g. title,url.")
    ] = None,
    limits: Annotated[
        str | None, typer.Option("--range", metavar="LOW:HIGH", help="The range of rewards.", show_default="0:1")
    ] = None,
    local_arms: Annotated[
        bool, typer.Option("--local-arms", help="Names of arms are unique only inside an agent.")
    ] = False,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave faulty rows out, and say so; else a log with some is refused.")
    ] = False,
    cache: Annotated[bool, typer.Option(help="Keep the statistics in a file beside the log.")] = True,
    policy: Annotated[
        str | None,
        typer.Option(help="What the platform runs: a name from `cloneproof mechanisms`, or MODULE:NAME of your own."),
    ] = None,
    settings: Settings = None,
    level: Annotated[float, typer.Option(help="The share of false discoveries among those of copies.")] = 0.05,
    levels: Annotated[int, typer.Option(help="Levels of the fitted priors.")] = 4,
    horizon: Annotated[
        int | None, typer.Option(help="Rounds over which the policy is judged.", show_default="the log's, up to 1000")
    ] = None,
    share: Annotated[float, typer.Option(help="The part of a reward that its agent is paid.")] = 1.0,
    tolerance: Annotated[float, typer.Option(help="The relative gain that counts as none.")] = 0.005,
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="About how long to compute.")] = 40.0,
    seed: Annotated[int, typer.Option(help="The seed, where something is sampled.")] = 0,
    statistics: Annotated[bool, typer.Option("--statistics", help="Only read the log and show its arms.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page to look at.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say who seems to copy, what it pays, and what to run instead.

    One row is one round: whose arm was served, and its reward. Exit code as that of `audit`, of the named policy in the
    market that is fitted to the log: 0 clone-proof, 1 exploitable, 3 undecided; 0 where none is named, 2 bad input.
    """
    if html is not None:
        check_place(html)
    if settings and (policy is None or ":" in policy):
        raise LogError("expected --set with the name of a mechanism as --policy, got it without; leave it out")
    from cloneproof.cli.audit import EXIT
    from cloneproof.cli.log.output import show_log, show_study
    from cloneproof.logs.reader.reading import read_log

    with progress_bar() as bar:
        task = bar.add_task("reading", total=100)
        found = read_log(
            files, agent=agent, arm=arm, reward=reward, time=time, propensity=propensity, count=count, total=total,
            owners=owners, same=[name for name in (same or "").split(",") if name], limits=parsed_range(limits),
            local_arms=local_arms, leave_out=leave_out, cache=cache,
            progress=(lambda part: bar.update(task, completed=100 * part)) if not bar.disable else None,
        )  # fmt: skip
    for text in found.notes:
        note(printable(text))
    for fault in found.faults:
        note(printable(f"left out: {fault}"))
    if statistics:
        if as_json:
            print_json(found.to_dict())
        else:
            show_log(found)
        return
    from cloneproof.logs.study import study_log

    judged = None
    if policy is not None:
        judged = policy_box(policy)[1] if ":" in policy else (lambda market: chosen_mechanism(policy, settings, market))
    with progress_bar() as bar:
        task = bar.add_task("looking", total=None)
        study = study_log(
            found, judged, policy or "", level=level, levels=levels, horizon=horizon, share=share, tolerance=tolerance,
            budget_seconds=budget, seed=seed,
            progress=lambda done, whole, what: bar.update(task, total=whole, completed=done, description=what),
        )  # fmt: skip
    if as_json:
        print_json(study.to_dict())
    else:
        show_study(study)
    if html is not None:
        from cloneproof.report.pages.log_page import write_log_page  # late: drawing takes a second to load

        write_log_page(study, html)
    raise typer.Exit(0 if study.verdict is None else EXIT[study.verdict.verdict])


def parsed_range(text: str | None) -> tuple[float, float]:
    """The range of `1:5`.

    >>> parsed_range("1:5"), parsed_range(None)
    ((1.0, 5.0), (0.0, 1.0))
    """
    if text is None:
        return (0.0, 1.0)
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise LogError(f"expected a range of rewards as LOW:HIGH such as 1:5, got {text!r}; write both") from None
    return low, high
