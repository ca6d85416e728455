"""The command line called in this process: what a process of its own gives, without the second that its start takes."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from cloneproof.cli import main


def run(*arguments):
    """`cloneproof ARGUMENTS..`: exit code, and what it wrote to stdout and stderr, neither of them a terminal."""
    argv = ["cloneproof", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code = 0
    with patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return CompletedProcess(argv, code, *texts)
