"""A function whose reaction cannot be loaded says why, and its wake-ups come again after a pause, not a timeout."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.publish import function as publishing
from epochal.hosting import function as hosting
from tests.support.leases import Visibility
from tests.surfaces.hosting.test_wakeups import Context, message

MODULE = "a_board_of_this_test"

SOUND = """
from epochal import reaction

@reaction(name="board")
def departures(delivery):
    pass
"""

UNSOUND = {
    "a module that is missing": "import a_module_that_nobody_has\n" + SOUND,
    "a syntax error": "def departures(:\n",
    "an error while it is imported": "raise ValueError('the parameter is not there')\n",
    "no reaction of this name": "departures_board = 1\n",
    "another reaction's name": SOUND.replace('"board"', '"panel"'),
}


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Visibility:
    """The environment and the queue of a deployed function."""
    client = Visibility()
    for name, value in {
        "EPOCHAL_ENTRY": f"{MODULE}:departures",
        "EPOCHAL_REACTION": "board",
        "EPOCHAL_QUEUE": "queue",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(hosting, "light_sqs_client", lambda: client)
    return client


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The module with the reaction, which a test writes."""
    monkeypatch.syspath_prepend(str(tmp_path))
    hosting._handler.cache_clear()  # noqa: SLF001
    yield tmp_path / f"{MODULE}.py"
    hosting._handler.cache_clear()  # noqa: SLF001
    sys.modules.pop(MODULE, None)


def write(source: Path, text: str) -> None:
    source.write_text(text)
    importlib.invalidate_caches()


def invoke(event: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = hosting.handler(event, Context())  # type: ignore[arg-type]
    return answer


@pytest.mark.parametrize("text", UNSOUND.values(), ids=UNSOUND.keys())
def test_wake_ups_of_a_reaction_that_cannot_be_loaded_come_again_soon(
    queue: Visibility, source: Path, text: str
) -> None:
    write(source, text)
    for receives, seconds in ((1, 2), (2, 4), (9, 45)):
        records = [message(0, 8, id_="m", receives=receives), message(1, 9, id_="n", receives=receives)]
        with pytest.raises((ImportError, SyntaxError, ValueError, AttributeError)):
            invoke({"Records": records})
        assert queue.hidden.pop() == {"receipt m": seconds, "receipt n": seconds}
    assert queue.hidden == []


def test_why_a_reaction_cannot_be_loaded_is_raised_at_each_run_and_logged_once(
    queue: Visibility, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(source, UNSOUND["a module that is missing"])
    for event in ({"Records": [message(0, 8)]}, {"command": "parked", "partition": 0}, {}):
        with pytest.raises(ModuleNotFoundError, match="a_module_that_nobody_has"):
            invoke(event)
    (line,) = [each for each in caplog.records if each.message == "the reaction cannot be loaded"]
    assert (line.levelname, line.__dict__["entry"]) == ("ERROR", f"{MODULE}:departures")
    assert line.__dict__["error"] == "ModuleNotFoundError"
    assert f'{MODULE}.py", line 1' in line.__dict__["trace"]
    (warning,) = [each for each in caplog.records if each.message.startswith("wake-ups failed")]
    assert warning.__dict__["seconds"] == 2
    assert len(queue.hidden) == 1, "nothing is put back that is no wake-up"


def test_a_reaction_that_can_be_loaded_again_runs_in_the_same_process(
    queue: Visibility, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def load(reaction: object) -> hosting.Handler:
        calls.append(reaction)
        return lambda event, _: {"answered": event}

    monkeypatch.setattr(hosting, "lambda_handler", load)
    write(source, UNSOUND["a module that is missing"])
    with pytest.raises(ModuleNotFoundError):
        invoke({"Records": [message(0, 8)]})
    write(source, SOUND + "# it is there now\n")
    for event in ({"Records": [message(0, 9)]}, {}):
        assert invoke(event) == {"answered": event}
    assert len(calls) == 1, "it is loaded once"
    assert len(queue.hidden) == 1, "only what failed is put back"


def test_a_publisher_that_cannot_be_loaded_puts_its_wake_ups_back(
    queue: Visibility, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> hosting.Handler:
        raise ModuleNotFoundError("No module named 'shown'")

    monkeypatch.setattr(publishing, "deployed_publisher", fail)
    publishing._handler.cache_clear()  # noqa: SLF001  another test may have loaded it
    with pytest.raises(ModuleNotFoundError, match="shown"):
        publishing.handler({"Records": [message(0, 8)]}, Context())  # type: ignore[arg-type]
    publishing._handler.cache_clear()  # noqa: SLF001
    assert queue.hidden == [{"receipt m": 2}]
