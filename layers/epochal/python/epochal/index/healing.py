"""Healing from the source: the types of events that a batch of stream records lacked, in pieces of bounded size.

tips       the stream, from its Tip and calves; what is pruned is passed over
journal    the events by their keys: numbers have no holes, so where the next one is not there is the end
dcb        the tag's entries, which outlive the events
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from epochal.errors import CorruptData
from epochal.index.epochs import Gap
from epochal.layout.dcb.reading import Site as TagSite
from epochal.layout.dcb.seeking import entries
from epochal.layout.journal.items import read_event
from epochal.layout.journal.writes import Site as JournalSite
from epochal.layout.tips.reading import advance, begin
from epochal.model.aggregates import AggregateId
from epochal.model.spans import Span
from epochal.plan.ops import BatchGet, Steps

PIECE: Final = 1024 * 1024
"""Bytes of types after which a piece ends; a request more than that may be held."""

EVENTS_AT_ONCE: Final = 25
"""Events of the journal a request: their items come whole, up to 400 KB each."""


@dataclass(slots=True, kw_only=True)
class Healed:
    """A piece of a gap, from its beginning.

    Attributes:
        spans: what the store holds of it; what it lacks in between was pruned.
        whole: the piece is all of the gap.
        size: bytes reckoned for the types.
    """

    spans: list[Span] = field(default_factory=list)
    whole: bool = True
    size: int = 0

    @property
    def events(self) -> int:
        """How many were found."""
        return sum(len(span.types) for span in self.spans)

    def add(self, span: Span) -> bool:
        """Take in the next span; whether that was enough."""
        if span.types:
            self.spans.append(span)
            self.size += sum(len(kind) + 8 for kind in span.types)
        return self.size >= PIECE


Heal = Callable[[Gap], Steps[Healed]]
"""Reads from the source the events of a gap, or as many from its beginning as make a piece; those pruned meanwhile
are missing from the answer. Raises `CorruptData` where events are missing that were not pruned, or cannot be read."""


def heal_tips(table: str) -> Heal:
    """Heals gaps of streams in a table of the `tips` layout."""
    return _soundly(lambda gap: _from_tips(table, gap), "tips")


def heal_journal(site: JournalSite) -> Heal:
    """Heals gaps of aggregates."""
    return _soundly(lambda gap: _from_journal(site, gap), "journal")


def heal_dcb(site: TagSite) -> Heal:
    """Heals gaps of tags."""
    return _soundly(lambda gap: _from_tags(site, gap), "dcb")


def _soundly(heal: Heal, layout: str) -> Heal:
    def healed(gap: Gap) -> Steps[Healed]:
        try:
            return (yield from heal(gap))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptData(f"{gap.stream}: an item of it is not of the {layout} layout") from error

    return healed


def _from_tips(table: str, gap: Gap) -> Steps[Healed]:
    cursor = yield from begin(table, gap.stream, gap.index)
    found = Healed()
    while cursor is not None and not cursor.at_end and (gap.end is None or cursor.at < gap.end):
        if found.size >= PIECE:
            return replace(found, whole=False)
        pages = yield from advance(table, cursor, shared=True)
        for span in pages.spans:
            kept = span if gap.end is None else span.before(gap.end)
            found.add(Span(gap.stream, kept.base, kept.types))
        cursor = pages.cursor
    return found


def _from_journal(site: JournalSite, gap: Gap) -> Steps[Healed]:
    aggregate = site.types.read(gap.stream)
    if aggregate is None:
        raise CorruptData(f"{gap.stream!r} is no id of an aggregate")
    found = Healed()
    index, width = gap.index, 2
    while gap.end is None or index < gap.end:
        ends = index + width if gap.end is None else min(index + EVENTS_AT_ONCE, gap.end)
        kinds = yield from _types(site, aggregate, index, ends)
        enough = found.add(Span(gap.stream, index, tuple(kinds)))
        index += len(kinds)
        if index < ends:
            # The first must be there: whoever wrote a head wrote an event.
            if gap.end is not None or index == 0:
                raise CorruptData(f"{gap.stream}: event {index + 1} is missing from the journal")
            return found
        if enough and index != gap.end:
            return replace(found, whole=False)
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


def _from_tags(site: TagSite, gap: Gap) -> Steps[Healed]:
    if gap.end is None:
        raise CorruptData(f"tag {gap.stream!r}: its head does not tell what was appended")
    found = Healed()
    index, after = gap.index, None
    while index < gap.end:
        if found.size >= PIECE:
            return replace(found, whole=False)
        page = yield from entries(site, gap.stream, index, gap.end, after=after)
        found.add(Span(gap.stream, index, tuple(entry.event_type for entry in page)))
        index, after = index + len(page), page[-1].sortable_id
    return found
