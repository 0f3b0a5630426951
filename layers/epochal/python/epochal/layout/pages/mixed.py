"""Appends to named streams whose events carry tags, or that a query may forbid: one commit (`commit`) of both callers.

A named stream is the home of its events: there they have their index, and there they are pruned, archived, deleted. The
streams of their tags have them too, bodies and all, as those of any tagged event, and say where the home is. So a query
is read without looking at homes, and shows what it has shown whatever becomes of these.

    streams   are written first: what their events' tags get has the index in the home
    tags      are written with them, or fence the condition
    key       one record, for the streams alone, whatever the tags are: it says what each stream got

All pages get one stamp. Where an append's events have tags it is never undetermined: tags' pages tell for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from epochal.errors import InvalidInput, TooLarge
from epochal.layout.fences import Condition
from epochal.layout.key_records import KeyRecord, Remembered, check_contents
from epochal.layout.pages.append import settle
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.commit import Commit, Heads, Made, Writes, commit
from epochal.layout.pages.items import Page
from epochal.layout.pages.reading import load_head
from epochal.layout.pages.several import SeveralKey, StreamsEnd, StreamsPart
from epochal.layout.pages.tags.append import TaggedBatch, TagsEnd, TagsPart
from epochal.layout.pages.tags.entries import TagStreams
from epochal.layout.streams import DecidedBefore, Rejected, Unknown, Unmet, Written
from epochal.model.times import unix_seconds
from epochal.model.versions import Appended, Conflict, ExpectedVersion
from epochal.plan.ops import TRANSACTION_ITEMS, Refusal, Steps, settled

_MixedEnd: TypeAlias = StreamsEnd | TagsEnd | Made


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedResult:
    """What came of it.

    Attributes:
        streams: all are written, or all unknown; or those in the way are rejected. None, where a query is in the way.
        tags: what is told of them. None where the append was not made, or by an earlier call.
    """

    streams: Mapping[str, Written | Unknown | Rejected[Page]]
    tags: Appended | Conflict | None = None


def append(
    site: TagStreams,
    appends: Sequence[tuple[Packed, ExpectedVersion]],
    tagged: TaggedBatch,
    condition: Condition | None = None,
    key: str | None = None,
) -> Steps[MixedResult | Unmet]:
    """Append to every stream, and to the tags of all events; or nowhere.

    Args:
        appends: batches of one append, no two to one stream.
        tagged: the events of all of them, in order, with their homes.
        key: that the batches are known by.

    Raises:
        TooLarge: too many streams, tags and fences; the events of one fit no item, or all of them no transaction.
        InvalidInput: a stream is full; the key was used for other contents; the position is of another query, or of
            another store.
    """
    batches = [batch for batch, _ in appends]
    once = None if key is None else _key_of(batches, key)
    both = Mixed(
        streams=StreamsPart.of(site.table, appends, key=once), tags=TagsPart.of(site, tagged, condition)
    )
    came = yield from commit(both.commit)
    return came if isinstance(came, Unmet) else both.told(came)


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
        return Commit(
            table=streams.table,
            known={**streams.known, **tags.known},
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
        )

    def batch(self, stream: str, writes: Writes) -> Packed:
        """What a stream gets, or a tag, where the streams get theirs at these indices."""
        if stream in self.streams.batches:
            return self.streams.batches[stream]
        homes = {each: planned.first for each, planned in writes.items() if each in self.streams.batches}
        return self.tags.share(stream, self._of_tags(writes), homes)

    def matters(self, moved: Heads) -> Steps[_MixedEnd | None]:
        """Streams first: where these are not as expected, matches of a query are not looked for."""
        own = {stream: head for stream, head in moved.items() if stream in self.streams.expected}
        ended: _MixedEnd | None = yield from self.streams.matters(own)
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
            each.replayed or each.token.etag != writes[stream].token.etag
            for stream, each in ended.streams.items()
        ):
            return ended
        yield from settled((self.streams.table, each.key) for each in writes.values())
        return Made(writes=writes)

    def told(self, came: _MixedEnd) -> MixedResult:
        """What is told of how it ended."""
        match came:
            case Made(certain=False, writes=writes):
                return MixedResult(
                    streams={each: Unknown(first=writes[each].first) for each in self.streams.batches}
                )
            case Made(writes=writes):
                written = {each: _written(writes, each) for each in self.streams.batches}
                return MixedResult(streams=written, tags=self._made(writes))
            case DecidedBefore():
                return MixedResult(streams=came.streams)
            case Appended() | Conflict():
                return MixedResult(streams={}, tags=came)
            case _:
                return MixedResult(streams=came)

    def _made(self, writes: Writes) -> Appended:
        """What is told of tags, with the events that have some, where they are."""
        stamp = next(iter(writes.values())).stamp
        made = self.tags.made(self._of_tags(writes), stamp)
        placed = zip(made.events, self.tags.batch.homes, strict=True)
        events = [
            replace(event, stream=stream, index=writes[stream].first + at)
            for event, (stream, at) in placed
            if event.tags
        ]
        return replace(made, events=tuple(events))

    def _of_tags(self, writes: Writes) -> Writes:
        return {stream: each for stream, each in writes.items() if stream not in self.streams.batches}


@dataclass(frozen=True, slots=True, kw_only=True)
class _StreamKey(SeveralKey):
    """The key of an append to one stream, under which the stream alone may have been appended to, too: the record of
    that has not what was made, and the stream is searched for it.
    """

    batch: Packed

    def told(self, table: str, found: Remembered) -> Steps[DecidedBefore]:
        """See `SeveralKey.told`."""
        if found.made:
            return (yield from super(_StreamKey, self).told(table, found))
        check_contents(found, self.append_id)
        head = yield from load_head(table, self.batch.stream)
        settled = (
            None
            if head is None
            else (yield from settle(table, self.batch, head, found.first, repeatable=True))
        )
        if not isinstance(settled, Written):
            raise InvalidInput("idempotency_key", "was used before for an append without tags and condition")
        return DecidedBefore(streams={self.batch.stream: settled})


def _key_of(batches: Sequence[Packed], key: str) -> SeveralKey:
    (only, *others), now = batches, unix_seconds(batches[0].now)
    if others:
        record = KeyRecord.of_all((batch.stream for batch in batches), key, now)
        return SeveralKey.of_append(batches, record)
    record = KeyRecord.of(only.stream, key, now)
    return _StreamKey(
        streams=(only.stream,),
        record=record,
        append_id=only.append_id,
        counts={only.stream: only.count},
        batch=only,
    )


def _written(writes: Writes, stream: str) -> Written:
    token = writes[stream].token
    return Written(first=writes[stream].first, version=token.version, token=token)
