"""Time goes by in memory: timers fire in order, reactions run, and nothing waits."""

from __future__ import annotations

import itertools
import time

import pytest

from epochal.contrib.timers.stores import timers_of
from epochal.errors import EventsPruned, InvalidInput
from epochal.model.events import Event
from epochal.model.moments import parse_time
from epochal.model.stream_names import TIMER_FIRED, TIMER_SET
from epochal.reactions.definition import Delivery, Reaction
from epochal.scheduling import after, cancel, later
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore

REMINDED = Event(type="Reminded")
DAY = 86_400 * 10**7


def types(streams: Streams, stream: str = "Loan-17") -> list[str]:
    return [event.type for event in streams.read(stream)]


def test_a_timer_fires_once_when_its_time_has_come_and_not_before() -> None:
    feed = MemoryStore()
    feed.streams.append("Loan-17", [Event(type="Lent"), later("reminder", [REMINDED], at=after(days=14))])
    assert feed.advance(days=13, hours=23) == 0
    assert types(feed.streams) == ["Lent", TIMER_SET]
    assert feed.advance(hours=1) == 1
    assert types(feed.streams) == ["Lent", TIMER_SET, "Reminded", TIMER_FIRED]
    assert feed.advance(days=400) == 0
    assert timers_of(feed.streams).pending("Loan-17") == ()


def test_a_timer_that_a_reaction_sets_is_due_at_the_end_of_the_same_span_on_a_slow_machine_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count(time.time_ns(), 10**9)
    monkeypatch.setattr(time, "time_ns", lambda: next(seconds))
    feed = MemoryStore()

    def remind(delivery: Delivery) -> None:
        timers_of(feed.streams).schedule(delivery.stream, "reminder", [REMINDED], at=after(days=14))

    reminds = Reaction(name="reminds", handler=remind, types=frozenset({"Lent"}))
    feed.streams.append("Loan-17", [Event(type="Lent")])
    assert feed.advance(reminds, days=14) == 1


def test_what_is_called_off_never_fires() -> None:
    feed = MemoryStore()
    timers_of(feed.streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    feed.advance(days=13)
    feed.streams.append("Loan-17", [cancel("reminder")])
    assert feed.advance(days=30) == 0
    assert REMINDED.type not in types(feed.streams)


def test_timers_fire_in_the_order_of_their_times_each_at_its_own() -> None:
    feed = MemoryStore()
    for stream, days in (("Loan-1", 3), ("Loan-2", 1), ("Loan-3", 2)):
        timers_of(feed.streams).schedule(stream, "reminder", [REMINDED], at=after(days=days))
    begun = parse_time(next(feed.streams.read("Loan-2")).timestamp)
    assert feed.advance(days=3) == 3
    fired = {stream: list(feed.streams.read(stream))[1] for stream in ("Loan-1", "Loan-2", "Loan-3")}
    moments = [parse_time(fired[stream].timestamp) - begun for stream in ("Loan-2", "Loan-3", "Loan-1")]
    assert [round(each / DAY, 2) for each in moments] == [1, 2, 3]


def test_the_clock_of_every_store_has_moved() -> None:
    feed = MemoryStore()
    feed.advance(days=14)
    for store in (feed.streams, feed.tips, feed.tagged, feed.dcb):
        assert store.now() > feed._deployment.streams.now() + 13 * 86_400 * 10**9  # noqa: SLF001  the clock on the wall
    feed.streams.append("Loan-17", [REMINDED], idempotency_key="k")
    feed.advance(hours=25)
    assert not feed.streams.append("Loan-17", [REMINDED], idempotency_key="k").replayed


def test_a_firing_may_set_the_next_timer() -> None:
    feed = MemoryStore()
    second = later("weekly", [REMINDED], at=after(weeks=1))
    timers_of(feed.streams).schedule("Loan-17", "weekly", [REMINDED, second], at=after(weeks=1))
    assert feed.advance(weeks=2) == 2
    assert types(feed.streams).count("Reminded") == 2


def test_the_clock_stands_still_but_for_what_goes_by() -> None:
    feed = MemoryStore()
    feed.advance(days=1)
    begun = feed.streams.now()
    feed.tagged.append([Event(type="A", tags=("a:1",))] * 3)
    timers_of(feed.tagged).schedule(["a:1"], "r", [Event(type="B", tags=("a:1",))], at=after(days=1))
    assert feed.streams.now() == begun
    assert feed.advance(days=1) == 1


def test_reactions_run_at_every_moment_and_set_timers_themselves() -> None:
    feed = MemoryStore()
    came = list[str]()

    def remind(delivery: Delivery) -> None:
        for event in delivery.each():
            came.append(f"{event.stream} {event.type}")
            if event.type == "Lent":
                timers_of(feed.streams).schedule(event.stream, "reminder", [REMINDED], at=after(days=14))

    reaction = Reaction(name="reminders", handler=remind)
    feed.streams.append("Loan-17", [Event(type="Lent")])
    assert feed.advance(reaction, days=14) == 1
    assert came == ["Loan-17 Lent", "Loan-17 Reminded"]


@pytest.mark.parametrize("name", ["tagged", "dcb"])
def test_timers_of_tags_fire_under_their_tags(name: str) -> None:
    feed = MemoryStore()
    store = getattr(feed, name)
    lapsed = Event(type="Lapsed", tags=("seat:1",))
    timers_of(store).schedule(["seat:1", "show:2"], "hold", [lapsed], at=after(minutes=10))
    assert (feed.advance(minutes=9), feed.advance(minutes=1)) == (0, 1)
    assert timers_of(store).pending(["seat:1"]) == ()


def test_timers_of_other_layouts_of_streams_fire_too() -> None:
    feed = MemoryStore()
    timers_of(feed.tips).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    assert feed.advance(days=14) == 1
    assert types(feed.tips) == [TIMER_SET, "Reminded", TIMER_FIRED]


@pytest.mark.parametrize("tags", [(), ("loan:17",)], ids=["of a stream", "of tags"])
def test_timers_that_set_one_another_without_a_pause_end_with_an_error(
    tags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochal.contrib.timers.testing._MOST", 5)
    feed = MemoryStore()

    def again(_: Delivery) -> None:
        event = later("again", [Event(type="Came", tags=tags)], at=after(), tags=tags)
        feed.tagged.append([event]) if tags else feed.streams.append("Loan-17", [event])

    again(Delivery(group="g", partition=0, stream="", events=(), attempt=1))
    reaction = Reaction(name="again", handler=again, types=frozenset({"Came"}))
    with pytest.raises(InvalidInput, match="advance: would not end"):
        feed.advance(reaction, days=1)


def test_time_does_not_go_back() -> None:
    with pytest.raises(InvalidInput):
        MemoryStore().advance(days=-1)


def test_the_fixtures_have_time_go_by(epochal_feed: MemoryStore, epochal_streams: Streams) -> None:
    timers_of(epochal_streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    assert epochal_feed.advance(days=14) == 1


def test_a_timer_whose_setting_was_pruned_is_gone() -> None:
    feed = MemoryStore()
    timers_of(feed.streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    feed.streams.append("Loan-17", [REMINDED])
    feed.streams.prune("Loan-17", 1)
    assert feed.advance(days=14) == 0
    with pytest.raises(EventsPruned):
        list(feed.streams.read("Loan-17", start=0))
