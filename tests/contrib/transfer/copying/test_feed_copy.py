"""Everything in a feed, copied: which streams, how a second run goes on, and what holds up one alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from epochal import NO_STREAM
from epochal.contrib.equinox.port import ARCHIVE
from epochal.contrib.event_store_adapter.copies import AggregateSource
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.transfer.copying import feed_copy
from epochal.contrib.transfer.copying.feed_copy import FeedCopier
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.layout.registry import source_of
from epochal.layout.tables import store_tables
from epochal.model.events import Event
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams


def copier_of(feed: MemoryStore, target: Streams, **more: object) -> FeedCopier:
    source = StreamSource(feed.tips)
    return FeedCopier(
        copier=StreamCopier(source=source, target=target),
        feed=feed.feed,
        name="copy",
        **more,  # type: ignore[arg-type]
    )


def fill(feed: MemoryStore, *streams: str) -> None:
    for stream in streams:
        feed.tips.append(stream, [Event(type="Opened"), Event(type="Paid")])
    feed.index()


@pytest.fixture
def feed() -> MemoryStore:
    made = MemoryStore()
    fill(made, "Cart-1", "Cart-2", "Order-1")
    made.streams.append("Other-1", [Event(type="Opened")])
    made.index()
    return made


def test_every_stream_of_the_sources_layout_is_copied(feed: MemoryStore) -> None:
    target = memory_streams()
    found = list(copier_of(feed, target).copy())
    assert {each.stream: each.ending for each in found} == dict.fromkeys(
        ("Cart-1", "Cart-2", "Order-1"), "copied"
    )
    assert [len(list(target.read(each.stream))) for each in found] == [2, 2, 2]
    assert target.load("Other-1") is None


def test_streams_are_copied_to_another_layout_of_the_same_deployment(feed: MemoryStore) -> None:
    assert all(each.sound for each in copier_of(feed, feed.streams).copy())
    feed.index()
    partitions = {each.partition for each in feed.feed.partitions()}
    shown = [item.stream for p in partitions for item in feed.feed.page(p).items]
    assert sorted(shown) == sorted(2 * 2 * ["Cart-1", "Cart-2", "Order-1"] + ["Other-1"])


def test_categories_choose_among_them(feed: MemoryStore) -> None:
    target = memory_streams()
    found = list(copier_of(feed, target, categories=["Order"]).copy())
    assert [each.stream for each in found] == ["Order-1"]


def test_a_second_run_visits_what_is_new_alone(feed: MemoryStore) -> None:
    target = memory_streams()
    list(copier_of(feed, target).copy())
    assert list(copier_of(feed, target).copy()) == []
    feed.tips.append("Cart-2", [Event(type="Closed")])
    fill(feed, "Cart-3")
    found = sorted((each.stream, each.copied) for each in copier_of(feed, target).copy())
    assert found == [("Cart-2", 1), ("Cart-3", 2)]


def test_a_run_from_the_beginning_visits_all_and_finds_what_the_feed_does_not_tell(feed: MemoryStore) -> None:
    target = memory_streams()
    list(copier_of(feed, target).copy())
    fill(feed, "Cart-4")
    feed.tips.delete("Cart-4")
    found = {each.stream: each.ending for each in copier_of(feed, target).copy(again=True)}
    rest = dict.fromkeys(("Cart-1", "Cart-2", "Order-1"), "unchanged")
    assert found == {**rest, "Cart-4": "tombstone"}


def test_a_run_that_stops_goes_on_after_the_last_page_that_was_kept(
    feed: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_copy, "PAGE", 1)
    fill(feed, "Cart-5", "Cart-6")
    target = memory_streams()
    run: Any = copier_of(feed, target).copy()
    begun = [next(run).stream]
    run.close()
    rest = [each.stream for each in copier_of(feed, target).copy()]
    assert sorted({*begun, *rest}) == ["Cart-1", "Cart-2", "Cart-5", "Cart-6", "Order-1"]
    assert all(len(list(target.read(stream))) == 2 for stream in {*begun, *rest})


def test_one_that_cannot_be_copied_holds_up_no_other_and_is_tried_again_by_every_run(
    feed: MemoryStore,
) -> None:
    target = memory_streams()
    target.append("Cart-1", [Event(type="Foreign")], expected=NO_STREAM)
    found = {each.stream: each.ending for each in copier_of(feed, target).copy()}
    assert found == {"Cart-1": "differs", "Cart-2": "copied", "Order-1": "copied"}
    assert [each.ending for each in copier_of(feed, target).copy()] == ["differs"]
    target.delete("Cart-1", leave_open=False)
    assert [each.ending for each in copier_of(feed, target).copy()] == ["refused"]


def test_one_that_can_be_copied_again_is_no_more_tried_by_later_runs(feed: MemoryStore) -> None:
    broken = feed.tips.codec.bodies
    feed.tips.append("Large-1", [Event(type="Large", data=Random(1).randbytes(500_000))])
    feed.index()
    kept = dict(broken.objects)  # type: ignore[union-attr]
    broken.objects.clear()  # type: ignore[union-attr]
    target = memory_streams()
    found = {each.stream: each.ending for each in copier_of(feed, target).copy()}
    assert found["Large-1"] == "refused"
    broken.objects.update(kept)  # type: ignore[union-attr]
    assert [each.ending for each in copier_of(feed, target).copy()] == ["copied"]
    assert list(copier_of(feed, target).copy()) == []


def test_a_stream_is_copied_once_a_run_however_often_the_feed_names_it(
    feed: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_copy, "PAGE", 1)
    for _ in range(3):
        feed.tips.append("Cart-1", [Event(type="More")])
        feed.index()
    found = [each.stream for each in copier_of(feed, memory_streams()).copy()]
    assert sorted(found) == ["Cart-1", "Cart-2", "Order-1"]


def test_a_dry_run_tells_what_would_be_copied_and_leaves_no_trace(feed: MemoryStore) -> None:
    target = memory_streams()
    planned = list(copier_of(feed, target).planned())
    assert sorted((each.stream, each.copied) for each in planned) == [
        ("Cart-1", 2),
        ("Cart-2", 2),
        ("Order-1", 2),
    ]
    assert target.load("Cart-1") is None
    assert len(list(copier_of(feed, target).copy())) == 3


def test_a_pruned_stream_is_in_the_feed_of_its_copy_from_its_first_event_on(feed: MemoryStore) -> None:
    for _ in range(2):
        feed.tips.append("Cart-1", [Event(type="More")])
    feed.tips.prune("Cart-1", 3)
    list(copier_of(feed, feed.streams, categories=["Cart"]).copy())
    feed.index()
    (partition,) = {each.partition for each in feed.feed.partitions() if source_of(each.partition) == "pages"}
    shown = [(item.stream, item.index) for item in feed.feed.page(partition).items]
    assert [each for each in shown if each[0] == "Cart-1"] == [("Cart-1", 3)]
    feed.streams.append("Cart-1", [Event(type="Next")])
    feed.index()
    assert feed.feed.page(partition).items[-1][:2] == ("Cart-1", 4)


def test_more_than_can_be_kept_in_mind_end_the_run(
    feed: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_copy, "MAX_PARKED", 1)
    target = memory_streams()
    for stream in ("Cart-1", "Cart-2"):
        target.append(stream, [Event(type="Foreign")])
    with pytest.raises(ValueError, match="too many"):
        list(copier_of(feed, target).copy())


def test_aggregates_are_copied_by_their_ids(feed: MemoryStore) -> None:
    for number in range(3):
        event = AggregateEvent(type="Opened", data=b"{}")
        feed.aggregates.append(AggregateId(type="Cart", value=f"{number}"), [event], snapshot=b"{}")
    feed.index()
    target = memory_streams()
    copier = replace_source(copier_of(feed, target), AggregateSource(feed.aggregates))
    assert [each.ending for each in copier.copy()] == ["copied"] * 3
    assert [event.type for event in target.read("Cart-0")] == ["Opened"]


def replace_source(copier: FeedCopier, source: AggregateSource) -> FeedCopier:
    return replace(copier, copier=replace(copier.copier, source=source))


def test_events_of_tags_are_copied_with_their_homes_and_those_without_are_named() -> None:
    feed, target = MemoryStore(), memory_streams()
    feed.streams.append("Student-1", [Event(type="Enrolled", tags=("course:1",))])
    feed.index()
    copier = FeedCopier(
        copier=StreamCopier(source=StreamSource(feed.streams), target=target), feed=feed.feed, name="copy"
    )
    assert [(each.stream, each.ending) for each in copier.planned()] == [("Student-1", "copied")]
    assert [(each.stream, each.ending) for each in copier.copy()] == [("Student-1", "copied")]
    assert target.tagged.count("course:1") == 1

    feed.tagged.append([Event(type="Opened", tags=("course:1",))])
    feed.index()
    assert [(each.stream, each.ending) for each in copier.copy()] == [("$tag-course:1", "refused")]


def following(feed: MemoryStore, target: Streams) -> FeedCopier:
    copier = StreamCopier(source=StreamSource(feed.tips), target=target, removals=True)
    return replace(copier_of(feed, target), copier=copier, name="copy.removals")


def test_what_is_pruned_and_deleted_goes_of_copies_where_that_is_asked_for_and_nowhere_else(
    feed: MemoryStore,
) -> None:
    kept, target = memory_streams(), memory_streams()
    for copier in (copier_of(feed, kept), following(feed, target)):
        assert all(each.sound for each in copier.copy())
    feed.tips.prune("Cart-1", 1)
    feed.tips.delete("Cart-2")
    feed.index()
    assert {each.stream: each.ending for each in following(feed, target).copy()} == {
        "Cart-1": "unchanged",
        "Cart-2": "tombstone",
    }
    assert [event.index for event in target.page("Cart-1").events] == [1]
    assert target.page("Cart-2").deleted
    assert [event.index for event in target.page("Order-1").events] == [0, 1]
    assert list(following(feed, target).copy()) == []
    list(copier_of(feed, kept).copy())
    assert [len(kept.page(name).events) for name in ("Cart-1", "Cart-2")] == [2, 2]


def test_a_copy_that_is_ahead_is_not_deleted_with_its_original(feed: MemoryStore) -> None:
    target = memory_streams()
    list(following(feed, target).copy())
    target.append("Cart-2", [Event(type="Ours")])
    feed.tips.delete("Cart-2")
    feed.index()
    (found,) = following(feed, target).copy()
    assert not found.sound
    assert len(target.page("Cart-2").events) == 3


def test_what_is_in_an_archive_of_the_original_stays_in_the_copy() -> None:
    feed = MemoryStore(tables=MemoryTables({each.kind: each for each in (*store_tables(), ARCHIVE)}))
    fill(feed, "Cart-1")
    target, archive = memory_streams(), replace(feed.tips, table=ARCHIVE.kind)
    list(following(feed, target).copy())
    archived = replace(feed.tips, archive=archive)
    archived.archive_and_prune("Cart-1", 1)
    feed.index()
    source = StreamSource(archived)
    copier = replace(
        copier_of(feed, target), copier=StreamCopier(source=source, target=target, removals=True)
    )
    assert all(each.sound for each in copier.copy())
    assert [event.index for event in target.page("Cart-1").events] == [0, 1]
