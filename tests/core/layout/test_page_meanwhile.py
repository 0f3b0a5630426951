"""What another process does between two requests of ours: to pages, and to what we know of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.errors import InvalidInput
from epochal.layout.healing import Gap
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import parse_token
from epochal.pages import attempts, pruning, writes
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.pages.port import heal_pages
from epochal.pages.reading import Cursor, advance, cursor_at, load_head, load_page
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply, Update
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Hole
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.core.layout.test_page_appends import STREAM, event, filled, full, pages_of, requests

Before = Callable[[Op], None]


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables({"streams": STREAMS, "archive": STREAMS})


@pytest.fixture
def store(tables: MemoryTables) -> Streams:
    return Streams(driver=Driver(execute=tables.execute, meter=Meter()), table="streams", layout=Pages())


def meanwhile(store: Streams, before: Before) -> Streams:
    """The store, whose every request something may be done before."""
    execute = store.driver.execute

    def then(op: Op) -> Reply:
        before(op)
        return execute(op)

    return replace(store, driver=replace(store.driver, execute=then, sleep=lambda _: None))


def small(count: int = 1) -> list[Event]:
    return [Event(type="E") for _ in range(count)]


def test_a_copy_to_the_archive_does_not_undo_that_of_a_faster_one(
    store: Streams, tables: MemoryTables
) -> None:
    store.append(STREAM, small())
    store.driver.run(pruning.archive("streams", "archive", STREAM, 1))
    store.append(STREAM, small())
    faster = iter([True])

    def copy_more(op: Op) -> None:
        if isinstance(op, Put) and op.table == "archive" and next(faster, False):
            store.append(STREAM, small())
            store.driver.run(pruning.archive("streams", "archive", STREAM, 3))

    slower = meanwhile(store, copy_more)
    assert slower.driver.run(pruning.archive("streams", "archive", STREAM, 2)) == 3
    head = store.driver.run(load_head("archive", STREAM))
    assert head is not None
    assert head.version == 3


def test_an_archive_whose_stream_was_deleted_there_takes_no_more(store: Streams) -> None:
    store.append(STREAM, small())
    store.driver.run(pruning.archive("streams", "archive", STREAM, 1))
    replace(store, table="archive").delete(STREAM)
    store.append(STREAM, small())

    with pytest.raises(InvalidInput, match="has deleted"):
        store.driver.run(pruning.archive("streams", "archive", STREAM, 2))


def test_what_was_pruned_within_an_append_is_not_brought_back_by_an_archive(store: Streams) -> None:
    store.append(STREAM, small(4))
    store.prune(STREAM, 2)

    with pytest.raises(InvalidInput, match="events 0 to 1 were pruned, but never archived"):
        store.driver.run(pruning.archive("streams", "archive", STREAM, 4))


def test_a_read_shows_nothing_beyond_the_version_that_it_began_with(
    store: Streams, tables: MemoryTables
) -> None:
    store.append(STREAM, small(2))
    began = store.driver.run(load_head("streams", STREAM))
    store.append(STREAM, small(3))
    grown = store.driver.run(load_head("streams", STREAM))
    assert began is not None
    assert grown is not None
    part = store.driver.run(
        advance("streams", Cursor(head=began, at=0, forward=True, located=True, ahead=(grown,)))
    )
    assert [span.next for span in part.spans] == [2]
    assert part.cursor.at_end


def test_a_read_from_an_index_that_is_pruned_begins_where_there_is_something(store: Streams) -> None:
    last = filled(store, 6)
    store.prune(STREAM, last.version - 1)
    head = store.driver.run(load_head("streams", STREAM))
    assert head is not None
    assert cursor_at(head, 1).at == head.low_water == last.version - 1


def test_a_repeat_of_unfolds_is_answered_with_the_token_of_then(store: Streams) -> None:
    store.append(STREAM, small())
    unfolds = [Unfold(type="State", data=b"1")]
    store.append(STREAM, [], unfolds=unfolds, idempotency_key="k")
    store.append(STREAM, [], unfolds=[Unfold(type="State", data=b"2")])
    again = store.append(STREAM, [], unfolds=unfolds, idempotency_key="k")
    assert isinstance(store.try_append(STREAM, small(), expected=again.token), Conflict)


def test_a_repeat_of_unfolds_that_nobody_has_followed_is_answered_with_a_token_to_go_on(
    store: Streams,
) -> None:
    store.append(STREAM, small())
    unfolds = [Unfold(type="State", data=b"1")]
    store.append(STREAM, [], unfolds=unfolds, idempotency_key="k")
    again = store.append(STREAM, [], unfolds=unfolds, idempotency_key="k")
    assert isinstance(store.try_append(STREAM, small(), expected=again.token), Appended)


def test_unfolds_under_a_key_find_out_that_a_token_makes_their_page_small(
    store: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: False)
    token = store.append(STREAM, [Event(type="E", data=random_bytes(9_000))]).token
    small_one = replace(token, size=100, carried=50)
    large = [Unfold(type="State", data=random_bytes(401_000))]

    assert store.append(STREAM, [], unfolds=large, expected=small_one, idempotency_key="k").version == 1
    head = store.driver.run(load_head("streams", STREAM))
    assert head is not None
    assert head.index == 1


def test_a_repeat_of_an_append_is_answered_with_the_token_of_then(store: Streams) -> None:
    first = store.append(STREAM, small(), idempotency_key="k")
    store.append(STREAM, small())
    again = store.append(STREAM, small(), idempotency_key="k")
    assert (again.replayed, again.token.version) == (True, 1)
    assert again.token.etag == first.token.etag


def test_a_page_that_another_has_written_to_before_it_is_closed_is_no_page_to_go_on_from(
    store: Streams,
) -> None:
    """It is still open, so others extend it: with a page behind it the stream would fork."""
    token = store.append(STREAM, small()).token
    faster = iter([True])

    def append(op: Op) -> None:
        if isinstance(op, Update) and next(faster, False):
            store.append(STREAM, small())

    large = Event(type="E", data=random_bytes(404_000))
    assert isinstance(meanwhile(store, append).try_append(STREAM, [large], expected=token), Conflict)
    assert pages_of(store) == [0]
    assert len(list(store.read(STREAM))) == 2


def test_an_append_that_was_refused_is_a_conflict_though_what_was_there_is_pruned(store: Streams) -> None:
    """No answer was lost, so that nothing is in doubt."""
    token = store.append(STREAM, small()).token
    faster = iter([True])

    def append_and_prune(op: Op) -> None:
        if isinstance(op, Update) and next(faster, False):
            store.append(STREAM, small(2))
            store.prune(STREAM, 3)

    outcome = meanwhile(store, append_and_prune).try_append(STREAM, small(), expected=token)
    assert isinstance(outcome, Conflict)
    assert outcome.version == 3


def test_the_page_in_the_way_goes_with_the_last_one_only_where_that_follows_it(store: Streams) -> None:
    """A read takes pages that it has in hand for neighbours."""
    filled(store, 3)
    first, second, last = (store.driver.run(load_page("streams", STREAM, each)) for each in pages_of(store))
    for page, before in ((first, ()), (second, (second,))):
        head = store.driver.run(attempts.head_from("streams", STREAM, page))
        assert head is not None
        assert last is not None
        assert (head.index, head.before) == (last.index, before)


def test_a_token_of_a_page_that_a_restored_table_has_otherwise_begins_no_page(
    store: Streams, tables: MemoryTables
) -> None:
    token = store.append(
        STREAM, [event()], unfolds=[Unfold(type="Total", data=b"3")], expected=NO_STREAM
    ).token
    (before,) = tables.items("streams")
    while not full(token):
        token = store.append(STREAM, [event()], expected=token).token
    tables.execute(Put(table="streams", item=before))
    assert isinstance(store.try_append(STREAM, [event()], expected=token), Conflict)
    assert pages_of(store) == [0]


def test_what_a_page_would_not_take_is_refused_by_a_tombstone_without_a_write(store: Streams) -> None:
    store.append(STREAM, small())
    store.delete(STREAM)
    tombstone = store.driver.run(load_head("streams", STREAM))
    assert tombstone is not None
    outside = parse_token(tombstone.token().text())
    large = Event(type="E", data=random_bytes(404_000))

    assert requests(store, lambda: refused(store.try_append(STREAM, [large], expected=outside))) == 1
    assert pages_of(store) == [0]


def refused(outcome: object) -> None:
    assert isinstance(outcome, Conflict)
    assert outcome.deleted


def test_a_deletion_that_was_lost_is_not_taken_for_made_where_another_has_appended(store: Streams) -> None:
    store.append(STREAM, small())
    lost = iter([True])

    def lose_and_append(op: Op) -> None:
        if isinstance(op, Update) and next(lost, False):
            store.append(STREAM, small())
            raise Lost("on its way")

    progress = meanwhile(store, lose_and_append).delete(STREAM)
    assert progress is not None
    state = store.load(STREAM)
    assert state is not None
    assert state.deleted
    assert list(store.read(STREAM)) == []


@pytest.mark.parametrize("leave_open", [False, True])
def test_a_deletion_that_never_arrived_is_not_taken_for_made_where_another_has_pruned(
    store: Streams, leave_open: bool
) -> None:
    store.append(STREAM, small(), unfolds=[Unfold(type="State", data=b"1")] if leave_open else None)
    lost = iter([True])

    def lose_and_prune(op: Op) -> None:
        if isinstance(op, Update) and next(lost, False):
            store.prune(STREAM, 1)
            raise Lost("on its way")

    meanwhile(store, lose_and_prune).delete(STREAM, leave_open=leave_open)
    state = store.load(STREAM)
    assert state is not None
    assert (state.deleted, state.unfolds) == (not leave_open, ())


def test_a_prune_that_is_overtaken_by_another_does_not_tell_of_less(
    store: Streams, tables: MemoryTables
) -> None:
    filled(store, 6)
    (low, high) = pages_of(store)[2], pages_of(store)[4]
    first = iter([True])

    def prune_more(op: Op) -> None:
        if isinstance(op, Update) and [each.name for each in op.sets] == ["l"] and next(first, False):
            store.prune(STREAM, high)

    meanwhile(store, prune_more).prune(STREAM, low)
    assert next(item["l"]["N"] for item in tables.items("streams") if item["i"]["N"] == "0") == str(high)


def test_a_prune_goes_on_on_the_page_as_another_has_left_it(store: Streams) -> None:
    store.append(STREAM, small(2))
    first = iter([True])

    def append(op: Op) -> None:
        if isinstance(op, Update) and next(first, False):
            store.append(STREAM, small())

    pruned = meanwhile(store, append).prune(STREAM, 2)
    assert pruned is not None
    assert (pruned.done, pruned.low_water) == (True, 2)
    assert [each.index for each in store.read(STREAM)] == [2]


@pytest.mark.parametrize("start", [None, 7, 6, 5, 4])
def test_a_stream_that_was_pruned_within_a_page_ends_there_backward(
    store: Streams, start: int | None
) -> None:
    """Pages of three events: those below 5 are gone, and of the second page two are left."""
    noise = random.Random(2)
    for _ in range(12):
        store.append(STREAM, [Event(type="E", data=noise.randbytes(300))])
    assert pages_of(store)[:3] == [0, 3, 6]
    store.prune(STREAM, 5)

    streams, meter = store.metered()
    page = streams.page(STREAM, start=start, direction="backward")

    last = 11 if start is None else start
    assert [each.index for each in page.events] == list(range(last, 4, -1))
    assert (page.hole, page.next) == (Hole(first=0, end=min(5, last + 1)), None)
    assert meter.requests <= 3, "what is emptied is not walked through"


def test_what_is_pruned_is_told_alike_wherever_a_read_begins_and_by_the_pages_that_follow(
    store: Streams,
) -> None:
    """Pages of three events, of which the second one keeps two."""
    noise = random.Random(2)

    def append(count: int) -> None:
        for _ in range(count):
            store.append(STREAM, [Event(type="E", data=noise.randbytes(300))])

    append(30)
    pruned = store.prune(STREAM, 5)
    assert pruned is not None
    assert pruned.deleted == 2, "pages above the mark are not written"
    head = store.head(STREAM)
    assert head is not None
    assert isinstance(store.try_append(STREAM, small(), expected=head.token()), Appended)
    append(9)

    for start in (0, 5, 20, 39):
        for direction in ("forward", "backward"):
            assert store.page(STREAM, start=start, limit=2, direction=direction).low_water == 5
    state = store.load(STREAM)
    assert state is not None
    assert state.low_water == 5


def test_a_page_without_events_takes_what_no_other_page_would(store: Streams) -> None:
    store.append(STREAM, [], unfolds=[Unfold(type="State", data=random_bytes(200_000))])
    large = Event(type="E", data=random_bytes(205_000))
    assert isinstance(store.try_append(STREAM, [large]), Appended)
    assert pages_of(store) == [0]


def random_bytes(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def test_a_gap_is_healed_up_to_its_end_and_no_further(store: Streams) -> None:
    store.append(STREAM, small(4))
    healed = store.driver.run(heal_pages("streams")(Gap(stream=STREAM, index=1, end=3)))
    assert [(span.index, len(span.types)) for span in healed.spans] == [(1, 2)]
