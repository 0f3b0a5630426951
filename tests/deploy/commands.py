"""The command line, run by the process that tests it: one of its own takes a second to begin, and there are many."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

from epochal.cli.main import main


def epochal(*arguments: str) -> CompletedProcess[str]:
    """What a command says, and the status that it ends with."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
    return CompletedProcess(arguments, status, out.getvalue(), err.getvalue())
