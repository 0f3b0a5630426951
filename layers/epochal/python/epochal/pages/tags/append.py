"""Appending tagged events, also under a condition that no new event matches a query, as one commit (`commit`).

A tag is a stream of pages. An append writes to the stream of each of its tags, checks the tags that fence its
condition, and writes a record for each id that the caller chose. All pages get the same stamp, above the last one of
each: it is the place of the append in the order of all events.

    an id's record exists                the events were appended before: the contents must be the same
    a fence moved and has a new match    a conflict, with the matching events
    anything else                        a retry on the pages that came back

Tags are never pruned, and a page keeps every stamp. So it can always be told whether a try was applied.

The pages of an event's tags store its body as follows:

    the first tag of an event   the body
    its other tags              a copy of the body; or, if the page would get much, a reference to the first tag's page

A copy costs two write units per KB, and storage; a reference costs each reader of that tag another read. So small
bodies, which most are, are copied, and a tag is read without a second request.

The record of an id that a caller chose says where the event is. It is written with the event, so that the event is
appended only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from epochal.codec.bodies import EMPTY, Encoded, decode
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.layout.key_records import KeyRecord, RecordContents, check_contents
from epochal.layout.outcomes import combine_outcomes
from epochal.layout.queries import Condition, IdTaken, check_covered
from epochal.layout.query_reads import first_in_the_way
from epochal.layout.streams import (
    Also,
    Batch,
    EncodedEvent,
    Known,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Event, Recorded
from epochal.model.moments import Ticks, format_ticks, unix_seconds
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import own_tags, repeats
from epochal.model.versions import (
    Appended,
    Conflict,
    ExpectedVersion,
    Outcome,
    Position,
    Reached,
    Undetermined,
)
from epochal.pages.appending import is_new, outcome_under_key
from epochal.pages.batch import AHEAD, Packed, packed
from epochal.pages.commit import Commit, Heads, Tries, Writes, run_commit
from epochal.pages.frames import time_of
from epochal.pages.items import Page, page_key, read_page
from epochal.pages.keyed_appends import commit_or_search
from epochal.pages.reading import load_head, query, stand
from epochal.pages.several_key import SeveralKey
from epochal.pages.streams_part import StreamsPart
from epochal.pages.tags.entries import (
    EventOfTag,
    Label,
    TagStreams,
    beside_of,
    entries_of,
    event_id,
    id_key,
    id_record,
    placed,
    reached_by,
    read_id_record,
    recorded_all,
    stamped_place,
    stream_of,
)
from epochal.pages.tags.reading import PageReads, altered, matches
from epochal.pages.writes import Planned, index_of, place_of
from epochal.plan.batches import settled
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.ops import Put, Refusal, Steps
from epochal.plan.values import Item

MOST_READ: Final = 20_000
"""Largest number of a tag's events that a condition without a position reads: 1,300 read units, and a second of CPU.
Without this limit, appends would become slower as the tag grows, and time out one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What is known of a tag's last page, and the end of the tag with that page."""

    page: Known[Page]
    reached: Reached


def append(
    site: TagStreams, batch: TaggedBatch, condition: Condition | None = None
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
    condition: Condition | None
    position: Position
    heads: dict[str, _Head]

    @classmethod
    def of(cls, site: TagStreams, batch: TaggedBatch, condition: Condition | None) -> TagsPart:
        """Make the part of a commit that appends a batch under a condition, whose position names last pages."""
        shares = {share.tag: share for share in shares_of(site, batch)}
        position = _beginning(batch, condition)
        tags = dict.fromkeys((*shares, *position.seen))
        heads = _known(tags, None if condition is None else condition.after)
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
            known={stream_of(tag): head.page for tag, head in self.heads.items()},
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
        homes = {each: planned.first for each, planned in writes.items() if not each.startswith(TAG_STREAMS)}
        return self.shares[_tag_of(stream)].on(self.tagged, pages, homes)

    def ending(self, moved: Heads, tries: Tries) -> Steps[Outcome | None]:  # noqa: ARG002  the stamp tells of tries
        """Return the conflict if the tags that moved have a new event that matches the condition.

        Or return the earlier append, if the ids of the batch exist; None if the commit may go on.
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

    def earlier(self, writes: Writes, refusal: Refusal, tries: Tries) -> Steps[Outcome | None]:  # noqa: ARG002  ids tell
        """Return the outcome of an earlier append of the batch, if its ids exist; None otherwise."""
        return (yield from self._stored_before())

    def appended(self, writes: Writes) -> Appended:
        """Make the outcome of the applied append: the events with tags, the new position and the counts."""
        own = tuple(tag for tag in own_tags(self.tagged.events) if tag in self.shares)
        planned = _of_tags(writes)
        events = self.tagged.recorded(next(iter(writes.values())).stamp)
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


def _beginning(batch: TaggedBatch, condition: Condition | None) -> Position:
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


def _known(tags: Iterable[str], told: Position | None) -> dict[str, _Head]:
    """Return the last pages of these tags that a position names."""
    reached = {} if told is None else {**told.heads, **told.seen}
    return {
        tag: _Head(page=head.token, reached=head)
        for tag in tags
        if (head := reached.get(tag)) is not None and _tells(head)
    }


def _tells(reached: Reached) -> bool:
    """Whether a tag's end in a position names the last page, or says that there is none.

    A position may come from outside, so its token is checked.
    """
    token = reached.token
    if token is None:
        return not reached.count
    return token.version == reached.count > 0 and place_of(token) is not None


def _in_the_way(
    site: TagStreams, condition: Condition, position: Position, heads: Mapping[str, _Head]
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
            raise altered(tag, "after")
    most = MOST_READ if condition.after is None else None
    if condition.takes is not None or (most is not None and any(until[tag].count > most for tag in moved)):
        reads = PageReads(site=site, fenced=condition.fence)
        takes = condition.takes or (lambda _: True)
        return (yield from first_in_the_way(reads, position, until, takes, most))
    cursors = {
        tag: stand(page, max(0, position.seen[tag].count - 1))
        for tag in moved
        if isinstance(page := heads[tag].page, Page)
    }
    new = yield from matches(site, condition.fence, position.seen, until, cursors)
    return Conflict(events=new, position=replace(position, seen=until))


REFERRED_FROM: Final = 1_024
"""Bytes of a compressed frame from which a tag stores references to bodies on other tags' pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedBatch:
    """The tagged events of one append, all or nothing.

    Attributes:
        events: the events, at least one; an event has an id only if the caller chose it.
        bodies: stored data and metadata of each event.
        now: time of the writer's clock.
        append_id: 16 random bytes, the same for all tries.
        etag: 32 random hex digits, the same for all tries.
        dated: whether an event has a timestamp of its own that equals the writer's clock.
        homes: for each event, the named stream that it is appended to and its place among that stream's new events;
            empty without named streams. With a home, an event without tags is stored in its home only.
        also: writes to the program's own tables in the same transaction.
        beside: digest of `also`, 8 bytes, stored in the records of the ids; empty without `also`.
    """

    events: tuple[Event, ...]
    bodies: tuple[tuple[Encoded, Encoded], ...]
    now: Ticks
    append_id: bytes
    etag: str
    dated: bool = False
    homes: tuple[tuple[str, int], ...] = ()
    also: Also = ()
    beside: bytes = b""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids that the caller chose."""
        return tuple(event.id for event in self.events if event.id is not None)

    def recorded(self, stamp: bytes) -> tuple[Recorded, ...]:
        """Return the events as an append with this stamp stores them."""
        time = time_of(stamp)
        moment = format_ticks(time if time - self.now <= (0 if self.dated else AHEAD) else self.now)
        return tuple(
            Recorded(
                id=event_id(stamp, Label(number=number, id=event.id)),
                place=stamped_place(stamp, number),
                type=event.type,
                data=event.data,
                meta=event.meta,
                tags=tuple(sorted(set(event.tags))),
                timestamp=event.timestamp or moment,
                causation_id=event.causation_id,
                correlation_id=event.correlation_id,
            )
            for number, event in enumerate(self.events)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagShare:
    """The part of an append that the stream of one tag gets.

    Attributes:
        tag: the tag.
        numbers: numbers of its events within the append.
        firsts: first tag of each of these events, whose page has the body.
        whole: batch of these events with all bodies; None if they have homes, whose indices are not known yet.
    """

    tag: str
    numbers: tuple[int, ...]
    firsts: tuple[str, ...]
    whole: Packed | None

    def on(self, batch: TaggedBatch, pages: Mapping[str, int], homes: Mapping[str, int]) -> Packed:
        """Return the batch for the tag's stream, with references instead of bodies if it is large.

        Args:
            pages: by first tag, the index of the page that gets the bodies.
            homes: by named stream, the index of the first event that it gets.
        """
        complete = self.whole or _whole(batch, self.tag, self.numbers, homes)
        if len(complete.content.data) < REFERRED_FROM or set(self.firsts) == {self.tag}:
            return complete
        own = zip(self.numbers, self.firsts, strict=True)
        events = [
            _stored(batch, number, self.tag, None if first == self.tag else pages[first], homes)
            for number, first in own
        ]
        return _packed(batch, self.tag, events)


def shares_of(site: TagStreams, batch: TaggedBatch) -> list[TagShare]:
    """Split a batch into the parts of its tags; parts that others refer to for bodies come first."""
    numbers = dict[str, list[int]]()
    tags = [
        site.tags_of(event.type, event.tags) if event.tags or not batch.homes else ()
        for event in batch.events
    ]
    for number, each in enumerate(tags):
        for tag in each:
            numbers.setdefault(tag, []).append(number)
    return [
        TagShare(
            tag=tag,
            numbers=tuple(numbers[tag]),
            firsts=tuple(tags[number][0] for number in numbers[tag]),
            whole=None if batch.homes else _whole(batch, tag, numbers[tag], {}),
        )
        for tag in sorted(numbers, key=lambda tag: (tag.startswith("$"), tag))
    ]


def _whole(batch: TaggedBatch, tag: str, numbers: Sequence[int], homes: Mapping[str, int]) -> Packed:
    return _packed(batch, tag, [_stored(batch, number, tag, None, homes) for number in numbers])


def _packed(batch: TaggedBatch, tag: str, events: Sequence[EncodedEvent]) -> Packed:
    return packed(
        Batch(
            stream=stream_of(tag),
            events=tuple(events),
            etag=batch.etag,
            append_id=batch.append_id,
            now=batch.now,
            dated=batch.dated,
        )
    )


def _stored(
    batch: TaggedBatch, number: int, tag: str, page: int | None, homes: Mapping[str, int]
) -> EncodedEvent:
    event, (data, meta) = batch.events[number], batch.bodies[number]
    is_new, home = page is None, batch.homes[number] if batch.homes else None
    label = Label(
        number=number,
        others=tuple(sorted(set(event.tags) - {tag})),
        id=event.id,
        page=page,
        home=None if home is None else (home[0], homes[home[0]] + home[1]),
        meta=meta if is_new else EMPTY,
    )
    return EncodedEvent(
        type=event.type,
        data=data if is_new else EMPTY,
        meta=label.encoded(),
        timestamp=event.timestamp or format_ticks(batch.now),
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
    )


def stored_before(site: TagStreams, batch: TaggedBatch) -> Steps[tuple[Recorded, ...]]:
    """Return the stored events of a batch whose ids exist already; empty if no id exists.

    Raises:
        InvalidInput: an id exists with other contents, or only some of the ids exist.
    """
    if not batch.ids:
        return ()
    records = yield from _records(site, batch.ids)
    if any(beside_of(record) != batch.beside for record in records):
        raise IdTaken("events", "ids exist, and something else went with their events")
    found = yield from _of_records(site, records)
    for event, bodies in zip(batch.events, batch.bodies, strict=True) if found else ():
        stored = found.get(event.id or "")
        if stored is None:
            raise IdTaken(
                "events", f"some of the ids exist and {event.id or 'an event without one'} does not"
            )
        if not repeats(event, decode(bodies[0]), stored):
            raise IdTaken("events", f"the id {event.id} exists with other contents")
    return tuple(found[event.id or ""] for event in batch.events if found)


def events_by_id(site: TagStreams, ids: Iterable[str]) -> Steps[dict[str, Recorded]]:
    """Read events by ids that callers chose; ids without an event are missing in the result."""
    return (yield from _of_records(site, (yield from _records(site, ids))))


def _records(site: TagStreams, ids: Iterable[str]) -> Steps[list[Item]]:
    items: list[Item] = []
    # If a record exists, its event is visible, too, once no append of them is under way.
    for read in settled((site.table, id_key(own_id)) for own_id in dict.fromkeys(ids)):
        reply = yield read
        items += [item for item in reply.items if item is not None]
    return items


def _of_records(site: TagStreams, items: Iterable[Item]) -> Steps[dict[str, Recorded]]:
    entries: list[EventOfTag] = []
    for item in items:
        event_id, stream, index = read_id_record(item)
        entry, last = yield from _entry(site, stream, index)
        if entry is None:
            # The append may still be under way, although its record exists. It writes to this page or to the next one.
            places = (0,) if last is None else (last.index, last.version)
            yield from settled((site.table, page_key(stream, place)) for place in dict.fromkeys(places))
            entry, _ = yield from _entry(site, stream, index)
        if entry is None or entry.id != event_id:
            raise CorruptData(f"the event {event_id} is not where its record says")
        entries.append(entry)
    events = yield from recorded_all(site, entries)
    return {event.id: placed(event, entry) for event, entry in zip(events, entries, strict=True)}


def _entry(site: TagStreams, stream: str, index: int) -> Steps[tuple[EventOfTag | None, Page | None]]:
    """Read the event of a tag's stream at an index; return it with the last page that begins by then."""
    reply = yield query(site.table, stream, 0, index, forward=False, limit=1)
    page = next((read_page(item, site.table) for item in reply.items), None)
    held = () if page is None else entries_of(page.span)
    return next((entry for entry in held if entry.index == index), None), page


# Appends to named streams of events with tags, or under a condition, as one commit (`commit`) of streams and tags.
#
# A named stream is the home of its events: there they have their index, and there they are pruned, archived or deleted.
# The streams of their tags store them too, with their bodies, and name the home. So a query is read without the homes,
# and its results stay the same when a home is pruned or deleted.
#
#     streams   are planned first, since the events in the tags' streams contain the index in the home
#     tags      are written in the same transaction, or checked for the condition
#     key       has one record, which says what each named stream got, and nothing about tags
#
# All pages get the same stamp. An append of events with tags is never undetermined, since tags are never pruned.


def append_mixed(
    site: TagStreams,
    appends: Sequence[tuple[Packed, ExpectedVersion]],
    tagged: TaggedBatch,
    condition: Condition | None = None,
    key: str | None = None,
    *,
    reads: Mapping[str, Known[Page]] | None = None,
    decided: bool = False,
) -> Steps[Outcome]:
    """Append events to their streams and to the streams of their tags, all or nothing.

    The outcome has the outcomes of the streams. If an earlier call under the key made the append, it has no position.

    Args:
        appends: batches of one append, each to another stream, with the expected versions.
        tagged: the events of all batches, in order, with their homes.
        condition: the append condition; None if there is none.
        key: idempotency key of the append. Without it, a single keyed batch is searched for in its stream.
        reads: what is known of further streams; the append is refused if one of them has changed.
        decided: whether the key is that of a decision on all of these streams, with any outcome.

    Raises:
        TooLarge: too many streams, tags and fences; the events of one fit no item, or all of them no transaction.
        InvalidInput: a stream is full; the key was used for other contents; the position is of another query, or of
            another store.
    """
    batches = [batch for batch, _ in appends]
    once = None if key is None else _key_of(batches, key)
    if key is not None and decided:
        once = SeveralKey.of([*(each.stream for each in batches), *(reads or ())], key, batches[0].now)
    both = Mixed(
        streams=StreamsPart.of(site.table, appends, reads, once), tags=TagsPart.of(site, tagged, condition)
    )
    if key is not None or not batches[0].keyed:
        return (yield from run_commit(both.commit, both)).outcome
    return (yield from commit_or_search(batches[0], both.commit, both, repeatable=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A commit that writes to named streams and to tags."""

    streams: StreamsPart
    tags: TagsPart

    @property
    def commit(self) -> Commit:
        """Commit of both parts in one transaction. Raises `TooLarge` if it has too many items."""
        streams, tags = self.streams.commit, self.tags.commit
        writes, fences = (*streams.writes, *tags.writes), (*streams.fences, *tags.fences)
        items = len(writes) + len(fences) + streams.keyed + len(tags.also)
        if items > TRANSACTION_ITEMS:
            more = "" if not tags.also else ", as is each of `also`"
            advice = f"each stream, each tag of events and of the condition, and a key are one{more}"
            raise TooLarge("events", items, TRANSACTION_ITEMS, "items", advice)
        known, key = {**streams.known, **tags.known}, self.streams.key
        if isinstance(key, _StreamKey) and is_new(known.get(key.batch.stream), key.batch.above) is False:
            del known[key.batch.stream]
        return replace(tags, known=known, writes=writes, fences=fences, keyed=streams.keyed)

    def batch(self, stream: str, writes: Writes) -> Packed:
        """Return the batch for a stream or the stream of a tag, given the writes planned before it."""
        return self.streams.batches.get(stream) or self.tags.batch(stream, writes)

    def ending(self, moved: Heads, tries: Tries) -> Steps[Outcome | None]:
        """Return the outcome that ends the commit after streams moved; None if it may go on.

        Named streams are checked first. Only if they are as expected is the query read.
        """
        named = {*self.streams.expected, *self.streams.reads}
        own = {stream: head for stream, head in moved.items() if stream in named}
        table, key = self.streams.table, self.streams.key
        outcome = (yield from key.search(table, own, tries)) if isinstance(key, _StreamKey) else None
        if outcome is None:
            outcome = yield from self.streams.ending(own, tries)
        if outcome is not None:
            return outcome
        others = {stream: head for stream, head in moved.items() if stream not in own}
        outcome = yield from self.tags.ending(others, tries)
        earlier = None if outcome is None or key is None else (yield from key.load_outcome(table, tries))
        return outcome if earlier is None else earlier

    def records(self, writes: Writes) -> Sequence[Put]:
        """Make the write of the key's record; empty without a key."""
        return self.streams.records(writes)

    def earlier(self, writes: Writes, refusal: Refusal, tries: Tries) -> Steps[Outcome | None]:
        """Return the outcome in the key's record after a refusal, with that of the tags if it is of these writes."""
        outcome = yield from self.streams.earlier(writes, refusal, tries)
        if not isinstance(outcome, Appended) or any(
            each.replayed or each.token.etag != writes[stream].token.etag
            for stream, each in outcome.streams.items()
        ):
            return outcome
        yield from settled((self.streams.table, write.key) for write in writes.values())
        return self.appended(writes)

    def appended(self, writes: Writes) -> Appended:
        """Make the outcome of the applied append, with the outcomes of its streams."""
        return replace(self.tags.appended(writes), streams=self.streams.appended(writes).streams)


@dataclass(slots=True, kw_only=True)
class _StreamKey(SeveralKey):
    """The key of an append to one stream with tags, which may have been used without tags before.

    The record of an append without tags does not contain its result, so the stream is searched for it.
    """

    batch: Packed

    def search(self, table: str, heads: Heads, tries: Tries) -> Steps[Outcome | None]:
        """Look for an append to the stream without tags under the key; None if there is none.

        The search begins where the key's record says, or at the first event if the stream has been written to since the
        key's moment. Without either there is no search.
        """
        stream, bound = self.batch.stream, self.bound
        head, first = heads.get(stream), None if bound is None else bound.first
        if head is not None and is_new(head, self.batch.above) is False:
            first = 0
        if head is None or first is None:
            return None
        earlier = None if bound is not None else (yield from self.load_outcome(table, tries))
        if earlier is not None:
            return earlier
        outcome = yield from outcome_under_key(self.batch, head, first, later=True)
        return None if outcome is None else combine_outcomes({stream: outcome})

    def outcome_in(self, table: str, contents: RecordContents, tries: Tries) -> Steps[Outcome | None]:
        """Return the outcome that the key's record contains, or that a search of the stream finds.

        None if the record is of an append without tags that has not been made.
        """
        if contents.made:
            return (yield from super(_StreamKey, self).outcome_in(table, contents, tries))  # noqa: UP008  slots
        check_contents(contents, self.append_id)
        if contents.append_id is not None or not self.batch.count:
            raise InvalidInput("idempotency_key", "was used before for an append without tags and condition")
        self.bound = contents
        head = yield from load_head(table, self.batch.stream)
        return (yield from self.search(table, {self.batch.stream: head}, tries))


def _key_of(batches: Sequence[Packed], key: str) -> SeveralKey:
    only, *others = batches
    if others:
        return SeveralKey.of_append(batches, key)
    return _StreamKey(
        streams=(only.stream,),
        record=KeyRecord.of(only.stream, key, unix_seconds(only.now)),
        append_id=only.append_id,
        counts={only.stream: only.count},
        batch=only,
    )
