"""The transaction of an append as a plan: events, entries, heads moved, heads fenced. Pure arithmetic on FORMATS §3."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from epochal.contrib.sekiban.events import RecordedTaggedEvent, TaggedEvent, later_than
from epochal.contrib.sekiban.items import TagSite, write_entry, write_event, write_head
from epochal.model.events import Event, Recorded
from epochal.model.tags import EVERYTHING, UNTAGGED, type_tag
from epochal.model.versions import Reached
from epochal.plan.ops import Absent, All, Check, Condition, Put, Transact, TransactionWrite, equals
from epochal.plan.values import number, text

TOKEN_CHARACTERS = 36


@dataclass(frozen=True, slots=True)
class Stamp:
    """When an event happened, as it is stored, and the sortable id that it gets unless its tags are beyond that."""

    proposed: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedBatch:
    """One append: all or nothing.

    Attributes:
        events: at least one, each with its id.
        stamps: one for each.
    """

    events: tuple[TaggedEvent, ...]
    stamps: tuple[Stamp, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A transaction with what its writes are about, and the state it leads to.

    Attributes:
        events: as they will be stored; the first writes, in order.
        heads: tags whose heads the last writes move or check, in order.
        reached: where the moved heads will be.
    """

    transact: Transact
    events: tuple[Recorded, ...]
    heads: tuple[str, ...]
    reached: dict[str, Reached]


def tags_of(event: Event, *, type_heads: bool) -> tuple[str, ...]:
    """Every tag whose head an event moves."""
    own = tuple(sorted(set(event.tags))) or (UNTAGGED,)
    return (*own, type_tag(event.type), EVERYTHING) if type_heads else own


def recorded(event: Event, chosen: str, timestamp: str) -> RecordedTaggedEvent:
    """An event as it is stored under a sortable id."""
    return RecordedTaggedEvent(
        id=event.id or "",
        place=chosen,
        type=event.type,
        data=event.data,
        meta=event.meta,
        tags=tuple(sorted(set(event.tags))),
        timestamp=timestamp,
        causation_id=event.causation_id,
        correlation_id=event.correlation_id,
        executed_user=TaggedEvent.of(event).executed_user,
    )


def plan(site: TagSite, batch: TaggedBatch, heads: Mapping[str, Reached], fences: Sequence[str]) -> Planned:
    """The transaction that appends on exactly these heads; `fences` must not have moved either."""
    events = tuple(_recorded(site, batch, heads))
    by_tag: dict[str, list[Recorded]] = {}
    for event, stored in zip(batch.events, events, strict=True):
        for tag in tags_of(event, type_heads=site.type_heads):
            by_tag.setdefault(tag, []).append(stored)
    checked = [tag for tag in fences if tag not in by_tag]
    writes: list[TransactionWrite] = [
        Put(table=site.events, item=write_event(site.keys, stored, event.expires), condition=Absent("pk"))
        for event, stored in zip(batch.events, events, strict=True)
    ]
    writes += _entries(site, by_tag, heads)
    writes += [_moved(site, tag, heads[tag], own) for tag, own in by_tag.items()]
    writes += [Check(table=site.tags, key=site.keys.head(tag), condition=_at(heads[tag])) for tag in checked]
    reached = {tag: Reached(heads[tag].count + len(own), own[-1].place) for tag, own in by_tag.items()}
    transact = Transact(writes=tuple(writes), token=_token(writes))
    return Planned(transact=transact, events=events, heads=(*by_tag, *checked), reached=reached)


def _recorded(
    site: TagSite, batch: TaggedBatch, heads: Mapping[str, Reached]
) -> Iterator[RecordedTaggedEvent]:
    """The events with sortable ids beyond all their tags' last ones, whatever the clock says."""
    last = ""
    for event, stamp in zip(batch.events, batch.stamps, strict=True):
        tags = tags_of(event, type_heads=site.type_heads)
        before = max(last, *(heads[tag].last for tag in tags))
        last = later_than(stamp.proposed, before, _digits(event.id or ""))
        yield recorded(event, last, stamp.timestamp)


def _digits(event_id: str) -> int:
    """A random number for each event, the same whenever its append is planned again."""
    return int.from_bytes(hashlib.sha256(event_id.encode()).digest()[:8], "big")


def _entries(
    site: TagSite, by_tag: Mapping[str, Sequence[Recorded]], heads: Mapping[str, Reached]
) -> list[Put]:
    return [
        Put(table=site.tags, item=write_entry(site.keys, tag, heads[tag].count + offset, event))
        for tag, own in by_tag.items()
        for offset, event in enumerate(own)
    ]


def _moved(site: TagSite, tag: str, before: Reached, own: Sequence[Recorded]) -> Put:
    return Put(table=site.tags, item=write_head(site.keys, tag, before, own), condition=_at(before))


def _at(reached: Reached) -> Condition:
    """That a head has not moved; `last` too, because ids are made to exceed it and a position may be forged."""
    if not reached.count:
        return Absent("pk")
    return All((equals("n", number(reached.count)), equals("last", text(reached.last))))


def _token(writes: Sequence[TransactionWrite]) -> str:
    """Over the whole plan, heads included, so that a plan decided again has another token."""
    return hashlib.sha256(repr(writes).encode()).hexdigest()[:TOKEN_CHARACTERS]
