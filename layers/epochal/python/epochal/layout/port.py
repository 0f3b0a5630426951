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
from epochal.model.events import category_of
from epochal.plan.conditions import Condition
from epochal.plan.ops import Steps
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, Key, decodes
from epochal.plugins import Layout, entries, layouts, own_settings
from epochal.settings import DECLARED, Options, Settings, partitions_setting, table_setting

if TYPE_CHECKING:
    from epochal.layout.streams import ReadCursor, ReadPart
    from epochal.model.events import Ticks


RemovalKind = Literal["pruned", "emptied", "deleted"]
"""`pruned`: events, and nothing else. `emptied`: all events and unfolds, while the stream goes on at its next index.
`deleted`: the same, and it takes no more events."""

_KINDS: Final[tuple[RemovalKind, ...]] = get_args(RemovalKind)


class Removal(NamedTuple):
    """Events of a stream that are gone: a prune, or a deletion.

    Attributes:
        end: all events below this index are gone.
        kind: what went.
        next: the stream's next index when they went. In the feed all events below it come before, all others after.
        first: events below this index were gone by the removal before.
    """

    stream: str
    end: int
    kind: RemovalKind
    next: int
    first: int = 0

    @property
    def types(self) -> tuple[str, ...]:
        """It has no events."""
        return ()

    @property
    def mark(self) -> int:
        """It increases along a stream, and two that say the same have the same."""
        return 4 * self.end + _KINDS.index(self.kind) + 1

    @property
    def late(self) -> bool:
        """Whether events have come before it that are not gone, although all were that there were when they went."""
        return self.kind != "pruned" and self.next > self.end


def end_of_mark(mark: int) -> int:
    """The `end` of the removal that has this mark; 0 of none."""
    return mark // 4


# Which layouts a deployment has, which tables and settings, and which partitions of the feed are whose. This outlives
# the code: a change of a table needs a migration (FORMATS).


def layout_names() -> tuple[str, ...]:
    """Their names, in the order of their partitions."""
    return tuple(each.name for each in layouts())


def layouts_in(settings: Settings) -> tuple[Layout, ...]:
    """Those of a deployment: the settings name the table of their heads, whether their plug-ins are there or not."""
    return tuple(each for each in entries() if settings.value(each.table))


def declared() -> Mapping[str, Setting]:
    """Every setting of a deployment, those of its layouts among them, by name."""
    tables = [table_setting(spec.kind, spec.help) for each in layouts() for spec in each.port.tables]
    partitions = [partitions_setting(each.partitions) for each in layouts()]
    own = [setting for each in layouts() for setting in own_settings(each).values()]
    return {each.name: each for each in (*tables, *partitions, *own, *DECLARED.values())}


def layout_of(partition: int) -> Layout:
    """The layout that a partition of the feed is of."""
    return next(each for each in reversed(entries()) if partition >= each.base)


def source_of(partition: int) -> str:
    """The name of that layout: the source that a partition is of."""
    return layout_of(partition).name


def layout_named(name: str) -> Layout:
    """The layout of that name, which is known to be one's."""
    return {each.name: each for each in entries()}[name]


def base_of(name: str) -> int:
    """The first partition of a layout."""
    return layout_named(name).base


def head_key(name: str, image: Item) -> Key:
    """The primary key of an item of a layout's table of heads."""
    return {each: image[each] for each in layout_named(name).port.heads.keys if each in image}


def partitions_of(settings: Settings) -> tuple[int, ...]:
    """The partitions of a deployment's feed, whether anything was indexed in them yet or not."""
    counts = [(each.base, settings.partitions(each.partitions)) for each in layouts_in(settings)]
    return tuple(base + number for base, count in counts for number in range(count))


def partition_of(stream: str, partitions: int, base: int = 0) -> int:
    """The base, and the first four bytes of the name's SHA-256, big-endian, modulo `partitions`."""
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
"""Timers that wait, by their time: all of it can be made again of the feed, and deployments may do without."""


def store_tables(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables of a deployment that has these layouts, or all that there are."""
    chosen = layouts() if of is None else of
    return (*(spec for each in chosen for spec in each.port.tables), INDEX)


def archives(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables that these layouts, or all that there are, keep streams in which are to be pruned."""
    found = (each.port.archive for each in (layouts() if of is None else of))
    return tuple(each.table for each in found if each is not None)


def every_table() -> tuple[TableSpec, ...]:
    """All tables that a deployment of this code may have."""
    return (*store_tables(), *archives(), READ_MODELS, TIMERS)


# Spans: consecutive events of a stream, by index and type, without their bodies. The feed is made of them.


# A named tuple, because catching up makes one for nearly every event: a frozen dataclass takes twice as long.
class Span(NamedTuple):
    """Consecutive events of one stream: the first has index `index`, their types are `types`."""

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    types: tuple[str, ...]

    @property
    def next(self) -> int:
        """Index after the last."""
        return self.index + len(self.types)

    def since(self, index: int) -> Span:
        """Without the events below `index`."""
        cut = max(0, index - self.index)
        return Span(self.stream, self.index + cut, self.types[cut:])

    def until(self, index: int) -> Span:
        """Without the events from `index` on."""
        return Span(self.stream, self.index, self.types[: max(0, index - self.index)])


# Where streams end, as their heads tell.


@dataclass(frozen=True, slots=True)
class End:
    """How far a stream has got.

    Attributes:
        next: the index after its last event; None where the head does not tell, and the store must be asked.
        pruned: every event below this index is gone.
        since: events below this index are told by other heads of the stream.
        left: what it lacks besides these events.
    """

    stream: str
    next: int | None
    pruned: int = 0
    since: int = 0
    left: RemovalKind = "pruned"

    @property
    def removal(self) -> Removal | None:
        """What is gone of the stream; None where nothing is."""
        if not self.pruned and self.left == "pruned":
            return None
        return Removal(self.stream, self.pruned, self.left, self.next or self.pruned)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAppend:
    """What an append added to an item, and what that cost.

    Attributes:
        index: of its first event.
        bytes: that its events take.
        units: write units, where it was no part of a transaction, in which it costs twice as much.
        least: it may have been more, since what the item held besides is no longer there.
        timestamp: ISO 8601.
    """

    index: int
    events: int
    bytes: int
    units: int
    least: bool
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item of a stream.

    Attributes:
        index: of its first event.
        end: the index after its last.
        bytes: of the whole item, its unfolds among them.
        full: it takes no more.
    """

    index: int
    end: int
    bytes: int
    unfolds: int
    full: bool
    appends: tuple[StoredAppend, ...]


PIECE: Final = 1024 * 1024
"""Bytes of types after which a piece ends; a request more than that may be held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Something was appended to a stream, and its head does not tell what: the store must be asked."""

    stream: str


Change = Span | Touched | Removal
"""What a stream record tells. A removal has the `next` that the head has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Events `index` to `end - 1` of a stream that the index lacks; without an `end`, all that there are."""

    stream: str
    index: int
    end: int | None


@dataclass(slots=True, kw_only=True)
class Healed:
    """A piece of a gap, from its beginning.

    Attributes:
        spans: what the store holds of it; what it lacks in between was pruned.
        times: when each of these was written; none where the layout does not tell.
        whole: the piece is all of the gap.
        size: bytes reckoned for the types.
    """

    spans: list[Span] = field(default_factory=list)
    times: list[Ticks | None] = field(default_factory=list)
    whole: bool = True
    size: int = 0

    @property
    def events(self) -> int:
        """How many were found."""
        return sum(len(span.types) for span in self.spans)

    @property
    def full(self) -> bool:
        """Whether it is as large as a piece may be."""
        return self.size >= PIECE

    def add(self, span: Span, time: Ticks | None = None) -> None:
        """Take in the next span."""
        if span.types:
            self.spans.append(span)
            self.times.append(time)
            self.size += sum(len(kind) + 8 for kind in span.types)


Heal = Callable[[Gap], Steps[Healed]]
"""Reads from the source the events of a gap, or as many from its beginning as make a piece; those pruned meanwhile
are missing from the answer. Raises `CorruptData` where events are missing that were not pruned, or cannot be read."""


def soundly(heal: Heal, layout: str) -> Heal:
    """`heal`, which raises `CorruptData` where it meets an item that is not of its layout."""

    def healed(gap: Gap) -> Steps[Healed]:
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
    """Heals gaps of named streams by reading them; what is pruned is passed over.

    Args:
        begin: stands before an event of a stream.
        advance: reads one part more, whose spans have `types`.
        writes: of such a span: the index of each write's first event, the one after its last, and when it was made.
    """

    def healed(gap: Gap) -> Steps[Healed]:
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
    """Where a stream ends, looked for from `index` on; where an item cannot be read, how far it got, and the error."""
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
    """One layout's part of the feed.

    Attributes:
        name: of the layout, as registered.
        table: where its heads are; its stream carries their new images.
        partitions: how many it has; recorded on first use, and any other number is refused afterwards.
        setting: what tells a deployment that number.
        appended: what an image tells; None for one that is no append. Raises `CorruptData`.
        heal: reads events that stream records have not told.
        end: where the stream of a head ends; None for an item that is no head of the feed. Raises as `appended` does.
        told: the change that brings the index up to a head, whatever its latest write was; None as for `end`.
        where: what only heads of the feed meet: the condition of a scan, and of what wakes the indexer. Like `moved`
            it is made of what a filter of the stream has a form for (`cdk.parts.heads`): `=`, `Present` with its
            `kind`, `BeginsWith`, `Not` of `=`, and `All` of these.
        moved: what a head meets besides where its latest write may have appended; None where every write of one does.
        pruned: the same where it may have removed events, and `moved` does not hold; None where that always holds then,
            or where nothing is ever removed.
        stored: the events that an item of an exported table holds (`care.rebuild`).
        aged: the index below which a head's events are older than a moment; None where nothing of the layout is pruned
            by age or count (`care.retention`).
        written: when the append was made that an image tells; None where the layout does not say.
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
        """Its readers raise `CorruptData`, and nothing else, for an item of another layout."""
        for reader in ("appended", "end", "told", "stored"):
            object.__setattr__(self, reader, decodes(self.name)(getattr(self, reader)))

    @property
    def base(self) -> int:
        """Its first partition."""
        return base_of(self.name)

    def partition_of(self, stream: str) -> int:
        """The partition of a stream."""
        return partition_of(stream, self.partitions, self.base)


class Categories(Protocol):
    """Which streams belong to a category."""

    def of(self, stream: str) -> str:
        """The category of a stream."""

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether a stream is in one of these."""


@dataclass(frozen=True, slots=True)
class CategoriesBy:
    """Each stream is in one category, which its name tells."""

    name: Callable[[str], str]

    def of(self, stream: str) -> str:
        """What the name tells."""
        return self.name(stream)

    def hold(self, stream: str, categories: Collection[str]) -> bool:
        """Whether that is one of these."""
        return self.name(stream) in categories


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a function does to a table's items.

    Attributes:
        actions: of DynamoDB, as permissions name them: `PutItem`.
        index: the secondary index that it does them to; empty for the table itself.
        keys: what the partition keys of those items are like, with `*`; none for all items. A `Scan` has no key to
            compare.
    """

    table: TableSpec
    actions: tuple[str, ...]
    index: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAccess:
    """What functions do to a layout's own objects in the bucket.

    Attributes:
        prefix: of their keys.
        actions: of S3, by the function's name: `PutObject`.
    """

    prefix: str
    actions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Where a layout's streams are copied to before they are pruned: no part of a store that does without.

    Attributes:
        copying: actions of DynamoDB that copy to the table.
        reading: those that read from it.
    """

    table: TableSpec
    copying: tuple[str, ...]
    reading: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A layout, as the rest of the library sees it.

    Attributes:
        tables: those that it is stored in.
        kind_of: the kind of that one among them which an item is of; None for other layouts' items, which may have the
            same keys, and for those that tell nothing.
        access: what the plans of each function do to its tables, by the function's name: its permissions.
        heads: the one among them that holds the heads of its streams.
        source: its part of a deployment's feed.
        categories: of its streams: what precedes the first `-` of their names where nothing else is said. A store may
            know better (`feed.history.History`).
        stored_items: those of a table's stream that hold its events from one index to before another, and what each
            append to them cost; None where items do not tell.
        objects: what each function does to its objects in the bucket; None where it has none there.
        archive: of its streams; None where they have none.
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
