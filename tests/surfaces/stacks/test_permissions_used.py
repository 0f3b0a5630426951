"""What functions may do is what their plans do, no more and no less: held together over tables in memory.

Of the tables that this is about, the permissions are those in `test_permissions`, which holds the templates to them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import pytest

from epochal.contrib.equinox.port import ARCHIVE, TIPS
from epochal.contrib.equinox.streams import Tips, tips_of
from epochal.contrib.event_store_adapter.event_pages import page
from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, site_of
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.port import heal_journal
from epochal.contrib.event_store_adapter.reading import EventRange, events
from epochal.contrib.event_store_adapter.store import AggregateStore, aggregates_of
from epochal.contrib.sekiban import INLINE_BYTES
from epochal.contrib.sekiban.history import TagHistory
from epochal.contrib.sekiban.items import EVENTS, PROJECTION_STATES, TAGS, tag_site_of
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.port import heal_dcb
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.store import DcbEvents
from epochal.contrib.timers.stores import timers_of
from epochal.errors import CorruptData
from epochal.feed.events import FeedEvent
from epochal.feed.stream_history import StreamHistory
from epochal.http.operation import Request
from epochal.http.streams import Opened, prune_stream
from epochal.http.tag_pages import TagPages
from epochal.layout.healing import Gap
from epochal.layout.registry import base_of, layout_names
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM
from epochal.model.stream_append import StreamAppend
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import ARCHIVE as STREAMS_ARCHIVE
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.pages.port import heal_pages
from epochal.plan import ops
from epochal.plan.failures import Lost
from epochal.plan.tables import TableSpec
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.read_models.documents import Documents, ReadModels
from epochal.scheduling import after
from epochal.settings import Settings
from epochal.store.bulk import Bulk, BulkAppend
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.listings import listings_of
from epochal.store.streams import Streams, streams_of
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryObjects
from tests.support.permissions import Allowed, actions, on
from tests.surfaces.stacks.test_permissions import ARCHIVE_OF, EXPECTED

SETTINGS = Settings.of(
    journal_table="journal",
    snapshot_table="snapshot",
    events_table="events",
    tags_table="tags",
    projection_states_table="projection-states",
)
ON_PAGES = Settings.of(streams_table="streams")
ORDER = aggregate_id("order", "1")
TAGGED = {EVENTS.kind, TAGS.kind, f"GSI1 of {TAGS.kind}"}
STATES = {PROJECTION_STATES.kind}
AGGREGATES = {JOURNAL.kind, SNAPSHOT.kind}
PAGES = {STREAMS.kind}
OCCURRED = AggregateEvent(type="Paid", data=b"{}")
EVENTS_OF_ORDER = 20
"""So many that 1 and 2 are not neighbours as text."""

EXPECTED_OF_HEADS = on(SNAPSHOT.kind, "GetItem", "PutItem", "UpdateItem")
CALVES = 60
"""Events after which a stream has calves, and an epoch of the index too."""


@dataclass
class Tables:
    """All tables, named after their kinds, and what was asked of them."""

    memory: MemoryTables = field(
        default_factory=lambda: MemoryTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)})
    )
    used: Allowed = field(default_factory=set)
    asked: list[ops.Op] = field(default_factory=list)
    lost: bool = False

    def execute(self, op: ops.Op) -> ops.Reply:
        self.used |= actions(op)
        self.asked.append(op)
        return self.memory.execute(op)

    def overtaken(self, op: ops.Op) -> ops.Reply:
        """Loses the answer to an aggregate's first append, and lets another in before it is asked again."""
        reply = self.execute(op)
        if isinstance(op, ops.Transact) and not self.lost:
            self.lost = True
            self.aggregates.append(ORDER, [OCCURRED])
            raise Lost("reset")
        return reply

    @property
    def driver(self) -> Driver:
        return Driver(execute=self.execute, meter=Meter(), sleep=lambda _: None)

    @property
    def tips(self) -> Streams:
        return Streams(driver=self.driver, table=TIPS.kind, layout=Tips())

    @property
    def streams(self) -> Streams:
        return Streams(driver=self.driver, table=STREAMS.kind, layout=Pages())

    @property
    def dcb(self) -> DcbEvents:
        return DcbEvents(driver=self.driver, site=tag_site_of(SETTINGS))

    @property
    def tagged(self) -> TaggedEvents:
        return streams_of(ON_PAGES, self.driver, BodyCodec()).tagged

    @property
    def aggregates(self) -> AggregateStore:
        return AggregateStore(driver=self.driver, site=site_of(SETTINGS))

    @property
    def states(self) -> ProjectionStates:
        return ProjectionStates(driver=self.driver, table="projection-states", objects=MemoryObjects())


def append(tables: Tables) -> None:
    """What `append` does: with and without a condition, met and not, fenced by its own tags and by others; the same
    again, and where events have expired.
    """
    store, states = tables.dcb, tables.states
    store.append([paid("order:1"), paid()])
    order = Query(items=(QueryItem(tags=frozenset({"order:1"})),))
    unseen = Driver(execute=tables.memory.execute, meter=Meter())
    position = replace(store, driver=unseen).read(order).position
    store.try_append([paid("order:2")], fail_if=order, after=position)
    store.try_append([paid("order:1")], fail_if=order)
    store.append([paid("order:1")])
    store.try_append([paid("order:1")], fail_if=order, after=position)
    for size in (1, 2 * INLINE_BYTES):
        states.save("totals", "1", [bytes(size)], events_processed=size, last_sortable_id="0" * 30)
    states.try_save("totals", "1", [b""], events_processed=0, last_sortable_id="0" * 30)
    states.delete("totals", "1")
    again = replace(paid("order:1"), id=str(uuid.UUID(int=1)))
    store.append([again])
    store.append([again])
    expire(tables)
    store.try_append([paid("order:1")], fail_if=order, after=position)

    write_tags(tables)
    write_streams(tables)
    write_aggregates(tables)


def write_tags(tables: Tables) -> None:
    """Tags of pages: fenced by others; an event again whose body is on one of its tags' pages alone; a conflict."""
    store = tables.tagged
    store.append([paid("order:2")], fail_if=Query(items=(QueryItem(tags=frozenset({"order:3"})),)))
    again = replace(large("order:1", "shop:1"), id=str(uuid.UUID(int=1)))
    store.append([again])
    assert store.append([again]).replayed
    store.try_append([paid("order:1")], fail_if=Query(items=(QueryItem(tags=frozenset({"shop:1"})),)))


def write_streams(tables: Tables) -> None:
    """Streams that calve, or have several pages; with a key, pruned, then deleted; and several at once."""
    moved = Event(type="Moved", data=Random(1).randbytes(2_000))
    for streams in (tables.tips, tables.streams):
        for _ in range(CALVES):
            streams.append("Flight-1", [moved])
        streams.append("Flight-1", [], unfolds=[Unfold(type="U")], idempotency_key="k")
        streams.append("Flight-1", [], unfolds=[Unfold(type="U")], idempotency_key="k")
        streams.prune("Flight-1", CALVES // 2)
        streams.delete("Flight-1")
    both = [StreamAppend(stream=name, events=[moved]) for name in ("Flight-2", "Flight-3")]
    tables.streams.append_all(both)
    tables.streams.append_all(both, idempotency_key="k")
    tables.streams.try_append_all([replace(each, expected=NO_STREAM) for each in both])
    many = [BulkAppend(stream="Flight-4", events=[moved], idempotency_key=f"{n % 2}") for n in range(4)]
    Bulk(tables.streams).append([*many, BulkAppend(stream="Flight-4", events=[moved], expected=NO_STREAM)])


def write_aggregates(tables: Tables) -> None:
    """An aggregate, with a snapshot and without; after a library that counts no events; one whose answer was lost."""
    store = tables.aggregates
    store.append(aggregate_id("order", "2"), [OCCURRED], snapshot=b"{}")
    overtaken = replace(store, driver=replace(store.driver, execute=tables.overtaken))
    overtaken.append(ORDER, [OCCURRED])
    head = next(item for item in tables.memory.items(SNAPSHOT.kind) if item["aid"]["S"] == str(ORDER))
    foreign = {name: value for name, value in head.items() if name not in ("last_seq_nr", "head_version")}
    tables.memory.execute(ops.Put(table=SNAPSHOT.kind, item=foreign))
    store.append(ORDER, [OCCURRED])


def replay(tables: Tables) -> None:
    """What `replay` does: queries, single events, listings, states; streams and aggregates, whole and by pages; and
    what it looks for that is not there.
    """
    store = tables.dcb
    pages = TagPages(listings=TagListings(store=store))
    found = store.read(Query(items=(QueryItem(tags=frozenset({"order:1"})),)))
    store.page(Query(items=(QueryItem(tags=frozenset({"order:1", "shop:1"})),)), takes=lambda _: True)
    store.event(found.events[0].id)
    pages.tags(limit=10)
    pages.tags("order", limit=10)
    pages.entries("order:1", limit=10)
    pages.tagged("order:1", limit=10)
    pages.all_events(limit=10)
    pages.listings.count()
    read_tags(tables)
    tables.states.find("totals", "1")
    tables.states.list("totals")
    for streams, name in ((tables.tips, "Flight-1"), (tables.streams, "Cart-1")):
        streams.load(name)
        streams.page(name, start=0, limit=10)
    lock = tables.aggregates.lock(ORDER)
    assert lock is not None
    for limit in (2, 1_000):
        page(tables.aggregates, ORDER, lock, start=1, limit=limit, max_bytes=10**6)
    tables.aggregates.latest_snapshot(ORDER)
    expire(tables)
    assert store.read(Query(items=(QueryItem(tags=frozenset({"order:1"})),))).events == ()
    with pytest.raises(CorruptData, match="missing"):
        tables.driver.run(
            events(
                tables.aggregates.site, EventRange(aggregate=ORDER, first=1, last=10**3, total=None), "table"
            )
        )


def read_tags(tables: Tables) -> None:
    """Tags of pages: a body that is on another page, an id, listings."""
    store = tables.tagged
    assert len(store.read(Query(items=(QueryItem(tags=frozenset({"shop:1"})),))).events) == 1
    assert store.event(str(uuid.UUID(int=2))) is not None
    assert TagPages(listings=listings_of(store)).tags(limit=10).tags
    assert list(listings_of(store).tagged("shop:1"))
    assert list(listings_of(store).entries("shop:1"))


def feed(tables: Tables) -> None:
    """What `feed` does to fill in events."""
    assert len(list(TagHistory(tables.dcb).events()("order:1", 0, 1))) == 1
    assert (
        len(list(AggregateHistory(tables.aggregates).events()(str(ORDER), 0, EVENTS_OF_ORDER)))
        == EVENTS_OF_ORDER
    )
    *_, missing = AggregateHistory(tables.aggregates).events()(str(ORDER), 0, EVENTS_OF_ORDER + 1)
    assert "missing" in str(missing.fault)
    assert len(list(StreamHistory(tables.streams).events()("Cart-1", 0, CALVES))) == CALVES
    read_between(tables.driver)


def read_between(driver: Driver) -> None:
    """Events of a tag of pages whose bodies are elsewhere; one of them is being written."""
    store = streams_of(ON_PAGES, driver, BodyCodec()).tagged
    assert len(store.between("shop:1", 0, 1)) == 1
    hidden = store.driver.execute

    def late(op: ops.Op) -> ops.Reply:
        reply = hidden(op)
        return replace(reply, items=()) if isinstance(op, ops.BatchGet) else reply

    late_store = replace(store, driver=replace(driver, execute=late))
    assert len(late_store.between("shop:1", 0, 1)) == 1


def index(tables: Tables) -> None:
    """What `indexer` does to heal gaps."""
    assert tables.driver.run(heal_dcb(tables.dcb.site)(Gap(stream="order:1", index=0, end=1))).events == 1
    heal = heal_journal(tables.aggregates.site)
    assert tables.driver.run(heal(Gap(stream=str(ORDER), index=0, end=None))).events == EVENTS_OF_ORDER
    heal = heal_pages(STREAMS.kind)
    assert tables.driver.run(heal(Gap(stream="Cart-1", index=0, end=None))).events == CALVES


def react(tables: Tables) -> None:
    """What a reaction's function does: begin, read events of every layout, park, list, replay, discard, look for
    where streams end, and for an event that is not there; make a read model, and make it the live one.
    """
    feed = MemoryStore(tables=tables.memory)
    for number in range(CALVES):
        moved = Event(type=f"Moved{number:0200}", data=Random(number).randbytes(2_000))
        feed.tips.append("Flight-1", [moved])
        feed.streams.append("Cart-1", [moved])
        feed.index()
    member = Member(
        reaction=Reaction(name="board", handler=refusing, attempts=1),
        reader=feed.feed.on(tables.driver),
    )
    parking = Parking(reactor=Reactor(member=member))
    told = {"tips": "Flight-1", "journal": str(ORDER), "dcb": "order:1", "pages": "Cart-1"}
    for source, stream in told.items():
        parking.reactor.run(base_of(source), seconds=10)
        (parked,) = (each for each in parking.streams(base_of(source)) if each.stream == stream)
        assert parked.cause is not None
        assert not parking.replay(base_of(source), stream, seconds=10).unparked
        assert parking.discard(base_of(source), stream).unparked
    *_, missing = member.reader.events(base_of("journal"), str(ORDER), 0, EVENTS_OF_ORDER + 1)
    assert "missing" in str(missing.fault)
    assert len(member.reader.partitions()) == len(layout_names())
    read_between(tables.driver)
    models = ReadModels(driver=tables.driver, table=READ_MODELS.kind)
    counts = models.open("counts", 1, keys={"by": str})
    feed.react(Reaction(name="counts", handler=lambda delivery: counts.apply(delivery, put_or_delete)))
    assert counts.list(limit=1).items
    models.swap("counts", 1)


def put_or_delete(documents: Documents, event: FeedEvent) -> None:
    """Write or delete the document that has the stream's progress, too, and one that has not."""
    for key in (event.stream, f"besides {event.stream}"):
        if documents.get(key):
            documents.delete(key)
        else:
            documents.put(key, event.index + 1)


def expire(tables: Tables) -> None:
    """All events are gone; nobody asked for it."""
    for item in list(tables.memory.items(EVENTS.kind)):
        tables.memory.execute(ops.Delete(table=EVENTS.kind, key={name: item[name] for name in EVENTS.keys}))


def refusing(_: Delivery) -> None:
    raise RuntimeError("on purpose")


def large(*tags: str) -> Event:
    """An event whose body is copied to no second page."""
    return Event(type="Paid", data=Random(1).randbytes(5_000), tags=tags)


def paid(*tags: str) -> Event:
    return Event(type="Paid", data=b"{}", tags=tags)


PLANS: Final[Mapping[str, Callable[[Tables], None]]] = {
    "append": append,
    "replay": replay,
    "feed": feed,
    "indexer": index,
    "reaction": react,
}
"""What functions do."""


@pytest.fixture
def tables() -> Tables:
    return furnished()


def furnished() -> Tables:
    """Tables with an event of each kind, of which nothing has been asked yet."""
    found = Tables()
    for _ in range(CALVES):
        found.tips.append("Flight-1", [Event(type="Moved", data=bytes(2_000))])
        found.streams.append("Cart-1", [Event(type="Added", data=Random(1).randbytes(2_000))])
    found.dcb.append([paid("order:1", "shop:1")])
    found.tagged.append([replace(large("order:1", "shop:1"), id=str(uuid.UUID(int=2)))])
    found.states.save("totals", "1", [b"{}"], events_processed=1, last_sortable_id="0" * 30)
    found.aggregates.append(ORDER, [OCCURRED] * EVENTS_OF_ORDER, snapshot=b"{}")
    found.used.clear()
    found.asked.clear()
    return found


def test_who_prunes_writes_the_archive_and_who_reads_reads_it() -> None:
    tables = Tables(memory=MemoryTables({spec.kind: spec for spec in (TIPS, ARCHIVE)}))
    settings = Settings.of(tips_table=TIPS.kind, archive_table=ARCHIVE.kind)
    streams = tips_of(settings, tables.driver, BodyCodec())
    for _ in range(CALVES):
        streams.append("Flight-1", [Event(type="Moved", data=Random(1).randbytes(9_000))])
    tables.used.clear()
    opened = Opened(
        streams=streams, link=lambda claim, _: claim.key, upload=lambda claim, _: (claim.key, {}), most=1
    )
    for before in range(10, CALVES, 10):
        body = json.dumps({"before": before}).encode()
        headers = {"content-type": "application/json"}
        prune_stream(opened, Request(path={"stream": "Flight-1"}, body=body, headers=headers))
    assert {pair for pair in tables.used if pair[1] == ARCHIVE.kind} == archiving("append", ARCHIVE)
    tables.used.clear()
    assert len(list(streams.read("Flight-1"))) == CALVES
    assert {pair for pair in tables.used if pair[1] == ARCHIVE.kind} == archiving("replay", ARCHIVE)


def archiving(function: str, archive: TableSpec) -> Allowed:
    """What a function does to one of the archives."""
    return {pair for pair in ARCHIVE_OF[function] if pair[1] == archive.kind}


def test_who_prunes_pages_writes_their_archive_and_who_reads_reads_it() -> None:
    tables = Tables(memory=MemoryTables({spec.kind: spec for spec in (STREAMS, STREAMS_ARCHIVE)}))
    settings = Settings.of(streams_table=STREAMS.kind, streams_archive_table=STREAMS_ARCHIVE.kind)
    streams = streams_of(settings, tables.driver, BodyCodec())
    for _ in range(CALVES):
        streams.append("Flight-1", [Event(type="Moved", data=Random(1).randbytes(9_000))])
    for function, use in (
        ("append", lambda: streams.archive_and_prune("Flight-1", CALVES - 2)),
        ("replay", lambda: list(streams.read("Flight-1"))),
    ):
        tables.used.clear()
        use()
        used = {pair for pair in tables.used if pair[1] == STREAMS_ARCHIVE.kind}
        assert used == archiving(function, STREAMS_ARCHIVE)
    assert len(list(streams.read("Flight-1"))) == CALVES


def test_who_calls_a_timer_off_reads_the_archive_as_who_prunes_does() -> None:
    tables = Tables(memory=MemoryTables({spec.kind: spec for spec in (STREAMS, STREAMS_ARCHIVE)}))
    settings = Settings.of(streams_table=STREAMS.kind, streams_archive_table=STREAMS_ARCHIVE.kind)
    streams = streams_of(settings, tables.driver, BodyCodec())
    timers_of(streams).schedule("Flight-1", "delay", [Event(type="Late")], at=after(hours=1))
    for _ in range(CALVES):
        streams.append("Flight-1", [Event(type="Moved", data=Random(1).randbytes(9_000))])
    streams.archive_and_prune("Flight-1", CALVES - 2)
    tables.used.clear()
    assert timers_of(streams).cancel("Flight-1", "delay") is not None
    assert tables.used <= {*EXPECTED["append"], *archiving("append", STREAMS_ARCHIVE)}


@pytest.mark.parametrize("days", [0, 30])
def test_who_keeps_copies_of_snapshots_uses_one_index_to_retire_them(days: int) -> None:
    tables = Tables()
    settings = SETTINGS.having(snapshot_copies=1, snapshot_ttl_days=days)
    store = aggregates_of(settings, tables.driver)
    for _ in range(4):
        done = store.append(ORDER, [OCCURRED], snapshot=b"{}")
        assert done.retention_error is None
    index = "snapshot-active-ttl-index" if days else "snapshot-aid-index"
    kept = {(action, resource) for action, resource in tables.used if SNAPSHOT.kind in resource}
    retiring = on(SNAPSHOT.kind, "UpdateItem" if days else "DeleteItem")
    assert kept == {*EXPECTED_OF_HEADS, *retiring, *on(f"{index} of {SNAPSHOT.kind}", "Query")}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("append", {spec.kind for spec in store_tables()}),
        (
            "replay",
            {*(spec.kind for spec in store_tables()), f"GSI1 of {TAGS.kind}", f"GSI1 of {EVENTS.kind}"},
        ),
        ("feed", TAGGED | STATES | AGGREGATES | PAGES),
        ("indexer", TAGGED | STATES | AGGREGATES | PAGES),
        ("reaction", {spec.kind for spec in (*store_tables(), READ_MODELS)}),
    ],
)
def test_a_function_may_do_what_its_plans_do_and_nothing_else(
    tables: Tables, name: str, kinds: Collection[str]
) -> None:
    PLANS[name](tables)
    allowed = {(action, resource) for action, resource in EXPECTED[name] if resource in kinds}
    assert tables.used == allowed
