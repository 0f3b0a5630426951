"""What a replica has in part after a failover is found, and mended before writers return.

See `epochal.care.partial_replication`.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from epochal import Event, StreamAppend, Unfold
from epochal.care.partial_replication import Replica
from epochal.care.torn import Torn
from epochal.errors import CorruptData, EventsPruned
from epochal.layout.key_records import KeyRecord
from epochal.pages.items import is_page, read_page
from epochal.plan.values import Item
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.support.examples import seeds
from tests.surfaces.care.torn_worlds import NAMES, TABLE, Clock, World, copied, key_of, streams_of, torn

Read = list[tuple[int, bytes]]
REPLICAS = range(3)


@cache
def world_of(seed: int) -> World:
    return World(seed=seed)


def replica(seed: int, number: int) -> tuple[World, MemoryTables]:
    world = world_of(seed)
    return world, world.replica(number)


def read(streams: Streams, stream: str, direction: Direction = "forward") -> Read:
    """The events that a reader gets, in the order of the stream, up to where it is told that they are pruned."""
    found: Read = []
    try:
        for event in streams.read(stream, direction=direction):
            found.append((event.index, event.data))
    except EventsPruned:
        pass
    return found if direction == "forward" else found[::-1]


def left(found: list[Torn]) -> set[str]:
    return {each.stream for each in found if not each.mended}


def names_of(appends: list[StreamAppend]) -> list[str]:
    return [each.stream for each in appends]


# ------------------------------------------------------------------------------------------------------- torn worlds


@seeds(24, 8)
def test_a_mended_stream_reads_alike_both_ways_and_takes_appends_prunes_and_its_end(seed: int) -> None:
    for number in REPLICAS:
        world, tables = replica(seed, number)
        found = torn(tables, world.clock, mend=True)
        streams = streams_of(tables, Clock(world.clock.at))
        for stream in set(NAMES) - left(found):
            before = read(streams, stream)
            assert read(streams, stream, "backward") == before
            assert all(world.events[stream][index] == data for index, data in before)
            made = streams.append(stream, [Event(type="New", data=b"new")])
            after = [*before, (made.token.version - 1, b"new")]
            assert read(streams, stream) == read(streams, stream, "backward") == after
            streams.prune(stream, made.token.version)
            assert read(streams, stream) == read(streams, stream, "backward") == []
            streams.delete(stream)


@seeds(24, 8)
def test_a_repeat_after_the_mending_is_never_answered_by_a_record_that_came_alone(seed: int) -> None:
    for number in REPLICAS:
        world, tables = replica(seed, number)
        found = torn(tables, world.clock, mend=True)
        streams, stays = streams_of(tables, Clock(world.clock.at)), left(found)
        for key, appends in world.keyed.items():
            record = KeyRecord.of_all(names_of(appends), key, 0).name
            if stays & {record, *names_of(appends)}:
                continue
            made = streams.append_all(appends, idempotency_key=key)
            for each in appends:
                bodies = [event.data for event in each.events]
                at = world.events[each.stream].index(bodies[0]) + len(bodies) if bodies else 0
                assert not made.replayed or made.streams[each.stream].version >= at
                if record in {each.stream for each in found}:
                    there = [data for _, data in read(streams, each.stream)]
                    assert [there.count(body) for body in bodies] == [1] * len(bodies)


@seeds(24, 8)
def test_what_was_mended_is_found_no_more_and_what_stays_says_what_to_do(seed: int) -> None:
    for number in REPLICAS:
        world, tables = replica(seed, number)
        stays = [each for each in torn(tables, world.clock, mend=True) if not each.mended]
        assert all(each.advice for each in stays)
        assert all(each.advice for each in torn(tables, world.clock))


def test_a_table_that_came_whole_has_nothing_torn() -> None:
    for seed in range(24):
        world = world_of(seed)
        found = torn(copied(world.tables.items(TABLE)), world.clock)
        assert {each.kind for each in found} <= {"doubt"}


# ---------------------------------------------------------------------------------- what was acknowledged in vain


def test_an_append_after_a_prune_that_came_before_its_stream_would_read_as_pruned_and_does_not_once_mended() -> (
    None
):
    world, tables = replica(12, 1)
    again = copied(tables.items(TABLE))
    streams = streams_of(tables, Clock(world.clock.at))
    streams.append("Cart-2", [Event(type="New", data=b"new")])
    assert read(streams, "Cart-2") == []

    assert [
        (each.kind, each.mended) for each in torn(again, world.clock, mend=True) if each.stream == "Cart-2"
    ] == [("pruned", True)]
    streams = streams_of(again, Clock(world.clock.at))
    streams.append("Cart-2", [Event(type="New", data=b"new")])
    assert read(streams, "Cart-2")[-1][1] == b"new"


def test_a_stream_that_reads_differently_forward_and_backward_does_not_once_mended() -> None:
    world, tables = replica(5, 2)
    streams = streams_of(tables, world.clock)
    assert read(streams, "Cart-3") != read(streams, "Cart-3", "backward")
    torn(tables, world.clock, mend=True)
    assert read(streams, "Cart-3") == read(streams, "Cart-3", "backward") != []


# ----------------------------------------------------------------------------------------------------- one by one


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def first(clock: Clock) -> Streams:
    return streams_of(copied(()), clock)


def items(streams: Streams) -> dict[tuple[str, int], Item]:
    execute = streams.driver.execute
    tables = execute.__self__  # type: ignore[attr-defined]
    return {key_of(item): item for item in tables.items(TABLE)}


def filled(streams: Streams, stream: str, events: int = 6) -> None:
    """Pages of two events each."""
    for index in range(events):
        streams.append(stream, [Event(type="E", data=random.Random(index).randbytes(450))])


def both(streams: Streams, key: str = "k") -> bool:
    appends = [StreamAppend(stream=name, events=[Event(type="Paid")]) for name in ("Cart-1", "Cart-2")]
    return streams.append_all(appends, idempotency_key=key).replayed


def is_record(key: tuple[str, int]) -> bool:
    return key[0].startswith("$Idempotency")


def test_a_record_that_came_without_its_append_is_removed_and_a_repeat_makes_it(
    first: Streams, clock: Clock
) -> None:
    both(first)
    tables = copied(item for key, item in items(first).items() if is_record(key))
    assert [(each.kind, each.mended) for each in torn(tables, clock)] == [("key", False)]
    assert [(each.kind, each.mended) for each in torn(tables, clock, mend=True)] == [("key", True)]
    second = streams_of(tables, clock)
    assert not both(second)
    assert both(second)
    assert [len(read(second, name)) for name in ("Cart-1", "Cart-2")] == [1, 1]


def test_a_record_that_came_with_a_part_of_its_append_stays_and_says_where_it_is(
    first: Streams, clock: Clock
) -> None:
    both(first)
    tables = copied(item for key, item in items(first).items() if key[0] != "Cart-2")
    (found,) = torn(tables, clock, mend=True)
    assert (found.kind, found.mended) == ("part", False)
    assert found.cause.endswith("which is in Cart-1")
    with pytest.raises(CorruptData, match="Cart-2: the events of this key are missing"):
        both(streams_of(tables, clock))


def test_a_repeat_whose_record_came_alone_is_refused_also_when_others_have_written_to_the_streams_since(
    first: Streams, clock: Clock
) -> None:
    filled(first, "Cart-1", 1)
    before = items(first)
    both(first)
    records = {key: item for key, item in items(first).items() if is_record(key)}
    second = streams_of(copied({**before, **records}.values()), clock)
    second.append_all(
        [StreamAppend(stream=name, events=[Event(type="Other")]) for name in ("Cart-1", "Cart-2")]
    )
    with pytest.raises(CorruptData, match="although its record exists"):
        both(second)


def test_a_repeat_is_answered_by_its_record_when_what_it_appended_has_been_pruned_since(
    first: Streams,
) -> None:
    both(first)
    filled(first, "Cart-1")
    first.prune("Cart-1", 5)
    first.delete("Cart-2", leave_open=True)
    assert both(first)


def test_the_record_of_a_state_that_has_not_come_is_removed(first: Streams, clock: Clock) -> None:
    filled(first, "Cart-1", 1)
    before = items(first)
    state = [Unfold(type="S", data=b"1")]
    first.append("Cart-1", [], unfolds=state, idempotency_key="k")
    tables = copied({**items(first), **before}.values())
    assert [each.kind for each in torn(tables, clock, mend=True)] == ["key"]
    second = streams_of(tables, clock)
    assert not second.append("Cart-1", [], unfolds=state, idempotency_key="k").replayed
    found = second.load("Cart-1")
    assert found is not None
    assert [each.data for each in found.unfolds] == [b"1"]


def test_a_deletion_that_came_before_the_pages_that_it_emptied_is_done_to_the_end(
    first: Streams, clock: Clock
) -> None:
    filled(first, "Cart-1")
    before = items(first)
    first.delete("Cart-1", leave_open=True)
    last = {key: item for key, item in items(first).items() if key[1] == 6}
    kept = {key: item for key, item in before.items() if key[1] == 0}
    assert last
    tables = copied({**kept, **last}.values())
    assert [(each.kind, each.end) for each in torn(tables, clock, mend=True)] == [("pruned", 6)]
    pages = [read_page(item) for item in tables.items(TABLE) if is_page(item)]
    assert [(page.index, page.version, page.count) for page in pages if page.index < 6] == [
        (0, 2, 0),
        (2, 6, 0),
    ]
    second = streams_of(tables, clock)
    second.append("Cart-1", [Event(type="New", data=b"new")])
    assert read(second, "Cart-1") == read(second, "Cart-1", "backward") == [(6, b"new")]
    second.delete("Cart-1")


def test_a_page_that_is_missing_and_was_not_pruned_is_named_and_no_prune_passes_it(
    first: Streams, clock: Clock
) -> None:
    filled(first, "Cart-1", 8)
    missing = sorted(key[1] for key in items(first))[1]
    tables = copied(item for key, item in items(first).items() if key[1] != missing)
    (found,) = torn(tables, clock, mend=True)
    assert (found.kind, found.stream, found.index, found.mended) == ("hole", "Cart-1", missing, False)
    with pytest.raises(CorruptData, match="are not contiguous"):
        streams_of(tables, clock).prune("Cart-1", 8)


@pytest.mark.parametrize("before", [2, 8])
def test_a_prune_ends_where_a_page_lacks_its_last_events(first: Streams, clock: Clock, before: int) -> None:
    filled(first, "Cart-1", 1)
    earlier = items(first)
    filled(first, "Cart-1", 7)
    tables = copied({**items(first), **earlier}.values())
    with pytest.raises(CorruptData, match="are not contiguous"):
        streams_of(tables, clock).prune("Cart-1", before)


def test_a_page_that_was_not_closed_is_closed_and_a_prune_goes_across_it_as_in_an_archive(
    first: Streams, clock: Clock
) -> None:
    filled(first, "Cart-1", 8)
    unclosed = {key: {name: item[name] for name in item if name != "x"} for key, item in items(first).items()}
    tables = copied(unclosed.values())
    copy = copied(unclosed.values())
    streams = streams_of(copy, clock)
    streams.prune("Cart-1", 8)
    assert read(streams, "Cart-1") == read(streams, "Cart-1", "backward") == []
    assert {(each.kind, each.mended) for each in torn(tables, clock, mend=True)} == {("open", True)}
    assert torn(tables, clock) == []


def test_a_last_page_that_names_another_for_its_state_has_none_once_mended(
    first: Streams, clock: Clock
) -> None:
    first.append(
        "Cart-1", [Event(type="E")], unfolds=[Unfold(type="S", data=random.Random(0).randbytes(3_000))]
    )
    filled(first, "Cart-1")
    pages = [read_page(item) for item in items(first).values()]
    holder = pages[-1].unfolds_at
    assert holder is not None
    tables = copied(item for key, item in items(first).items() if key[1] != holder)
    assert {(each.kind, each.mended) for each in torn(tables, clock, mend=True)} == {
        ("state", True),
        ("hole", False),
    }
    second = streams_of(tables, clock)
    made = second.append("Cart-1", [Event(type="New")])
    assert second.load("Cart-1").version == made.token.version  # type: ignore[union-attr]


def test_where_another_state_has_come_nobody_can_tell_whether_the_one_under_the_key_had(
    first: Streams, clock: Clock
) -> None:
    filled(first, "Cart-1", 1)
    for key in ("k", "l"):
        first.append("Cart-1", [], unfolds=[Unfold(type="S", data=key.encode())], idempotency_key=key)
    found = torn(copied(items(first).values()), clock, mend=True)
    assert [(each.kind, each.mended) for each in found] == [("doubt", False)]


def test_no_record_is_removed_where_somebody_writes(first: Streams, clock: Clock) -> None:
    both(first)
    filled(first, "Cart-3", 1)
    tables = copied(item for key, item in items(first).items() if is_record(key) or key[0] == "Cart-3")
    busy = Replica(driver=streams_of(tables, clock).driver, table=TABLE, mend=True, now=clock.at)
    assert [each.mended for each in busy.findings()] == [False]
    assert [each.mended for each in torn(tables, clock, mend=True)] == [True]


def test_keys_of_long_ago_are_not_looked_at(first: Streams, clock: Clock) -> None:
    both(first)
    clock.at += 60 * 1_000_000_000
    filled(first, "Cart-3", 1)
    tables = copied(item for key, item in items(first).items() if is_record(key) or key[0] == "Cart-3")
    assert torn(tables, clock) == []


def test_an_item_that_looks_like_a_page_and_is_none_is_named(first: Streams, clock: Clock) -> None:
    filled(first, "Cart-1", 1)
    broken = {**items(first)["Cart-1", 0], "r": {"N": "1"}}
    (found,) = torn(copied([broken]), clock, mend=True)
    assert (found.kind, found.stream, found.mended) == ("unreadable", "Cart-1", False)
