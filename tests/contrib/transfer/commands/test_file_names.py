"""The commands that move events, on names of files that are not UTF-8, or too long."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from epochal.cli import main as command_line
from tests.support.terminal import Terminal

ErrorLine = Callable[..., str]


@pytest.fixture(autouse=True)
def _opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "open_store", lambda _: Terminal().store)


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "{name}"),
        ("sql", "select 1", "{name}"),
        ("sql", "select '{name}'"),
        ("copy", "--category", "{name}", "--from-layout", "tips"),
        ("import", "{name}.ndjson", "--dry-run"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_an_error_in_one_line(
    error_line: ErrorLine, arguments: tuple[str, ...]
) -> None:
    err = error_line(*(each.format(name=os.fsdecode(b"caf\xe9")) for each in arguments))
    assert err.startswith("epochal: argument ")
    assert "must be text without lone surrogates" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "{name}"),
        ("export", "out", "--from-export", "streams={name}"),
        ("sql", "select 1", "{name}"),
        ("import", "{name}", "--dry-run"),
    ],
)
def test_a_file_name_that_is_too_long_is_an_error_in_one_line(
    error_line: ErrorLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    err = error_line(*(each.format(name="x" * 300) for each in arguments))
    assert "File name too long" in err
