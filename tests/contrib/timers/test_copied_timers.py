"""A timer fires once, also where its stream is copied: in its original, or where the copy has taken it over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from epochal import Event, Query, QueryItem
from epochal.contrib.timers.care import rebuild, take_over
from epochal.contrib.timers.stores import timers_of
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.errors import InvalidInput
from epochal.model.stream_names import TIMER_FIRED, TIMER_SET
from epochal.scheduling import after, cancel, later
from epochal.store.tagged_importer import ImportedEvent, TaggedImporter, marked, unmarked
from tests.contrib.timers.world import World

DAY = 86_400
HERE = {"tips to pages": ("tips", "pages"), "pages to tips": ("pages", "tips")}


class Copied:
    """A stream of one layout with a timer, and its copy in another, in one deployment."""

    def __init__(self, layouts: tuple[str, str]) -> None:
        self.world = World()
        self.source, self.target = layouts
        self.copier = StreamCopier(
            source=StreamSource(self.world.stores[self.source]), target=self.world.stores[self.target]
        )

    def copy(self) -> str:
        return self.copier.copy("Loan-1").ending

    def came(self) -> tuple[int, int]:
        """How often the timer has fired in the original, and in the copy."""
        ours, theirs = (self.world.types("Loan-1", each) for each in (self.source, self.target))
        return ours.count("reminder came"), theirs.count("reminder came")


@pytest.fixture(params=HERE)
def copied(request: pytest.FixtureRequest) -> Copied:
    found = Copied(HERE[request.param])
    found.world.set("Loan-1", "reminder", DAY, layout=found.source)
    found.copy()
    return found


def test_a_timer_of_a_copied_stream_fires_in_its_original_alone_and_its_firing_is_copied(
    copied: Copied,
) -> None:
    copied.world.arm()
    copied.world.advance(2 * DAY)
    assert copied.came() == (1, 0)
    assert copied.copy() == "copied"
    assert copied.copy() == "unchanged"
    copied.world.advance(2 * DAY)
    assert copied.came() == (1, 1)
    assert take_over(copied.world.engine, copied.world.feed.feed).armed == 0


def test_what_arms_all_anew_and_what_fires_beside_it_leave_a_copied_timer_alone(copied: Copied) -> None:
    world = copied.world
    world.feed.index()
    assert rebuild(world.engine, world.feed.feed).armed == 1
    world.set("Loan-1", "fine", 2 * DAY, layout=copied.target)
    world.arm()
    world.advance(3 * DAY)
    assert copied.came() == (1, 0)
    assert "fine came" in world.types("Loan-1", copied.target)


def test_a_copied_timer_that_is_taken_over_fires_when_it_was_due_with_what_it_had_of_its_setting(
    copied: Copied,
) -> None:
    world, store = copied.world, copied.world.stores[copied.target]
    (timer,) = timers_of(store).pending("Loan-1")
    assert timer.copied
    world.feed.index()
    done = take_over(world.engine, world.feed.feed)
    assert (done.settings, done.armed, done.troubles) == (1, 1, [])
    (anew,) = timers_of(store).pending("Loan-1")
    assert (anew.name, anew.due, anew.events, anew.copied) == (timer.name, timer.due, timer.events, False)
    assert take_over(world.engine, world.feed.feed).armed == 0, "again, it changes nothing"
    world.arm()
    world.advance(DAY - 1)
    assert copied.came() == (0, 0)
    world.advance(2)
    assert copied.came() == (1, 1), "the original is to be ended, and was not"
    ours, theirs = world.events("Loan-1", copied.source)[1], world.events("Loan-1", copied.target)[2]
    assert (ours.type, ours.correlation_id) == (theirs.type, theirs.correlation_id)


def test_only_what_is_pending_in_a_copy_is_taken_over(copied: Copied) -> None:
    world = copied.world
    world.stores[copied.source].append("Loan-1", [cancel("reminder")])
    world.set("Loan-1", "fine", DAY, layout=copied.source)
    assert copied.copy() == "copied"
    world.set("Loan-1", "fine", 2 * DAY, layout=copied.target)
    world.feed.index()
    done = take_over(world.engine, world.feed.feed)
    assert (done.settings, done.armed) == (2, 0)


def test_a_take_over_that_others_overtake_sees_what_they_did(
    copied: Copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = copied.world
    store, engine = world.stores[copied.target], world.engine
    world.feed.index()
    appended = type(engine).try_append
    calls = list[None]()

    def overtaken(*arguments: object) -> object:
        calls.append(None)
        if len(calls) == 1:
            store.append("Loan-1", [cancel("reminder")])
        return appended(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(type(engine), "try_append", overtaken)
    assert take_over(engine, world.feed.feed).armed == 0
    assert timers_of(store).pending("Loan-1") == ()


def test_many_timers_of_one_copy_are_taken_over(copied: Copied) -> None:
    for number in range(60):
        copied.world.set("Loan-1", f"timer-{number}", DAY, layout=copied.source)
    assert copied.copy() == "copied"
    copied.world.feed.index()
    assert take_over(copied.world.engine, copied.world.feed.feed).armed == 61


def test_a_copy_of_a_copy_is_marked_once_and_a_copy_that_is_called_off_is(copied: Copied) -> None:
    world = copied.world
    third = World()
    onward = StreamCopier(
        source=StreamSource(world.stores[copied.target]), target=third.stores[copied.target]
    )
    assert onward.copy("Loan-1").digest == copied.copier.copy("Loan-1").digest
    assert (
        len({world.events("Loan-1", copied.target)[0].data, third.events("Loan-1", copied.target)[0].data})
        == 1
    )
    assert timers_of(third.stores[copied.target]).cancel("Loan-1", "reminder") is not None


def test_a_timer_of_tags_that_is_imported_fires_once_it_is_taken_over() -> None:
    world, tags = World(), ("seat:1",)
    held = replace(
        later("hold", [Event(type="Lapsed", tags=tags)], at=after(minutes=10), tags=tags),
        id="0190f5a0-0000-7000-8000-000000000001",
    )
    set_at = (datetime.fromtimestamp(world.time / 1e9, UTC) - timedelta(minutes=1)).isoformat()
    importer = TaggedImporter(store=world.tagged)
    history = [ImportedEvent(event=held, timestamp=set_at)]
    assert importer.run(history).written == 1
    assert importer.run(history).found == 1
    world.arm()
    world.advance(DAY)
    assert types(world) == [TIMER_SET]
    assert take_over(world.engine, world.feed.feed).armed == 1
    world.arm()
    world.advance(1)
    assert types(world)[2:] == ["Lapsed", TIMER_FIRED]


def types(world: World) -> list[str]:
    return [
        each.type for each in world.tagged.read(Query(items=(QueryItem(tags=frozenset({"seat:1"})),))).events
    ]


@pytest.mark.parametrize("body", [b'{"name":"n","in":1,"events":[{"type":"T"}]}', b' {"in": 1, "name":"n"}'])
def test_a_mark_is_put_before_the_very_bytes_of_the_original_and_taken_off_again(body: bytes) -> None:
    event = Event(type=TIMER_SET, data=body)
    assert marked(event).data != body
    assert unmarked(bytes(marked(event).data)) == body == unmarked(body)  # type: ignore[arg-type]
    assert marked(marked(event)) == marked(event)
    other = Event(type="Loaned", data=body)
    assert marked(other) is other


@pytest.mark.parametrize("value", [b"false", b"1", b'"yes"'])
def test_a_mark_that_is_none_is_refused(value: bytes) -> None:
    data = b'{"copied":' + value + b',"name":"n","in":1,"events":[{"type":"T"}]}'
    with pytest.raises(InvalidInput, match="copied: must be true"):
        World().streams.append("Loan-1", [Event(type=TIMER_SET, data=data)])
