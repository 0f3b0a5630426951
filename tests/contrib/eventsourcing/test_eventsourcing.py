"""What the recorders for the `eventsourcing` library promise besides what it asks."""

from __future__ import annotations

import threading
from itertools import islice
from typing import cast
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import (
    DataError,
    InfrastructureFactoryError,
    IntegrityError,
    InternalError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
    StoredEvent,
    Tracking,
)
from eventsourcing.utils import Environment, get_topic

from epochal import Event, errors
from epochal.contrib.eventsourcing import (
    EpochalAggregateRecorder,
    EpochalApplicationRecorder,
    EpochalFactory,
    EpochalProcessRecorder,
    subscriptions,
)
from epochal.contrib.eventsourcing.records import as_the_library_has_them
from epochal.model.outcomes import Undetermined
from epochal.model.stream_append import StreamAppend
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

REX = UUID(int=1)


def event(version: int, originator: UUID | str = REX, state: bytes = b"{}") -> StoredEvent:
    return StoredEvent(originator, version, "kennel:Dog.TrickAdded", state)


def aggregates(streams: Streams, *, gaps: bool = False) -> EpochalAggregateRecorder:
    return EpochalAggregateRecorder(streams, "Dogs", gaps=gaps)


def test_an_aggregate_is_a_stream_and_its_events_are_what_a_reaction_would_see() -> None:
    streams = memory_streams()
    aggregates(streams).insert_events([event(1, state=b'{"trick":"roll"}')])
    (found,) = streams.read(f"Dogs-{REX}")
    assert (found.index, found.type, found.data, found.meta) == (
        0,
        "kennel:Dog.TrickAdded",
        b'{"trick":"roll"}',
        b"",
    )


@pytest.mark.parametrize("first", [0, 1])
def test_versions_are_counted_from_0_or_1_and_selected_from_either_end(first: int) -> None:
    recorder = aggregates(memory_streams())
    for version in range(first, first + 5):
        recorder.insert_events([event(version)])
    versions = list(range(first, first + 5))
    found = [each.originator_version for each in recorder.select_events(REX)]
    assert found == versions
    for gt in (None, *range(-1, 8)):
        for lte in (None, *range(-1, 8)):
            wanted = [each for each in versions if (gt is None or each > gt) and (lte is None or each <= lte)]
            for desc in (False, True):
                expected = wanted[::-1] if desc else wanted
                every = recorder.select_events(REX, gt=gt, lte=lte, desc=desc)
                assert [each.originator_version for each in every] == expected
                some = recorder.select_events(REX, gt=gt, lte=lte, desc=desc, limit=2)
                assert [each.originator_version for each in some] == expected[:2]


@pytest.mark.parametrize("first", [0, 1])
def test_a_version_that_is_there_or_is_not_the_next_one_is_refused(first: int) -> None:
    recorder = aggregates(memory_streams())
    recorder.insert_events([event(first), event(first + 1)])
    for version in (first, first + 1, first + 4):
        with pytest.raises(IntegrityError):
            recorder.insert_events([event(version)])
    with pytest.raises(IntegrityError, match="does not follow"):
        recorder.insert_events([event(first + 2), event(first + 4)])
    assert len(recorder.select_events(REX)) == 2


def test_the_first_version_of_an_aggregate_is_0_or_1() -> None:
    with pytest.raises(IntegrityError, match="has 0 events, so version 5 cannot be added"):
        aggregates(memory_streams()).insert_events([event(5)])


def test_snapshots_leave_versions_out_and_only_increase() -> None:
    recorder = aggregates(memory_streams(), gaps=True)
    for version in (5, 10, 40):
        recorder.insert_events([event(version)])
    assert [each.originator_version for each in recorder.select_events(REX, gt=5)] == [10, 40]
    (latest,) = recorder.select_events(REX, lte=39, desc=True, limit=1)
    assert latest.originator_version == 10
    with pytest.raises(IntegrityError, match="is at version 40"):
        recorder.insert_events([event(20)])


def test_an_insert_whose_outcome_nobody_can_tell_is_not_made_again() -> None:
    class Lost:
        calls = 0

        def try_append_all(self, _: object) -> Undetermined:
            self.calls += 1
            return Undetermined(streams={})

    lost = Lost()
    with pytest.raises(OperationalError, match="a response was lost"):
        EpochalAggregateRecorder(cast("Streams", lost), "Dogs").insert_events([event(1)])
    assert lost.calls == 1


def test_several_aggregates_are_saved_all_or_not_at_all() -> None:
    streams = memory_streams()
    recorder = EpochalApplicationRecorder(streams, "Dogs")
    recorder.insert_events([event(1, "rex")])
    with pytest.raises(IntegrityError):
        recorder.insert_events([event(1, "fido"), event(1, "rex")])
    assert recorder.select_events("fido") == []
    assert recorder.max_notification_id() == 1
    assert recorder.insert_events([event(1, "fido"), event(2, "rex"), event(2, "fido")]) == [2, 3, 4]
    order = [(each.originator_id, each.originator_version) for each in recorder.select_notifications(2, 10)]
    assert order == [("fido", 1), ("rex", 2), ("fido", 2)]


def test_a_notification_tells_whose_event_it_is_as_the_kind_of_id_that_it_was() -> None:
    recorder = EpochalApplicationRecorder(memory_streams(), "Dogs")
    recorder.insert_events([event(1), event(0, "dog-1")])
    assert [each.originator_id for each in recorder.select_notifications(None, 10)] == [REX, "dog-1"]


def test_a_save_of_one_aggregate_reads_two_last_pages_and_writes_four_units() -> None:
    streams = memory_streams()
    recorder = EpochalApplicationRecorder(streams, "Dogs")
    recorder.insert_events([event(1)])
    counted, meter = streams.metered()
    EpochalApplicationRecorder(counted, "Dogs").insert_events([event(2)])
    assert (meter.requests, meter.units.read) == (3, 2)
    assert meter.units.write == 4


def test_a_limit_is_of_the_notifications_of_the_topics_and_not_of_those_passed_over() -> None:
    recorder = EpochalApplicationRecorder(memory_streams(), "Dogs")
    recorder.insert_events([event(version) for version in range(1, 4)])
    recorder.insert_events(
        [StoredEvent("rex", version, "kennel:Dog.Named", b"{}") for version in range(1, 4)]
    )
    found = recorder.select_notifications(1, 2, topics=["kennel:Dog.Named"])
    assert [each.id for each in found] == [4, 5]
    assert [each.id for each in recorder.select_notifications(1, 9, 5, topics=["kennel:Dog.Named"])] == [4, 5]


def test_a_position_moves_with_the_events_made_of_it_or_neither_does() -> None:
    recorder = EpochalProcessRecorder(memory_streams(), "Kennel")
    assert recorder.insert_events([event(1)], tracking=Tracking("Dogs", 7)) == [1]
    with pytest.raises(IntegrityError, match="tracked to 7"):
        recorder.insert_events([event(2)], tracking=Tracking("Dogs", 7))
    with pytest.raises(IntegrityError):
        recorder.insert_events([event(1)], tracking=Tracking("Dogs", 8))
    assert recorder.max_tracking_id("Dogs") == 7
    assert len(recorder.select_events(REX)) == 1


def test_of_two_who_process_one_notification_at_once_one_does() -> None:
    streams = memory_streams()
    other = EpochalProcessRecorder(streams, "Kennel")

    class Slower(EpochalProcessRecorder):
        def tracked(self, tracking: Tracking) -> StreamAppend:
            found = super().tracked(tracking)
            if other.max_tracking_id("Dogs") is None:
                other.insert_events([event(1, "other")], tracking=tracking)
            return found

    slower = Slower(streams, "Kennel")
    with pytest.raises(IntegrityError, match="tracked to 7"):
        slower.insert_events([event(1)], tracking=Tracking("Dogs", 7))
    assert [each.originator_id for each in slower.select_notifications(None, 10)] == ["other"]


def test_a_position_is_written_in_place_and_its_stream_tells_the_feed_nothing() -> None:
    streams = memory_streams()
    recorder = EpochalProcessRecorder(streams, "Kennel")
    for position in range(1, 50):
        recorder.insert_tracking(Tracking("Dogs", position))
    state = streams.load("Kennel_tracking-Dogs")
    assert state is not None
    assert (state.version, len(state.unfolds), recorder.max_tracking_id("Dogs")) == (0, 1, 49)


def test_a_subscription_hears_of_what_another_process_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 0.01)
    streams = memory_streams()
    here, there = EpochalApplicationRecorder(streams, "Dogs"), EpochalApplicationRecorder(streams, "Dogs")
    there.insert_events([event(1), event(2)])
    with here.subscribe(gt=1) as subscription:
        assert next(subscription).originator_version == 2
        there.insert_events([event(3), event(4)])
        assert [each.id for each in islice(subscription, 2)] == [3, 4]


def test_a_subscription_that_waits_ends_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 60)
    subscription = EpochalApplicationRecorder(memory_streams(), "Dogs").subscribe()
    waiting = threading.Thread(target=list, args=(subscription,))
    waiting.start()
    for _ in range(100):
        waiting.join(0.05)
        subscription.stop()
        if not waiting.is_alive():
            return
    raise AssertionError("it waits for an insert that nobody will make")


def test_an_insert_between_a_look_and_the_wait_for_it_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 1_000)
    inserts = subscriptions.Inserts()
    looked = inserts.count
    inserts.add()
    inserts.wait(looked)


def test_a_subscription_to_topics_reads_each_notification_once_whether_it_is_of_one_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 0.001)
    streams, others = memory_streams(), 60
    writer = EpochalApplicationRecorder(streams, "Dogs")
    for version in range(1, others + 1):
        writer.insert_events([event(version)])
    counted, meter = streams.metered()
    reader = EpochalApplicationRecorder(counted, "Dogs")
    polls: list[float] = []

    def wait(_: int) -> None:
        polls.append(meter.units.read)
        if len(polls) == 20:
            writer.insert_events([StoredEvent("rex", 1, "kennel:Dog.Named", b"{}")])

    monkeypatch.setattr(reader.inserts, "wait", wait)
    with reader.subscribe(topics=["kennel:Dog.Named"]) as subscription:
        assert next(subscription).id == others + 1
    once = polls[0]
    assert polls[-1] - once <= (len(polls) - 1) * 1.0, "each look reads the last page, and not the log"
    assert once > 1.0


def test_a_position_whose_stream_was_deleted_is_none_and_begins_anew_where_it_may() -> None:
    streams = memory_streams()
    recorder = EpochalProcessRecorder(streams, "Kennel")
    recorder.insert_tracking(Tracking("Dogs", 7))
    streams.delete("Kennel_tracking-Dogs", leave_open=True)
    assert recorder.max_tracking_id("Dogs") is None
    recorder.insert_tracking(Tracking("Dogs", 1))
    assert recorder.max_tracking_id("Dogs") == 1
    streams.delete("Kennel_tracking-Dogs")
    assert recorder.max_tracking_id("Dogs") is None
    with pytest.raises(OperationalError):
        recorder.insert_tracking(Tracking("Dogs", 2))


@pytest.mark.parametrize("meta", [b"", b"text", b"[1]", b'{"originator_id":"rex","originator_version":"x"}'])
def test_what_somebody_else_wrote_into_the_log_is_said_to_be_no_notification(meta: bytes) -> None:
    streams = memory_streams()
    recorder = EpochalApplicationRecorder(streams, "Dogs")
    recorder.insert_events([event(1)])
    streams.append("Dogs_log-all", [Event(type="Foreign", meta=meta)])
    with pytest.raises(InternalError, match="Dogs_log-all@1 was not written by an application"):
        recorder.select_notifications(1, 10)
    assert len(recorder.select_notifications(1, 1)) == 1


def test_an_event_that_somebody_else_appended_to_an_aggregate_has_its_place_as_its_version() -> None:
    streams = memory_streams()
    recorder = aggregates(streams)
    recorder.insert_events([event(1)])
    streams.append(f"Dogs-{REX}", [Event(type="Foreign", meta=b'{"by":"hand"}')])
    assert [each.originator_version for each in recorder.select_events(REX)] == [1, 2]
    streams.append(f"Dogs-{REX}", [Event(type="Foreign", meta=b"by hand")])
    with pytest.raises(InternalError, match="@2 was not written by an application"):
        recorder.select_events(REX)


def test_an_application_whose_name_is_no_category_is_refused() -> None:
    factory = EpochalFactory(Environment("Dogs-EU", {"EPOCHAL_STREAMS_TABLE": ":memory:"}))
    for recorder in (factory.application_recorder, factory.aggregate_recorder, factory.process_recorder):
        with pytest.raises(InfrastructureFactoryError, match="'Dogs-EU' cannot name streams"):
            recorder()


@pytest.mark.parametrize("kept", ["log", "snapshots", "tracking"])
def test_an_application_named_like_what_another_keeps_beside_its_events_is_refused(kept: str) -> None:
    """`all` of `Dogs_log` would be the log of `Dogs`."""
    factory = EpochalFactory(Environment(f"Dogs_{kept}", {"EPOCHAL_STREAMS_TABLE": ":memory:"}))
    for recorder in (factory.application_recorder, factory.aggregate_recorder, factory.process_recorder):
        with pytest.raises(InfrastructureFactoryError, match=f"'Dogs_{kept}' cannot name streams"):
            recorder()


def test_what_no_item_and_no_name_can_hold_is_the_data_s_fault() -> None:
    recorder = aggregates(memory_streams())
    with pytest.raises(DataError, match="may hold only"):
        recorder.insert_events([event(1, "rex/fido")])
    many = [event(1, uuid4()) for _ in range(101)]
    with pytest.raises(DataError, match="at most 100"):
        recorder.insert_events(many)


@pytest.mark.parametrize(
    ("error", "twin"),
    [
        (errors.WrongExpectedVersion("Dogs-1", 1, 2), IntegrityError),
        (errors.StreamDeleted("Dogs-1", 2), IntegrityError),
        (errors.TooLarge("events", 5, 4), DataError),
        (errors.WrongTable("t"), ProgrammingError),
        (errors.MissingTable("t"), ProgrammingError),
        (errors.Misconfigured("no region", "name one"), ProgrammingError),
        (errors.Unavailable("throttled"), OperationalError),
        (errors.OutcomeUndetermined("Dogs-1", 2), OperationalError),
        (errors.CorruptData("hole"), InternalError),
    ],
)
def test_errors_are_those_that_the_library_s_applications_catch(
    error: errors.EpochalError, twin: type[PersistenceError]
) -> None:
    with pytest.raises(twin, match=str(error)) as raised, as_the_library_has_them():
        raise error
    assert raised.value.__cause__ is error


def test_the_recorders_of_a_factory_share_one_store_named_after_the_application() -> None:
    factory = EpochalFactory(Environment("Dogs", {"DOGS_EPOCHAL_STREAMS_TABLE": ":memory:"}))
    factory.application_recorder().insert_events([event(1)])
    assert len(factory.aggregate_recorder().select_events(REX)) == 1
    assert factory.aggregate_recorder("snapshots").select_events(REX) == []
    assert [each.type for each in factory.streams.read(f"Dogs-{REX}")] == ["kennel:Dog.TrickAdded"]


def test_an_environment_that_names_no_table_or_another_kind_of_class_is_told_so() -> None:
    with pytest.raises(InfrastructureFactoryError, match="EPOCHAL_STREAMS_TABLE"):
        EpochalFactory(Environment("Dogs", {})).application_recorder()
    env = {"EPOCHAL_STREAMS_TABLE": ":memory:", "APPLICATION_RECORDER_TOPIC": get_topic(Event)}
    with pytest.raises(InfrastructureFactoryError, match="subclass of EpochalApplicationRecorder"):
        EpochalFactory(Environment("Dogs", env)).application_recorder()
