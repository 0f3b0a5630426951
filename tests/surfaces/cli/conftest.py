"""Fixtures of the command line's tests."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import pytest

from epochal.cli.main import main
from tests.support.terminal import Terminal


@pytest.fixture
def terminal() -> Terminal:
    return Terminal(named="tips", layouts=("tips",))


@pytest.fixture
def exits() -> Callable[..., tuple[int, str, str]]:
    """Runs `main` as the console script does: its exit status, output and error output."""

    def run(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main(arguments)
        return int(ended.value.code or 0), out.getvalue(), err.getvalue()

    return run


@pytest.fixture
def error_line(exits: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Runs `main`, which must fail with an error in one line, and gives that line."""

    def run(*arguments: str) -> str:
        status, out, err = exits(*arguments)
        assert (status, out, err.count("\n")) == (1, "", 1)
        return err

    return run
