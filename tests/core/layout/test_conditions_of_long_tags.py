"""A condition without a position reads a tag up to a bound; what the guide says to do instead stays flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position
from epochal.model.tags import Query, QueryItem
from epochal.pages.tags import append
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.stores import memory_tagged_events

TAG, FACT = "course:1", "closed:1"
BATCH, BOUND = 100, 5_000


def query(tag: str, kind: str) -> Query:
    return Query(items=(QueryItem(types=frozenset({kind}), tags=frozenset({tag})),))


CLOSED = query(TAG, "Closed")
CLOSING = Event(type="Closed", data=b"{}", tags=(TAG,))


def filled(events: int, first: Sequence[Event] = ()) -> TaggedEvents:
    """A store with a tag of so many events."""
    store = memory_tagged_events()
    many = [
        *first,
        *(Event(type="Subscribed", data=str(k).encode(), tags=(TAG,)) for k in range(events - len(first))),
    ]
    for start in range(0, events, BATCH):
        store.append(many[start : start + BATCH])
    return store


@pytest.fixture(scope="module", autouse=True)
def _bound() -> Iterator[None]:
    """A quarter of the bound, which shows as much."""
    assert append.MOST_READ == 4 * BOUND
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(append, "MOST_READ", BOUND)
        yield


@pytest.fixture(scope="module")
def long() -> TaggedEvents:
    """One of more events than a condition reads, an early one of which is rare."""
    return filled(BOUND + 2_000, [Event(type="Opened", data=b"{}", tags=(TAG,))])


@pytest.mark.slow
def test_it_is_refused_beyond_the_bound_with_what_to_do_and_reads_no_further(long: TaggedEvents) -> None:
    before = long.driver.meter.units
    with pytest.raises(
        InvalidInput, match="over 5,000 events: use the position of an earlier read"
    ) as raised:
        long.append([CLOSING], fail_if=CLOSED)
    assert raised.value.field == "after"
    assert long.driver.meter.units.write == before.write
    assert long.driver.meter.units.read - before.read < 25
    assert long.read(query(TAG, "Closed"), limit=1, direction="backward").events == ()


@pytest.mark.slow
@pytest.mark.parametrize("takes", [None, lambda _: True])
def test_a_match_within_the_bound_is_still_a_conflict(
    long: TaggedEvents, takes: Callable[[object], bool] | None
) -> None:
    refused = long.try_append([CLOSING], fail_if=query(TAG, "Opened"), takes=takes)
    assert isinstance(refused, Conflict)
    assert [event.type for event in refused.events] == ["Opened"]


@pytest.mark.slow
def test_a_position_that_is_kept_as_text_makes_it_one_small_read_however_long_the_tag_is(
    long: TaggedEvents,
) -> None:
    costs = []
    for store in (filled(BATCH), long):
        kept = write_position(store.read(CLOSED).position)
        other = Event(type="Subscribed", data=b"{}", tags=(TAG,))
        done = store.append([other], fail_if=CLOSED, after=read_position(kept))
        costs.append((done.capacity.requests, done.capacity.read, done.capacity.write))
    assert costs[0][0] == costs[1][0] <= 2
    assert all(read <= 1 and write <= 4 for _, read, write in costs)


def test_a_tag_for_the_fact_makes_it_one_small_read_however_long_the_tag_is(long: TaggedEvents) -> None:
    fact = Event(type="Closed", data=b"{}", tags=(FACT, TAG))
    costs = []
    for store in (filled(BATCH), long):
        done = store.append([fact], fail_if=query(FACT, "Closed"))
        costs.append((done.capacity.requests, done.capacity.read <= 6, done.capacity.write <= 8))
        assert isinstance(store.try_append([fact], fail_if=query(FACT, "Closed")), Conflict)
    assert costs[0] == costs[1]
    assert costs[0][1:] == (True, True)


@pytest.mark.slow
def test_a_tag_of_as_many_events_as_the_bound_is_read_whole() -> None:
    assert isinstance(filled(BOUND).append([CLOSING], fail_if=CLOSED), Appended)


def test_a_position_of_the_beginning_is_a_position(long: TaggedEvents) -> None:
    early: Position = memory_tagged_events().read(CLOSED).position
    assert isinstance(long.try_append([CLOSING], fail_if=query(TAG, "Opened"), after=early), Conflict)
