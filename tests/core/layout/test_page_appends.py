"""What appends, reads and prunes of pages cost in requests, and what they refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.streams import PruneProgress
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import Token, parse_token
from epochal.pages import items, port, pruning, reading, writes
from epochal.pages.items import STREAMS, page_key, state_of
from epochal.pages.layout import Pages
from epochal.plan import values
from epochal.plan.ops import Delete, Put
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams

STREAM = "Cart-1"


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables({"streams": STREAMS, "others": STREAMS})


@pytest.fixture
def store(tables: MemoryTables) -> Streams:
    return Streams(driver=Driver(execute=tables.execute, meter=Meter()), table="streams", layout=Pages())


def event(size: int = 700) -> Event:
    """Large enough for a page of its own, and of nothing that could be compressed."""
    return Event(type="Added", data=bytes(range(256)) * (size // 256 + 1))


def filled(store: Streams, pages: int) -> Appended:
    """A stream of so many pages, all of them full."""
    last = store.append(STREAM, [event()], expected=NO_STREAM)
    while len(pages_of(store)) < pages or not full(last.token):
        last = store.append(STREAM, [event()], expected=last.token)
    return last


def pages_of(store: Streams) -> list[int]:
    tables: MemoryTables = store.driver.execute.__self__  # type: ignore[attr-defined]
    return [int(item["i"]["N"]) for item in tables.items(store.table)]


def full(token: Token) -> bool:
    state = state_of(token.etag or "")
    return state is not None and state.full


def requests(store: Streams, act: Callable[[], object]) -> int:
    before = store.driver.meter.requests
    act()
    return store.driver.meter.requests - before


def test_an_append_on_a_token_is_one_request_whether_the_page_is_full_or_not(store: Streams) -> None:
    token = store.append(STREAM, [event()], expected=NO_STREAM).token
    met = set()
    for _ in range(12):
        met.add(full(token))
        known = token
        assert requests(store, lambda: store.append(STREAM, [event(10)], expected=known)) == 1  # noqa: B023
        state = store.load(STREAM)
        assert state is not None
        token = state.token
    assert met == {False, True}


def test_a_token_from_outside_extends_at_once_and_begins_a_page_only_once_it_is_read(store: Streams) -> None:
    begun = store.append(STREAM, [Event(type="Begun")], expected=NO_STREAM).token
    outside = parse_token(begun.text())
    assert not full(outside)
    assert requests(store, lambda: store.append(STREAM, [event()], expected=outside)) == 1

    last = parse_token(filled_on(store).text())
    assert requests(store, lambda: store.append(STREAM, [event()], expected=last)) == 2


def filled_on(store: Streams) -> Token:
    state = store.load(STREAM)
    assert state is not None
    token = state.token
    while not full(token):
        token = store.append(STREAM, [event()], expected=token).token
    return token


@pytest.mark.parametrize("version", [1, 3])
def test_a_token_that_says_another_version_than_its_page_extends_nothing(
    store: Streams, version: int
) -> None:
    token = store.append(STREAM, [Event(type="E")] * 2).token

    assert isinstance(store.try_append(STREAM, [event()], expected=replace(token, version=version)), Conflict)
    assert len(list(store.read(STREAM))) == 2


def test_unfolds_that_none_replace_are_gone(store: Streams) -> None:
    token = store.append(STREAM, [Event(type="E")], unfolds=[Unfold(type="Total", data=b"3")]).token
    store.append(STREAM, [Event(type="E")], unfolds=[], expected=token)
    state = store.load(STREAM)

    assert state is not None
    assert state.unfolds == ()


def test_no_forged_token_begins_a_page_in_the_middle_of_nowhere(store: Streams) -> None:
    token = store.append(STREAM, [event()], expected=NO_STREAM).token
    state = state_of(token.etag or "")
    assert state is not None
    forged = parse_token(replace(token, version=7, etag=replace(state, full=True).etag()).text())

    assert isinstance(store.try_append(STREAM, [event()], expected=forged), Conflict)
    assert pages_of(store) == [0]


@pytest.mark.parametrize(("pruned", "forged"), [(0, 1), (0, 4), (2, 0), (2, 1), (2, 4)])
def test_a_token_from_outside_that_says_other_than_what_is_pruned_passes_that_on_to_no_page(
    store: Streams, pruned: int, forged: int
) -> None:
    store.append(STREAM, [Event(type="E")] * 4)
    store.prune(STREAM, pruned)
    state = store.load(STREAM)
    assert state is not None
    outside = replace(parse_token(state.token.text()), low_water=forged)
    token = store.append(STREAM, [Event(type="E")], expected=outside).token
    assert token.low_water == pruned
    while len(pages_of(store)) == 1:
        token = store.append(STREAM, [event()], expected=token).token
    state = store.load(STREAM)
    assert state is not None
    assert state.low_water == pruned


def test_a_token_of_a_full_page_is_in_conflict_with_unfolds_that_were_written_since(store: Streams) -> None:
    """These leave the version as it was, and begin a page that would take the append."""
    token = filled(store, 1).token
    store.append(STREAM, [], unfolds=[Unfold(type="Total", data=b"3")], expected=token)
    for expected in (token, parse_token(token.text())):
        outcome = store.try_append(STREAM, [event()], unfolds=[], expected=expected)
        assert isinstance(outcome, Conflict)
    state = store.load(STREAM)
    assert state is not None
    assert [unfold.data for unfold in state.unfolds] == [b"3"]


def test_a_token_that_makes_its_page_small_is_found_out_by_the_page(
    store: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: False)
    noise = random.Random(1)
    token = store.append(STREAM, [Event(type="E", data=noise.randbytes(9_000))]).token
    small = replace(token, size=100, carried=50)

    assert store.append(STREAM, [Event(type="E", data=noise.randbytes(401_000))], expected=small).first == 1
    assert pages_of(store) == [0, 1]


def test_a_token_of_another_stream_or_table_begins_nothing(store: Streams) -> None:
    last = filled(store, 2)
    other = replace(store, table="others")

    assert isinstance(store.try_append("Cart-2", [event()], expected=last.token), Conflict)
    assert isinstance(other.try_append(STREAM, [event()], expected=last.token), Conflict)
    assert pages_of(other) == []
    assert store.load("Cart-2") is None


def test_the_token_of_a_tombstone_is_refused(store: Streams) -> None:
    filled(store, 2)
    store.delete(STREAM)
    state = store.load(STREAM)
    assert state is not None
    assert state.deleted

    refused = store.try_append(STREAM, [event()], expected=state.token)
    assert isinstance(refused, Conflict)
    assert refused.deleted


def test_a_clock_that_was_ahead_dates_its_own_events_and_none_that_follow(store: Streams) -> None:
    def at(seconds: float) -> Streams:
        return replace(store, now=lambda: int(seconds * 10**9))

    def times() -> list[str]:
        return [each.timestamp[17:22] for each in store.read(STREAM)]

    at(1).append(STREAM, [Event(type="E")])
    at(1.5).append(STREAM, [Event(type="E")])
    at(1).append(STREAM, [Event(type="E")])
    assert times() == ["01.00", "01.50", "01.50"]

    at(50).append(STREAM, [Event(type="E")])
    at(2).append(STREAM, [Event(type="E"), Event(type="E", timestamp="1970-01-01T00:00:03Z")])
    assert times()[3:] == ["50.00", "02.00", "03.00"]


def test_unfolds_that_are_kept_move_to_the_next_page(store: Streams) -> None:
    token = store.append(
        STREAM, [event()], unfolds=[Unfold(type="Total", data=b"3")], expected=NO_STREAM
    ).token
    while not full(token):
        token = store.append(STREAM, [event()], expected=token).token
    before = len(pages_of(store))

    known = token
    assert requests(store, lambda: store.append(STREAM, [event()], expected=known)) == 2
    assert len(pages_of(store)) == before + 1
    state = store.load(STREAM)
    assert state is not None
    assert [unfold.data for unfold in state.unfolds] == [b"3"]


def test_a_short_stream_is_read_in_one_request(store: Streams) -> None:
    last = filled(store, 4)
    found = list(store.read(STREAM))
    assert len(found) == last.version
    assert requests(store, lambda: list(store.read(STREAM))) == 1


def test_a_long_pruned_stream_is_not_walked_from_its_beginning(store: Streams) -> None:
    last = filled(store, 40)
    pruned = store.prune(STREAM, last.version - 1)
    assert pruned is not None
    assert pruned.done

    assert [each.index for each in store.read(STREAM)] == [last.version - 1]
    assert requests(store, lambda: list(store.read(STREAM))) == 2
    assert len(pages_of(store)) >= 40


def test_a_short_stream_is_read_in_one_request_though_its_first_pages_are_pruned(store: Streams) -> None:
    last = filled(store, 4)
    store.prune(STREAM, pages_of(store)[2])

    assert requests(store, lambda: list(store.read(STREAM))) == 1
    assert [each.index for each in store.read(STREAM)] == list(range(pages_of(store)[2], last.version))


def test_a_replay_of_a_short_stream_reads_each_page_once(
    store: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, 4)
    read, seen = items.read_page, list[str]()

    def counted(item: Item, *given: Any) -> items.Page:
        seen.append(item["i"]["N"])
        return read(item, *given)

    monkeypatch.setattr(reading, "read_page", counted)
    assert list(store.read(STREAM))
    assert seen == [str(index) for index in pages_of(store)]


def test_a_read_newest_first_ends_at_the_first_page_that_is_pruned_and_says_so(store: Streams) -> None:
    filled(store, 6)
    kept = pages_of(store)[4]
    store.prune(STREAM, kept)

    found = store.page(STREAM, direction="backward", limit=100)
    assert found.low_water == kept
    assert [each.index for each in reversed(found.events)] == list(range(kept, found.version))


def test_a_deletion_that_is_bounded_hides_all_at_once_and_goes_on(store: Streams) -> None:
    last = filled(store, 6)

    def delete() -> PruneProgress:
        found = store.driver.run(pruning.delete("streams", STREAM, ANY, "0" * 32, leave_open=False, writes=2))
        assert isinstance(found, PruneProgress)
        return found

    steps = [delete(), delete(), delete(), delete()]
    assert {each.low_water for each in steps} == {last.version}
    assert [each.done for each in steps] == [False, False, True, True]
    assert sum(each.deleted for each in steps) == 6


def test_a_stream_may_be_pruned_event_by_event_while_it_grows(store: Streams) -> None:
    """Within appends, at the ends of pages, and all that there is."""
    version = store.append(STREAM, [event()] * 4).version
    while len(pages_of(store)) < 3:
        version = store.append(STREAM, [event()] * 4).version
    for before in range(1, version + 3):
        if before > version:
            version = store.append(STREAM, [event()]).version
        pruned = store.prune(STREAM, before)
        assert pruned is not None
        assert (pruned.done, pruned.low_water) == (True, before)
        assert [each.index for each in store.read(STREAM)] == list(range(before, version))
        assert store.page(STREAM, limit=100).low_water == before


def test_a_prune_goes_on_where_the_call_before_ended(store: Streams) -> None:
    last = filled(store, 12)
    run = store.driver.run
    low, calls = 0, 0
    while low < last.version:
        done = run(pruning.prune("streams", STREAM, last.version, "0" * 32, writes=3))
        assert done is not None
        assert low < done.low_water
        assert done.deleted <= 3
        assert done.done == (done.low_water == last.version)
        low, calls = done.low_water, calls + 1
    assert calls > 3
    assert list(store.read(STREAM)) == []


@pytest.mark.parametrize("before", [0, 2, 7])
def test_a_prune_of_less_than_is_gone_already_is_done(store: Streams, before: int) -> None:
    last = filled(store, 12)
    store.prune(STREAM, last.version - 1)

    again = store.prune(STREAM, before)

    assert again is not None
    assert (again.deleted, again.done) == (0, True)


@pytest.mark.parametrize("through", ["token", "load", "text"])
def test_what_an_interrupted_deletion_hid_stays_hidden_whoever_begins_the_next_pages(
    store: Streams, through: str
) -> None:
    last = filled(store, 6)
    deletion = pruning.delete("streams", STREAM, last.token, "0" * 32, leave_open=True, writes=1)
    assert not store.driver.run(deletion).done
    state = store.load(STREAM)
    assert state is not None
    token = state.token

    for _ in range(4):
        if through == "load":
            token = store.load(STREAM).token  # type: ignore[union-attr]
        elif through == "text":
            token = parse_token(token.text())
        token = store.append(STREAM, [event()], expected=token).token

    added = list(range(last.version, last.version + 4))
    assert [each.index for each in store.read(STREAM)] == added
    assert [each.index for each in store.read(STREAM, direction="backward")] == added[::-1]
    assert store.load(STREAM).low_water == last.version  # type: ignore[union-attr]


def test_a_stream_without_events_that_is_emptied_loses_its_unfolds_too(store: Streams) -> None:
    store.append(STREAM, [Event(type="E")], unfolds=[Unfold(type="State")])
    store.prune(STREAM, 1)

    store.delete(STREAM, leave_open=True)

    state = store.load(STREAM)
    assert state is not None
    assert state.unfolds == ()


def test_a_prune_takes_unfolds_from_pages_that_others_follow(store: Streams, tables: MemoryTables) -> None:
    last = store.append(STREAM, [event()], unfolds=[Unfold(type="State")])
    while len(pages_of(store)) < 2:
        last = store.append(STREAM, [event()], expected=last.token)
    assert ["u" in item for item in tables.items("streams")] == [True, True]

    store.prune(STREAM, last.first)

    assert sorted("u" in item for item in tables.items("streams")) == [False, True]


def test_the_heads_of_a_deleted_stream_tell_that_all_is_gone(store: Streams, tables: MemoryTables) -> None:
    filled(store, 3)
    store.delete(STREAM)

    ends = [end for item in tables.items("streams") if (end := port.end(item)) is not None]

    assert all(each.pruned >= (each.next or 0) for each in ends)


def test_what_is_before_a_page_that_cannot_be_read_is_read(store: Streams, tables: MemoryTables) -> None:
    filled(store, 4)
    broken = pages_of(store)[2]
    item = next(each for each in tables.items("streams") if each["i"]["N"] == str(broken))
    tables.execute(Put(table="streams", item={**item, "r": values.number(1)}))
    events = store.read(STREAM)

    assert [next(events).index for _ in range(broken)] == list(range(broken))
    with pytest.raises(CorruptData, match=f"page {broken}"):
        next(events)


def test_a_page_that_is_missing_in_the_middle_is_corruption(store: Streams, tables: MemoryTables) -> None:
    filled(store, 4)
    middle = sorted(pages_of(store))[1]
    tables.execute(Delete(table="streams", key=page_key(STREAM, middle)))

    for direction in ("forward", "backward"):
        with pytest.raises(CorruptData, match=r"Cart-1: event \d+ is in no page"):
            list(store.read(STREAM, direction=direction))  # type: ignore[arg-type]
    with pytest.raises(CorruptData, match="are not contiguous"):
        store.prune(STREAM, 100)


def test_a_key_that_was_used_for_other_events_is_refused(store: Streams) -> None:
    store.append(STREAM, [event()], idempotency_key="k")
    filled_on(store)
    with pytest.raises(InvalidInput, match="idempotency_key"):
        store.append(STREAM, [Event(type="Else")], idempotency_key="k")
    assert store.append(STREAM, [event()], idempotency_key="k").replayed


def test_the_token_of_an_append_is_that_of_a_load_whatever_digits_its_time_ends_with() -> None:
    """A number takes fewer bytes where it ends with zeroes, and times do now and then."""
    times = count(1_700_000_000_000_000_000, 2_500)
    store = replace(memory_streams(), now=lambda: next(times))
    token = None
    for number in range(200):
        token = store.append(
            "Door-1", [Event(type="Opened", data=b"%d" % number)], expected=token or ANY
        ).token
        state = store.load("Door-1")
        assert state is not None
        full = state.token.size - token.size
        assert (full, replace(state.token, size=token.size)) in ((0, token), (3, token))
