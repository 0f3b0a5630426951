"""A reaction that cannot be loaded shows in the status of its group at the first wake-up, begun or not."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from epochal.care.status import groups_of, standings
from epochal.errors import GroupMissing
from epochal.hosting import function as hosting
from epochal.hosting.group_summaries import summaries_of
from epochal.hosting.leases import pause_after
from epochal.model.moments import PER_SECOND, parse_time
from epochal.named_objects import load_object
from epochal.reactions.steering import GroupFigures, Groups
from tests.core.reactions.world import World
from tests.support.leases import Visibility
from tests.surfaces.hosting.test_wakeups import Context, function, message

MODULE = "a_board_that_fails"

SOURCES = {
    "a missing module": (
        "import a_module_that_nobody_has\n",
        "ModuleNotFoundError: No module named 'a_module",
    ),
    "a missing name": (
        "board = 1\n",
        "AttributeError: module 'a_board_that_fails' has no attribute 'departures'",
    ),
    "a syntax error": (
        "def departures(:\n",
        r"SyntaxError: invalid syntax \(a_board_that_fails.py, line 1\)",
    ),
    "an error that may quote a secret": (
        "\nraise ValueError('secret')\n",
        r"ValueError at a_board_that_fails.py:2;",
    ),
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A feed with one event, which the deployed function reads."""
    world = World()
    world.append("A-1")
    reader = world.feeds.reader(world.feeds.streams)
    opened = SimpleNamespace(deployment=lambda _settings: SimpleNamespace(feed=reader))
    monkeypatch.setattr(hosting, "HERE", opened)
    monkeypatch.setattr(hosting, "light_sqs_client", Visibility)
    return world


Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the module with the reaction."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write_module(text: str) -> None:
        (tmp_path / f"{MODULE}.py").write_text(text)
        importlib.invalidate_caches()

    yield write_module
    sys.modules.pop(MODULE, None)


@pytest.fixture
def unloadable(write: Write) -> None:
    """A module whose import fails."""
    write("import a_module_that_nobody_has\n")


def wake(receives: int = 1) -> None:
    """Wake the function, which cannot load its reaction."""
    environment = {"EPOCHAL_REACTION": "board", "EPOCHAL_QUEUE": "queue"}
    handler = hosting.loaded(lambda: load_object(f"{MODULE}:departures"), environment)
    with pytest.raises((ImportError, AttributeError, SyntaxError, ValueError)):
        handler({"Records": [message(0, 99, receives=receives)]}, Context())  # type: ignore[arg-type]


def steered(world: World) -> Groups:
    return Groups(world.feeds.reader(world.feeds.streams))


def shown(world: World) -> list[GroupFigures]:
    return steered(world).standing("board")


def begin(world: World) -> None:
    """Let the group handle what there is, and append more."""
    function(world).handle({"Records": [message(0, 99)]}, Context())  # type: ignore[arg-type]
    world.append("A-1")


@pytest.mark.parametrize(("text", "cause"), SOURCES.values(), ids=SOURCES.keys())
@pytest.mark.parametrize("begun", [True, False])
def test_it_shows_at_the_first_wake_up(
    world: World, write: Write, text: str, cause: str, *, begun: bool
) -> None:
    write(text)
    if begun:
        begin(world)
    wake()
    (figures,) = shown(world)
    (run,) = figures.blocked
    assert re.match(f"the reaction cannot be loaded: {cause}", f"{run.cause};"), run.cause
    assert "secret" not in run.cause
    assert (run.runs, run.stream, figures.events) == (1, "", 1)
    wake()
    ((run,),) = [figures.blocked for figures in shown(world)]
    assert run.runs == 2


@pytest.mark.usefixtures("unloadable")
@pytest.mark.parametrize("begun", [True, False])
def test_it_shows_in_the_list_of_groups_and_in_the_status_of_the_index(world: World, *, begun: bool) -> None:
    if begun:
        begin(world)
    wake()
    names = groups_of(world.feeds.driver, "index")
    assert names == ["board"]
    (summary,) = summaries_of(steered(world), names, {})
    assert "the reaction cannot be loaded" in summary.words
    (standing,) = standings(world.feeds.driver, "index", names)
    ((run,),) = [group.blocked for group in standing.groups]
    assert run.cause.startswith("the reaction cannot be loaded")


@pytest.mark.usefixtures("unloadable")
@pytest.mark.parametrize("receives", [1, 3])
def test_the_next_run_is_expected_when_the_message_comes_again(world: World, receives: int) -> None:
    wake(receives)
    ((run,),) = [figures.blocked for figures in shown(world)]
    assert parse_time(run.due) - parse_time(run.last) == pause_after(receives) * PER_SECOND


@pytest.mark.usefixtures("unloadable")
def test_it_no_longer_shows_once_the_reaction_gets_on(world: World) -> None:
    wake()
    begin(world)
    assert [figures.blocked for figures in shown(world)] == [()]


@pytest.mark.usefixtures("unloadable")
def test_a_group_that_never_began_can_be_deleted(world: World) -> None:
    wake()
    assert steered(world).delete("board") == [0]
    with pytest.raises(GroupMissing):
        shown(world)
    assert groups_of(world.feeds.driver, "index") == []
