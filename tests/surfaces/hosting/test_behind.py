"""How far a reaction is behind the feed, told while it catches up: its queue has no message older than a run."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from epochal.hosting.metrics import Metrics
from epochal.hosting.reaction_function import ReactionFunction
from epochal.hosting.wakeup_queue import Queue
from epochal.index.checkpoints import BEGINNING
from epochal.reactions.reactor import Reactor, RunResult
from tests.core.reactions.world import Told, World
from tests.support.leases import once
from tests.surfaces.hosting.test_wakeups import Context, Sent, message

BEGAN = 1_700_000_000
"""When the first entry is written, in seconds since 1970."""


@pytest.fixture
def world() -> World:
    """An entry of the index a minute, for as long as five minutes; a handler that takes a quarter of an hour."""
    made = World(told=Told())
    made.told.during = lambda _: made.feeds.clock.sleep(900)
    for minute in range(5):
        made.feeds.now = partial(_at, minute * 60)
        made.append(f"A-{minute}")
    return made


def _at(seconds: float) -> int:
    return int((BEGAN + seconds) * 1e9)


def reactor(world: World) -> Reactor:
    """One that begins an hour after the first entry was written."""
    made = world.reactor()
    began = world.feeds.clock()
    member = replace(made.member, now=lambda: _at(3_600 + world.feeds.clock() - began))
    return replace(made, member=member)


def test_a_run_tells_the_age_of_the_oldest_entry_that_the_checkpoint_has_not_passed(world: World) -> None:
    one = reactor(world)
    assert one.run(0, seconds=0).behind is None  # nothing has been read
    told: list[float] = []
    ran = one.run(0, seconds=100, tell=told.append)
    assert not ran.at_tail
    # It had time for one stream of the page, which the checkpoint passes as a whole.
    assert (world.told.handled, ran.behind) == ([("A-0", 0)], 3_600 + 900)
    assert told == [3_600 + 900]
    assert one.run(0, seconds=10_000).behind == 0.0


def test_what_follows_a_page_is_the_oldest_once_that_is_handled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochal.reactions.reactor.PAGE_EVENTS", 2)
    ran = reactor(world).run(0, seconds=1_000)
    assert [name for name, _ in world.told.handled] == ["A-0", "A-1"]
    assert ran.behind == 3_600 + 2 * 900 - 2 * 60


def test_a_function_tells_it_in_each_run_of_a_catch_up(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ReactionFunction(
        reactor=reactor(world),
        queue=Queue(Sent(), "queue"),  # type: ignore[arg-type]
        logger=Logger(service="board"),
        metrics=Metrics("board"),
        now=world.feeds.clock,
        beats=once,
    )
    behind: list[float] = []
    for _ in range(5):
        one.handle({"Records": [message(0, 5)]}, Context(125.0))  # type: ignore[arg-type]
        behind.append(max(_told(capsys.readouterr().out)))
    assert behind == [4_500_000, 5_400_000, 6_300_000, 7_200_000, 7_860_000]
    one.handle({"Records": [message(0, 5)]}, Context(125.0))  # type: ignore[arg-type]
    assert _told(capsys.readouterr().out) == [0.0]


def _told(printed: str) -> list[float]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines()]
    return [each for line in lines for each in line.get("Reaction.behind", [])]


@pytest.mark.parametrize(
    ("behind", "together"),
    [((1.0, 3.0), 3.0), ((0.0, 0.0), 0.0), ((None, 3.0), None), ((0.0, None), None), ((None, None), None)],
)
def test_members_together_are_as_far_behind_as_the_last_of_them_and_nobody_knows_where_one_has_not_looked(
    behind: tuple[float | None, ...], together: float | None
) -> None:
    runs = [RunResult(checkpoint=BEGINNING, at_tail=True, behind=each) for each in behind]
    assert RunResult.of_all(runs).behind == together
