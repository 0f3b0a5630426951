"""Plans the transaction of an append: events, entries, heads moved, heads fenced (FORMATS §3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from epochal.contrib.sekiban.items import (
    RecordedTaggedEvent,
    TaggedEvent,
    TagSite,
    later_than,
    write_entry,
    write_event,
    write_head,
)
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Event, Recorded
from epochal.model.positions import Reached
from epochal.model.tags import EVERYTHING, UNTAGGED, type_tag
from epochal.plan.conditions import Absent, All, equals
from epochal.plan.ops import Check, Put, Transact, TransactionWrite
from epochal.plan.values import number, text

TOKEN_CHARACTERS = 36


@dataclass(frozen=True, slots=True)
class Stamp:
    """Timestamp of an event as it is stored, and the sortable id proposed for it.

    The event gets a higher id where its tags have already reached the proposed one.
    """

    proposed: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedBatch:
    """The tagged events of one append, which stores all or none of them.

    Attributes:
        events: the events to append, at least one, each with its id.
        stamps: timestamp and proposed sortable id of each event.
    """

    events: tuple[TaggedEvent, ...]
    stamps: tuple[Stamp, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planned append transaction: the events and heads it writes, and the heads it leads to.

    Attributes:
        transact: the transaction.
        events: the events as they will be stored, in the order of the transaction's first writes.
        heads: tags whose heads the transaction's last writes move or check, in order.
        reached: count and last sortable id of each moved head after the append, by tag.
    """

    transact: Transact
    events: tuple[Recorded, ...]
    heads: tuple[str, ...]
    reached: dict[str, Reached]


def tags_of(event: Event, *, type_heads: bool) -> tuple[str, ...]:
    """Return every tag whose head an event moves: its own tags, and with type heads two reserved ones."""
    own = tuple(sorted(set(event.tags))) or (UNTAGGED,)
    return (*own, type_tag(event.type), EVERYTHING) if type_heads else own


def recorded(event: Event, chosen: str, timestamp: str) -> RecordedTaggedEvent:
    """Make the stored form of an event from a chosen sortable id and a timestamp."""
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
    """Plan the transaction that appends a batch, provided that heads and fences are unchanged.

    Args:
        heads: count and last sortable id of the head of each tag concerned.
        fences: tags whose heads must not have moved, beside those of the events' own tags.
    """
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
    writes += [_build_head_write(site, tag, heads[tag], own) for tag, own in by_tag.items()]
    writes += [
        Check(table=site.tags, key=site.keys.head(tag), condition=_build_head_condition(heads[tag]))
        for tag in checked
    ]
    reached = {tag: Reached(heads[tag].count + len(own), own[-1].place) for tag, own in by_tag.items()}
    transact = Transact(writes=tuple(writes), token=_token(writes))
    return Planned(transact=transact, events=events, heads=(*by_tag, *checked), reached=reached)


def _recorded(
    site: TagSite, batch: TaggedBatch, heads: Mapping[str, Reached]
) -> Iterator[RecordedTaggedEvent]:
    """Yield a batch's events in stored form, with sortable ids beyond the last ones of all their tags.

    The ids exceed those whatever the writer's clock says.
    """
    last = ""
    for event, stamp in zip(batch.events, batch.stamps, strict=True):
        tags = tags_of(event, type_heads=site.type_heads)
        before = max(last, *(heads[tag].last for tag in tags))
        last = later_than(stamp.proposed, before, _digits(event.id or ""))
        yield recorded(event, last, stamp.timestamp)


def _digits(event_id: str) -> int:
    """Derive the random part of an event's sortable id from its id, the same for every plan of an append."""
    return int.from_bytes(hashlib.sha256(event_id.encode()).digest()[:8], "big")


def _entries(
    site: TagSite, by_tag: Mapping[str, Sequence[Recorded]], heads: Mapping[str, Reached]
) -> list[Put]:
    """Build the writes of the entries of each tag, numbered from the count of the tag's head."""
    return [
        Put(table=site.tags, item=write_entry(site.keys, tag, heads[tag].count + offset, event))
        for tag, own in by_tag.items()
        for offset, event in enumerate(own)
    ]


def _build_head_write(site: TagSite, tag: str, before: Reached, own: Sequence[Recorded]) -> Put:
    """Build the write that moves a tag's head past its new events, if the head has not moved before."""
    return Put(
        table=site.tags, item=write_head(site.keys, tag, before, own), condition=_build_head_condition(before)
    )


def _build_head_condition(reached: Reached) -> Absent | All:
    """Build the condition that a tag's head is unchanged.

    It compares `last` as well as the count: ids are made to exceed `last`, and a position may be forged.
    """
    if not reached.count:
        return Absent("pk")
    return All((equals("n", number(reached.count)), equals("last", text(reached.last))))


def _token(writes: Sequence[TransactionWrite]) -> str:
    """Hash a transaction's writes into its idempotency token.

    The heads are part of the hash, so a plan made again on other heads has another token.
    """
    return hashlib.sha256(repr(writes).encode()).hexdigest()[:TOKEN_CHARACTERS]
