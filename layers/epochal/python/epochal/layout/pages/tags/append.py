"""Appending tagged events, if nothing that matches a query has been appended since a position.

    one tag, nothing to fence     one conditional write of its last page, or of the next one
    several                       one transaction: a write for each tag, a check of each fence that no write moves, a
                                  record of each id that the caller chose

A fence is the last page of a tag as it is known; where that is full, no page at the place where the next begins. All
pages get the append under one stamp, above the last of each.

    refused   one of our pages holds our stamp      appended: a response was lost
              a record of an id is there            appended before: the contents must agree
              a fence moved, with a new match       conflict, with the matching events
              anything else                         again, on the pages that came back

Tags are never pruned, and a page that holds a stamp holds it for good. So whether a try was made is always told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from epochal.errors import TooLarge
from epochal.layout.expectations import version_of
from epochal.layout.fences import Condition, check_covered
from epochal.layout.pages.attempt import Blocked, head_from, next_write
from epochal.layout.pages.etags import PageState
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import Page, page_key, read_page
from epochal.layout.pages.reading import stand
from epochal.layout.pages.tags.batch import TaggedBatch, TagShare, shares_of
from epochal.layout.pages.tags.entries import reached_by
from epochal.layout.pages.tags.identities import stored_before
from epochal.layout.pages.tags.labels import sortable_id_of
from epochal.layout.pages.tags.reading import altered, heads_of, matches
from epochal.layout.pages.tags.reads import PageReads
from epochal.layout.pages.tags.site import TagStreams, id_record, stream_of
from epochal.layout.pages.writes import Planned, index_of, is_own, place_of, unchanged
from epochal.layout.reads import first_in_the_way
from epochal.layout.streams import Known
from epochal.model.dcb import Position, Reached, own_tags
from epochal.model.tagged_results import TaggedAppended, TaggedConflict
from epochal.model.times import Ticks
from epochal.plan.batches import settled
from epochal.plan.conditions import Absent
from epochal.plan.conditions import Condition as Holds
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import (
    Check,
    Done,
    Overflow,
    Put,
    Refusal,
    Steps,
    Together,
    Transact,
    TransactGet,
    TransactionWrite,
)
from epochal.plan.values import Item, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What is known of a tag's last page, and how far the tag has got with it."""

    page: Known[Page]
    reached: Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What goes out.

    Attributes:
        writes: of the pages that get events, by tag.
        checks: of the fences, by tag.
        records: of ids.
    """

    writes: dict[str, Planned]
    checks: dict[str, Check]
    records: tuple[Put, ...]

    @property
    def stamp(self) -> bytes:
        """Of the append."""
        return next(iter(self.writes.values())).stamp

    @property
    def all(self) -> tuple[TransactionWrite, ...]:
        """All of it, in the order of replies."""
        return (*(each.write for each in self.writes.values()), *self.checks.values(), *self.records)


def append(
    site: TagStreams, batch: TaggedBatch, condition: Condition | None = None
) -> Steps[TaggedAppended | TaggedConflict]:
    """Append `batch`.

    Raises:
        InvalidInput: an id exists with other contents, or only some of the ids exist; the position is of another query,
            or of another store.
        TooLarge: the events fit no item, or no transaction.
    """
    shares = shares_of(site, batch)
    position = _beginning(batch, condition)
    told = None if condition is None else condition.after
    heads = yield from _heads(site, shares, position, told)
    extending = True
    while True:
        if condition is not None:
            found = yield from _in_the_way(site, condition, position, heads)
            if found.events:
                stored = yield from stored_before(site, batch)
                return TaggedAppended(events=stored, position=position, replayed=True) if stored else found
            position = found.position
        plan = yield from _planned(site, batch, shares, heads, tuple(position.seen), extending=extending)
        if not isinstance(plan, _Plan):
            heads |= plan
            continue
        reply = yield _sent(plan)
        if isinstance(reply, Overflow):
            if not extending:
                raise TooLarge("events", max(each.token.size for each in plan.writes.values()), ITEM_BYTES)
            extending = False
            continue
        if isinstance(reply, Done) or (yield from _was_made(site, plan, reply)):
            own = own_tags(batch.events)
            return TaggedAppended(
                events=batch.recorded(plan.stamp),
                position=_moved(position, heads, shares, plan, tuple(position.seen) if condition else own),
                versions={tag: plan.writes[tag].token.version for tag in own},
            )
        stored = yield from stored_before(site, batch)
        if stored:
            return TaggedAppended(events=stored, position=position, replayed=True)
        heads |= yield from _came_back(site, plan, reply)
        extending = True


def _sent(plan: _Plan) -> TransactionWrite | Transact:
    return plan.all[0] if len(plan.all) == 1 else Transact(writes=plan.all)


def _beginning(batch: TaggedBatch, condition: Condition | None) -> Position:
    """Where the condition counts from: without a position every match is in its way."""
    if condition is None:
        return Position()
    fence, after = condition.fence, condition.after
    if after is None:
        return Position(seen={tag: Reached() for tag in fence.all_tags}, items=fence.marks)
    check_covered(after, fence)
    # A chain of appends, each after the position of the one before, would gather the heads of all their tags.
    wanted = {tag for event in batch.events for tag in event.tags}.union(
        *(item.tags for item in fence.query.items)
    )
    return Position(
        seen={tag: after.seen[tag] for tag in fence.all_tags},
        heads={tag: reached for tag, reached in after.heads.items() if tag in wanted},
        items=fence.marks,
    )


def _heads(
    site: TagStreams, shares: list[TagShare], position: Position, told: Position | None
) -> Steps[dict[str, _Head]]:
    """The last page of every tag concerned: as a position tells, the others read."""
    wanted = dict.fromkeys((*(share.tag for share in shares), *position.seen))
    reached = {} if told is None else {**told.heads, **told.seen}
    known = {tag: reached[tag] for tag in wanted if tag in reached and _tells(reached[tag])}
    read = yield from heads_of(site, [tag for tag in wanted if tag not in known])
    heads = {tag: _Head(page=each.token, reached=each) for tag, each in known.items()}
    return heads | {tag: _Head(page=page, reached=reached_by(page)) for tag, page in read.items()}


def _tells(reached: Reached) -> bool:
    """Whether a position says which page is the last, or that there is none: it may come from outside."""
    token = reached.token
    if token is None:
        return not reached.count
    return token.version == reached.count > 0 and place_of(token) is not None


def _in_the_way(
    site: TagStreams, condition: Condition, position: Position, heads: Mapping[str, _Head]
) -> Steps[TaggedConflict]:
    """What matches between a position and how far the tags have got, as much of it as is wanted."""
    until = {tag: heads[tag].reached for tag in position.seen}
    moved = [tag for tag, reached in position.seen.items() if reached != until[tag]]
    if not moved:
        return TaggedConflict(events=(), position=replace(position, seen=until))
    for tag in moved:
        if position.seen[tag].count >= until[tag].count:
            raise altered(tag, "after")
    if condition.takes is not None:
        reads = PageReads(site=site, fenced=condition.fence)
        return (yield from first_in_the_way(reads, position, until, condition.takes))
    cursors = {
        tag: stand(page, max(0, position.seen[tag].count - 1))
        for tag in moved
        if isinstance(page := heads[tag].page, Page)
    }
    new = yield from matches(site, condition.fence, position.seen, until, cursors)
    return TaggedConflict(events=new, position=replace(position, seen=until))


def _planned(
    site: TagStreams,
    batch: TaggedBatch,
    shares: list[TagShare],
    heads: Mapping[str, _Head],
    fences: tuple[str, ...],
    *,
    extending: bool,
) -> Steps[_Plan | dict[str, _Head]]:
    """What goes out on these pages; or the head of a tag that turns out to be another."""
    last = [place.time for share in shares if (place := _place(heads[share.tag].page)) is not None]
    above = max(last, default=Ticks(0))
    while True:
        writes = dict[str, Planned]()
        pages = dict[str, int]()
        for share in shares:
            packed = replace(share.on(batch, pages), above=above)
            planned = yield from next_write(site.table, packed, heads[share.tag].page, extending=extending)
            if isinstance(planned, Blocked):
                head = yield from head_from(site.table, packed.stream, planned.page)
                return {share.tag: _Head(page=head, reached=reached_by(head))}
            writes[share.tag] = planned
            pages[share.tag] = index_of(planned.token)
        highest = max(time_of(each.stamp) for each in writes.values())
        if all(time_of(each.stamp) == highest for each in writes.values()):
            break
        # A page had to be closed first, which took a stamp of its own.
        above = Ticks(highest - 1)
    checks = dict[str, Check]()
    for tag in fences:
        if tag not in writes:
            check = yield from _fence(site, tag, heads[tag])
            if not isinstance(check, Check):
                return {tag: check}
            checks[tag] = check
    return _Plan(writes=writes, checks=checks, records=tuple(_records(site, batch, shares, writes)))


def _place(known: Known[Page]) -> PageState | None:
    return None if known is None else place_of(known)


def _fence(site: TagStreams, tag: str, head: _Head) -> Steps[Check | _Head]:
    """That no event has been added to a tag."""
    stream, known = stream_of(tag), head.page
    place = _place(known)
    if place is None:
        return _check(site, page_key(stream, 0), Absent("i"))
    if not place.full:
        return _check(site, page_key(stream, place.index), unchanged(place, version_of(known)))
    if known is not None and is_own(site.table, stream, known):
        return _check(site, page_key(stream, version_of(known)), Absent("i"))
    # That nothing is at a place says what it shall only where a page ends there.
    page = (yield from heads_of(site, [tag]))[tag]
    return _Head(page=page, reached=reached_by(page))


def _check(site: TagStreams, key: Key, condition: Holds) -> Check:
    return Check(table=site.table, key=key, condition=condition)


def _records(
    site: TagStreams, batch: TaggedBatch, shares: list[TagShare], writes: Mapping[str, Planned]
) -> list[Put]:
    """Of the ids that the caller chose: where their events will be."""
    found: list[Put] = []
    for share in shares:
        first = writes[share.tag].token.version - len(share.numbers)
        for offset, (number, tag) in enumerate(zip(share.numbers, share.firsts, strict=True)):
            event_id = batch.events[number].id
            if tag == share.tag and event_id is not None:
                found.append(id_record(site.table, event_id, tag, first + offset))
    return found


def _was_made(site: TagStreams, plan: _Plan, reply: Refusal) -> Steps[bool]:
    """Whether an earlier try of what was refused has been applied.

    A refusal may leave out pages that another transaction was at; one of ours is asked for, if none of them came.
    """
    own = list(zip(plan.writes.values(), reply.items, reply.failed, strict=False))
    came = [item for _, item, failed in own if failed]
    if reply.ambiguous and not came:
        found: Together = yield TransactGet(keys=((site.table, _key(own[0][0])),))
        came = list(found.items)
    made = any(_holds(site, item, plan.stamp) for item in came)
    if made:
        # DynamoDB may still be at it: whoever is told that it was made shall find it under every tag.
        yield from settled((site.table, _key(each)) for each in plan.writes.values())
    return made


def _key(planned: Planned) -> Key:
    write = planned.write
    return {name: (write.item if isinstance(write, Put) else write.key)[name] for name in ("p", "i")}


def _holds(site: TagStreams, item: Item | None, stamp: bytes) -> bool:
    return item is not None and any(frame.stamp == stamp for frame in read_page(item, site.table).frames)


def _came_back(site: TagStreams, plan: _Plan, reply: Refusal) -> Steps[dict[str, _Head]]:
    """The last pages of the tags that something stood in the way of."""
    heads = dict[str, _Head]()
    tags = (*plan.writes, *plan.checks)
    for tag, item, failed in zip(tags, reply.items, reply.failed, strict=False):
        if failed:
            page = None if item is None else read_page(item, site.table)
            head = yield from head_from(site.table, stream_of(tag), page)
            heads[tag] = _Head(page=head, reached=reached_by(head))
    return heads


def _moved(
    position: Position,
    heads: Mapping[str, _Head],
    shares: list[TagShare],
    plan: _Plan,
    tags: tuple[str, ...],
) -> Position:
    """The condition's position, past the append; without a condition, where the append is in its `tags`."""
    now = {tag: head.reached for tag, head in heads.items()}
    events = {share.tag: share.numbers[-1] for share in shares}
    for tag, planned in plan.writes.items():
        last = sortable_id_of(plan.stamp, events[tag])
        now[tag] = Reached(planned.token.version, last, planned.token)
    seen = {tag: now[tag] for tag in tags}
    return Position(seen=seen, heads={tag: now[tag] for tag in now if tag not in seen}, items=position.items)
