"""Aggregates, as the feed and a deployment see them: heads are the snapshots with number 0, and an append adds events.

Numbers begin at 1 and indices at 0. A head that another library wrote last says no more than that something happened:
what there is must be looked up in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeVar

from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.contrib.event_store_adapter.ids import AggregateId, AggregateTypes
from epochal.contrib.event_store_adapter.items import (
    HEAD,
    JOURNAL,
    SNAPSHOT,
    JournalSite,
    head_types,
    is_head,
    of_known_versions,
    read_event,
    site_of,
    unknown_in,
)
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.changes import Change, Span, Touched
from epochal.layout.healing import Gap, Heal, Healed, soundly
from epochal.layout.port import Permission, Port
from epochal.layout.source import End, Source
from epochal.lazy_dataclasses import dataclass
from epochal.model.stream_names import category_of
from epochal.plan.conditions import Condition, equals
from epochal.plan.ops import BatchGet, Steps
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item, number, read_number, read_text
from epochal.settings import Options, Settings, variable

EVENTS_AT_ONCE: Final = 25
"""Most events of the journal that one request reads: their items come whole, up to 400 KB each."""

T = TypeVar("T")


def journal_source(site: JournalSite, partitions: int = 1) -> Source:
    """Make the feed's source of the aggregates that are stored in the tables of a site.

    Args:
        partitions: number of partitions of the source.
    """
    read: Callable[[Item], Change | None] = _in_place(site, appended)
    return Source(
        name="journal",
        table=site.snapshot,
        partitions=partitions,
        setting=variable("journal_partitions"),
        appended=read,
        heal=heal_journal(site),
        end=_in_place(site, end),
        change_up_to=read,
        where=WHERE,
        moved=None,
        stored=_in_place(site, partial(stored, site)),
    )


def heal_journal(site: JournalSite) -> Heal:
    """Make a function that reads the events of a gap in an aggregate by their keys.

    Event numbers have no holes, so the first number that is not there is the end.
    """
    return soundly(lambda gap: _healed(site, gap), "journal")


def _healed(site: JournalSite, gap: Gap) -> Steps[Healed]:
    """Return the types of a gap's events, read by key, up to its end, the last event or the most allowed.

    Raises:
        CorruptData: the stream is not an id of an aggregate, or an event that must be there is missing.
    """
    aggregate = site.types.read(gap.stream)
    if aggregate is None:
        raise CorruptData(f"{gap.stream!r} is not an id of an aggregate")
    healed = Healed()
    index, width = gap.index, 2
    while gap.end is None or index < gap.end:
        ends = index + width if gap.end is None else min(index + EVENTS_AT_ONCE, gap.end)
        kinds = yield from _types(site, aggregate, index, ends)
        healed.add(Span(gap.stream, index, tuple(kinds)))
        index += len(kinds)
        if index < ends:
            # The first event must be there: it is written with the head.
            if gap.end is not None or index == 0:
                raise CorruptData(f"{gap.stream}: event {index + 1} is missing from the journal")
            return healed
        if healed.full and index != gap.end:
            healed.whole = False
            return healed
        width = min(2 * width, EVENTS_AT_ONCE)
    return healed


def _types(site: JournalSite, aggregate: AggregateId, index: int, end: int) -> Steps[list[str]]:
    """Read the types of events `index` to `end - 1`, up to the first that is not there.

    Indices begin at 0, numbers at 1.
    """
    keys = tuple(site.keys.key(aggregate, number + 1) for number in range(index, end))
    reply = yield BatchGet(table=site.journal, keys=keys)
    events = map(read_event, reply.items)
    type_of = site.serializer.type_of
    types = {event.seq_nr - 1: event.event_type or type_of(event.payload) for event in events}
    kinds: list[str] = []
    while index + len(kinds) in types:
        kinds.append(types[index + len(kinds)])
    return kinds


def _in_place(site: JournalSite, read: Callable[[Item], T | None]) -> Callable[[Item], T | None]:
    """Wrap a reader of items so that it refuses items whose aggregate is not found by its id."""

    def checked(item: Item) -> T | None:
        """Read an item; raise `CorruptData` if readers of the feed would not find its aggregate."""
        change = read(item)
        if change is not None:
            check_place(site, item)
        return change

    return checked


@dataclass(frozen=True, slots=True)
class IdCategories:
    """Rule that gives an aggregate its category, which is its type.

    If the declared types that hold `-` are known, the type is read from the id. If they are not, all ids that begin
    with a category and `-` are in it.

    Attributes:
        types: declared types; None if unknown.
    """

    types: AggregateTypes | None

    @property
    def declared(self) -> frozenset[str]:
        """The declared types; empty if unknown."""
        return frozenset() if self.types is None else self.types.names

    def of(self, stream: str) -> str:
        """Return the type of an aggregate; if it is unknown, what precedes the first `-` of its id."""
        aggregate = None if self.types is None else self.types.read(stream)
        return category_of(stream) if aggregate is None else aggregate.type

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether an aggregate is of one of these types."""
        if self.types is None:
            return any(stream.startswith(f"{kind}-") for kind in categories)
        aggregate = self.types.read(stream)
        return aggregate is not None and aggregate.type in categories


def _source(settings: Settings) -> Source:
    """Make the feed's source of the aggregates of a deployment's settings."""
    return journal_source(site_of(settings), settings.partitions("journal_partitions"))


def _kind_of(item: Item) -> str | None:
    """Return the kind of table that an item belongs to, journal or snapshot; None for other items.

    Events have `occurred_at`, heads and copies a `version`.
    """
    if not item.keys() >= set(JOURNAL.keys):
        return None
    return JOURNAL.kind if "occurred_at" in item else SNAPSHOT.kind if "version" in item else None


WHERE: Condition = equals("seq_nr", number(HEAD))
"""Condition that only heads meet. Every library writes a head with events; kept copies have an event's number."""


def appended(item: Item) -> Change | None:
    """Return what a head's latest append changed; None for an item that is a kept copy of a snapshot.

    It is the span of its events, or, if another library wrote last, only that the aggregate was touched.

    Raises:
        CorruptData: the item looks like a head of ours, but its counters do not fit each other.
    """
    if not is_head(item):
        return None
    aggregate: str = item["aid"]["S"]
    if _is_foreign(item):
        return Touched(stream=aggregate)
    last, types = read_number(item, "last_seq_nr"), head_types(item)
    if last is None or not 0 < len(types) <= last:
        raise CorruptData(f"{aggregate}: its head has a last_seq_nr and last_event_types that do not match")
    return Span(aggregate, last - len(types), types)


def end(item: Item) -> End | None:
    """Return the end of the aggregate that a head belongs to; None for kept copies.

    If another library wrote the head last, the end has no index.

    Raises:
        CorruptData: the item looks like a head of ours, but has no last number.
    """
    if not is_head(item):
        return None
    aggregate: str = item["aid"]["S"]
    if _is_foreign(item):
        return End(aggregate, None)
    last = read_number(item, "last_seq_nr")
    if last is None:
        raise CorruptData(f"{aggregate}: its head has no last_seq_nr")
    return End(aggregate, last)


def stored(site: JournalSite, item: Item) -> Span:
    """Return the span of the one event in an item of the journal."""
    event = read_event(item)
    kind = event.event_type or site.serializer.type_of(event.payload)
    return Span(item["aid"]["S"], event.seq_nr - 1, (kind,))


def check_place(site: JournalSite, item: Item) -> None:
    """Raise `CorruptData` unless readers of the feed find an item's aggregate by its id.

    They have the id alone. The error is raised if the id stands for another aggregate or none, or if the item is under
    another key than the id's.
    """
    of_known_versions(unknown_in(item), lambda: _check_place(site, item))


def _check_place(site: JournalSite, item: Item) -> None:
    """Raise `CorruptData` unless an item is stored where readers look for its aggregate."""
    aid, partition = item["aid"]["S"], read_text(item, "pkey")
    if partition is None:
        raise CorruptData(f"{aid}: its item has no pkey, by which aggregates are found")
    aggregate = site.types.read(aid)
    if aggregate is None:
        raise CorruptData(f"{aid!r} is not an id of an aggregate")
    key = site.keys.key(aggregate, HEAD)["pkey"]["S"]
    if partition == key:
        return
    kind, other = partition.rpartition("-")[0], key.rpartition("-")[0]
    if kind != other:
        raise CorruptData(
            f"{aid} is stored under type {kind!r}, but is an id of type {other!r}: a type that contains - "
            "must be among the types declared for these tables, and none of them may begin another's ids"
        )
    raise CorruptData(
        f"{aid} is stored under {partition}, but looked up under {key}: the shards or the keys differ"
    )


def _is_foreign(head: Item) -> bool:
    """Whether another library wrote a head last: its `head_version` is not its `version`."""
    return read_number(head, "head_version") != read_number(head, "version")


def access_of(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """Return the permissions on the tables of aggregates that each deployed function needs, by its name.

    Events are never changed; readers find them by their keys.
    """
    return {
        "append": (_on(JOURNAL, "GetItem", "BatchGetItem", "PutItem"), *_snapshots(options)),
        "replay": (_on(JOURNAL, "GetItem", "BatchGetItem", "Query"), _on(SNAPSHOT, "GetItem")),
        "feed": (_on(JOURNAL, "GetItem", "BatchGetItem"),),
        "indexer": (_on(JOURNAL, "BatchGetItem"),),
        "auditor": (_on(JOURNAL, "BatchGetItem"), _on(SNAPSHOT, "GetItem", "Scan")),
        "reaction": (_on(JOURNAL, "GetItem", "BatchGetItem"), _on(SNAPSHOT, "GetItem")),
    }


def _snapshots(options: Options) -> tuple[Permission, ...]:
    """Return the permissions on the snapshot table that appends need.

    They write heads. If copies are kept, appends also find old copies by one of the table's indexes, and delete them if
    copies do not expire.
    """
    writing, chosen = ("GetItem", "PutItem", "UpdateItem"), options.of_plugin(AdapterOptions)
    if not chosen.snapshot_copies:
        return (_on(SNAPSHOT, *writing),)
    all_of_them, not_expiring = (index.name for index in SNAPSHOT.indexes)
    if chosen.snapshot_ttl_days:
        return (_on(SNAPSHOT, *writing), _on(SNAPSHOT, "Query", index=not_expiring))
    return (_on(SNAPSHOT, *writing, "DeleteItem"), _on(SNAPSHOT, "Query", index=all_of_them))


def _on(table: TableSpec, *actions: str, index: str = "") -> Permission:
    """Make a permission for actions on a table, or on one of its indexes."""
    return Permission(table=table, actions=actions, index=index)


def check_options(options: Options) -> None:
    """Raise `InvalidInput` if a stage's settings of aggregates contradict each other.

    Raises:
        InvalidInput: `snapshot_ttl_days` without `snapshot_copies`, or types that cannot be declared together.
    """
    chosen = options.of_plugin(AdapterOptions)
    if chosen.snapshot_ttl_days and not chosen.snapshot_copies:
        rule = "must be at least 1 if snapshot_ttl_days is set, which applies to further copies"
        raise InvalidInput("snapshot_copies", rule)
    try:
        AggregateTypes(chosen.aggregate_types)
    except InvalidInput as error:
        raise InvalidInput("aggregate_types", f"must be valid aggregate types: {error.rule}") from None


PORT: Final = Port(
    tables=(JOURNAL, SNAPSHOT),
    kind_of=_kind_of,
    access=access_of,
    heads=SNAPSHOT,
    source=_source,
    categories=IdCategories(None),
)
