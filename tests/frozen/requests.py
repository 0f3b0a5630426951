"""The requests that each operation of the stores sends, in a history with a fixed clock and fixed random bytes.

A line for each request, as DynamoDB's API has it, with what it cost and whether it was refused; short binary values in
base64, others by their length and digest. A refactoring that changes a line changes what users pay for, what their
policies must allow, or what is stored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any, Final, TypeVar

from epochal import (
    ANY,
    NO_STREAM,
    STREAM_EXISTS,
    AtVersion,
    ConflictError,
    Event,
    Query,
    QueryItem,
    StreamAppend,
    Unfold,
)
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.deployment import Deployment
from epochal.dynamo.protocol.requests import request_of
from epochal.feed.stream_records import Record
from epochal.layout.registry import layout_named
from epochal.layout.tables import READ_MODELS, archives, store_tables
from epochal.model.positions import Position
from epochal.plan.ops import Op, Overflow, Refusal, Reply
from epochal.reactions.definition import Delivery, reaction
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.store.driver import POOL, Driver, Meter
from epochal.store.listings import listings_of
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_importer import ImportedEvent, Importer, TaggedImporter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.support.inline import Inline

S = TypeVar("S")

START: Final = 1_767_225_600 * 10**9
"""2026 begins."""

SHOWN: Final = 60
"""Bytes of a binary value that is shown whole."""

LARGE: Final = random.Random(1).randbytes(420_000)


COURSE: Final = Query(items=(QueryItem(tags=frozenset({"course:c1"})),))
NARROW: Final = Query(
    items=(QueryItem(tags=frozenset({"course:c1", "student:s1"}), types=frozenset({"Enrolled"})),)
)
BY_TYPE: Final = Query(items=(QueryItem(types=frozenset({"Opened"})),))


class World:
    """A deployment in memory that writes down what is asked of its tables."""

    def __init__(self, **options: Any) -> None:
        """With settings of its own."""
        specs = {spec.kind: spec for spec in (*store_tables(), *archives(), READ_MODELS)}
        self.tables = MemoryTables(specs)
        self.lines: list[str] = []
        self._time = START
        self._drawn = self._begun = 0
        self._indexed: dict[str, int] = {}
        driver = Driver(execute=self._execute, meter=Meter(), clock=lambda: 0.0)
        self.on = Deployment(
            settings=memory_settings(read_models_table=READ_MODELS.kind, **options),
            driver=driver,
            bucket=MemoryBucket(),
        )

    def fixed(self, store: S) -> S:
        """A store with this world's clock and random bytes."""
        fixed: S = replace(store, now=self.now, fresh=self.fresh)  # type: ignore[type-var]
        return fixed

    def now(self) -> int:
        """A second more at each look."""
        self._time += 10**9
        return self._time

    def fresh(self, count: int) -> bytes:
        """Bytes that look random, other ones at each draw."""
        self._drawn += 1
        return hashlib.shake_128(b"%d" % self._drawn).digest(count)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """What is asked in here belongs to one operation, which may be refused.

        Its clock and its random bytes do not depend on how often the operations before it looked at theirs.
        """
        self._begun += 1
        self._time, self._drawn = START + self._begun * 3600 * 10**9, self._begun * 1_000
        self.lines.append(f"\n# {what}")
        before = len(self.lines)
        try:
            yield
        except ConflictError as refused:
            self.lines.append(f"raises {type(refused).__name__}")
        if len(self.lines) == before:
            self.lines.append("no request")

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """What is asked in here is not written down."""
        before = len(self.lines)
        yield
        del self.lines[before:]

    def index(self) -> None:
        """Index what was appended since the last time."""
        indexer = self.fixed(self.on.indexer)
        indexer.register()
        for table in (each.table for each in indexer.sources):
            changes, at = self.tables.changes(table), self._indexed.get(table, 0)
            report = indexer.index(
                Record(table=table, sequence_number=f"{number:021d}", image=changes[number])
                for number in range(at, len(changes))
            )
            assert not report.failed
            self._indexed[table] = len(changes)

    def _execute(self, op: Op) -> Reply:
        request, reply = request_of(op), self.tables.execute(op)
        parameters = dict(request.parameters)
        assert parameters.pop("ReturnConsumedCapacity") == "TOTAL", "every request says what it cost"
        shown = json.dumps(_shown(parameters), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        self.lines.append(f"{request.operation} {_result(reply)} {shown}")
        return reply


def _result(reply: Reply) -> str:
    cost = reply.units
    units = " ".join(
        [*([f"{cost.read:g}R"] if cost.read else []), *([f"{cost.write:g}W"] if cost.write else [])]
    )
    refused = {Refusal: " refused", Overflow: " overflow"}.get(type(reply), "")
    return f"[{units}{refused}]"


def _shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {name: _shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    if isinstance(value, bytes):
        digest = hashlib.sha256(value).hexdigest()[:16]
        return base64.b64encode(value).decode() if len(value) <= SHOWN else f"{len(value)} bytes {digest}"
    if isinstance(value, str) and 'File "' in value:
        return "a trace, which names a file of this machine"
    if isinstance(value, str) and len(value) > 4 * SHOWN:
        return f"{len(value)} characters {hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value


def event(kind: str, **data: object) -> Event:
    """An event of a stream."""
    return Event.json(kind, data)


def tagged(kind: str, *tags: str, **data: object) -> Event:
    """An event with tags."""
    return Event.json(kind, data, tags=tags)


def streams() -> list[str]:
    """Named streams."""
    world = World()
    _streams(world, world.fixed(world.on.streams))
    return world.lines


def tips() -> list[str]:
    """Named streams in Equinox's tables."""
    world = World(equinox=True)
    _streams(world, world.fixed(replace(world.on.tips, tombstones=True)))
    return world.lines


def _streams(world: World, store: Streams) -> None:
    doing = world.doing
    with doing("append to a new stream"):
        first = store.append("Order-1", [event("Placed", sku="A-1")])
    with doing("append, whatever is there"):
        store.append("Order-1", [event("Paid", by=12), event("Noted")], expected=ANY)
    with doing("append to no stream"):
        store.append("Order-2", [event("Placed", sku="A-2")], expected=NO_STREAM)
    with doing("append to no stream, where there is one"):
        store.append("Order-2", [event("Placed", sku="A-2")], expected=NO_STREAM)
    with doing("append to some stream"):
        store.append("Order-2", [event("Paid", by=1)], expected=STREAM_EXISTS)
    with doing("append to some stream, where there is none"):
        store.append("Order-9", [event("Paid", by=1)], expected=STREAM_EXISTS)
    with doing("append at a version"):
        second = store.append("Order-2", [event("Packed")], expected=AtVersion(version=2))
    with doing("append at a version that is over"):
        store.append("Order-2", [event("Packed")], expected=AtVersion(version=2))
    with doing("append with a token"):
        third = store.append("Order-2", [event("Sent")], expected=second.token)
    with doing("append with a token that is over"):
        store.append("Order-1", [event("Sent")], expected=first.token)
    with doing("append with an unfold"):
        third = store.append(
            "Order-2", [event("Came")], unfolds=[Unfold.json("State", {"n": 5})], expected=third.token
        )
    with doing("replace an unfold alone"):
        store.append("Order-2", [], unfolds=[Unfold.json("State", {"n": 5, "more": 1})], expected=third.token)
    _keyed(world, store)
    if store.layout.name == "pages":
        _several(world, store)
    _reads(world, store)
    _removal(world, store)


def _keyed(world: World, store: Streams) -> None:
    doing = world.doing
    with doing("append with a key"):
        store.append("Order-3", [event("Placed", sku="A-3")], expected=NO_STREAM, idempotency_key="key-1")
    with doing("repeat an append with a key"):
        store.append("Order-3", [event("Placed", sku="A-3")], expected=NO_STREAM, idempotency_key="key-1")
    with doing("append with another key, refused"):
        store.append("Order-3", [event("Placed", sku="A-3")], expected=NO_STREAM, idempotency_key="key-2")
    with doing("append with another key, whatever is there"):
        store.append("Order-3", [event("Paid", by=3)], idempotency_key="key-2")


def _reads(world: World, store: Streams) -> None:
    doing = world.doing
    with doing("append what is too large for an item"):
        store.append("Order-6", [Event(type="Scanned", data=LARGE)])
    with doing("append until an item is full"):
        for number in range(8):
            store.append("Order-7", _noted(number))
    with doing("load"):
        store.load("Order-2")
    with doing("load a stream of several items"):
        store.load("Order-7")
    with doing("load where there is none"):
        store.load("Order-9")
    with doing("read"):
        list(store.read("Order-2"))
    with doing("read a stream of several items"):
        list(store.read("Order-7"))
    with doing("read from an index on"):
        list(store.read("Order-7", start=5, limit=3))
    with doing("read backward"):
        list(store.read("Order-7", direction="backward", limit=3))
    with doing("read what is too large for an item"):
        list(store.read("Order-6"))
    with doing("read a page"):
        store.page("Order-7", start=2, limit=4)
    with doing("read a page backward"):
        store.page("Order-7", limit=4, direction="backward")


def _noted(number: int) -> list[Event]:
    """Two events that do not compress."""
    noise = random.Random(number)
    return [Event(type="Noted", data=noise.randbytes(1_000)) for _ in range(2)]


def _several(world: World, store: Streams) -> None:
    doing = world.doing
    both = [
        StreamAppend(stream="Order-4", events=[event("Split", n=1)], expected=NO_STREAM),
        StreamAppend(stream="Order-5", events=[event("Split", n=2)], expected=NO_STREAM),
    ]
    with doing("append to two streams"):
        store.append_all(both)
    with doing("append to two streams, refused"):
        store.append_all(both)
    with doing("append to two streams, whatever is there"):
        store.append_all([replace(each, expected=ANY) for each in both])
    with doing("append to two streams with a key"):
        store.append_all([replace(each, expected=ANY) for each in both], idempotency_key="key-3")
    with doing("repeat an append to two streams with a key"):
        store.append_all([replace(each, expected=ANY) for each in both], idempotency_key="key-3")


def _removal(world: World, store: Streams) -> None:
    doing = world.doing
    with doing("prune"):
        store.prune("Order-7", 6)
    with doing("prune where there is none"):
        store.prune("Order-9", 6)
    with doing("read what was pruned in part"):
        list(store.read("Order-7"))
    with doing("delete"):
        store.delete("Order-1")
    with doing("append to a deleted stream"):
        store.append("Order-1", [event("Late")])
    with doing("delete at a version that is over"):
        store.delete("Order-2", expected=AtVersion(version=1))
    with doing("delete, and leave open"):
        store.delete("Order-2", leave_open=True)
    with doing("append to what was left open"):
        store.append("Order-2", [event("Again")])
    if store.archive is None:
        store = replace(
            store, archive=replace(store, table=archives([layout_named(store.layout.name)])[0].kind)
        )
    with world.quietly():
        for number in range(8):
            store.append("Order-8", _noted(number))
    with doing("archive and prune"):
        store.archive_and_prune("Order-8", 10)
    with doing("read on from the archive"):
        list(store.read("Order-8"))


def tagged_events() -> list[str]:
    """Events with tags."""
    world = World(tagged_types=("Opened",), tagged_everything=True)
    store = world.fixed(world.on.tagged)
    _tagged(world, store, TaggedImporter(store=store))
    return world.lines


def sekiban() -> list[str]:
    """Events with tags, and states of projections, in Sekiban's tables."""
    world = World(type_heads=True)
    store = world.fixed(world.on.dcb)
    _tagged(world, store, DcbImporter(store=store))
    states = world.on.states
    doing = world.doing
    sortable = f"{0:030d}"
    with doing("save a state"):
        states.save("totals", "1", [b"state"], events_processed=3, last_sortable_id=sortable)
    with doing("save an older state"):
        states.save("totals", "1", [b"state"], events_processed=2, last_sortable_id=sortable)
    with doing("save a large state"):
        states.save("totals", "2", [LARGE], events_processed=4, last_sortable_id=sortable)
    with doing("find a state"):
        assert states.find("totals", "1")
    with doing("list states"):
        assert len(states.list("totals")) == 2
    with doing("list a page of states"):
        states.page("totals", limit=1)
    with doing("list the states of all"):
        assert len(list(states.list_all())) == 2
    with doing("delete a state"):
        states.delete("totals", "2")
    return world.lines


def _tagged(world: World, store: TaggedStore, importer: Importer) -> None:
    doing = world.doing
    with doing("append without a condition"):
        store.append([tagged("Opened", "course:c1", seats=2)])
    with doing("append an event without tags"):
        store.append([tagged("Noted", n=1)])
    with doing("read a query"):
        seen = store.read(COURSE)
    with doing("append on a condition"):
        store.append([tagged("Enrolled", "course:c1", "student:s1")], fail_if=COURSE, after=seen.position)
    with doing("append on a condition that does not hold"):
        store.append([tagged("Enrolled", "course:c1", "student:s2")], fail_if=COURSE, after=seen.position)
    with doing("append on a condition that something else has touched"):
        seen = store.read(NARROW)
        store.append([tagged("Renamed", "course:c1", to="x")])
        store.append([tagged("Left", "student:s1")], fail_if=NARROW, after=seen.position)
    with doing("append on a condition by type"):
        store.append([tagged("Opened", "course:c2")], fail_if=BY_TYPE, after=store.read(BY_TYPE).position)
    with doing("append where nothing may be"):
        store.append(
            [tagged("Opened", "course:c3")], fail_if=Query(items=(QueryItem(tags=frozenset({"course:c3"})),))
        )
    with doing("append several events"):
        store.append([tagged("Enrolled", "course:c2", f"student:s{n}", n=n) for n in range(3)])
    with doing("append with a key"):
        paid = store.append([tagged("Paid", "student:s1", by=3)], idempotency_key="key-1")
    with doing("repeat an append with a key"):
        store.append([tagged("Paid", "student:s1", by=3)], idempotency_key="key-1")
    _tagged_reads(world, store, seen.position, paid.events[0].id)
    _listings(world, store, importer)


def _tagged_reads(world: World, store: TaggedStore, after: Position, known: str) -> None:
    doing = world.doing
    with doing("read on from a position"):
        store.read(COURSE, after=after)
    with doing("read two tags of one item"):
        store.read(NARROW)
    with doing("read by type"):
        store.read(BY_TYPE)
    with doing("read the last, backward"):
        store.read(COURSE, direction="backward", limit=1)
    with doing("read a page"):
        first = store.page(COURSE, takes=lambda _: True, limit=2)
    with doing("read the next page"):
        store.page(COURSE, rest=first.rest, takes=lambda _: True, limit=2)
    with doing("read a page backward"):
        store.page_back(COURSE, takes=lambda _: True, limit=2)
    with doing("find an event by its id"):
        assert store.event(known)
    with doing("count events of tags"):
        store.counts(["course:c1", "course:c9"])


def _listings(world: World, store: TaggedStore, importer: Importer) -> None:
    doing, listings = world.doing, listings_of(store)
    with doing("list all events"):
        list(listings.all_events())
    with doing("list the events of a tag"):
        list(listings.tagged("course:c1"))
    with doing("list the entries of a tag"):
        list(listings.entries("course:c1"))
    with doing("find the latest entry of a tag"):
        listings.latest("course:c1")
    with doing("count all events"):
        listings.count()
    with doing("list the tags of a group"):
        listings.tags("course")
    with doing("list all tags"):
        listings.all_tags()
    with doing("import"):
        history = [
            ImportedEvent(
                event=replace(tagged("Opened", "course:c8"), id="7d444840-9dc0-11d1-b245-5ffdce74fad2"),
                timestamp="2025-06-01T12:00:00Z",
            )
        ]
        importer.run(history)
    with doing("import again"):
        importer.run(history)


def aggregates() -> list[str]:
    """Aggregates in event-store-adapter's tables."""
    world = World(snapshot_copies=1)
    store, doing = world.fixed(world.on.aggregates), world.doing
    ann = aggregate_id("account", "ann")

    def new(kind: str, **data: object) -> list[AggregateEvent]:
        return [AggregateEvent.json(kind, data)]

    with doing("append the first, with a snapshot"):
        lock = store.append(ann, new("Opened"), snapshot=b'{"n":1}', expected=NO_STREAM).lock
    with doing("append the first, where there is one"):
        store.append(ann, new("Opened"), snapshot=b'{"n":1}', expected=NO_STREAM)
    with doing("append with a lock"):
        lock = store.append(ann, new("Credited", by=5) * 3, expected=lock).lock
    with doing("append with a lock and a snapshot"):
        store.append(ann, new("Credited", by=5), snapshot=b'{"n":5}', expected=lock)
    with doing("append with a lock that is over"):
        store.append(ann, new("Credited", by=5), expected=lock)
    with doing("append, whatever is there"):
        store.append(ann, new("Credited", by=6), expected=ANY)
    keyed = new("Credited", by=7)
    with doing("append with a key"):
        store.append(ann, keyed, idempotency_key="key-1")
    with doing("repeat an append with a key"):
        store.append(ann, keyed, idempotency_key="key-1")
    with doing("append with snapshots, whose copies are retired"):
        for number in range(3):
            store.append(ann, new("Credited", by=8), snapshot=b'{"n":%d}' % (8 + number))
    with doing("find the lock"):
        store.lock(ann)
    with doing("read the snapshot"):
        store.latest_snapshot(ann)
    with doing("replay"):
        assert store.replay(ann)
    with doing("read events after a number"):
        assert len(store.events_after(ann, 2, limit=2)) == 2
    with doing("replay where there is none"):
        assert store.replay(aggregate_id("account", "bob")) is None
    return world.lines


def feed() -> list[str]:
    """Indexing, the feed, and reactions; what may run side by side runs in turn."""
    token = POOL.set(Inline)
    try:
        return _feed(World())
    finally:
        POOL.reset(token)


def _feed(world: World) -> list[str]:
    store, doing = world.fixed(world.on.streams), world.doing
    with doing("register the sources of an empty index, and index the first append"):
        store.append("Order-1", [event("Placed", sku="A-1"), event("Paid", by=1)])
        world.index()
    with doing("index appends to two streams"):
        store.append("Order-1", [event("Sent")])
        store.append("Broken-1", [event("Broke")])
        world.index()
    for some in range(4):
        with world.quietly():
            for number in range(100):
                store.append(f"Parcel-{some}{number:02d}-of-a-name-that-is-long", [event("Packed")])
        with doing("index appends to a hundred streams"):
            world.index()
    reader = world.on.feed
    partition = next(each.partition for each in reader.partitions() if each.partition >= 30_000)
    with doing("list the partitions"):
        reader.partitions()
    with doing("read a page of the feed"):
        page = reader.page(partition, limit=5)
    with doing("read a page of the feed with the events"):
        reader.page(partition, limit=3, data=True)
    with doing("read a category of the feed"):
        reader.page(partition, limit=1000, categories=["Broken"], data=True)
    with doing("read all of the feed"):
        list(reader.read(partition))
    with doing("look at the tail"):
        reader.page(partition, start=list(reader.read(partition))[-1].next)
    assert page.next
    counts = world.on.read_models.open("counts", 1)

    @reaction(name="counts", categories=["Order", "Broken"], attempts=1)
    def counting(delivery: Delivery) -> None:
        if delivery.stream.startswith("Broken-"):
            raise ValueError("never works")
        counts.apply(
            delivery, lambda documents, each: documents.put(each.type, documents.get(each.type, 0) + 1)
        )

    member = world.fixed(Member(reaction=counting, reader=reader))
    with doing("run a reaction that keeps a read model, and parks a stream"):
        Reactor(member=member, executor=Inline).run(partition, seconds=inf)
    with doing("run it where nothing has come"):
        Reactor(member=member, executor=Inline).run(partition, seconds=inf)
    with doing("run it over one append more"):
        store.append("Order-1", [event("Came")])
        world.index()
        Reactor(member=member, executor=Inline).run(partition, seconds=inf)
    with doing("list what is parked"):
        assert Parking(reactor=Reactor(member=member, executor=Inline)).streams(partition)
    return world.lines


NATIVE: Final[Mapping[str, Callable[[], list[str]]]] = {
    "streams": streams,
    "tagged-events": tagged_events,
    "feed": feed,
}
OTHERS: Final[Mapping[str, Callable[[], list[str]]]] = {
    "tips": tips,
    "aggregates": aggregates,
    "sekiban": sekiban,
}
"""Of layouts of other libraries."""
