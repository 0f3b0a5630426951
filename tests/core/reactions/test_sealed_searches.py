"""The events of a failed call are searched for what is sealed only where the words of the error are wanted."""

from __future__ import annotations

import pytest

from epochal.feed import events
from epochal.model.bodies import Body
from epochal.model.events import Event
from epochal.model.plain_json import holds_seal
from epochal.reactions.failures import Attempt
from tests.core.reactions.world import Told, World

ALL = 20


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Body]:
    bodies: list[Body] = []

    def counted(body: Body) -> bool:
        bodies.append(body)
        return holds_seal(body)

    monkeypatch.setattr(events, "holds_seal", counted)
    return bodies


def failing(calls: int) -> Told:
    """A handler whose first calls fail."""
    left = [None] * calls
    return Told(fails=lambda _: bool(left) and left.pop() is None)


def test_a_batch_that_is_handled_one_by_one_after_a_failure_is_not_searched(searched: list[Body]) -> None:
    world = World(told=failing(1))
    world.append("A-1", *["x"] * ALL)
    assert world.reactor(attempts=2).run(0, seconds=600).events == ALL
    assert searched == []


def test_an_event_that_fails_for_good_is_searched_and_no_other(searched: list[Body]) -> None:
    world = World(told=Told(fails=lambda call: any(each.index == 1 for each in call.events)))
    world.append("A-1", *["x"] * ALL)
    world.reactor(attempts=2).run(0, seconds=600)
    assert 0 < len(searched) <= 2


def test_the_words_of_an_attempt_search_its_events_up_to_the_first_that_is_sealed(
    searched: list[Body],
) -> None:
    attempts: list[Attempt] = []
    world = World(told=failing(1))
    sealed = Event(type="x", data=b'{"$sealed":1,"subject":"s","key":"k","nonce":"","body":""}')
    world.feeds.streams.append(
        "A-1", [Event(type="x", data=b"1"), sealed, *[Event(type="x", data=b"2")] * ALL]
    )
    world.index()
    world.reactor(attempts=2, on_failed=attempts.append).run(0, seconds=600)
    assert searched == []
    assert attempts[0].sealed
    assert attempts[0].words.endswith("(message not stored, because it may quote sealed data)")
    assert len(searched) <= 2 * 3
