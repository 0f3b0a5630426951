"""Appends to named streams of events with tags, or under a condition, as one commit (`commit`) of streams and tags.

A named stream is the home of its events: there they have their index, and there they are pruned, archived or deleted.
The streams of their tags store them too, with their bodies, and name the home. So a query is read without the homes,
and its results stay the same when a home is pruned or deleted.

    streams   are planned first, since the events in the tags' streams contain the index in the home
    tags      are written in the same transaction, or checked for the condition
    key       has one record, which says what each named stream got, and nothing about tags

All pages get the same stamp. An append of events with tags is never undetermined, since tags are never pruned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epochal.errors import InvalidInput, TooLarge
from epochal.layout.key_records import KeyRecord, RecordContents, check_contents
from epochal.layout.outcomes import combine_outcomes
from epochal.layout.queries import AppendCondition
from epochal.layout.streams import (
    Known,
)
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.moments import unix_seconds
from epochal.model.outcomes import Appended, Outcome
from epochal.pages.appending import is_new, outcome_under_key
from epochal.pages.batch import Packed
from epochal.pages.commit import Commit, Heads, Tries, Writes, run_commit
from epochal.pages.items import Page
from epochal.pages.keyed_appends import commit_or_search
from epochal.pages.reading import load_head
from epochal.pages.several_key import SeveralKey
from epochal.pages.streams_part import StreamsPart
from epochal.pages.tags.append import TagsPart
from epochal.plan.batches import settled
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.ops import Put, Refusal, Steps


def append_mixed(
    site: TagStreams,
    appends: Sequence[tuple[Packed, ExpectedVersion]],
    tagged: TaggedBatch,
    condition: AppendCondition | None = None,
    key: str | None = None,
    *,
    read_heads: Mapping[str, Known[Page]] | None = None,
) -> Steps[Outcome]:
    """Append to streams and tags, all or nothing, unless new events match `condition`; return the outcome.

    The outcome has the outcomes of the streams. If an earlier call under the key made the append, it has no position.

    Args:
        appends: batches of one append, each to another stream, with the expected versions.
        tagged: the events of all batches, in order, with their homes.
        condition: the append condition; None if there is none.
        key: idempotency key of the append. Without it, a single keyed batch is searched for in its stream.
        read_heads: known heads of further streams that a decision read; the append is refused if one has changed.
            The key is then that of a decision on all of these streams. None if the append is no decision.

    Raises:
        TooLarge: too many streams, tags and fences; the events of one fit no item, or all of them no transaction.
        InvalidInput: a stream is full; the key was used for other contents; the position is of another query, or of
            another store.
    """
    batches = [batch for batch, _ in appends]
    once = None if key is None else _key_of(batches, key)
    if key is not None and read_heads is not None:
        once = SeveralKey.of([*(batch.stream for batch in batches), *read_heads], key, batches[0].now)
    both = Mixed(
        streams=StreamsPart.of(site.table, appends, read_heads, once),
        tags=TagsPart.of(site, tagged, condition),
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
            more = "" if not tags.also else ", and so does each write of `also`"
            advice = f"each stream, each tag of an event or the condition, and a key count as one{more}"
            raise TooLarge("events", items, TRANSACTION_ITEMS, "items", advice)
        known_heads, key = {**streams.known_heads, **tags.known_heads}, self.streams.key
        if (
            isinstance(key, _StreamKey)
            and is_new(known_heads.get(key.batch.stream), key.batch.above) is False
        ):
            del known_heads[key.batch.stream]
        return replace(tags, known_heads=known_heads, writes=writes, fences=fences, keyed=streams.keyed)

    def batch(self, stream: str, writes: Writes) -> Packed:
        """Return the batch for a stream or the stream of a tag, given the writes planned before it."""
        return self.streams.batches.get(stream) or self.tags.batch(stream, writes)

    def ending(self, moved: Heads, tries: Tries) -> Steps[Outcome | None]:
        """Return the outcome that ends the commit after streams moved; None if it may go on.

        Named streams are checked first. Only if they are as expected is the query read.
        """
        streams = {*self.streams.expected, *self.streams.read_heads}
        own = {stream: head for stream, head in moved.items() if stream in streams}
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

    def load_earlier_outcome(self, writes: Writes, refusal: Refusal, tries: Tries) -> Steps[Outcome | None]:
        """Return the outcome in the key's record after a refusal, or None; with tags if these writes made it."""
        outcome = yield from self.streams.load_earlier_outcome(writes, refusal, tries)
        if not isinstance(outcome, Appended) or any(
            appended.replayed or appended.token.etag != writes[stream].token.etag
            for stream, appended in outcome.streams.items()
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
        """Return the outcome of an append without tags under the key, as the stream shows it; None if none.

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
            raise InvalidInput("idempotency_key", "was already used for an append without tags or condition")
        self.bound = contents
        head = yield from load_head(table, self.batch.stream)
        return (yield from self.search(table, {self.batch.stream: head}, tries))


def _key_of(batches: Sequence[Packed], key: str) -> SeveralKey:
    """Return the key of an append with tags: of several streams, or a `_StreamKey` for one stream."""
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
