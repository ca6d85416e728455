"""Commands of the command line, one file for each group of them."""

from __future__ import annotations

import typer

from cloneproof.cli.advice import recommend
from cloneproof.cli.audit import audit
from cloneproof.cli.board import board
from cloneproof.cli.evaluate import evaluate, example, play
from cloneproof.cli.log import log
from cloneproof.cli.mechanisms import mechanisms
from cloneproof.cli.reproduce import reproduce
from cloneproof.cli.same import same
from cloneproof.cli.schema import schema
from cloneproof.cli.serve import backup, replay, serve
from cloneproof.cli.sweep import sweep

app = typer.Typer(
    name="cloneproof",
    help="Can providers game your bandit by registering the same item twice?",
    epilog="`cloneproof COMMAND --help` shows the options of a command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _command in (
    audit, recommend, log, same, board, evaluate, play, example, mechanisms, sweep, reproduce,
    serve, replay, backup, schema,
):  # fmt: skip
    app.command()(_command)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from cloneproof._version import __version__

        typer.echo(f"cloneproof {__version__}")
        raise typer.Exit
