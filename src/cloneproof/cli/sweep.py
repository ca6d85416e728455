"""`cloneproof sweep`: a grid of questions, resumable."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from cloneproof.cli.options import AsJson, Device, look_here, option
from cloneproof.cli.output import command_progress, note, print_json, print_result
from cloneproof.errors import SweepError


def sweep(
    grid: Annotated[str | None, typer.Argument(metavar="GRID.toml", help="The grid file.")] = None,
    store: Annotated[str | None, option("FILE", "The file that keeps finished points.")] = None,
    workers: Annotated[int | None, option("N", "Processes.", show_default="as many as cores")] = None,
    cluster: Annotated[
        str | None, option("ADDRESS", "Compute on the Dask cluster at tcp://HOST:PORT, or on local:N, started here.")
    ] = None,
    device: Device = "auto",
    rule: Annotated[
        list[str] | None, option("MODULE:NAME", "Allow the grid to import this rule of yours; repeatable.", "--rule")
    ] = None,
    output: Annotated[str | None, option("FILE", "Write the table, as .csv or .parquet.", "--output", "-o")] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate or audit every point of a grid.

    After Ctrl-C, run the same command again: it computes only what is missing.
    """
    if grid is None or store is None:
        raise SweepError("expected GRID.toml and --store FILE; give them")
    from cloneproof.sweeps.sweep import Interrupted, SweepState
    from cloneproof.sweeps.sweep import cluster as open_cluster
    from cloneproof.sweeps.sweep import sweep as run_sweep
    from cloneproof.sweeps.table import check_output

    look_here()
    if output is not None:
        check_output(output)
    with command_progress() as bar:
        task = bar.add_task("planning", total=None)

        def report(state: SweepState) -> None:
            bar.update(task, total=state.points, completed=state.finished, description=state.line)

        try:
            how: dict[str, Any] = {"workers": workers, "device": device, "rules": rule or ()}
            with open_cluster(cluster) if cluster is not None else nullcontext() as executor:
                table = run_sweep(grid, store, executor=executor, progress=report, **how)
        except Interrupted as stopped:
            bar.stop()
            print(stopped, file=sys.stderr)
            raise typer.Exit(130) from None
    assert table.summary is not None
    if output is not None:
        table.write(output)
    if as_json:
        print_json(table.to_dict())
    else:
        print_result(table, f"{grid}: {table.summary.points} points")
    if not as_json:
        note(f"{table.summary.computed} points computed, {table.summary.reused} were there already")
