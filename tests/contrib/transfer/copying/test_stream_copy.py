"""One stream, copied to another layout or another store: what is the same, what is refused, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from epochal import AtVersion, Event, Recorded, Unfold, after, later
from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import ARCHIVE, TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.copies import AggregateSource
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.timers.stores import timers_of
from epochal.contrib.transfer.copying import batches, stream_copy
from epochal.contrib.transfer.copying.sources import Original, StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.errors import Unavailable
from epochal.model.bodies import content_of
from epochal.plan.ops import Get, Op, Query, Reply
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.store.tagged_importer import unmarked
from epochal.testing.memory import Fault, Faults, MemoryTables
from epochal.testing.stores import memory_streams

LARGE = 500_000
READS = (Get, Query)
STORES: dict[str, Callable[[], Streams]] = {"tips": memory_tips, "pages": memory_streams}


@pytest.fixture(params=["tips to pages", "pages to tips", "pages to pages", "tips to tips"])
def copier(request: pytest.FixtureRequest) -> StreamCopier:
    """Stores of their own, each with a bucket of its own."""
    source, _, target = request.param.partition(" to ")
    return StreamCopier(source=StreamSource(STORES[source]()), target=STORES[target]())


def original(copier: StreamCopier) -> Streams:
    assert isinstance(copier.source, StreamSource)
    return copier.source.store


def append(store: Streams, stream: str, count: int) -> None:
    first = found.version if (found := store.load(stream)) else 0
    store.append(stream, [Event(type=f"E{n}", data=f"{n}".encode()) for n in range(first, first + count)])


def contents(events: Sequence[Recorded]) -> list[tuple[object, ...]]:
    return [(e.index, e.type, e.data, e.meta, e.timestamp, e.correlation_id, e.causation_id) for e in events]


def assert_same(copier: StreamCopier, stream: str) -> None:
    ours, theirs = (list(each.read(stream)) for each in (original(copier), copier.target))
    assert contents(ours) == contents(theirs)


def test_a_copy_has_everything_that_its_original_has(copier: StreamCopier) -> None:
    events = [
        Event(type="Opened", data=b'{"by": "ann"}', meta=b"m", timestamp="2020-02-03T04:05:06.1234567Z"),
        Event(type="Paid", data=b"\x00\xff", correlation_id="c", causation_id="w"),
        Event(type="Empty", timestamp="1999-12-31T23:59:59+02:00"),
    ]
    original(copier).append("Cart-1", events)
    original(copier).append("Cart-1", [Event(type="Closed")])
    found = copier.copy("Cart-1")
    assert (found.ending, found.version, found.copied, found.events) == ("copied", 4, 4, 4)
    assert len(found.digest) == 64
    assert_same(copier, "Cart-1")


def test_a_second_run_adds_nothing_and_compares_everything(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    first = copier.copy("Cart-1")
    again = copier.copy("Cart-1")
    assert (again.ending, again.copied) == ("unchanged", 0)
    assert (again.events, again.digest) == (3, first.digest)
    assert copier.target.head("Cart-1").version == 3  # type: ignore[union-attr]


def test_what_was_appended_since_follows(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    copier.copy("Cart-1")
    append(original(copier), "Cart-1", 2)
    found = copier.copy("Cart-1")
    assert (found.ending, found.copied, found.events) == ("copied", 2, 5)
    assert_same(copier, "Cart-1")


@pytest.mark.parametrize("pruned", [4, 5, 6])
def test_unfolds_come_along_whatever_has_been_pruned_since_they_were_made(
    copier: StreamCopier, pruned: int
) -> None:
    store = original(copier)
    append(store, "Cart-1", 3)
    store.append("Cart-1", [], unfolds=[Unfold(type="State", data=b"three"), Unfold(type="Other", meta=b"m")])
    append(store, "Cart-1", 3)
    store.prune("Cart-1", pruned)

    first = copier.copy("Cart-1")

    assert (first.ending, first.version, first.first) == ("copied" if pruned < 6 else "unchanged", 6, pruned)
    for streams in (store, copier.target):
        state = streams.load("Cart-1")
        assert state is not None
        assert [(each.version, each.type, each.data, each.meta) for each in state.unfolds] == [
            (3, "State", b"three", b""),
            (3, "Other", b"", b"m"),
        ]
    append(store, "Cart-1", 1)
    assert copier.copy("Cart-1").ending == "copied"
    assert copier.copy("Cart-1").ending == "unchanged"
    assert_same(copier, "Cart-1")


def test_a_copy_that_lacks_unfolds_which_it_can_have_no_more_is_not_called_sound(
    copier: StreamCopier,
) -> None:
    store = original(copier)
    append(store, "Cart-1", 3)
    store.append("Cart-1", [], unfolds=[Unfold(type="State", data=b"three")])
    append(store, "Cart-1", 3)
    copier.copy("Cart-1")
    copier.target.append("Cart-1", [], unfolds=[])
    append(store, "Cart-1", 1)

    found = copier.copy("Cart-1")

    assert (found.ending, found.why) == ("differs", "its unfolds have version 3 and can no longer be added")
    assert copier.target.head("Cart-1").version == 6  # type: ignore[union-attr]


def test_large_bodies_are_copied_from_bucket_to_bucket(copier: StreamCopier) -> None:
    large = Random(1).randbytes(LARGE)
    original(copier).append("Cart-1", [Event(type="Large", data=large), Event(type="Small")])
    original(copier).append("Cart-1", [], unfolds=[Unfold(type="State", data=large[::-1])])
    assert copier.copy("Cart-1").ending == "copied"
    assert_same(copier, "Cart-1")
    state = copier.target.load("Cart-1")
    assert state is not None
    assert state.unfolds[0].data == large[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("data", [Random(1).randbytes(LARGE), Random(1).randbytes(LARGE).hex().encode()])
def test_a_timer_that_lies_in_the_bucket_is_copied(copier: StreamCopier, data: bytes) -> None:
    fined = Event(type="Fined", data=data)
    original(copier).append("Loan-1", [later("fine", [fined], at=after(days=1))])
    assert copier.copy("Loan-1").ending == "copied"
    assert copier.copy("Loan-1").ending == "unchanged"
    ours, theirs = (list(each.read("Loan-1")) for each in (original(copier), copier.target))
    assert contents([replace(event, data=unmarked(content_of(event.data))) for event in theirs]) == contents(
        ours
    )
    (timer,) = timers_of(copier.target).pending("Loan-1")
    assert (timer.events, timer.copied) == ((fined,), True)


def test_a_body_that_is_gone_from_the_bucket_is_told_and_nothing_is_written(copier: StreamCopier) -> None:
    large = Random(1).randbytes(LARGE)
    original(copier).append("Cart-1", [Event(type="Large", data=large)])
    bodies = original(copier).codec.bodies
    bodies.objects.clear()  # type: ignore[union-attr]
    found = copier.copy("Cart-1")
    assert found.ending == "refused"
    assert "is not in the bucket" in found.why
    assert copier.target.load("Cart-1") is None


def test_unfolds_are_written_at_the_version_that_they_were_made_from(copier: StreamCopier) -> None:
    store = original(copier)
    append(store, "Cart-1", 2)
    unfold = Unfold(type="State", data=b"two", meta=b"m", timestamp="2020-01-01T00:00:00Z")
    append(store, "Cart-1", 1)
    store.append("Cart-1", [Event(type="E3")], unfolds=[unfold])
    append(store, "Cart-1", 3)
    assert copier.copy("Cart-1").ending == "copied"
    state, wanted = copier.target.load("Cart-1"), store.load("Cart-1")
    assert state is not None
    assert wanted is not None
    assert state.unfolds == wanted.unfolds
    assert [each.version for each in state.unfolds] == [4]
    assert_same(copier, "Cart-1")


@pytest.mark.parametrize(
    "unfolds",
    [
        [],
        [Unfold(type="State", data=b"later", meta=b"m")],
        [Unfold(type="State", data=b"first", meta=b"later")],
        [Unfold(type="Other", data=b"first", meta=b"m")],
    ],
    ids=["none", "data", "metadata", "type"],
)
def test_unfolds_that_are_changed_or_removed_alone_follow(
    copier: StreamCopier, unfolds: list[Unfold]
) -> None:
    store = original(copier)
    first = Unfold(type="State", data=b"first", meta=b"m")
    store.append("Cart-1", [Event(type="Opened")], unfolds=[first])
    copier.copy("Cart-1")
    store.append("Cart-1", [], unfolds=unfolds)
    assert copier.copy("Cart-1").ending == "copied"
    state = copier.target.load("Cart-1")
    assert state is not None
    there = [(each.type, each.data, each.meta) for each in state.unfolds]
    assert there == [(each.type, each.data, each.meta) for each in unfolds]
    assert copier.copy("Cart-1").ending == "unchanged"


def test_unfolds_without_events_are_copied(copier: StreamCopier) -> None:
    original(copier).append("Cart-1", [], unfolds=[Unfold(type="State", data=b"none yet")])
    assert copier.copy("Cart-1").ending == "copied"
    state = copier.target.load("Cart-1")
    assert state is not None
    assert [each.data for each in state.unfolds] == [b"none yet"]


def test_a_pruned_stream_begins_where_its_original_does_and_has_its_indices(copier: StreamCopier) -> None:
    store = original(copier)
    for _ in range(6):
        append(store, "Cart-1", 1)
    store.append("Cart-1", [], unfolds=[Unfold(type="State")])
    store.prune("Cart-1", 4)
    found = copier.copy("Cart-1")
    assert (found.ending, found.first, found.copied, found.events) == ("copied", 4, 2, 2)
    page = copier.target.page("Cart-1")
    assert [event.index for event in page.events] == [4, 5]
    assert (page.version, page.low_water) == (6, 4)
    copier.target.append("Cart-1", [Event(type="Next")], expected=AtVersion(version=6))


@pytest.mark.parametrize("unfolds", [[], [Unfold(type="State", data=b"all")]])
def test_a_stream_without_events_goes_on_at_its_next_index(
    copier: StreamCopier, unfolds: list[Unfold]
) -> None:
    store = original(copier)
    append(store, "Cart-1", 3)
    store.append("Cart-1", [], unfolds=unfolds)
    store.prune("Cart-1", 3)
    assert copier.copy("Cart-1").sound
    state = copier.target.load("Cart-1")
    assert state is not None
    assert (state.version, [each.data for each in state.unfolds]) == (3, [each.data for each in unfolds])
    assert copier.target.append("Cart-1", [Event(type="Next")]).first == 3


def test_what_is_pruned_once_it_was_copied_stays_in_the_copy(copier: StreamCopier) -> None:
    store = original(copier)
    for _ in range(4):
        append(store, "Cart-1", 1)
    copier.copy("Cart-1")
    append(store, "Cart-1", 1)
    store.prune("Cart-1", 3)
    assert copier.copy("Cart-1").copied == 1
    assert [event.index for event in copier.target.read("Cart-1")] == [0, 1, 2, 3, 4]


def test_a_copy_that_was_pruned_is_gone_on_with_from_its_first_event(copier: StreamCopier) -> None:
    for _ in range(4):
        append(original(copier), "Cart-1", 1)
    copier.copy("Cart-1")
    copier.target.prune("Cart-1", 2)
    append(original(copier), "Cart-1", 1)
    found = copier.copy("Cart-1")
    assert (found.ending, found.copied, found.events) == ("copied", 1, 3)
    assert [event.index for event in copier.target.read("Cart-1")] == [2, 3, 4]


def test_a_copy_of_which_nothing_is_left_is_not_added_to(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    copier.copy("Cart-1")
    copier.target.prune("Cart-1", 3)
    append(original(copier), "Cart-1", 1)
    found = copier.copy("Cart-1")
    assert found.ending == "refused"
    assert "its copy has no events left to compare with the original" in found.why


def test_a_copy_that_was_deleted_is_left_so(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    copier.copy("Cart-1")
    copier.target.delete("Cart-1")
    found = copier.copy("Cart-1")
    assert (found.ending, found.why) == ("refused", "its copy was deleted and takes no more events")


def test_a_stream_that_is_deleted_while_it_is_read_is_told(copier: StreamCopier) -> None:
    store = original(copier)
    append(store, "Cart-1", 3)

    class Deleting(StreamSource):
        def head(self, stream: str) -> Original | None:
            found = StreamSource(store).head(stream)
            store.delete(stream)
            return found

    found = StreamCopier(source=Deleting(store), target=copier.target).copy("Cart-1")
    assert (found.ending, copier.target.load("Cart-1")) == ("refused", None)
    assert "events from 0 on are needed" in found.why


def test_what_was_pruned_before_it_was_copied_is_told(copier: StreamCopier) -> None:
    store = original(copier)
    for _ in range(2):
        append(store, "Cart-1", 1)
    copier.copy("Cart-1")
    for _ in range(4):
        append(store, "Cart-1", 1)
    store.prune("Cart-1", 4)
    found = copier.copy("Cart-1")
    assert (found.ending, found.why) == ("refused", "events 2 to 3 were pruned before they were copied")


def test_what_is_pruned_is_copied_from_the_archive() -> None:
    driver = Driver(
        execute=MemoryTables({"tips": TIPS, "archive": ARCHIVE}).execute, meter=Meter(), sleep=lambda _: None
    )
    store = Streams(
        driver=driver,
        table="tips",
        layout=Tips(),
        archive=Streams(driver=driver, table="archive", layout=Tips()),
    )
    append(store, "Cart-1", 4)
    store.archive_and_prune("Cart-1", 3)
    copier = StreamCopier(source=StreamSource(store), target=memory_streams())
    found = copier.copy("Cart-1")
    assert (found.ending, found.first, found.copied) == ("copied", 0, 4)
    assert_same(copier, "Cart-1")


def test_a_deleted_stream_leaves_a_tombstone(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    original(copier).delete("Cart-1")
    assert copier.copy("Cart-1").ending == "tombstone"
    state = copier.target.load("Cart-1")
    assert state is not None
    assert (state.deleted, state.version) == (True, 3)
    assert copier.copy("Cart-1").ending == "tombstone"


def test_nothing_is_removed_from_a_copy_whose_original_was_deleted(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    copier.copy("Cart-1")
    original(copier).delete("Cart-1")
    found = copier.copy("Cart-1")
    assert found.ending == "refused"
    assert "was deleted" in found.why
    assert len(list(copier.target.read("Cart-1"))) == 3


def test_a_stream_of_other_events_is_never_added_to(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 5)
    copier.target.append("Cart-1", [Event(type="E0", data=b"0"), Event(type="Other")])
    before = list(copier.target.read("Cart-1"))
    found = copier.copy("Cart-1")
    assert found.ending == "differs"
    assert list(copier.target.read("Cart-1")) == before


@pytest.mark.parametrize("field", ["type", "data", "meta", "timestamp", "correlation_id", "causation_id"])
def test_any_field_that_differs_is_told(copier: StreamCopier, field: str) -> None:
    fields: dict[str, str | bytes] = {
        "type": "A",
        "data": b"d",
        "meta": b"m",
        "timestamp": "2020-01-01T00:00:00.0000001Z",
        "correlation_id": "x",
        "causation_id": "y",
    }
    other = {**fields, field: b"z" if isinstance(fields[field], bytes) else "2020-01-01T00:00:00.0000002Z"}
    original(copier).append("Cart-1", [Event(**fields)])  # type: ignore[arg-type]
    copier.target.append("Cart-1", [Event(**other)])  # type: ignore[arg-type]
    found = copier.copy("Cart-1")
    assert (found.ending, found.why) == ("differs", "event 0 has different contents; nothing was added")


def test_what_was_appended_is_read_back_and_told_where_it_reads_otherwise(
    copier: StreamCopier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that loses what it was given would be noticed."""
    append(original(copier), "Cart-1", 2)
    monkeypatch.setattr(stream_copy, "format_ticks", lambda _: "1970-01-01T00:00:00Z")
    found = copier.copy("Cart-1")
    assert (found.ending, found.why) == ("differs", "the appended events read back differently")


def test_a_copy_that_people_write_to_is_left_alone(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 2)
    copier.copy("Cart-1")
    copier.target.append("Cart-1", [Event(type="Own")])
    found = copier.copy("Cart-1")
    assert found.ending == "refused"
    assert "is ahead, at version 3" in found.why


@pytest.mark.parametrize("stream", ["Cart-0", "no name", "$system"])
def test_a_stream_that_is_not_there_is_told(copier: StreamCopier, stream: str) -> None:
    assert copier.copy(stream).ending == "refused"
    assert copier.planned(stream).ending == "refused"


def test_a_dry_run_tells_what_would_be_copied_and_writes_nothing(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 3)
    assert (copier.planned("Cart-1").ending, copier.planned("Cart-1").copied) == ("copied", 3)
    assert copier.target.load("Cart-1") is None
    copier.copy("Cart-1")
    append(original(copier), "Cart-1", 1)
    assert copier.planned("Cart-1").copied == 1
    assert copier.target.head("Cart-1").version == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("more", [0, 2])
def test_a_dry_run_finds_what_differs_as_the_run_does(copier: StreamCopier, more: int) -> None:
    append(original(copier), "Cart-1", 2 + more)
    copier.target.append("Cart-1", [Event(type="E0", data=b"0"), Event(type="Own")])
    planned = copier.planned("Cart-1")
    assert not planned.sound
    assert (planned.ending, planned.why) == (copier.copy("Cart-1").ending, copier.copy("Cart-1").why)


@pytest.mark.parametrize("there", [0, 5])
@pytest.mark.parametrize("pruned", [0, 3, 4])
def test_a_dry_run_counts_what_would_be_copied(copier: StreamCopier, there: int, pruned: int) -> None:
    if there:
        append(original(copier), "Cart-1", there)
        copier.copy("Cart-1")
    append(original(copier), "Cart-1", 8 - there)
    original(copier).prune("Cart-1", pruned)

    planned = copier.planned("Cart-1")

    assert (planned.ending, planned.copied) == ("copied", 8 - (there or pruned))
    copier.copy("Cart-1")
    assert len(list(copier.target.read("Cart-1"))) == there + planned.copied
    assert copier.planned("Cart-1").copied == 0


def test_a_dry_run_tells_of_unfolds_that_the_copy_lacks(copier: StreamCopier) -> None:
    append(original(copier), "Cart-1", 1)
    copier.copy("Cart-1")
    original(copier).append("Cart-1", [], unfolds=[Unfold(type="U", data=b"{}")])
    assert copier.planned("Cart-1").ending == copier.copy("Cart-1").ending == "copied"
    assert copier.planned("Cart-1").ending == copier.copy("Cart-1").ending == "unchanged"


def test_many_events_are_copied_in_few_appends(copier: StreamCopier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "EVENTS", 40)
    for _ in range(10):
        append(original(copier), "Cart-1", 10)
    writes = 0
    execute = copier.target.driver.execute

    def counted(op: Op) -> Reply:
        nonlocal writes
        writes += not isinstance(op, READS)
        return execute(op)

    target = copier.target.on(replace(copier.target.driver, execute=counted))
    assert StreamCopier(source=copier.source, target=target).copy("Cart-1").copied == 100
    assert writes <= 8
    assert_same(copier, "Cart-1")


@pytest.mark.slow
def test_a_run_that_ends_anywhere_is_gone_on_with(
    copier: StreamCopier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever request is the last that arrives, with or without its answer, the next run ends with the same copy."""
    monkeypatch.setattr(batches, "EVENTS", 2)
    store = original(copier)
    for _ in range(5):
        append(store, "Cart-1", 1)
    store.append("Cart-1", [Event(type="Large", data=b"x" * 50)], unfolds=[Unfold(type="State", data=b"s")])
    append(store, "Cart-1", 1)
    store.prune("Cart-1", 2)
    for fault in (Fault.LOST, Fault.UNANSWERED):
        last, ended = 0, False
        while not ended:
            target = STORES[copier.target.layout.name]()
            faults = Faults(target.driver.execute, {last: fault})
            driver = replace(target.driver, execute=faults.execute, patience=Patience(retries=0))
            with suppress(Unavailable):
                StreamCopier(source=copier.source, target=target.on(driver)).copy("Cart-1")
            assert StreamCopier(source=copier.source, target=target).copy("Cart-1").sound
            assert [event.index for event in target.read("Cart-1")] == [2, 3, 4, 5, 6]
            state, wanted = target.load("Cart-1"), store.load("Cart-1")
            assert state is not None
            assert wanted is not None
            assert state.unfolds == wanted.unfolds
            last, ended = last + 1, faults.requests <= last
        assert last > 5


def test_two_who_copy_at_once_make_one_copy(copier: StreamCopier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "EVENTS", 1)
    for _ in range(4):
        append(original(copier), "Cart-1", 1)
    execute = copier.target.driver.execute
    other = StreamCopier(source=copier.source, target=copier.target)
    turns = iter([True])

    def overtaken(op: Op) -> Reply:
        if not isinstance(op, READS) and next(turns, False):
            assert other.copy("Cart-1").ending == "copied"
        return execute(op)

    target = copier.target.on(replace(copier.target.driver, execute=overtaken))
    assert StreamCopier(source=copier.source, target=target).copy("Cart-1").ending == "unchanged"
    assert_same(copier, "Cart-1")


def test_an_aggregate_becomes_a_stream_and_its_snapshot_an_unfold() -> None:
    store, target = memory_aggregates(), memory_streams()
    cart = AggregateId(type="Cart", value="1")
    events = [AggregateEvent(type=f"E{n}", data=b'{"n":%d}' % n) for n in range(4)]
    lock = store.append(cart, events[:2], snapshot=b'{"seq_nr": 2}').lock
    store.append(cart, events[2:], expected=lock)
    copier = StreamCopier(source=AggregateSource(store, snapshots="State"), target=target)
    found = copier.copy("Cart-1")
    assert (found.ending, found.copied) == ("copied", 4)
    assert [(e.index, e.type, e.data) for e in target.read("Cart-1")] == [
        (n, each.type, each.data) for n, each in enumerate(events)
    ]
    state = target.load("Cart-1")
    assert state is not None
    assert [(each.type, each.version) for each in state.unfolds] == [("State", 2)]
    assert copier.copy("Cart-1").ending == "unchanged"
    assert (
        StreamCopier(source=AggregateSource(store), target=memory_streams()).copy("Cart-1").ending == "copied"
    )


@pytest.mark.slow
def test_events_keep_their_tags_where_the_target_keeps_tags_and_are_refused_where_not() -> None:
    source, target = memory_streams(), memory_streams()
    many = [Event(type="E", tags=("t", *(f"t:{n * 10 + each}" for each in range(10)))) for n in range(30)]
    for event in many:
        source.append("Student-1", [event])
    copier = StreamCopier(source=StreamSource(source), target=target)

    assert copier.copy("Student-1").ending == "copied"
    assert [each.tags for each in target.read("Student-1")] == [tuple(sorted(each.tags)) for each in many]
    assert target.tagged.counts(["t", "t:7"]) == {"t": 30, "t:7": 1}
    assert copier.copy("Student-1").ending == "unchanged"
    refused = StreamCopier(source=StreamSource(source), target=memory_tips()).copy("Student-1")
    assert (refused.ending, "keeps no tags" in refused.why) == ("refused", True)


def test_a_copy_that_lacks_a_tag_differs() -> None:
    source, target = memory_streams(), memory_streams()
    for store, tags in ((source, ("t", "u")), (target, ("t",))):
        store.append("Student-1", [Event(type="E", timestamp="2026-01-01T00:00:00Z", tags=tags)])
    assert StreamCopier(source=StreamSource(source), target=target).copy("Student-1").ending == "differs"


@pytest.mark.parametrize("other", [2, 3])
def test_nothing_is_pruned_of_a_copy_that_has_another_event_than_its_original(
    copier: StreamCopier, other: int
) -> None:
    append(original(copier), "Cart-1", 4)
    copier.copy("Cart-1")
    rival = replace(copier, target=STORES["pages"](), removals=True)
    events = [
        Event(type=event.type, data=b"x" if event.index == other else event.data, timestamp=event.timestamp)
        for event in original(copier).read("Cart-1")
    ]
    rival.target.append("Cart-1", events)
    original(copier).prune("Cart-1", 2)
    assert rival.copy("Cart-1").ending == "differs"
    assert [event.index for event in rival.target.read("Cart-1")] == [0, 1, 2, 3]
    assert replace(copier, removals=True).copy("Cart-1").sound
    assert [event.index for event in copier.target.page("Cart-1").events] == [2, 3]
