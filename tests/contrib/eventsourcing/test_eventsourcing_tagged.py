"""What the recorder of events with tags promises besides what the `eventsourcing` library asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from eventsourcing.dcb.api import DCBAppendCondition, DCBEvent, DCBQuery, DCBQueryItem
from eventsourcing.persistence import (
    DataError,
    IntegrityError,
    InternalError,
    OperationalError,
    ProgrammingError,
)

from epochal import Event
from epochal.contrib.eventsourcing import EpochalDCBRecorder, subscriptions
from epochal.model.outcomes import Outcome, Undetermined
from epochal.pages.items import STREAMS
from epochal.plan.ops import Put, TransactionWrite
from epochal.store.streams import Streams
from epochal.testing.stores import memory_deployment, memory_streams
from tests.simulation.gradual import Gradual

WAYS = pytest.mark.parametrize("near", [0, 1_000], ids=["by tags", "by the log"])


def event(number: int, *tags: str, kind: str = "Counted") -> DCBEvent:
    return DCBEvent(type=kind, data=b"%d" % number, tags=list(tags))


def of(*tags: str, types: Sequence[str] = ()) -> DCBQuery:
    return DCBQuery(items=[DCBQueryItem(tags=list(tags), types=list(types))])


def positions(recorder: EpochalDCBRecorder, query: DCBQuery | None = None, **options: int) -> list[int]:
    return [each.position for each in recorder.read(query, **options)]


def filled(streams: Streams, *, near: int = 0) -> EpochalDCBRecorder:
    """Ten events of each of two tags, in turns."""
    recorder = EpochalDCBRecorder(streams, "Kennel", near=near)
    for number in range(20):
        recorder.append([event(number, "even" if number % 2 else "odd")])
    return recorder


def test_events_are_a_stream_with_their_tags_as_a_reaction_would_see_them() -> None:
    streams = memory_streams()
    recorder = EpochalDCBRecorder(streams, "Kennel")
    assert recorder.append([event(1, "dog:rex", "trick:roll")]) == 1
    (found,) = streams.read("Kennel_dcb-all")
    assert (found.type, found.data, found.meta) == ("Counted", b"1", b"")
    assert found.tags == ("Kennel_dcb:dog:rex", "Kennel_dcb:trick:roll")


@WAYS
@pytest.mark.parametrize("tags", [[], ["b", "a"], ["a", "a"], ["A b:c"], ["ü"]])
def test_tags_come_back_as_they_were_given(tags: list[str], near: int) -> None:
    recorder = EpochalDCBRecorder(memory_streams(), "Kennel", near=near)
    recorder.append([event(1, *tags), event(2, "other")])
    assert [each.event.tags for each in recorder.read()] == [tags, ["other"]]
    assert [each.event.tags for each in recorder.read(of(*tags), limit=1)] == [tags]


@WAYS
def test_reads_end_where_they_are_asked_to_and_their_head_is_what_they_have_seen(near: int) -> None:
    recorder = filled(memory_streams(), near=near)
    read = recorder.read(of("odd"), after=3)
    assert ([each.position for each in read], read.head) == ([5, 7, 9, 11, 13, 15, 17, 19], 20)
    read = recorder.read(of("odd"), after=3, limit=2)
    assert (read.head, [each.position for each in read]) == (7, [5, 7])
    assert positions(recorder, of("odd"), after=99) == positions(recorder, limit=0) == []
    assert positions(recorder, DCBQuery(items=[*of("odd").items, *of("even").items])) == [*range(1, 21)]


@pytest.mark.parametrize(("tags", "units"), [((), 1), (("a",), 4), (("a", "b", "c"), 8)])
def test_an_append_costs_two_units_and_two_for_each_tag_or_one_without_tags(
    tags: tuple[str, ...], units: int
) -> None:
    streams, meter = memory_streams().metered()
    recorder = EpochalDCBRecorder(streams, "Kennel")
    recorder.append([event(1, *tags)])
    before = meter.units.write
    recorder.append([event(2, *tags)])
    assert meter.units.write - before == units


@pytest.mark.slow
def test_a_tag_is_read_by_its_own_pages_however_long_the_log_is() -> None:
    streams = memory_streams()
    recorder = EpochalDCBRecorder(streams, "Kennel")
    recorder.append([event(1, "rare")])
    for number in range(100):
        bodies = (Random(number * 10 + each).randbytes(400) for each in range(10))
        recorder.append([DCBEvent(type="Counted", data=body, tags=["common"]) for body in bodies])
    counted, meter = streams.metered()
    assert positions(EpochalDCBRecorder(counted, "Kennel"), of("rare")) == [1]
    by_tag = meter.units.read
    assert len(positions(EpochalDCBRecorder(counted, "Kennel"), of(types=["Counted"]))) == 1_001
    assert by_tag < 12
    assert meter.units.read - by_tag > 50


def test_a_read_near_the_end_of_the_log_is_one_of_its_last_page_whatever_it_asks_for() -> None:
    streams = memory_streams()
    recorder = filled(streams, near=100)
    counted, meter = streams.metered()
    reader = EpochalDCBRecorder(counted, "Kennel")
    assert positions(reader, of("odd"), after=recorder.append([event(20, "odd")]) - 1) == [21]
    assert meter.units.read <= 2


@WAYS
def test_applications_on_one_table_and_strangers_see_nothing_of_each_other(near: int) -> None:
    streams = memory_streams()
    dogs = EpochalDCBRecorder(streams, "Dogs", near=near)
    cats = EpochalDCBRecorder(streams, "Cats", near=near)
    dogs.append([event(1, "a")])
    streams.append("Other-1", [Event(type="Counted", tags=("Dogs_dcb:a",))])
    streams.tagged.append([Event(type="Counted", tags=("Dogs_dcb:a",))])
    assert (positions(dogs, of("a")), positions(cats, of("a"))) == ([1], [])
    assert cats.append([event(1, "a")], DCBAppendCondition(of("a"))) == 1
    with pytest.raises(IntegrityError):
        dogs.append([event(2, "a")], DCBAppendCondition(of("a")))


# An append that is being carried out shows item by item: the log before its tags, or after them.


def of_tags(write: TransactionWrite) -> bool:
    key = write.item if isinstance(write, Put) else write.key
    return key["p"]["S"].startswith("$tag-")


def gradual(late: Callable[[TransactionWrite], bool]) -> EpochalDCBRecorder:
    """With an event, and another whose append is under way."""
    tables = Gradual({"streams": STREAMS})
    deployment = memory_deployment(tables)
    patient = replace(deployment.driver, sleep=lambda _: None)
    recorder = EpochalDCBRecorder(replace(deployment, driver=patient).streams, "Kennel", near=0)
    recorder.append([event(1, "a")])
    tables.late = late
    recorder.append([event(2, "a")])
    assert tables.busy
    return recorder


@pytest.mark.parametrize("late", [of_tags, lambda write: not of_tags(write)], ids=["tags", "log"])
def test_a_read_has_all_that_matches_up_to_its_head(late: Callable[[TransactionWrite], bool]) -> None:
    read = gradual(late).read(of("a"))
    assert [each.position for each in read] == [*range(1, (read.head or 0) + 1)]


@pytest.mark.parametrize("late", [of_tags, lambda write: not of_tags(write)], ids=["tags", "log"])
def test_an_append_that_shows_in_parts_is_in_the_way(late: Callable[[TransactionWrite], bool]) -> None:
    recorder = gradual(late)
    with pytest.raises(IntegrityError):
        recorder.append([event(3, "a")], DCBAppendCondition(of("a"), after=1))
    assert recorder.append([event(3, "a")], DCBAppendCondition(of("a"), after=2)) == 3


# Writers in a race.


def overtaken(monkeypatch: pytest.MonkeyPatch, by: DCBEvent, times: int) -> EpochalDCBRecorder:
    """A recorder, each of whose first appends another overtakes between its look and its write."""
    streams = memory_streams()
    recorder, other = (EpochalDCBRecorder(streams, "Kennel", near=0) for _ in range(2))
    genuine, left = Streams.try_append, [None] * times

    def late(store: Streams, stream: str, events: Sequence[Event], **options: object) -> Outcome:
        if left:
            left.pop()
            monkeypatch.setattr(Streams, "try_append", genuine)
            other.append([by])
            monkeypatch.setattr(Streams, "try_append", late)
        return genuine(store, stream, events, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Streams, "try_append", late)
    return recorder


@pytest.mark.parametrize("query", [of("a"), of(types=["Named"]), DCBQuery()], ids=["tag", "type", "all"])
def test_what_matches_and_came_between_look_and_write_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch, query: DCBQuery
) -> None:
    recorder = overtaken(monkeypatch, event(1, "a", kind="Named"), 1)
    with pytest.raises(IntegrityError):
        recorder.append([event(2, "a")], DCBAppendCondition(query))
    assert positions(recorder) == [1]


def test_what_came_between_and_does_not_match_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = overtaken(monkeypatch, event(1, "b"), 3)
    assert recorder.append([event(2, "a")], DCBAppendCondition(of("a"))) == 4


def test_who_is_overtaken_at_every_attempt_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = overtaken(monkeypatch, event(1, "b"), 100)
    with pytest.raises(OperationalError, match="overtaken by other writers at each of 10 attempts"):
        recorder.append([event(2, "a")], DCBAppendCondition(of("a")))


@WAYS
def test_places_of_a_course_go_to_no_more_students_than_there_are(near: int) -> None:
    streams, taken = memory_streams(), of("course")

    def subscribe(student: int) -> None:
        recorder = EpochalDCBRecorder(streams, "School", near=near)
        while len(list(read := recorder.read(taken))) < 5:
            with suppress(IntegrityError, OperationalError):
                recorder.append([event(student, "course")], DCBAppendCondition(taken, after=read.head))
                return

    students = [threading.Thread(target=subscribe, args=(student,)) for student in range(12)]
    for each in students:
        each.start()
    for each in students:
        each.join()
    assert positions(EpochalDCBRecorder(streams, "School"), taken) == [1, 2, 3, 4, 5]


# Subscriptions and refusals.


def test_a_subscription_gets_what_matches_of_its_own_process_and_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 0.001)
    streams = memory_streams()
    here, there = (EpochalDCBRecorder(streams, "Kennel") for _ in range(2))
    there.append([event(1, "b"), event(2, "a")])
    with here.subscribe(of("a")) as subscription:
        assert next(subscription).position == 2
        there.append([event(3, "b"), event(4, "a")])
        assert next(subscription).position == 4
        here.append([event(5, "a")])
        assert next(subscription).position == 5
    assert list(subscription) == []


def test_a_subscription_that_waits_gets_what_its_own_process_appends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 1_000)
    recorder = EpochalDCBRecorder(memory_streams(), "Kennel")
    subscription, found = recorder.subscribe(), list[int]()
    waiting = threading.Thread(target=lambda: found.append(next(subscription).position))
    waiting.start()
    recorder.append([event(1)])
    waiting.join(30)
    assert found == [1]


def test_a_subscription_that_waits_ends_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 60)
    subscription = EpochalDCBRecorder(memory_streams(), "Kennel").subscribe()
    waiting = threading.Thread(target=list, args=(subscription,))
    waiting.start()
    subscription.stop()
    waiting.join(30)
    assert not waiting.is_alive()


@pytest.mark.parametrize("tags", [["\n"], ["a" * 512], [str(number) for number in range(100)]])
def test_tags_that_nothing_can_hold_are_refused(tags: list[str]) -> None:
    recorder = EpochalDCBRecorder(memory_streams(), "Kennel")
    with pytest.raises(DataError):
        recorder.append([event(1, *tags)])
    assert recorder.append([event(1, *tags[1:])]) == 1
    with pytest.raises(ProgrammingError):
        recorder.append([])


def test_what_somebody_else_wrote_into_the_log_is_said_to_be_none_of_the_applications() -> None:
    streams = memory_streams()
    recorder = EpochalDCBRecorder(streams, "Kennel")
    streams.append("Kennel_dcb-all", [Event(type="Foreign", meta=b"[1]")])
    with pytest.raises(InternalError, match="Kennel_dcb-all@0 was not written by an application"):
        positions(recorder)


def test_a_lost_response_that_nobody_can_tell_of_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Streams, "try_append", lambda *_, **__: Undetermined(first=0))
    with pytest.raises(OperationalError, match="a response was lost"):
        EpochalDCBRecorder(memory_streams(), "Kennel").append([event(1, "a")])
