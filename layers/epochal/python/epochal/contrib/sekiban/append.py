"""Appending tagged events, if nothing that matches a query has been appended since a position.

One transaction, conditioned on heads: those of all tags of the events, which it moves, and those that fence the
condition. What a refusal means:

    an event of ours exists             appended before: the id decides, and the contents must agree
    a fence moved, with a new match     conflict, with the matching events
    anything else moved                 again, on the heads that came back: an unrelated append is no conflict; from the
                                        second time on after a pause (`giving_way`), on heads that are read again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from epochal.contrib.sekiban.items import TagSite, read_head
from epochal.contrib.sekiban.reading import DcbReads, matches, read_events, read_heads, settled_events, stand
from epochal.contrib.sekiban.transaction import Planned, TaggedBatch, plan, recorded, tags_of
from epochal.errors import CorruptData
from epochal.layout.giving_way import pause_after
from epochal.layout.queries import AppendCondition, IdTaken, check_covered
from epochal.layout.query_reads import first_in_the_way
from epochal.lazy_dataclasses import replace
from epochal.model.bodies import content_of
from epochal.model.events import Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Position, Reached
from epochal.model.tags import own_tags, repeats
from epochal.plan.batches import settled
from epochal.plan.ops import Done, Refusal, Steps
from epochal.plan.values import Key

NO_HEADS: Final[Mapping[str, Reached]] = MappingProxyType({})


def append(
    site: TagSite,
    batch: TaggedBatch,
    condition: AppendCondition | None = None,
    known_heads: Mapping[str, Reached] = NO_HEADS,
) -> Steps[Appended | Conflict]:
    """Append a batch of tagged events unless a condition fails; return the outcome or the conflict.

    Args:
        known_heads: heads that the process has left, by tag, which need not be read.

    Raises:
        CorruptData: a head of one of the tags is malformed.
        InvalidInput: an event id exists with other contents, or only some of the ids exist, or the position belongs to
            another query.
    """
    answer = yield from _append(site, batch, condition, known_heads)
    if isinstance(answer, Appended):
        return answer
    # The conflicting events may be this batch's own, stored by a call whose response was lost.
    bounded = condition is not None and condition.takes is not None
    if not bounded and _ids(batch).isdisjoint(event.id for event in answer.events):
        return answer
    stored = yield from _stored(site, batch)
    return Appended(events=stored, position=_beginning(condition), replayed=True) if stored else answer


def _append(
    site: TagSite,
    batch: TaggedBatch,
    condition: AppendCondition | None,
    known_heads: Mapping[str, Reached] = NO_HEADS,
) -> Steps[Appended | Conflict]:
    """Append a batch in a transaction, and retry on newer heads until there is an outcome or a conflict."""
    position = Position()
    if condition is not None:
        begun = yield from _position(site, batch, condition)
        if isinstance(begun, Conflict):
            return begun
        position = begun
    heads, refusals = (yield from _heads(site, batch, position, known_heads)), 0
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
        heads, refusals = heads | moved, refusals + 1
        newest = yield from _advance(site, batch, condition, position, heads)
        pause = pause_after(refusals)
        if pause is not None and isinstance(newest, Position):
            yield pause
            heads = yield from read_heads(site, sorted(heads))
            newest = yield from _advance(site, batch, condition, newest, heads)
        if isinstance(newest, Conflict):
            return newest
        position = newest


def _advance(
    site: TagSite,
    batch: TaggedBatch,
    condition: AppendCondition | None,
    position: Position,
    heads: Mapping[str, Reached],
) -> Steps[Position | Conflict]:
    """Advance a condition's position to these heads, and return it; or the conflict that is between them."""
    if condition is None:
        return position
    reached = {tag: heads[tag] for tag in position.seen}
    conflicts = yield from _in_the_way(site, batch, condition, position, reached)
    return conflicts if conflicts.events else replace(position, seen=reached)


def _sent(site: TagSite, batch: TaggedBatch, planned: Planned) -> Steps[Done | Refusal]:
    """Send an append's transaction, again without its token if that was used before; return the reply.

    If its idempotency token was used with another request, which did not store this batch, the transaction is sent
    again without a token: its conditions alone keep it from being applied twice.
    """
    reply: Done | Refusal = yield planned.transact
    if isinstance(reply, Refusal) and reply.reused and not (yield from _stored(site, batch)):
        reply = yield replace(planned.transact, token=None)
    return reply


def _beginning(condition: AppendCondition | None) -> Position:
    """Return a condition's position, else the beginning of its fencing tags; empty without a condition.

    Without a position in the condition, this is the beginning of each fencing tag.
    """
    if condition is None:
        return Position()
    marks = condition.fence.marks
    return condition.after or Position(seen={tag: Reached() for tag in condition.fence.all_tags}, items=marks)


def _position(site: TagSite, batch: TaggedBatch, condition: AppendCondition) -> Steps[Position | Conflict]:
    """Return the position after which a matching event conflicts, or the conflict found already.

    A condition without a position conflicts with every matching event.
    """
    if condition.after is not None:
        check_covered(condition.after, condition.fence)
        seen_tags = {tag: condition.after.seen[tag] for tag in condition.fence.all_tags}
        # Without this filter, a chain of appends, each after the previous one's position, would collect the heads
        # of all their tags.
        tags = _tags(site, batch).union(*(item.tags for item in condition.fence.query.items))
        heads = {tag: reached for tag, reached in condition.after.heads.items() if tag in tags}
        return Position(seen=seen_tags, heads=heads, items=condition.fence.marks)
    position = yield from stand(site, condition.fence, _tags(site, batch))
    conflicts = yield from _in_the_way(site, batch, condition, replace(position, seen={}), position.seen)
    return conflicts if conflicts.events else position


def _in_the_way(
    site: TagSite,
    batch: TaggedBatch,
    condition: AppendCondition,
    position: Position,
    until: Mapping[str, Reached],
) -> Steps[Conflict]:
    """Return a `Conflict` with the events, perhaps none, that match a condition between two positions.

    Where the condition limits how many events it wants, only that many are read.
    """
    if condition.takes is None:
        new = yield from matches(site, condition.fence, position.seen, until, _ids(batch))
        return Conflict(events=new, position=replace(position, seen=until))
    reads = DcbReads(site=site, fenced=condition.fence)
    return (yield from first_in_the_way(reads, position, until, condition.takes))


def _heads(
    site: TagSite, batch: TaggedBatch, position: Position, known_heads: Mapping[str, Reached]
) -> Steps[dict[str, Reached]]:
    """Return the heads of all tags concerned, from the position or `known_heads`, or else read."""
    tags = _tags(site, batch)
    latest = {tag: head for tag, head in known_heads.items() if tag in tags}
    reached: dict[str, Reached] = {**position.heads, **latest, **position.seen}
    missing = sorted(tags.difference(reached))
    return reached | (yield from read_heads(site, missing))


def _ids(batch: TaggedBatch) -> set[str]:
    """Return the ids of a batch's events."""
    return {event.id or "" for event in batch.events}


def _tags(site: TagSite, batch: TaggedBatch) -> set[str]:
    """Return every tag whose head the events of a batch move."""
    return {tag for event in batch.events for tag in tags_of(event, type_heads=site.type_heads)}


def _came_back(reply: Refusal, planned: Planned) -> dict[str, Reached]:
    """Return the heads whose conditions failed, by tag, as the refused transaction returned them."""
    count = len(planned.heads)
    refused = zip(planned.heads, reply.items[-count:], reply.failed[-count:], strict=True)
    return {
        tag: Reached() if item is None else read_head(item).reached for tag, item, failed in refused if failed
    }


def _check_moved(before: Mapping[str, Reached], moved: Mapping[str, Reached]) -> None:
    """Raise `CorruptData` if a head that refused an append is the same as before.

    Such a head contradicts itself, and no retry helps.
    """
    for tag, reached in moved.items():
        if reached == before[tag]:
            raise CorruptData(
                f"tag {tag!r}: its head, with {reached.count} events, the last {reached.last!r}, contradicts itself"
            )


def _stored(site: TagSite, batch: TaggedBatch) -> Steps[tuple[Recorded, ...]]:
    """Return a batch's events if an append stored them, else none; raise if their ids are otherwise taken.

    The events are read instead of being taken from the refusal, which has only some of them where two transactions
    conflict.

    Raises:
        IdTaken: an event is stored with other contents, or only some of the events are stored.
    """
    ids = [event.id or "" for event in batch.events]
    events = yield from read_events(site, ids)
    if 0 < len(events) < len(ids):
        # All of them were written in one transaction, but may become visible one after another.
        events |= yield from settled_events(site, [event_id for event_id in ids if event_id not in events])
    for event in batch.events if events else ():
        stored = events.get(event.id or "")
        if stored is None:
            raise IdTaken("events", f"some ids are stored already, but {event.id} is not")
        same = recorded(event, stored.place, event.timestamp or stored.timestamp)
        if not repeats(event, content_of(same.data), stored) or same.executed_user != stored.executed_user:
            raise IdTaken("events", f"an event with the id {event.id} exists, but with other contents")
    stored_events = tuple(events[event.id or ""] for event in batch.events if events)
    yield from _carried_out(site, batch, stored_events)
    return stored_events


def _carried_out(site: TagSite, batch: TaggedBatch, stored: Sequence[Recorded]) -> Steps[None]:
    """Wait until the append that stored these events has been applied completely.

    Its heads may become visible last, and without them the caller would not find the events.
    """
    keys: dict[str, tuple[str, Key]] = {}
    for event, stored_event in zip(batch.events, stored, strict=bool(stored)):
        for tag in tags_of(event, type_heads=site.type_heads):
            keys[tag] = site.tags, site.keys.head(tag)
            keys[f"{tag} {stored_event.id}"] = (
                site.tags,
                site.keys.entry(tag, stored_event.place, stored_event.id),
            )
    yield from settled(keys.values())


def _advanced(
    position: Position, heads: Mapping[str, Reached], planned: Planned, *, bounded: bool
) -> Position:
    """Return the position after an append: the condition's moved on, or without one that of its own tags.

    Without a condition (`bounded` is false), the position covers the tags of the events themselves.
    """
    begun = position.seen if bounded else {tag: heads[tag] for tag in own_tags(planned.events)}
    reached_now = {tag: planned.reached.get(tag, reached) for tag, reached in begun.items()}
    others = {
        tag: planned.reached.get(tag, reached) for tag, reached in heads.items() if tag not in reached_now
    }
    return Position(seen=reached_now, heads=others, items=position.items)
