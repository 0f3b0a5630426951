"""Whatever a public call is handed, what comes out is an error of ours that names a field, and nothing has changed.

Each call has one place for a value, and every odd value is tried in it: numbers that are none or too large, of
another kind, texts that no key holds, and things that are neither. A number's place takes whole numbers alone: True is
none, nor is 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epochal.contrib.event_store_adapter.event_pages import page as aggregate_page
from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.snapshot_policies import by_size, every
from epochal.contrib.sekiban import memory_projection_states
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.errors import EpochalError, InvalidInput
from epochal.feed.reader import FeedReader
from epochal.http.tag_pages import TagPages
from epochal.index.checkpoints import parse_checkpoint
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import AtVersion
from epochal.model.tags import Query, QueryItem
from epochal.model.tokens import Token
from epochal.store.tagged_importer import ImportedEvent
from epochal.testing.feeds import MemoryStore
from tests.support.examples import examples

E: Final = Event(type="E")
A: Final = AggregateEvent(type="A", data=b"{}")
ORDER: Final = aggregate_id("order", "1")
TAG: Final = "course:1"
OF_COURSE: Final = Query(items=(QueryItem(tags=frozenset({TAG})),))
ID: Final = "6d0f32c5-6a53-4d0c-9a3c-0a4f7f2f0a11"
NOW: Final = "2026-01-01T00:00:00Z"
SORTABLE: Final = "0" * 30


@dataclass
class World:
    """Stores of every layout in memory, each with something in it."""

    feed: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.streams, self.aggregates, self.tagged = self.feed.tips, self.feed.aggregates, self.feed.dcb
        self.streams.append("Order-1", [E, E], unfolds=[Unfold(type="U")])
        self.lock = self.aggregates.append(ORDER, [A], snapshot=b"{}").lock
        self.tagged.append([Event(type="T", data=b"{}", tags=(TAG,))])
        self.states = memory_projection_states(self.feed.tables)
        self.states.save("Totals", "v1", [b"1"], events_processed=1, last_sortable_id=SORTABLE)
        self.feed.index()
        self.reader: FeedReader = self.feed.feed
        self.listings = TagListings(store=self.tagged)
        self.pages = TagPages(listings=self.listings)

    @property
    def stored(self) -> str:
        kinds = ("tips", "index", "journal", "snapshot", "events", "tags", "projection-states", "read-models")
        return repr([list(self.feed.tables.items(kind)) for kind in kinds])


Call = Callable[[World, Any], object]


def tagged(world: World, **fields: Any) -> object:
    return world.tagged.append([Event(**{"type": "T", "data": b"{}", "tags": (TAG,), **fields})])


def in_sekiban(world: World, **fields: Any) -> object:
    return world.tagged.append([TaggedEvent(**{"type": "T", "data": b"{}", "tags": (TAG,), **fields})])


def saved(world: World, **fields: Any) -> object:
    given = {"events_processed": 2, "last_sortable_id": SORTABLE, **fields}
    return world.states.save(
        given.pop("projector", "Totals"), given.pop("version", "v1"), given.pop("state", [b"2"]), **given
    )


def bag(odd: Any) -> frozenset[Any]:
    """A set of what is to be asked for; what no set takes goes in as what it looks like."""
    return frozenset({odd if isinstance(odd, Hashable) else repr(odd)})


def imported(world: World, **fields: Any) -> object:
    event = Event(type="T", data=b"{}", tags=(TAG,), id=ID)
    return DcbImporter(store=world.tagged).run(
        [ImportedEvent(**{"event": event, "timestamp": NOW, **fields})]
    )


NUMBERS: Final[dict[str, Call]] = {
    "AtVersion.version": lambda world, x: world.streams.append("Order-1", [E], expected=AtVersion(version=x)),
    "Token.version": lambda world, x: world.streams.append("Order-1", [E], expected=Token(version=x)),
    "streams.load start": lambda world, x: world.streams.load("Order-1", start=x),
    "streams.read start": lambda world, x: world.streams.read("Order-1", start=x),
    "streams.read limit": lambda world, x: world.streams.read("Order-1", limit=x),
    "streams.page start": lambda world, x: world.streams.page("Order-1", start=x),
    "streams.page limit": lambda world, x: world.streams.page("Order-1", limit=x),
    "streams.page max_bytes": lambda world, x: world.streams.page("Order-1", max_bytes=x),
    "streams.prune before": lambda world, x: world.streams.prune("Order-1", x),
    "streams.copy_to_archive before": lambda world, x: world.streams.copy_to_archive("Order-1", x),
    "events_after seq_nr": lambda world, x: world.aggregates.events_after(ORDER, x),
    "events_after limit": lambda world, x: world.aggregates.events_after(ORDER, limit=x),
    "Lock.version": lambda world, x: world.aggregates.append(ORDER, [A], expected=Lock(version=x, seq_nr=1)),
    "Lock.seq_nr": lambda world, x: world.aggregates.append(ORDER, [A], expected=Lock(version=1, seq_nr=x)),
    "aggregate page start": lambda world, x: aggregate_page(
        world.aggregates, ORDER, world.lock, start=x, limit=1, max_bytes=1
    ),
    "aggregate page limit": lambda world, x: aggregate_page(
        world.aggregates, ORDER, world.lock, start=1, limit=x, max_bytes=1
    ),
    "Retention.keep": lambda _, x: Retention(keep=x),
    "Retention.ttl_seconds": lambda _, x: Retention(ttl_seconds=x),
    "TaggedEvent.expires": lambda world, x: in_sekiban(world, expires=x),
    "all_events max_count": lambda world, x: world.listings.all_events(max_count=x),
    "all_events page": lambda world, x: world.listings.all_events(page=x),
    "tagged page": lambda world, x: world.listings.tagged(TAG, page=x),
    "entries page": lambda world, x: world.listings.entries(TAG, page=x),
    "tag_name_pages page": lambda world, x: world.listings.tag_name_pages("course", page=x),
    "TagPages.all_events limit": lambda world, x: world.pages.all_events(limit=x),
    "TagPages.tagged limit": lambda world, x: world.pages.tagged(TAG, limit=x),
    "TagPages.entries limit": lambda world, x: world.pages.entries(TAG, limit=x),
    "TagPages.tags limit": lambda world, x: world.pages.tags("course", limit=x),
    "save events_processed": lambda world, x: saved(world, events_processed=x),
    "states page limit": lambda world, x: world.states.page("Totals", limit=x),
    "states inline_bytes": lambda world, x: ProjectionStates(
        driver=world.streams.driver, table="projection-states", inline_bytes=x
    ),
    "feed partition": lambda world, x: world.reader.page(x),
    "feed limit": lambda world, x: world.reader.page(0, limit=x),
    "every": lambda _, x: every(x),
    "by_size": lambda _, x: by_size(x),
}

TEXTS: Final[dict[str, Call]] = {
    "stream of append": lambda world, x: world.streams.append(x, [E]),
    "stream of load": lambda world, x: world.streams.load(x),
    "stream of read": lambda world, x: world.streams.read(x),
    "stream of page": lambda world, x: world.streams.page(x),
    "stream of prune": lambda world, x: world.streams.prune(x, 1),
    "stream of delete": lambda world, x: world.streams.delete(x),
    "stream of copy_to_archive": lambda world, x: world.streams.copy_to_archive(x, 1),
    "idempotency_key": lambda world, x: world.streams.append("Order-2", [E], idempotency_key=x),
    "Event.type": lambda world, x: world.streams.append("Order-1", [Event(type=x)]),
    "Event.data": lambda world, x: world.streams.append("Order-1", [Event(type="E", data=x)]),
    "Event.meta": lambda world, x: world.streams.append("Order-1", [Event(type="E", meta=x)]),
    "Event.timestamp": lambda world, x: world.streams.append("Order-1", [Event(type="E", timestamp=x)]),
    "Event.causation_id": lambda world, x: world.streams.append("Order-1", [Event(type="E", causation_id=x)]),
    "Event.correlation_id": lambda world, x: world.streams.append(
        "Order-1", [Event(type="E", correlation_id=x)]
    ),
    "Unfold.type": lambda world, x: world.streams.append("Order-1", (), unfolds=[Unfold(type=x)]),
    "Unfold.timestamp": lambda world, x: world.streams.append(
        "Order-1", (), unfolds=[Unfold(type="U", timestamp=x)]
    ),
    "expected": lambda world, x: world.streams.append("Order-1", [E], expected=x),
    "direction": lambda world, x: world.streams.read("Order-1", direction=x),
    "aggregate type": lambda world, x: world.aggregates.append(aggregate_id(x, "9"), [A], snapshot=b"{}"),
    "aggregate value": lambda world, x: world.aggregates.append(
        aggregate_id("order", x), [A], snapshot=b"{}"
    ),
    "AggregateId made by hand": lambda world, x: world.aggregates.append(
        AggregateId(type="order", value=x), [A], snapshot=b"{}"
    ),
    "AggregateId read": lambda world, x: world.aggregates.replay(AggregateId(type=x, value="1")),
    "aggregate": lambda world, x: world.aggregates.append(x, [A], snapshot=b"{}"),
    "AggregateEvent.type": lambda world, x: world.aggregates.append(
        ORDER, [AggregateEvent(type=x, data=b"{}")]
    ),
    "AggregateEvent.data": lambda world, x: world.aggregates.append(
        ORDER, [AggregateEvent(type="A", data=x)]
    ),
    "AggregateEvent.occurred_at": lambda world, x: world.aggregates.append(
        ORDER, [AggregateEvent(type="A", data=b"{}", occurred_at=x)]
    ),
    "snapshot": lambda world, x: world.aggregates.append(ORDER, [A], snapshot=x),
    "expected lock": lambda world, x: world.aggregates.append(ORDER, [A], expected=x),
    "retire": lambda world, x: world.aggregates.retire(x),
    "tagged Event.type": lambda world, x: tagged(world, type=x),
    "tagged Event.data": lambda world, x: tagged(world, data=x),
    "tagged Event.tags": lambda world, x: tagged(world, tags=x),
    "Event tag": lambda world, x: tagged(world, tags=(x,)),
    "tagged Event.id": lambda world, x: tagged(world, id=x),
    "tagged Event.causation_id": lambda world, x: tagged(world, causation_id=x),
    "TaggedEvent.executed_user": lambda world, x: in_sekiban(world, executed_user=x),
    "fail_if": lambda world, x: world.tagged.append([Event(type="T", data=b"{}")], fail_if=x),
    "after": lambda world, x: world.tagged.append([Event(type="T", data=b"{}")], fail_if=OF_COURSE, after=x),
    "query": lambda world, x: world.tagged.read(x),
    "query tag": lambda world, x: world.tagged.read(Query(items=(QueryItem(tags=bag(x)),))),
    "query type": lambda world, x: world.tagged.read(
        Query(items=(QueryItem(tags=frozenset({TAG}), types=bag(x)),))
    ),
    "event": lambda world, x: world.tagged.event(x),
    "events": lambda world, x: world.tagged.events([x]),
    "all_events since": lambda world, x: world.listings.all_events(since=x),
    "tagged tag": lambda world, x: world.listings.tagged(x),
    "tagged since": lambda world, x: world.listings.tagged(TAG, since=x),
    "entries since": lambda world, x: world.listings.entries(TAG, since=x),
    "count since": lambda world, x: world.listings.count(since=x),
    "latest": lambda world, x: world.listings.latest(x),
    "exists": lambda world, x: world.listings.exists(x),
    "tags group": lambda world, x: world.listings.tags(x),
    "tag_name_pages beyond": lambda world, x: world.listings.tag_name_pages("course", x),
    "counted": lambda world, x: world.listings.counted([x]),
    "TagPages.tags after": lambda world, x: world.pages.tags(after=x, limit=1),
    "imported timestamp": lambda world, x: imported(world, timestamp=x),
    "imported sortable_id": lambda world, x: imported(world, place=x),
    "save projector": lambda world, x: saved(world, projector=x),
    "save version": lambda world, x: saved(world, version=x),
    "save state": lambda world, x: saved(world, state=x),
    "save last_sortable_id": lambda world, x: saved(world, last_sortable_id=x),
    "save safe_window": lambda world, x: saved(world, safe_window=x),
    "find projector": lambda world, x: world.states.find(x, "v1"),
    "find version": lambda world, x: world.states.find("Totals", x),
    "states list": lambda world, x: world.states.list(x),
    "states page beyond": lambda world, x: world.states.page("Totals", beyond=x, limit=1),
    "delete state": lambda world, x: world.states.delete("Totals2", x),
    "remove_orphans": lambda world, x: world.states.remove_orphans(x),
    "feed start": lambda world, x: world.reader.page(0, start=x),
    "feed categories": lambda world, x: world.reader.page(0, categories=x),
    "checkpoint": lambda _, x: parse_checkpoint(x),
}

WORDS: Final = ("", "x", "\ud800", "\0", "a\nb", "$all", "x" * 2_000, "ü" * 1_100, "1e300", NOW, "9999-99-99")
FIGURES: Final = (0, 1, -1, 2**31, 2**63, 10**40, -(10**40), 1.0, 1e300, math.nan, math.inf, True, False)
OTHERS: Final = (None, b"", b"\xff", [], {}, (), object(), Decimal("NaN"), ["x"], print)

ODD: Final = st.one_of(
    st.sampled_from((*WORDS, *FIGURES, *OTHERS)),
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.binary(max_size=20),
)


def attempt(world: World, call: Call, odd: object) -> Exception | None:
    """What a call raises; what it lists is read to the end."""
    try:
        found = call(world, odd)
        if isinstance(found, Iterator):
            list(found)
    except Exception as error:  # noqa: BLE001  any error but ours is what is looked for
        return error
    return None


def judged(call: Call, odd: object, worlds: list[World] = []) -> Exception | None:  # noqa: B006  kept on purpose
    """What a call raises, if anything: of ours, and in a world that it left as it was, which serves again."""
    world = worlds.pop() if worlds else World()
    before = world.stored
    error = attempt(world, call, odd)
    if error is not None:
        assert isinstance(error, EpochalError), f"{type(error).__name__}: {error}"
        assert world.stored == before
    if world.stored == before:
        worlds.append(world)
    return error


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NUMBERS, *TEXTS])
def test_every_odd_value_is_refused_in_our_words_or_taken(name: str) -> None:
    call = (NUMBERS | TEXTS)[name]
    broken = {}
    for odd in (*WORDS, *FIGURES, *OTHERS):
        try:
            judged(call, odd)
        except AssertionError as error:
            broken[repr(odd)[:40]] = str(error)[:150]
    assert not broken


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("odd", [True, 1.0, 1e300, math.nan, math.inf, "1", b"1", [1], Decimal(1)])
def test_the_place_of_a_number_takes_whole_numbers_alone(name: str, odd: object) -> None:
    error = judged(NUMBERS[name], odd)
    assert isinstance(error, InvalidInput)
    assert error.field
    assert error.rule.startswith("must be")


@examples(150)
@given(name=st.sampled_from([*NUMBERS, *TEXTS]), odd=ODD)
@example(name="TaggedEvent.expires", odd=1e300)
def test_so_are_values_that_nobody_thought_of(name: str, odd: object) -> None:
    judged((NUMBERS | TEXTS)[name], odd)
