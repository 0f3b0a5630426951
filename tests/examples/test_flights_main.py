"""How the demo ends: each way with its exit status, and said in a line."""

from __future__ import annotations

from typing import NoReturn

import pytest

from epochal.errors import Unavailable
from examples.flights import __main__ as program
from examples.flights.display import Display
from examples.flights.following import FeedStalled
from examples.flights.options import Options
from examples.flights.over_http import UnexpectedAnswer


def _ends(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run(_options: Options, _display: Display) -> NoReturn:
        raise error

    monkeypatch.setattr(program, "run", run)


def test_the_verdict_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "run", lambda *_: 1)
    assert program.main() == 1
    monkeypatch.setattr(program, "run", lambda *_: 0)
    assert program.main() == 0


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Unavailable("it is gone"), 1, "the store is unavailable: it is gone"),
        (FeedStalled("nothing came"), 1, "nothing came"),
        (UnexpectedAnswer("500: {}"), 1, "500: {}"),
        (KeyboardInterrupt(), 130, "stopped"),
    ],
)
def test_what_ends_it_early_is_said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    said: str,
) -> None:
    _ends(monkeypatch, error)
    assert program.main() == status
    assert said in capsys.readouterr().out


def test_a_sigterm_is_said_and_keeps_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _ends(monkeypatch, SystemExit(143))
    with pytest.raises(SystemExit, match="143"):
        program.main()
    assert "stopped" in capsys.readouterr().out


def test_a_defect_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    _ends(monkeypatch, ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError):
        program.main()
