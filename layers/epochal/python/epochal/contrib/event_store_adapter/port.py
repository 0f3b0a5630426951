"""Aggregates, as the feed and a deployment see them: heads are the snapshots with number 0, and an append adds events.

Numbers begin at 1 and indices at 0. A head that another library wrote last says no more than that something happened:
what there is must be looked up in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeVar

from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.contrib.event_store_adapter.items import (
    HEAD,
    JOURNAL,
    SNAPSHOT,
    JournalSite,
    head_types,
    is_head,
    read_event,
    site_of,
)
from epochal.contrib.event_store_adapter.model import AggregateId, AggregateTypes
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.port import (
    Change,
    End,
    Gap,
    Heal,
    Healed,
    Permission,
    Port,
    Source,
    Span,
    Touched,
    soundly,
)
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import category_of
from epochal.plan.conditions import Condition, equals
from epochal.plan.ops import BatchGet, Steps
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item, number, read_number
from epochal.settings import Options, Settings, variable

EVENTS_AT_ONCE: Final = 25
"""Events of the journal a request: their items come whole, up to 400 KB each."""

T = TypeVar("T")


def journal_source(site: JournalSite, partitions: int = 1) -> Source:
    """Aggregates that are stored where the site looks for them."""
    told: Callable[[Item], Change | None] = _in_place(site, appended)
    return Source(
        name="journal",
        table=site.snapshot,
        partitions=partitions,
        setting=variable("journal_partitions"),
        appended=told,
        heal=heal_journal(site),
        end=_in_place(site, end),
        told=told,
        where=WHERE,
        moved=None,
        stored=_in_place(site, partial(stored, site)),
    )


def heal_journal(site: JournalSite) -> Heal:
    """Heals gaps of aggregates by their events' keys: numbers have no holes, so where the next is not there is the
    end.
    """
    return soundly(lambda gap: _healed(site, gap), "journal")


def _healed(site: JournalSite, gap: Gap) -> Steps[Healed]:
    aggregate = site.types.read(gap.stream)
    if aggregate is None:
        raise CorruptData(f"{gap.stream!r} is no id of an aggregate")
    found = Healed()
    index, width = gap.index, 2
    while gap.end is None or index < gap.end:
        ends = index + width if gap.end is None else min(index + EVENTS_AT_ONCE, gap.end)
        kinds = yield from _types(site, aggregate, index, ends)
        found.add(Span(gap.stream, index, tuple(kinds)))
        index += len(kinds)
        if index < ends:
            # The first event must be there: it is written with the head.
            if gap.end is not None or index == 0:
                raise CorruptData(f"{gap.stream}: event {index + 1} is missing from the journal")
            return found
        if found.full and index != gap.end:
            found.whole = False
            return found
        width = min(2 * width, EVENTS_AT_ONCE)
    return found


def _types(site: JournalSite, aggregate: AggregateId, index: int, end: int) -> Steps[list[str]]:
    """Types of events `index` to `end - 1`, up to the first that is not there. Numbers begin at 1."""
    keys = tuple(site.keys.key(aggregate, at + 1) for at in range(index, end))
    reply = yield BatchGet(table=site.journal, keys=keys)
    events = map(read_event, reply.items)
    type_of = site.serializer.type_of
    found = {each.seq_nr - 1: each.event_type or type_of(each.payload) for each in events}
    kinds: list[str] = []
    while index + len(kinds) in found:
        kinds.append(found[index + len(kinds)])
    return kinds


def _in_place(site: JournalSite, read: Callable[[Item], T | None]) -> Callable[[Item], T | None]:
    """What an item tells, of an aggregate that readers of the feed will find by its id."""

    def checked(item: Item) -> T | None:
        told = read(item)
        if told is not None:
            check_place(site, item)
        return told

    return checked


@dataclass(frozen=True, slots=True)
class IdCategories:
    """An aggregate's category is its type. Its id tells the type where the declared types that hold `-` are known.
    Where they are not, all ids that begin with a category and `-` are in it.
    """

    types: AggregateTypes | None

    @property
    def declared(self) -> frozenset[str]:
        """The types that are declared."""
        return frozenset() if self.types is None else self.types.names

    def of(self, stream: str) -> str:
        """The type; where it is not known, what precedes the first `-`."""
        aggregate = None if self.types is None else self.types.read(stream)
        return category_of(stream) if aggregate is None else aggregate.type

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether an aggregate is of one of these types."""
        if self.types is None:
            return any(stream.startswith(f"{kind}-") for kind in categories)
        aggregate = self.types.read(stream)
        return aggregate is not None and aggregate.type in categories


def _source(settings: Settings) -> Source:
    return journal_source(site_of(settings), settings.partitions("journal_partitions"))


def _kind_of(item: Item) -> str | None:
    """Events have `occurred_at`, heads and copies a `version`."""
    if not item.keys() >= set(JOURNAL.keys):
        return None
    return JOURNAL.kind if "occurred_at" in item else SNAPSHOT.kind if "version" in item else None


WHERE: Condition = equals("seq_nr", number(HEAD))
"""The condition that only heads meet. Every library writes a head with events; kept copies have an event's number."""


def appended(item: Item) -> Change | None:
    """The span that a head's latest append added, or that something happened, where another library wrote it last; None
    for kept copies.

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
        raise CorruptData(f"{aggregate}: a head whose last_seq_nr and last_event_types do not fit")
    return Span(aggregate, last - len(types), types)


def end(item: Item) -> End | None:
    """Where the aggregate ends, if we wrote its head last; None for kept copies.

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
        raise CorruptData(f"{aggregate}: a head without last_seq_nr")
    return End(aggregate, last)


def stored(site: JournalSite, item: Item) -> Span:
    """The event that an item of the journal is."""
    event = read_event(item)
    kind = event.event_type or site.serializer.type_of(event.payload)
    return Span(item["aid"]["S"], event.seq_nr - 1, (kind,))


def check_place(site: JournalSite, item: Item) -> None:
    """Raise `CorruptData` where the aggregate of an item is not the one that its id stands for, or is under another
    key: readers of the feed have the id alone, and would find another aggregate by it, or none.
    """
    aid, partition = item["aid"]["S"], item["pkey"]["S"]
    found = site.types.read(aid)
    if found is None:
        raise CorruptData(f"{aid!r} is no id of an aggregate")
    key = site.keys.key(found, HEAD)["pkey"]["S"]
    if partition == key:
        return
    kind, other = partition.rpartition("-")[0], key.rpartition("-")[0]
    if kind != other:
        raise CorruptData(
            f"{aid} is stored as of type {kind!r}, and stands for an aggregate of type {other!r}: a type that holds - "
            "must be among the types declared for these tables, and none of them may begin another's ids"
        )
    raise CorruptData(
        f"{aid} is stored under {partition}, and looked for under {key}: other shards, or other keys"
    )


def _is_foreign(head: Item) -> bool:
    return read_number(head, "head_version") != read_number(head, "version")


def access_of(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """By the function's name. Events are never changed; readers find them by their keys."""
    return {
        "append": (_on(JOURNAL, "GetItem", "BatchGetItem", "PutItem"), *_snapshots(options)),
        "replay": (_on(JOURNAL, "GetItem", "BatchGetItem", "Query"), _on(SNAPSHOT, "GetItem")),
        "feed": (_on(JOURNAL, "GetItem", "BatchGetItem"),),
        "indexer": (_on(JOURNAL, "BatchGetItem"),),
        "auditor": (_on(JOURNAL, "BatchGetItem"), _on(SNAPSHOT, "GetItem", "Scan")),
        "reaction": (_on(JOURNAL, "GetItem", "BatchGetItem"), _on(SNAPSHOT, "GetItem")),
    }


def _snapshots(options: Options) -> tuple[Permission, ...]:
    """Writing heads; where copies are kept, also finding those beyond them by one of the table's indexes, and deleting
    them where they do not expire.
    """
    writing, chosen = ("GetItem", "PutItem", "UpdateItem"), options.of_plugin(AdapterOptions)
    if not chosen.snapshot_copies:
        return (_on(SNAPSHOT, *writing),)
    all_of_them, not_expiring = (index.name for index in SNAPSHOT.indexes)
    if chosen.snapshot_ttl_days:
        return (_on(SNAPSHOT, *writing), _on(SNAPSHOT, "Query", index=not_expiring))
    return (_on(SNAPSHOT, *writing, "DeleteItem"), _on(SNAPSHOT, "Query", index=all_of_them))


def _on(table: TableSpec, *actions: str, index: str = "") -> Permission:
    return Permission(table=table, actions=actions, index=index)


def coherent(options: Options) -> None:
    """Refuse settings of a stage that do not go together; raises `InvalidInput` of one of them."""
    chosen = options.of_plugin(AdapterOptions)
    if chosen.snapshot_ttl_days and not chosen.snapshot_copies:
        rule = "must be at least 1 with snapshot_ttl_days, which is of copies beyond them"
        raise InvalidInput("snapshot_copies", rule)
    try:
        AggregateTypes(chosen.aggregate_types)
    except InvalidInput as error:
        raise InvalidInput("aggregate_types", f"must be types of aggregates: {error.rule}") from None


PORT: Final = Port(
    tables=(JOURNAL, SNAPSHOT),
    kind_of=_kind_of,
    access=access_of,
    heads=SNAPSHOT,
    source=_source,
    categories=IdCategories(None),
)
