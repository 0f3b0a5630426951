"""The port: what the feed, the indexer, care and a deployment need of a layout, and which layouts a deployment has.

A layout has one item for each of its streams, the head, which every append changes in the same write as the events.

    An image of a head says where its stream ends, and what the latest write appended, or at least that it appended.
    Events of a stream have the indices 0, 1, 2 and so on; what was pruned is below all that is there.
    Whatever no image told can be read from the store: healing finds each event of a gap that was not pruned.
    What is in the same table and is no head tells nothing; what looks like a head and is malformed raises.

Names that begin with `$` are the system's, and are no part of the feed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, get_args

from epochal.declaration import Setting
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.stream_names import category_of
from epochal.plan.conditions import Condition
from epochal.plan.ops import Steps
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, Key, decodes
from epochal.plugins import Layout, entries, layouts, own_settings
from epochal.settings import DECLARED, Options, Settings, partitions_setting, table_setting

if TYPE_CHECKING:
    from epochal.layout.streams import ReadCursor, ReadPart
    from epochal.model.moments import Ticks


RemovalKind = Literal["pruned", "emptied", "deleted"]
"""Kind of a removal. `pruned`: events, and nothing else. `emptied`: all events and unfolds, while the stream continues
at its next index. `deleted`: all events and unfolds, and the stream takes no more events."""

_KINDS: Final[tuple[RemovalKind, ...]] = get_args(RemovalKind)


class Removal(NamedTuple):
    """The removal of events of a stream: a prune or a deletion.

    Attributes:
        stream: name of the stream.
        end: index below which all events are gone.
        kind: kind of the removal.
        next: the stream's next index at the removal. In the feed all events below it come before, all others after.
        first: index below which events were gone by the removal before.
    """

    stream: str
    end: int
    kind: RemovalKind
    next: int
    first: int = 0

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its events: none, since a removal has no events."""
        return ()

    @property
    def mark(self) -> int:
        """A number that increases along a stream; equal removals have equal marks."""
        return 4 * self.end + _KINDS.index(self.kind) + 1

    @property
    def late(self) -> bool:
        """Whether events that still exist come before the removal, although it removed all there were."""
        return self.kind != "pruned" and self.next > self.end


def end_of_mark(mark: int) -> int:
    """Return the `end` of the removal with a mark; 0 for mark 0, which stands for no removal."""
    return mark // 4


# Which layouts a deployment has, which tables and settings, and which partitions of the feed are whose. This outlives
# the code: a change of a table needs a migration (FORMATS).


def layout_names() -> tuple[str, ...]:
    """Return the names of all layouts, in the order of their partitions."""
    return tuple(each.name for each in layouts())


def layouts_in(settings: Settings) -> tuple[Layout, ...]:
    """Return the layouts of a deployment: those whose head table the settings name.

    Their plug-ins need not be installed.
    """
    return tuple(each for each in entries() if settings.value(each.table))


def declared() -> Mapping[str, Setting]:
    """Return every setting of a deployment by name, including those of its layouts."""
    tables = [table_setting(spec.kind, spec.help) for each in layouts() for spec in each.port.tables]
    partitions = [partitions_setting(each.partitions) for each in layouts()]
    own = [setting for each in layouts() for setting in own_settings(each).values()]
    return {each.name: each for each in (*tables, *partitions, *own, *DECLARED.values())}


def layout_of(partition: int) -> Layout:
    """Return the layout that a partition of the feed belongs to."""
    return next(each for each in reversed(entries()) if partition >= each.base)


def source_of(partition: int) -> str:
    """Return the name of the layout, or source, that a partition of the feed belongs to."""
    return layout_of(partition).name


def layout_named(name: str) -> Layout:
    """Return the layout of a name; `KeyError` if there is none."""
    return {each.name: each for each in entries()}[name]


def base_of(name: str) -> int:
    """Return the first partition of a layout."""
    return layout_named(name).base


def head_key(name: str, image: Item) -> Key:
    """Return the primary key of an item of a layout's table of heads."""
    return {each: image[each] for each in layout_named(name).port.heads.keys if each in image}


def partitions_of(settings: Settings) -> tuple[int, ...]:
    """Return the partitions of a deployment's feed, whether anything was indexed in them or not."""
    counts = [(each.base, settings.partitions(each.partitions)) for each in layouts_in(settings)]
    return tuple(base + number for base, count in counts for number in range(count))


def partition_of(stream: str, partitions: int, base: int = 0) -> int:
    """Compute the partition of a stream from the SHA-256 of its name.

    It is the base plus the first four bytes of the hash, big-endian, modulo `partitions`.
    """
    digest = hashlib.sha256(stream.encode()).digest()
    return base + int.from_bytes(digest[:4], "big") % partitions


# Tables: those of layouts, and those that are no layout's.

_P = KeyAttribute(name="p", type="S")
_I = KeyAttribute(name="i", type="N")

INDEX: Final = TableSpec(kind="index", partition=_P, sort=_I, stream=True)
"""The feed: epochs, marks and reader checkpoints, as Tips (`index.tip`)."""

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

READ_MODELS: Final = TableSpec(kind="read-models", partition=_PK, sort=_SK)
"""Read models of reactions: no part of the store, which any deployment can do without."""

TIMERS: Final = TableSpec(kind="timers", partition=_P, sort=KeyAttribute(name="s", type="S"))
"""Pending timers by due time: the table can be rebuilt from the feed, and deployments may do without."""


def store_tables(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """Return the tables of a deployment that has these layouts, or all layouts, and the index."""
    chosen = layouts() if of is None else of
    return (*(spec for each in chosen for spec in each.port.tables), INDEX)


def archives(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """Return the archive tables of these layouts, or of all layouts."""
    found = (each.port.archive for each in (layouts() if of is None else of))
    return tuple(each.table for each in found if each is not None)


def every_table() -> tuple[TableSpec, ...]:
    """Return all tables that a deployment of this code may have."""
    return (*store_tables(), *archives(), READ_MODELS, TIMERS)


# Spans: consecutive events of a stream, by index and type, without their bodies. The feed is made of them.


# A named tuple, because catching up makes one for nearly every event: a frozen dataclass takes twice as long.
class Span(NamedTuple):
    """Consecutive events of one stream: the index of the first, and the types of all."""

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    types: tuple[str, ...]

    @property
    def next(self) -> int:
        """Index after the last event."""
        return self.index + len(self.types)

    def since(self, index: int) -> Span:
        """Return the span without the events below `index`."""
        cut = max(0, index - self.index)
        return Span(self.stream, self.index + cut, self.types[cut:])

    def until(self, index: int) -> Span:
        """Return the span without the events from `index` on."""
        return Span(self.stream, self.index, self.types[: max(0, index - self.index)])


# Where streams end, as their heads tell.


@dataclass(frozen=True, slots=True)
class End:
    """The end of a stream, as its head tells.

    Attributes:
        stream: name of the stream.
        next: index after its last event; None where the head does not tell, and the store must be read.
        pruned: index below which every event is gone.
        since: index below which other heads of the stream have the events.
        left: kind of the removal, if events are gone.
    """

    stream: str
    next: int | None
    pruned: int = 0
    since: int = 0
    left: RemovalKind = "pruned"

    @property
    def removal(self) -> Removal | None:
        """The removal of the stream's events; None where nothing is gone."""
        if not self.pruned and self.left == "pruned":
            return None
        return Removal(self.stream, self.pruned, self.left, self.next or self.pruned)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAppend:
    """The events that one append added to an item, and their cost.

    Attributes:
        index: index of its first event.
        events: number of its events.
        bytes: bytes that its events take.
        units: write units outside of a transaction, in which it costs twice as much.
        least: whether it may have cost more, since other contents of the item are no longer there.
        timestamp: time of the append, ISO 8601.
    """

    index: int
    events: int
    bytes: int
    units: int
    least: bool
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item of a stream, with its appends.

    Attributes:
        index: index of its first event.
        end: index after its last event.
        bytes: bytes of the whole item, its unfolds included.
        unfolds: bytes of its unfolds.
        full: whether the item takes no more events.
        appends: the appends whose events are in the item.
    """

    index: int
    end: int
    bytes: int
    unfolds: int
    full: bool
    appends: tuple[StoredAppend, ...]


PIECE: Final = 1024 * 1024
"""Bytes of types after which a piece ends; a piece may be larger by the result of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A change of a stream whose head does not tell the events, so that the store must be read."""

    stream: str


Change = Span | Touched | Removal
"""A change that a stream record tells. A removal has the `next` that the head has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Events `index` to `end - 1` of a stream that the index lacks; all from `index` on without an `end`."""

    stream: str
    index: int
    end: int | None


@dataclass(slots=True, kw_only=True)
class Healed:
    """A piece of a gap, from its beginning, as it was read from the store.

    Attributes:
        spans: spans of events that the store has; events missing in between were pruned.
        times: time at which each span was written; None where the layout does not tell.
        whole: whether the piece is all of the gap.
        size: estimated bytes of the types.
    """

    spans: list[Span] = field(default_factory=list)
    times: list[Ticks | None] = field(default_factory=list)
    whole: bool = True
    size: int = 0

    @property
    def events(self) -> int:
        """Number of events that were found."""
        return sum(len(span.types) for span in self.spans)

    @property
    def full(self) -> bool:
        """Whether the piece is as large as a piece may be."""
        return self.size >= PIECE

    def add(self, span: Span, time: Ticks | None = None) -> None:
        """Add the next span and the time at which it was written; an empty span is ignored."""
        if span.types:
            self.spans.append(span)
            self.times.append(time)
            self.size += sum(len(kind) + 8 for kind in span.types)


Heal = Callable[[Gap], Steps[Healed]]
"""Reads from the source the events of a gap, or as many from its beginning as make a piece; those pruned meanwhile
are missing from the answer. Raises `CorruptData` where events are missing that were not pruned, or cannot be read."""


def soundly(heal: Heal, layout: str) -> Heal:
    """Make a `heal` function raise `CorruptData` for an item that is not of its layout."""

    def healed(gap: Gap) -> Steps[Healed]:
        """Read the events of a gap; raise `CorruptData` for an item that is not of the layout."""
        try:
            return (yield from heal(gap))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptData(f"{gap.stream}: an item of it is not of the {layout} layout") from error

    return healed


def _one_write(span: Any) -> Iterable[tuple[int, int, Ticks | None]]:
    return ((span.base, span.base + len(span.types), None),)


def heal_streams(
    layout: str,
    begin: Callable[[str, int], Steps[ReadCursor | None]],
    advance: Callable[[Any], Steps[ReadPart[Any, Any]]],
    writes: Callable[[Any], Iterable[tuple[int, int, Ticks | None]]] = _one_write,
) -> Heal:
    """Make the `heal` function of a layout of named streams: it reads a gap's events from the stream.

    Pruned events are passed over.

    Args:
        layout: name of the layout.
        begin: steps that return a cursor before an event of a stream.
        advance: steps that read the next part, whose spans have `types`.
        writes: function that returns the writes of a span: index of the first event, index after the last, and time.
    """

    def healed(gap: Gap) -> Steps[Healed]:
        """Read the events of a gap, or as many from its beginning as make a piece."""
        cursor = yield from begin(gap.stream, gap.index)
        found = Healed()
        while cursor is not None and not cursor.at_end and (gap.end is None or cursor.at < gap.end):
            if found.full:
                found.whole = False
                return found
            part = yield from advance(cursor)
            for span in part.spans:
                types = tuple(span.types)
                for first, end, time in writes(span):
                    last = end if gap.end is None else max(first, min(end, gap.end))
                    found.add(Span(gap.stream, first, types[first - span.base : last - span.base]), time)
            cursor = part.cursor
        return found

    return soundly(healed, layout)


def end_since(heal: Heal, stream: str, index: int) -> Steps[tuple[int, CorruptData | None]]:
    """Find the end of a stream by reading from `index` on.

    Returns:
        The next index of the stream, and None; or the index that the read has reached, and the error at an item that
        cannot be read.
    """
    try:
        while True:
            piece = yield from heal(Gap(stream=stream, index=index, end=None))
            index += piece.events
            if piece.whole:
                return index, None
    except CorruptData as error:
        return index, error


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The part of the feed that is indexed from one layout.

    Attributes:
        name: name of the layout, as registered.
        table: name of the table of heads, whose stream carries their new images.
        partitions: number of its partitions; recorded on first use, and any other number is refused afterwards.
        setting: name of the setting with that number.
        appended: function that returns the change in the image of an item; None if it is no append. Raises
            `CorruptData`.
        heal: reads events that stream records do not contain.
        end: function that returns the end of the stream of a head; None for an item that is no head of the feed. Raises
            `CorruptData`.
        told: function that returns the change that brings the index up to a head, whatever its latest write was; None
            as for `end`.
        where: condition that only heads of the feed meet: for scans, and for the filter that wakes the indexer. Like
            `moved` it is made of conditions that a filter of the stream has a form for (`cdk.parts.heads`): `=`,
            `Present` with its `kind`, `BeginsWith`, `Not` of `=`, and `All` of these.
        moved: further condition of a head whose latest write may have appended; None where every write appends.
        pruned: further condition of a head whose latest write may have removed events, where `moved` does not hold;
            None where `moved` always holds then, or where nothing is ever removed.
        stored: function that returns the events that an item of an exported table holds (`care.rebuild`).
        aged: function that returns the index below which a head's events are older than a moment; None where nothing of
            the layout is pruned by age or count (`care.retention`).
        written: function that returns the time of the append in an image; None where the layout does not tell.
    """

    name: str
    table: str
    partitions: int
    setting: str
    appended: Callable[[Item], Change | None]
    heal: Heal
    end: Callable[[Item], End | None]
    told: Callable[[Item], Change | None]
    where: Condition
    moved: Condition | None
    stored: Callable[[Item], Span | None]
    pruned: Condition | None = None
    aged: Callable[[Item, Ticks], int] | None = None
    written: Callable[[Item], Ticks | None] = lambda _: None

    def __post_init__(self) -> None:
        """Make the readers raise `CorruptData`, and nothing else, for an item of another layout."""
        for reader in ("appended", "end", "told", "stored"):
            object.__setattr__(self, reader, decodes(self.name)(getattr(self, reader)))

    @property
    def base(self) -> int:
        """The first partition of the layout."""
        return base_of(self.name)

    def partition_of(self, stream: str) -> int:
        """Return the partition of a stream."""
        return partition_of(stream, self.partitions, self.base)


class Categories(Protocol):
    """Decides which streams belong to a category."""

    def of(self, stream: str) -> str:
        """Return the category of a stream."""

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether a stream is in one of these categories."""


@dataclass(frozen=True, slots=True)
class CategoriesBy:
    """Puts each stream in the one category that a function of its name returns."""

    name: Callable[[str], str]

    def of(self, stream: str) -> str:
        """Return the category of a stream."""
        return self.name(stream)

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether a stream is in one of these categories."""
        return self.name(stream) in categories


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A permission of a function: actions on a table's items.

    Attributes:
        table: the table.
        actions: DynamoDB actions, as permissions name them: `PutItem`.
        index: name of the secondary index that the actions are on; empty for the table itself.
        keys: patterns of the partition keys of these items, with `*`; none for all items. A `Scan` has no key to
            compare.
    """

    table: TableSpec
    actions: tuple[str, ...]
    index: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAccess:
    """The access of functions to a layout's own objects in the bucket.

    Attributes:
        prefix: prefix of the objects' keys.
        actions: S3 actions by the name of the function: `PutObject`.
    """

    prefix: str
    actions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The table to which a layout's streams are copied before they are pruned; optional for a store.

    Attributes:
        table: the table.
        copying: DynamoDB actions that copying to the table takes.
        reading: DynamoDB actions that reading from the table takes.
    """

    table: TableSpec
    copying: tuple[str, ...]
    reading: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A layout, as the rest of the library uses it.

    Attributes:
        tables: tables that the layout is stored in.
        kind_of: function that returns the kind of the table that an item is of; None for other layouts' items, which
            may have the same keys, and for items that tell nothing.
        access: function that returns the permissions of each function on these tables, by the function's name.
        heads: table that holds the heads of the layout's streams.
        source: function that returns the layout's part of a deployment's feed.
        categories: categories of its streams; by default the part of the name before the first `-`. A store may know
            better (`feed.history.History`).
        stored_items: steps that return the items of a stream with its events from one index to before another, and the
            cost of each append to them; None where items do not tell.
        objects: function that returns the access of functions to the layout's objects in the bucket; None if it has
            none there.
        archive: archive of its streams; None if they have none.
    """

    tables: tuple[TableSpec, ...]
    kind_of: Callable[[Item], str | None]
    access: Callable[[Options], Mapping[str, tuple[Permission, ...]]]
    heads: TableSpec
    source: Callable[[Settings], Source]
    categories: Categories = field(default_factory=lambda: CategoriesBy(category_of))
    stored_items: Callable[[str, str, int, int], Steps[tuple[StoredItem, ...]]] | None = None
    objects: Callable[[Options], ObjectAccess] | None = None
    archive: Archive | None = None
