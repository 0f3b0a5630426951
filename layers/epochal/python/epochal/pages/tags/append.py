"""Appending tagged events, also under a condition that no new event matches a query, as one commit (`commit`).

A tag is a stream of pages. An append writes to the stream of each of its tags, checks the tags that fence its
condition, and writes a record for each id that the caller chose. All pages get the same stamp, above the last one of
each: it is the place of the append in the order of all events.

    an id's record exists                the events were appended before: the contents must be the same
    a fence moved and has a new match    a conflict, with the matching events
    anything else                        a retry on the pages that came back

Tags are never pruned, and a page keeps every stamp. So it can always be told whether a try was applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from epochal.layout.queries import AppendCondition, check_covered
from epochal.layout.query_reads import first_in_the_way
from epochal.layout.streams import (
    Known,
)
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.positions import Position, Reached
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import own_tags
from epochal.pages.batch import Packed
from epochal.pages.commit import Commit, Heads, Tries, Writes, run_commit
from epochal.pages.items import Page
from epochal.pages.reading import cursor_at
from epochal.pages.tags.batch import TagShare, recorded_events, shares_of
from epochal.pages.tags.entries import id_record, reached_by, stamped_place, stream_of
from epochal.pages.tags.ids import stored_before
from epochal.pages.tags.reading import PageReads, foreign_position_error, matches
from epochal.pages.writes import Planned, index_of, known_state
from epochal.plan.ops import Put, Refusal, Steps

MOST_READ: Final = 20_000
"""Largest number of a tag's events that a condition without a position reads: 1,300 read units, and a second of CPU.
Without this limit, appends would become slower as the tag grows, and time out one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What is known of a tag's last page, and the end of the tag with that page."""

    page: Known[Page]
    reached: Reached


def append(
    site: TagStreams, batch: TaggedBatch, condition: AppendCondition | None = None
) -> Steps[Appended | Conflict]:
    """Append tagged events, unless a new event matches the condition; return the result or the conflict.

    Raises:
        InvalidInput: an id exists with other contents, or only some of the ids exist; the position is of another query,
            or of another store.
        TooLarge: the events fit no item, or no transaction.
    """
    part = TagsPart.of(site, batch, condition)
    outcome = (yield from run_commit(part.commit, part)).outcome
    assert not isinstance(outcome, Undetermined)  # noqa: S101  tags are never pruned
    if isinstance(outcome, Conflict) and outcome.unmet:
        return replace(outcome, position=part.position)
    return outcome


@dataclass(slots=True, kw_only=True)
class TagsPart:
    """The part of a commit for tags, with its state between tries.

    Attributes:
        site: the table of tags.
        tagged: the events that are appended.
        shares: the part of the batch that each tag gets, by tag.
        condition: the append condition; None if there is none.
        position: position up to which no event conflicts with the condition.
        heads: what is known of the last page of each tag that is written or checked, by tag.
    """

    site: TagStreams
    tagged: TaggedBatch
    shares: dict[str, TagShare]
    condition: AppendCondition | None
    position: Position
    heads: dict[str, _Head]

    @classmethod
    def of(cls, site: TagStreams, batch: TaggedBatch, condition: AppendCondition | None) -> TagsPart:
        """Make the part of a commit that appends a batch under a condition, with the last pages known so far."""
        shares = {share.tag: share for share in shares_of(site, batch)}
        position = _beginning(batch, condition)
        tags = dict.fromkeys((*shares, *position.seen))
        heads = _heads_in(tags, None if condition is None else condition.after, batch.ends)
        return cls(
            site=site, tagged=batch, shares=shares, condition=condition, position=position, heads=heads
        )

    @property
    def commit(self) -> Commit:
        """Commit that writes to the tags of the events and checks the other tags of the condition."""
        writes = tuple(map(stream_of, self.shares))
        fences = tuple(stream_of(tag) for tag in self.position.seen if tag not in self.shares)
        return Commit(
            table=self.site.table,
            known_heads={stream_of(tag): head.page for tag, head in self.heads.items()},
            writes=writes,
            fences=fences,
            lasting=frozenset(writes),
            one_stamp=True,
            also=self.tagged.also,
        )

    def batch(self, stream: str, writes: Writes) -> Packed:
        """Return the batch for the stream of a tag, given the planned writes to the streams before it.

        From these it takes the pages of bodies on other tags, and the indices of events in named streams.
        """
        pages = {tag: index_of(planned.token) for tag, planned in _of_tags(writes).items()}
        homes = {name: planned.first for name, planned in writes.items() if not name.startswith(TAG_STREAMS)}
        return self.shares[_tag_of(stream)].on(self.tagged, pages, homes)

    def ending(self, moved: Heads, tries: Tries) -> Steps[Outcome | None]:  # noqa: ARG002  the stamp tells of tries
        """Return a conflict with new matching events, or the earlier append of the ids; None to go on.

        The earlier append is returned if the ids of the batch exist already.
        """
        self.heads |= {
            _tag_of(stream): _Head(page=page, reached=reached_by(page)) for stream, page in moved.items()
        }
        if self.condition is None:
            return None
        conflicts = yield from _in_the_way(self.site, self.condition, self.position, self.heads)
        if conflicts.events:
            return (yield from self._stored_before()) or conflicts
        self.position = conflicts.position
        return None

    def records(self, writes: Writes) -> Sequence[Put]:
        """Make the writes of the records of ids that the caller chose, with the places of their events."""
        puts: list[Put] = []
        for tag, share in self.shares.items():
            first = writes[stream_of(tag)].first
            for offset, (number, body) in enumerate(zip(share.numbers, share.firsts, strict=True)):
                event_id = self.tagged.events[number].id
                if body == tag and event_id is not None:
                    puts.append(id_record(self.site.table, event_id, tag, first + offset, self.tagged.beside))
        return puts

    def load_earlier_outcome(self, writes: Writes, refusal: Refusal, tries: Tries) -> Steps[Outcome | None]:  # noqa: ARG002  ids tell
        """Return the outcome of an earlier append of the batch, if its ids exist; None otherwise."""
        return (yield from self._stored_before())

    def appended(self, writes: Writes) -> Appended:
        """Make the outcome of the applied append: the events with tags, the new position and the counts."""
        own = tuple(tag for tag in own_tags(self.tagged.events) if tag in self.shares)
        planned = _of_tags(writes)
        events = recorded_events(self.tagged, next(iter(writes.values())).stamp)
        if self.tagged.homes:
            events = tuple(
                replace(event, stream=stream, index=writes[stream].first + index)
                for event, (stream, index) in zip(events, self.tagged.homes, strict=True)
                if event.tags
            )
        return Appended(
            events=events,
            position=self._moved(planned, own if self.condition is None else tuple(self.position.seen)),
            versions={tag: planned[tag].token.version for tag in own},
        )

    def _stored_before(self) -> Steps[Appended | None]:
        stored = yield from stored_before(self.site, self.tagged)
        return Appended(events=stored, position=self.position, replayed=True) if stored else None

    def _moved(self, writes: Mapping[str, Planned], tags: Sequence[str]) -> Position:
        """Return the position of `tags` after the append; its `heads` have the other tags of the commit."""
        now = {tag: head.reached for tag, head in self.heads.items()}
        for tag, planned in writes.items():
            last = stamped_place(planned.stamp, self.shares[tag].numbers[-1])
            now[tag] = Reached(planned.token.version, last, planned.token)
        reached = {tag: now[tag] for tag in tags}
        heads = {tag: now[tag] for tag in now if tag not in reached}
        return Position(seen=reached, heads=heads, items=self.position.items)


def _tag_of(stream: str) -> str:
    return stream.removeprefix(TAG_STREAMS)


def _of_tags(writes: Writes) -> Writes:
    """Return the writes to streams of tags, by tag."""
    return {_tag_of(stream): write for stream, write in writes.items() if stream.startswith(TAG_STREAMS)}


def _beginning(batch: TaggedBatch, condition: AppendCondition | None) -> Position:
    """Return the position after which a match is a conflict; without `after` it is the beginning."""
    if condition is None:
        return Position()
    fence, after = condition.fence, condition.after
    if after is None:
        return Position(seen={tag: Reached() for tag in fence.all_tags}, items=fence.marks)
    check_covered(after, fence)
    # Keep only heads of tags in use: a chain of appends, each after the last position, would gather ever more heads.
    tags = {tag for event in batch.events for tag in event.tags}.union(
        *(item.tags for item in fence.query.items)
    )
    return Position(
        seen={tag: after.seen[tag] for tag in fence.all_tags},
        heads={tag: reached for tag, reached in after.heads.items() if tag in tags},
        items=fence.marks,
    )


def _heads_in(
    tags: Iterable[str], position: Position | None, ends: Mapping[str, Reached]
) -> dict[str, _Head]:
    """Return the last page known of each tag: the position's, or the end that the process left if later."""
    reached = {} if position is None else {**position.heads, **position.seen}
    reached |= {tag: end for tag, end in ends.items() if tag not in reached or end.count > reached[tag].count}
    return {
        tag: _Head(page=head.token, reached=head)
        for tag in tags
        if (head := reached.get(tag)) is not None and _names_head(head)
    }


def _names_head(reached: Reached) -> bool:
    """Return whether a tag's end in a position names the last page, or says that there is none.

    A position may come from outside, so its token is checked.
    """
    token = reached.token
    if token is None:
        return not reached.count
    return token.version == reached.count > 0 and known_state(token) is not None


def _in_the_way(
    site: TagStreams, condition: AppendCondition, position: Position, heads: Mapping[str, _Head]
) -> Steps[Conflict]:
    """Read the new matches between a position and the heads; return them as a conflict.

    A conflict without events has the position up to which there is no match.
    """
    until = {tag: heads[tag].reached for tag in position.seen}
    moved = [tag for tag, reached in position.seen.items() if reached != until[tag]]
    if not moved:
        return Conflict(events=(), position=replace(position, seen=until))
    for tag in moved:
        if position.seen[tag].count >= until[tag].count:
            raise foreign_position_error(tag, "after")
    most = MOST_READ if condition.after is None else None
    if condition.takes is not None or (most is not None and any(until[tag].count > most for tag in moved)):
        reads = PageReads(site=site, fenced=condition.fence)
        takes = condition.takes or (lambda _: True)
        return (yield from first_in_the_way(reads, position, until, takes, most))
    cursors = {
        tag: cursor_at(page, max(0, position.seen[tag].count - 1))
        for tag in moved
        if isinstance(page := heads[tag].page, Page)
    }
    new = yield from matches(site, condition.fence, position.seen, until, cursors)
    return Conflict(events=new, position=replace(position, seen=until))
