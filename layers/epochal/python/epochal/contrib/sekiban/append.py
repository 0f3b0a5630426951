"""Appending tagged events, if nothing that matches a query has been appended since a position.

One transaction, conditioned on heads: those of all tags of the events, which it moves, and those that fence the
condition. What a refusal means:

    an event of ours exists             appended before: the id decides, and the contents must agree
    a fence moved, with a new match     conflict, with the matching events
    anything else moved                 again, on the heads that came back: an unrelated append is no conflict
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from epochal.contrib.sekiban.items import (
    RecordedTaggedEvent,
    TaggedEvent,
    TagSite,
    later_than,
    read_head,
    write_entry,
    write_event,
    write_head,
)
from epochal.contrib.sekiban.reading import DcbReads, matches, read_events, read_heads, settled_events, stand
from epochal.errors import CorruptData
from epochal.layout.queries import Condition, IdTaken, check_covered, first_in_the_way
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Event, Recorded, content_of
from epochal.model.tags import EVERYTHING, UNTAGGED, DatedEvent, own_tags, repeats, type_tag
from epochal.model.versions import Appended, Conflict, Position, Reached
from epochal.plan.batches import settled
from epochal.plan.conditions import Absent, All, equals
from epochal.plan.limits import TRANSACTION_BYTES, TRANSACTION_ITEMS
from epochal.plan.ops import Check, Done, Put, Refusal, Steps, Transact, TransactionWrite
from epochal.plan.values import Key, item_size, number, text

# The transaction as a plan: events, entries, heads moved, heads fenced. Pure arithmetic on FORMATS §3.

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


def _at(reached: Reached) -> Absent | All:
    """That a head has not moved; `last` too, because ids are made to exceed it and a position may be forged."""
    if not reached.count:
        return Absent("pk")
    return All((equals("n", number(reached.count)), equals("last", text(reached.last))))


def _token(writes: Sequence[TransactionWrite]) -> str:
    """Over the whole plan, heads included, so that a plan decided again has another token."""
    return hashlib.sha256(repr(writes).encode()).hexdigest()[:TOKEN_CHARACTERS]


def append(
    site: TagSite, batch: TaggedBatch, condition: Condition | None = None
) -> Steps[Appended | Conflict]:
    """Append `batch`.

    Raises:
        CorruptData: a head of one of the tags is malformed.
        InvalidInput: an event id exists with other contents, or only some of the ids exist; the position is of another
            query.
    """
    answer = yield from _append(site, batch, condition)
    if isinstance(answer, Appended):
        return answer
    # What is in the way may be ours, of a call whose answer was lost.
    bounded = condition is not None and condition.takes is not None
    if not bounded and _ids(batch).isdisjoint(event.id for event in answer.events):
        return answer
    stored = yield from _stored(site, batch)
    return Appended(events=stored, position=_beginning(condition), replayed=True) if stored else answer


def _append(site: TagSite, batch: TaggedBatch, condition: Condition | None) -> Steps[Appended | Conflict]:
    position = Position()
    if condition is not None:
        begun = yield from _position(site, batch, condition)
        if isinstance(begun, Conflict):
            return begun
        position = begun
    heads = yield from _heads(site, batch, position)
    while True:
        planned = plan(site, batch, heads, tuple(position.seen))
        reply = yield from _sent(site, batch, planned)
        if isinstance(reply, Done):
            return Appended(
                events=planned.events,
                position=_advanced(position, heads, planned, bounded=condition is not None),
                versions={tag: planned.reached[tag].count for tag in own_tags(batch.events)},
            )
        if reply.reused or any(reply.failed[: len(planned.events)]):
            stored = yield from _stored(site, batch)
            if stored:
                return Appended(events=stored, position=position, replayed=True)
        moved = _came_back(reply, planned)
        _check_moved(heads, moved)
        heads = heads | moved
        if condition is not None:
            seen = {tag: heads[tag] for tag in position.seen}
            found = yield from _in_the_way(site, batch, condition, position, seen)
            if found.events:
                return found
            position = replace(position, seen=seen)


def _sent(site: TagSite, batch: TaggedBatch, planned: Planned) -> Steps[Done | Refusal]:
    """The reply to the transaction. Where its token went with something else, which was not this append, it is sent
    without: its conditions alone keep it from being made twice.
    """
    reply: Done | Refusal = yield planned.transact
    if isinstance(reply, Refusal) and reply.reused and not (yield from _stored(site, batch)):
        reply = yield replace(planned.transact, token=None)
    return reply


def _beginning(condition: Condition | None) -> Position:
    """Where the condition counts from, as its caller knows it: nothing beyond may count as seen."""
    if condition is None:
        return Position()
    marks = condition.fence.marks
    return condition.after or Position(seen={tag: Reached() for tag in condition.fence.all_tags}, items=marks)


def _position(site: TagSite, batch: TaggedBatch, condition: Condition) -> Steps[Position | Conflict]:
    """Where the condition counts from; without a position, every match is in its way."""
    if condition.after is not None:
        check_covered(condition.after, condition.fence)
        seen = {tag: condition.after.seen[tag] for tag in condition.fence.all_tags}
        # A chain of appends, each after the position of the one before, would gather the heads of all their tags.
        wanted = _tags(site, batch).union(*(item.tags for item in condition.fence.query.items))
        heads = {tag: reached for tag, reached in condition.after.heads.items() if tag in wanted}
        return Position(seen=seen, heads=heads, items=condition.fence.marks)
    position = yield from stand(site, condition.fence, _tags(site, batch))
    found = yield from _in_the_way(site, batch, condition, replace(position, seen={}), position.seen)
    return found if found.events else position


def _in_the_way(
    site: TagSite, batch: TaggedBatch, condition: Condition, position: Position, until: Mapping[str, Reached]
) -> Steps[Conflict]:
    """What matches between a position and how far heads have got, as much of it as is wanted."""
    if condition.takes is None:
        new = yield from matches(site, condition.fence, position.seen, until, _ids(batch))
        return Conflict(events=new, position=replace(position, seen=until))
    reads = DcbReads(site=site, fenced=condition.fence)
    return (yield from first_in_the_way(reads, position, until, condition.takes))


def _heads(site: TagSite, batch: TaggedBatch, position: Position) -> Steps[dict[str, Reached]]:
    """Heads of every tag concerned: as the position knows them, the others read."""
    known: dict[str, Reached] = {**position.heads, **position.seen}
    missing = sorted(_tags(site, batch).difference(known))
    return known | (yield from read_heads(site, missing))


def _ids(batch: TaggedBatch) -> set[str]:
    return {event.id or "" for event in batch.events}


def _tags(site: TagSite, batch: TaggedBatch) -> set[str]:
    return {tag for event in batch.events for tag in tags_of(event, type_heads=site.type_heads)}


def _came_back(reply: Refusal, planned: Planned) -> dict[str, Reached]:
    """The heads that had moved, as the refusal brought them."""
    count = len(planned.heads)
    refused = zip(planned.heads, reply.items[-count:], reply.failed[-count:], strict=True)
    return {
        tag: Reached() if item is None else read_head(item).reached for tag, item, failed in refused if failed
    }


def _check_moved(before: Mapping[str, Reached], moved: Mapping[str, Reached]) -> None:
    """Refuse a head that was in the way of an append on itself: it contradicts itself, and no retry helps."""
    for tag, reached in moved.items():
        if reached == before[tag]:
            raise CorruptData(
                f"tag {tag!r}: a head that counts {reached.count} events, the last {reached.last!r}"
            )


def _stored(site: TagSite, batch: TaggedBatch) -> Steps[tuple[Recorded, ...]]:
    """Our events as they are stored, if they are there already and equal; none of them, nothing.

    They are read, not taken from a refusal, which tells only a part where two transactions met.
    """
    ids = [event.id or "" for event in batch.events]
    found = yield from read_events(site, ids)
    if 0 < len(found) < len(ids):
        # All of them were written at once, but may not be seen at once.
        found |= yield from settled_events(site, [each for each in ids if each not in found])
    for event in batch.events if found else ():
        stored = found.get(event.id or "")
        if stored is None:
            raise IdTaken("events", f"some of the ids exist and {event.id} does not")
        same = recorded(event, stored.place, event.timestamp or stored.timestamp)
        if not repeats(event, content_of(same.data), stored) or same.executed_user != stored.executed_user:
            raise IdTaken("events", f"the id {event.id} exists with other contents")
    stored_events = tuple(found[event.id or ""] for event in batch.events if found)
    yield from _carried_out(site, batch, stored_events)
    return stored_events


def _carried_out(site: TagSite, batch: TaggedBatch, stored: Sequence[Recorded]) -> Steps[None]:
    """Wait until the append that stored these events is over: its heads may show last, and without them the caller
    would not find the events.
    """
    keys: dict[str, tuple[str, Key]] = {}
    for event, found in zip(batch.events, stored, strict=bool(stored)):
        for tag in tags_of(event, type_heads=site.type_heads):
            keys[tag] = site.tags, site.keys.head(tag)
            keys[f"{tag} {found.id}"] = site.tags, site.keys.entry(tag, found.place, found.id)
    yield from settled(keys.values())


def _advanced(
    position: Position, heads: Mapping[str, Reached], planned: Planned, *, bounded: bool
) -> Position:
    """The condition's position, past the append; without a condition, where the append is in its tags."""
    begun = position.seen if bounded else {tag: heads[tag] for tag in own_tags(planned.events)}
    seen = {tag: planned.reached.get(tag, reached) for tag, reached in begun.items()}
    others = {tag: planned.reached.get(tag, reached) for tag, reached in heads.items() if tag not in seen}
    return Position(seen=seen, heads=others, items=position.items)


# A long history cut into appends: each as large as a transaction allows, in the order of the history.
#
# Sizes are reckoned upward, since what an append adds to a head is known only when the head is: an entry is larger than
# a head without its lists, and than what one event adds to these lists.

_PER_TAG: Final = 3
"""An entry, a head, and an event's part in the head's lists."""

_LAST_INDEX: Final = 10**20
"""More digits than a tag's index will ever have."""


def parts_of(site: TagSite, history: Iterable[DatedEvent]) -> Iterator[tuple[DatedEvent, ...]]:
    """Parts of a history, each an append within the limits, if its first event is. An id appears once in a part."""
    taken: list[DatedEvent] = []
    ids: set[str | None] = set()
    tags: set[str] = set()
    items, size = 0, 0
    for each in history:
        own = set(tags_of(each.event, type_heads=site.type_heads))
        items += 1 + len(own) + len(own - tags)
        size += _bytes(site, each, own)
        if taken and (items > TRANSACTION_ITEMS or size > TRANSACTION_BYTES or each.event.id in ids):
            yield tuple(taken)
            taken, ids, tags = [], set(), set()
            items, size = 1 + 2 * len(own), _bytes(site, each, own)
        taken.append(each)
        ids.add(each.event.id)
        tags |= own
    if taken:
        yield tuple(taken)


def _bytes(site: TagSite, dated: DatedEvent, tags: set[str]) -> int:
    stored = recorded(dated.event, dated.place, dated.timestamp)
    entries = sum(item_size(write_entry(site.keys, tag, _LAST_INDEX, stored)) for tag in tags)
    return item_size(write_event(site.keys, stored, TaggedEvent.of(dated.event).expires)) + _PER_TAG * entries
