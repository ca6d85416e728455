"""The command line called in this process: what a process of its own gives, without the second that its start takes."""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from subprocess import CompletedProcess
from unittest.mock import patch

from jsonschema_rs import Draft202012Validator

from cloneproof.cli import main
from cloneproof.cli.schema import printed_results, schema_of


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
    if "--json" in argv and texts[0] and argv[1] in printed_results():
        schema(argv[1]).validate(json.loads(texts[0]))
    return CompletedProcess(argv, code, *texts)


@cache
def schema(what):
    """The validator of market files, or of what a command prints with --json."""
    return Draft202012Validator(schema_of(what))


def everything(terminal):
    """What is written to a terminal until its other end is closed."""
    said = b""
    while True:
        try:
            said += os.read(terminal, 65536)
        except OSError:
            return said
