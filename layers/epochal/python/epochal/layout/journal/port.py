"""Aggregates, as the feed sees them: heads are the snapshots with number 0.

One that another library wrote tells nothing but that something happened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from epochal.errors import CorruptData
from epochal.layout.journal import heads
from epochal.layout.journal.items import read_event
from epochal.layout.journal.tables import JOURNAL, SNAPSHOT
from epochal.layout.journal.writes import JournalSite, site_of
from epochal.layout.port import Change, Gap, Heal, Healed, Permission, Port, Source, Touched, soundly
from epochal.model.aggregates import AggregateId, AggregateTypes
from epochal.model.names import category_of
from epochal.model.spans import Span
from epochal.plan.ops import BatchGet, Steps
from epochal.plan.values import Item
from epochal.settings import Options, Settings, variable

EVENTS_AT_ONCE: Final = 25
"""Events of the journal a request: their items come whole, up to 400 KB each."""

T = TypeVar("T")


def journal_source(site: JournalSite, partitions: int = 1) -> Source:
    """Aggregates that are stored where the site looks for them."""
    told: Callable[[Item], Change | None] = _in_place(site, _appended)
    return Source(
        name="journal",
        table=site.snapshot,
        partitions=partitions,
        setting=variable("journal_partitions"),
        appended=told,
        heal=heal_journal(site),
        end=_in_place(site, heads.end),
        told=told,
        where=heads.WHERE,
        moved=None,
        stored=_in_place(site, partial(heads.stored, site)),
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
            heads.check_place(site, item)
        return told

    return checked


def _appended(item: Item) -> Change | None:
    aggregate = heads.touched(item)
    return heads.appended(item) if aggregate is None else Touched(stream=aggregate)


@dataclass(frozen=True, slots=True)
class IdCategories:
    """An aggregate's category is its type. Its id tells the type where the declared types that hold `-` are known.
    Where they are not, all ids that begin with a category and `-` are in it.
    """

    types: AggregateTypes | None

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


def _access(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    from epochal.layout.journal.access import access_of  # noqa: PLC0415  what is deployed needs it, functions do not

    return access_of(options)


PORT: Final = Port(
    tables=(JOURNAL, SNAPSHOT),
    kind_of=_kind_of,
    access=_access,
    heads=SNAPSHOT,
    source=_source,
    categories=IdCategories,
)
