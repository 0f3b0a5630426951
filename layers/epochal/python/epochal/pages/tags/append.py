"""Appending tagged events, if nothing that matches a query has been appended since a position: one commit (`commit`).

A tag is a stream of pages. What an append gives to each tag is a write, the tags that fence its condition are fences,
and ids that the caller chose are records. All pages get it under one stamp, above the last of each: that is its place
in the order of events.

    an id's record is there            appended before: the contents must agree
    a fence moved, with a new match    conflict, with the matching events
    anything else                      again, on the pages that came back

Tags are never pruned, and a page that holds a stamp holds it for good. So whether a try was made is always told.

An append of tagged events, and what each of its tags' pages gets of it.

    the first tag of an event   its body, always
    its other tags              the body too; or, where all that a page would get is large, only where it is

A body on a second page costs what it takes there, two write units a KB and storage; a reference costs each reader of
that tag another read. So small ones are copied, which most are, and a tag is read without a second request.

Events by ids that callers chose: each has a record of where it is, written with it, so that it is appended once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from epochal.codec.bodies import EMPTY, Encoded, decode
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.layout.key_records import KeyRecord, RecordContents, check_contents
from epochal.layout.queries import Condition, IdTaken, check_covered
from epochal.layout.query_reads import first_in_the_way
from epochal.layout.streams import (
    Also,
    Batch,
    DecidedBefore,
    EncodedEvent,
    Known,
    Rejected,
    Unknown,
    Unmet,
    Written,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Event, Recorded
from epochal.model.moments import Ticks, format_ticks, unix_seconds
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import own_tags, repeats
from epochal.model.versions import Appended, Conflict, ExpectedVersion, Position, Reached
from epochal.pages.appending import is_new, result_under_key
from epochal.pages.batch import AHEAD, Packed, packed
from epochal.pages.commit import Commit, Heads, Made, Writes, commit
from epochal.pages.frames import time_of
from epochal.pages.items import Page, page_key, read_page
from epochal.pages.reading import load_head, query, stand
from epochal.pages.several import SeveralKey, StreamsEnd, StreamsPart, searched
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
"""Events of a tag that a condition without a position reads: 1,300 read units, and a second of CPU. Were there no end,
each append would become slower with the tag, and time out one day."""

TagsEnd = Appended | Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What is known of a tag's last page, and how far the tag has got with it."""

    page: Known[Page]
    reached: Reached


def append(
    site: TagStreams, batch: TaggedBatch, condition: Condition | None = None
) -> Steps[Appended | Conflict]:
    """Append `batch`.

    Raises:
        InvalidInput: an id exists with other contents, or only some of the ids exist; the position is of another query,
            or of another store.
        TooLarge: the events fit no item, or no transaction.
    """
    part = TagsPart.of(site, batch, condition)
    ended = yield from commit(part.commit)
    if isinstance(ended, Unmet):
        return Conflict(events=(), position=part.position, unmet=ended.items)
    return part.made(ended.writes) if isinstance(ended, Made) else ended


@dataclass(slots=True, kw_only=True)
class TagsPart:
    """What a commit has of tags, in the middle of its tries.

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

    @classmethod
    def of(cls, site: TagStreams, batch: TaggedBatch, condition: Condition | None) -> TagsPart:
        """Of an append; the last pages that its position tells are known."""
        shares = {share.tag: share for share in shares_of(site, batch)}
        position = _beginning(batch, condition)
        tags = dict.fromkeys((*shares, *position.seen))
        heads = _known(tags, None if condition is None else condition.after)
        return cls(site=site, batch=batch, shares=shares, condition=condition, position=position, heads=heads)

    @property
    def commit(self) -> Commit[TagsEnd]:
        """As a commit."""
        writes = tuple(map(stream_of, self.shares))
        fences = tuple(stream_of(tag) for tag in self.position.seen if tag not in self.shares)
        return Commit(
            table=self.site.table,
            known={stream_of(tag): head.page for tag, head in self.heads.items()},
            writes=writes,
            batch=self.share,
            fences=fences,
            matters=self.matters,
            records=self.records,
            before=self.before,
            lasting=frozenset(writes),
            one_stamp=True,
            also=self.batch.also,
        )

    def share(self, stream: str, writes: Writes) -> Packed:
        """What a tag gets, where the bodies are on these pages of tags, and these streams are its events' homes."""
        pages = {tag: index_of(planned.token) for tag, planned in _of_tags(writes).items()}
        homes = {each: planned.first for each, planned in writes.items() if not each.startswith(TAG_STREAMS)}
        return self.shares[_tag_of(stream)].on(self.batch, pages, homes)

    def matters(self, moved: Heads) -> Steps[TagsEnd | None]:
        """New events, on the pages that moved, that match the condition."""
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
        """Of the ids that the caller chose: where their events will be."""
        puts: list[Put] = []
        for tag, share in self.shares.items():
            first = writes[stream_of(tag)].first
            for offset, (number, body) in enumerate(zip(share.numbers, share.firsts, strict=True)):
                event_id = self.batch.events[number].id
                if body == tag and event_id is not None:
                    puts.append(id_record(self.site.table, event_id, tag, first + offset, self.batch.beside))
        return puts

    def before(self, _writes: Writes, _refusal: Refusal) -> Steps[TagsEnd | None]:
        """The events as they are stored, if their ids are there."""
        return (yield from self._stored_before())

    def made(self, writes: Writes) -> Appended:
        """What is told of it, with the events that have tags, where they are."""
        own = tuple(tag for tag in own_tags(self.batch.events) if tag in self.shares)
        planned = _of_tags(writes)
        events = self.batch.recorded(next(iter(writes.values())).stamp)
        if self.batch.homes:
            events = tuple(
                replace(event, stream=stream, index=writes[stream].first + index)
                for event, (stream, index) in zip(events, self.batch.homes, strict=True)
                if event.tags
            )
        return Appended(
            events=events,
            position=self._moved(planned, own if self.condition is None else tuple(self.position.seen)),
            versions={tag: planned[tag].token.version for tag in own},
        )

    def _stored_before(self) -> Steps[Appended | None]:
        stored = yield from stored_before(self.site, self.batch)
        return Appended(events=stored, position=self.position, replayed=True) if stored else None

    def _moved(self, writes: Mapping[str, Planned], tags: Sequence[str]) -> Position:
        """The condition's position, past the append; without a condition, where the append is in its `tags`."""
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
    """Those of them that are to tags, by the tag."""
    return {_tag_of(stream): write for stream, write in writes.items() if stream.startswith(TAG_STREAMS)}


def _beginning(batch: TaggedBatch, condition: Condition | None) -> Position:
    """Where the condition counts from: without a position every match is in its way."""
    if condition is None:
        return Position()
    fence, after = condition.fence, condition.after
    if after is None:
        return Position(seen={tag: Reached() for tag in fence.all_tags}, items=fence.marks)
    check_covered(after, fence)
    # A chain of appends, each after the position of the one before, would gather the heads of all their tags.
    tags = {tag for event in batch.events for tag in event.tags}.union(
        *(item.tags for item in fence.query.items)
    )
    return Position(
        seen={tag: after.seen[tag] for tag in fence.all_tags},
        heads={tag: reached for tag, reached in after.heads.items() if tag in tags},
        items=fence.marks,
    )


def _known(tags: Iterable[str], told: Position | None) -> dict[str, _Head]:
    """The last pages of those tags of which a position tells them."""
    reached = {} if told is None else {**told.heads, **told.seen}
    return {
        tag: _Head(page=head.token, reached=head)
        for tag in tags
        if (head := reached.get(tag)) is not None and _tells(head)
    }


def _tells(reached: Reached) -> bool:
    """Whether a position says which page is the last, or that there is none: it may come from outside."""
    token = reached.token
    if token is None:
        return not reached.count
    return token.version == reached.count > 0 and place_of(token) is not None


def _in_the_way(
    site: TagStreams, condition: Condition, position: Position, heads: Mapping[str, _Head]
) -> Steps[Conflict]:
    """Matches between a position and how far the tags have got, as many as are wanted."""
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
"""Bytes of a frame, compressed, from which on its bodies are only referred to where that can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedBatch:
    """One append: all or nothing.

    Attributes:
        events: at least one; an id only where the caller chose it.
        bodies: of each, its data and its metadata as they are stored.
        now: the writer's clock.
        append_id: 16 fresh bytes, and
        etag: 32 fresh hex digits: the same over all tries.
        dated: the time of one of them is its own, and that of the writer's clock.
        homes: the named stream that each is appended to, and its place among what that gets. Such an event may have no
            tags, and is only there then.
        also: goes with them, and
        beside: tells it from what else may go with events of these ids: 8 bytes, or none.
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
        """Those that the caller chose."""
        return tuple(event.id for event in self.events if event.id is not None)

    def recorded(self, stamp: bytes) -> tuple[Recorded, ...]:
        """The events as the append of this stamp stores them."""
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
    """What one tag gets of an append.

    Attributes:
        numbers: of the events that it gets.
        firsts: the first tag of each of them.
        whole: these with their bodies; None where they have homes, whose indices are in them.
    """

    tag: str
    numbers: tuple[int, ...]
    firsts: tuple[str, ...]
    whole: Packed | None

    def on(self, batch: TaggedBatch, pages: Mapping[str, int], homes: Mapping[str, int]) -> Packed:
        """What is written.

        Args:
            pages: of the first tags' streams, the index of the page that gets the bodies.
            homes: of named streams, the index of the first event that they get.
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
    """What each tag gets, those that have a body only after those whose streams these are in."""
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
    """A batch of ids as it is stored, if it is there already and equal; none of it, nothing.

    Raises:
        InvalidInput: an id exists with other contents; some exist, and others do not.
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
    """Events by ids that callers chose; those that never were are missing."""
    return (yield from _of_records(site, (yield from _records(site, ids))))


def _records(site: TagStreams, ids: Iterable[str]) -> Steps[list[Item]]:
    items: list[Item] = []
    # Where a record is, its event is too, once no append of them is under way.
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
            # The append may be under way still, though its record is there: it writes to this page, or to the next.
            places = (0,) if last is None else (last.index, last.version)
            yield from settled((site.table, page_key(stream, place)) for place in dict.fromkeys(places))
            entry, _ = yield from _entry(site, stream, index)
        if entry is None or entry.id != event_id:
            raise CorruptData(f"the event {event_id} is not where its record says")
        entries.append(entry)
    events = yield from recorded_all(site, entries)
    return {event.id: placed(event, entry) for event, entry in zip(events, entries, strict=True)}


def _entry(site: TagStreams, stream: str, index: int) -> Steps[tuple[EventOfTag | None, Page | None]]:
    """What a tag has at an index, and the last page that begins there or before."""
    reply = yield query(site.table, stream, 0, index, forward=False, limit=1)
    page = next((read_page(item, site.table) for item in reply.items), None)
    held = () if page is None else entries_of(page.span)
    return next((entry for entry in held if entry.index == index), None), page


# Appends to named streams whose events carry tags, or that a query may forbid: one commit (`commit`) of both callers.
#
# A named stream is the home of its events: there they have their index, and there they are pruned, archived, deleted.
# The streams of their tags have them too, bodies and all, as those of any tagged event, and say where the home is. So
# a query is read without looking at homes, and shows what it has shown whatever becomes of these.
#
#     streams   are written first: what their events' tags get has the index in the home
#     tags      are written with them, or fence the condition
#     key       one record, for the streams alone, whatever the tags are: it says what each stream got
#
# All pages get one stamp. Where an append's events have tags it is never undetermined: tags' pages tell for good.

_MixedEnd: TypeAlias = StreamsEnd | TagsEnd | Made | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedResult:
    """What came of it.

    Attributes:
        streams: all are written, or all unknown; or those in the way are rejected. None, where a query is in the way.
        tags: what is told of them. None where the append was not made, or by an earlier call.
    """

    streams: Mapping[str, Written | Unknown | Rejected[Page]]
    tags: Appended | Conflict | None = None


def append_mixed(
    site: TagStreams,
    appends: Sequence[tuple[Packed, ExpectedVersion]],
    tagged: TaggedBatch,
    condition: Condition | None = None,
    key: str | None = None,
    *,
    reads: Mapping[str, Known[Page]] | None = None,
    decided: bool = False,
) -> Steps[MixedResult | Unmet]:
    """Append to every stream, and to the tags of all events; or nowhere.

    Args:
        appends: batches of one append, no two to one stream.
        tagged: the events of all of them, in order, with their homes.
        key: that the batches are known by. One batch that is keyed without it is searched for in its stream.
        reads: what is known of other streams, which must be as they are known.
        decided: the key is of a decision on all of these streams, whatever it leads to.

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
        ended = yield from commit(both.commit)
        return ended if isinstance(ended, Unmet) else both.told(ended)
    earlier = yield from searched(batches[0], both.commit, repeatable=True)
    if isinstance(earlier, Written | Unknown):
        return MixedResult(streams={batches[0].stream: earlier})
    return earlier if isinstance(earlier, Unmet) else both.told(earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A commit of named streams and of tags."""

    streams: StreamsPart
    tags: TagsPart

    @property
    def commit(self) -> Commit[_MixedEnd]:
        """As one commit. Raises `TooLarge` where it has more items than a transaction."""
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
        return Commit(
            table=streams.table,
            known=known,
            writes=writes,
            batch=self.batch,
            fences=fences,
            matters=self.matters,
            records=self.streams.records,
            before=self.before,
            keyed=streams.keyed,
            lasting=tags.lasting,
            one_stamp=True,
            also=tags.also,
            sent=streams.sent,
        )

    def batch(self, stream: str, writes: Writes) -> Packed:
        """What a stream gets, or a tag, where the streams get theirs at these indices."""
        return self.streams.batches.get(stream) or self.tags.share(stream, writes)

    def matters(self, moved: Heads) -> Steps[_MixedEnd | None]:
        """Streams first: where these are not as expected, matches of a query are not looked for."""
        named = {*self.streams.expected, *self.streams.reads}
        own, key = {stream: head for stream, head in moved.items() if stream in named}, self.streams.key
        ended: _MixedEnd | None
        ended = (yield from key.alone(self.streams.table, own)) if isinstance(key, _StreamKey) else None
        ended = ended or (yield from self.streams.matters(own))
        if ended is None:
            others = {stream: head for stream, head in moved.items() if stream not in own}
            ended = yield from self.tags.matters(others)
            if ended is not None and self.streams.key is not None:
                ended = (yield from self.streams.key.before(self.streams.table)) or ended
        return ended

    def before(self, writes: Writes, refusal: Refusal) -> Steps[_MixedEnd | None]:
        """What the key's record says; where that is what these writes leave, they were made."""
        ended = yield from self.streams.before(writes, refusal)
        if not isinstance(ended, DecidedBefore) or any(
            outcome.replayed or outcome.token.etag != writes[stream].token.etag
            for stream, outcome in ended.streams.items()
        ):
            return ended
        yield from settled((self.streams.table, write.key) for write in writes.values())
        return Made(writes=writes)

    def told(self, came: _MixedEnd) -> MixedResult:
        """What is told of how it ended."""
        match came:
            case Made(certain=False, writes=writes):
                return MixedResult(
                    streams={batch: Unknown(first=writes[batch].first) for batch in self.streams.batches}
                )
            case Made(writes=writes):
                written = {batch: writes[batch].written for batch in self.streams.batches}
                return MixedResult(streams=written, tags=self.tags.made(writes))
            case DecidedBefore():
                return MixedResult(streams=came.streams)
            case Unknown():
                return MixedResult(streams=dict.fromkeys(self.streams.batches, came))
            case Appended() | Conflict():
                return MixedResult(streams={}, tags=came)
            case _:
                return MixedResult(streams=came)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StreamKey(SeveralKey):
    """The key of an append to one stream, under which the stream alone may have been appended to, too: the record of
    that has not what was made, and the stream is searched for it.
    """

    batch: Packed

    def alone(self, table: str, heads: Heads) -> Steps[DecidedBefore | Unknown | None]:
        """What was appended to the stream alone under a key that tells a moment, or one whose record bounds tries."""
        head = heads.get(self.batch.stream)
        first = self.seen[-1].first if self.seen else None
        if head is not None and is_new(head, self.batch.above) is False:
            first = 0
        if head is None or first is None:
            return None
        before = None if self.seen else (yield from self.before(table))
        result = before or (yield from result_under_key(self.batch, head, first, later=True))
        return DecidedBefore(streams={self.batch.stream: result}) if isinstance(result, Written) else result

    def told(self, table: str, found: RecordContents) -> Steps[DecidedBefore | Unknown | None]:  # type: ignore[override]  # `Mixed` takes it
        """See `SeveralKey.told`; None where the stream alone has not been appended to yet."""
        if found.made:
            return (yield from super(_StreamKey, self).told(table, found))  # noqa: UP008  slots
        check_contents(found, self.append_id)
        if found.append_id is not None or not self.batch.count:
            raise InvalidInput("idempotency_key", "was used before for an append without tags and condition")
        self.seen.append(found)
        head = yield from load_head(table, self.batch.stream)
        return (yield from self.alone(table, {self.batch.stream: head}))


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
