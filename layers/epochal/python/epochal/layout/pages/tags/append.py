"""Appending tagged events, if nothing that matches a query has been appended since a position: one commit (`commit`).

A tag is a stream of pages. What an append gives to each tag is a write, the tags that fence its condition are fences,
and ids that the caller chose are records. All pages get it under one stamp, above the last of each: that is its place
in the order of events.

    an id's record is there            appended before: the contents must agree
    a fence moved, with a new match    conflict, with the matching events
    anything else                      again, on the pages that came back

Tags are never pruned, and a page that holds a stamp holds it for good. So whether a try was made is always told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from epochal.layout.fences import Condition, check_covered
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.commit import Commit, Heads, Made, Writes, commit
from epochal.layout.pages.items import Page
from epochal.layout.pages.reading import stand
from epochal.layout.pages.tags.batch import TaggedBatch, TagShare, shares_of
from epochal.layout.pages.tags.entries import reached_by
from epochal.layout.pages.tags.identities import stored_before
from epochal.layout.pages.tags.labels import sortable_id_of
from epochal.layout.pages.tags.reading import altered, heads_of, matches
from epochal.layout.pages.tags.reads import PageReads
from epochal.layout.pages.tags.site import TagStreams, id_record, stream_of
from epochal.layout.pages.writes import Planned, index_of, place_of
from epochal.layout.reads import first_in_the_way
from epochal.layout.streams import Known
from epochal.model.dcb import Position, Reached, own_tags
from epochal.model.names import TAG_STREAMS
from epochal.model.tagged_results import TaggedAppended, TaggedConflict
from epochal.plan.ops import Put, Refusal, Steps

_End = TaggedAppended | TaggedConflict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What is known of a tag's last page, and how far the tag has got with it."""

    page: Known[Page]
    reached: Reached


def append(
    site: TagStreams, batch: TaggedBatch, condition: Condition | None = None
) -> Steps[TaggedAppended | TaggedConflict]:
    """Append `batch`.

    Raises:
        InvalidInput: an id exists with other contents, or only some of the ids exist; the position is of another query,
            or of another store.
        TooLarge: the events fit no item, or no transaction.
    """
    shares = {share.tag: share for share in shares_of(site, batch)}
    position = _beginning(batch, condition)
    wanted = list(dict.fromkeys((*shares, *position.seen)))
    known = _known(wanted, None if condition is None else condition.after)
    read = yield from heads_of(site, [tag for tag in wanted if tag not in known])
    append = _Append(
        site=site, batch=batch, shares=shares, condition=condition, position=position, heads=known
    )
    came = yield from commit(
        append.commit,
        {stream_of(tag): head.page for tag, head in known.items()},
        {stream_of(tag): page for tag, page in read.items()},
    )
    return append.made(came.writes) if isinstance(came, Made) else came


@dataclass(slots=True, kw_only=True)
class _Append:
    """An append in the middle of its tries.

    Attributes:
        shares: what each tag gets.
        position: up to which nothing is in the condition's way.
        heads: the last page of every tag concerned.
    """

    site: TagStreams
    batch: TaggedBatch
    shares: dict[str, TagShare]
    condition: Condition | None
    position: Position
    heads: dict[str, _Head]

    @property
    def commit(self) -> Commit[_End]:
        """As a commit."""
        writes = tuple(map(stream_of, self.shares))
        fences = tuple(stream_of(tag) for tag in self.position.seen if tag not in self.shares)
        return Commit(
            table=self.site.table,
            writes=writes,
            batch=self.share,
            fences=fences,
            matters=self.matters,
            records=self.records,
            before=self.before,
            lasting=frozenset(writes),
            one_stamp=True,
        )

    def share(self, stream: str, writes: Writes) -> Packed:
        """What a tag gets, where the bodies are on these pages."""
        pages = {_tag_of(each): index_of(planned.token) for each, planned in writes.items()}
        return self.shares[_tag_of(stream)].on(self.batch, pages)

    def matters(self, moved: Heads) -> Steps[_End | None]:
        """What matches the condition and is new on the pages that moved."""
        self.heads |= {
            _tag_of(stream): _Head(page=page, reached=reached_by(page)) for stream, page in moved.items()
        }
        if self.condition is None:
            return None
        found = yield from _in_the_way(self.site, self.condition, self.position, self.heads)
        if found.events:
            return (yield from self._stored_before()) or found
        self.position = found.position
        return None

    def records(self, writes: Writes) -> Sequence[Put]:
        """Of the ids that the caller chose: where their events will be."""
        found: list[Put] = []
        for tag, share in self.shares.items():
            first = writes[stream_of(tag)].first
            for offset, (number, body) in enumerate(zip(share.numbers, share.firsts, strict=True)):
                event_id = self.batch.events[number].id
                if body == tag and event_id is not None:
                    found.append(id_record(self.site.table, event_id, tag, first + offset))
        return found

    def before(self, _writes: Writes, _refusal: Refusal) -> Steps[_End | None]:
        """The events as they are stored, if their ids are there."""
        return (yield from self._stored_before())

    def made(self, writes: Writes) -> TaggedAppended:
        """What is told of it."""
        stamp, own = next(iter(writes.values())).stamp, own_tags(self.batch.events)
        planned = {_tag_of(stream): each for stream, each in writes.items()}
        return TaggedAppended(
            events=self.batch.recorded(stamp),
            position=self._moved(planned, own if self.condition is None else tuple(self.position.seen)),
            versions={tag: planned[tag].token.version for tag in own},
        )

    def _stored_before(self) -> Steps[TaggedAppended | None]:
        stored = yield from stored_before(self.site, self.batch)
        return TaggedAppended(events=stored, position=self.position, replayed=True) if stored else None

    def _moved(self, writes: Mapping[str, Planned], tags: Sequence[str]) -> Position:
        """The condition's position, past the append; without a condition, where the append is in its `tags`."""
        now = {tag: head.reached for tag, head in self.heads.items()}
        for tag, planned in writes.items():
            last = sortable_id_of(planned.stamp, self.shares[tag].numbers[-1])
            now[tag] = Reached(planned.token.version, last, planned.token)
        seen = {tag: now[tag] for tag in tags}
        heads = {tag: now[tag] for tag in now if tag not in seen}
        return Position(seen=seen, heads=heads, items=self.position.items)


def _tag_of(stream: str) -> str:
    return stream.removeprefix(TAG_STREAMS)


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


def _known(tags: Sequence[str], told: Position | None) -> dict[str, _Head]:
    """The last pages of those tags of which a position tells them."""
    reached = {} if told is None else {**told.heads, **told.seen}
    return {
        tag: _Head(page=each.token, reached=each)
        for tag in tags
        if (each := reached.get(tag)) is not None and _tells(each)
    }


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
