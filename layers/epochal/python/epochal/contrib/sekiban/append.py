"""Appending tagged events, if nothing that matches a query has been appended since a position.

One transaction, conditioned on heads: those of all tags of the events, which it moves, and those that fence the
condition. What a refusal means:

    an event of ours exists             appended before: the id decides, and the contents must agree
    a fence moved, with a new match     conflict, with the matching events
    anything else moved                 again, on the heads that came back: an unrelated append is no conflict
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from epochal.contrib.sekiban.items import TagSite, read_head
from epochal.contrib.sekiban.paging import DcbReads
from epochal.contrib.sekiban.reading import matches, read_events, read_heads, settled_events, stand
from epochal.contrib.sekiban.writes import Planned, TaggedBatch, plan, recorded, tags_of
from epochal.errors import CorruptData
from epochal.layout.queries import Condition, IdTaken, check_covered, first_in_the_way
from epochal.model.events import Recorded, content_of
from epochal.model.tags import own_tags, repeats
from epochal.model.versions import Appended, Conflict, Position, Reached
from epochal.plan.ops import Done, Refusal, Steps, settled
from epochal.plan.values import Key


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
