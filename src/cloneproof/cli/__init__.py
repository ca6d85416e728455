"""The command line: `cloneproof COMMAND`. Data on stdout, progress and errors on stderr.

Exit codes: 0 done, 2 bad input, 70 an error of ours, 130 interrupted (with what there was, marked partial).
"""

from __future__ import annotations

import io
import os
import sys
import traceback

from cloneproof.errors import CloneproofError


def main() -> None:
    """Run the command line; every error that the user can mend is one sentence and exit code 2."""
    from cloneproof.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without the letters of a name still gets its table
    try:
        app()
    except CloneproofError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader has seen enough, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception:
        traceback.print_exc()
        print("error: this is a fault of cloneproof, not of your input; please report the lines above", file=sys.stderr)
        sys.exit(70)
