"""The command line called in this process: what a process of its own gives, without the second that its start takes."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from cloneproof.cli import main


def run(*arguments, out=None, err=None, encoding="utf-8"):
    """`cloneproof ARGUMENTS..`: exit code, and what it wrote to stdout and stderr, neither of them a terminal.

    out, err  streams that it writes to instead; what they got is not told
    """
    argv = ["cloneproof", *map(str, arguments)]
    out, err = (stream or io.TextIOWrapper(io.BytesIO(), encoding=encoding) for stream in (out, err))
    code = 0
    with patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode() if isinstance(stream.buffer, io.BytesIO) else None)
    return CompletedProcess(argv, code, *texts)


def everything(terminal):
    """What is written to a terminal until its other end is closed."""
    said = b""
    while True:
        try:
            said += os.read(terminal, 65536)
        except OSError:
            return said
