"""Appends in one transaction: to several streams, of tagged events, under a query, or with writes to other tables.

The functions encode the caller's appends as batches of streams and of tags, and convert the layout's answer to an
outcome for each stream and for the tags. `Streams` imports this module only for such appends; most need none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from epochal.errors import InvalidInput, TooLarge
from epochal.layout.decision_keys import DecisionKey
from epochal.layout.outcomes import combine_outcomes
from epochal.layout.streams import (
    Also,
    AnyStreamLayout,
    Batch,
    EncodedEvent,
    Head,
    Known,
    SeveralStreams,
    TaggedStreams,
)
from epochal.layout.tagged_batch import TaggedBatch
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.capacity import NOTHING
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, check_expected
from epochal.model.kinds import must_be_list
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.positions import Position, Reached
from epochal.model.stream_append import StreamAppend
from epochal.model.stream_names import no_step, stream_name
from epochal.model.tag_answers import Takes
from epochal.model.tags import Query, check_tag, check_type, own_tags
from epochal.pages.tags.entries import label_of
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.also import validate_writes
from epochal.store.answers import REFUSALS, complete, refusals_of, token_of
from epochal.store.encoding import identity_of, with_metadata
from epochal.store.outcomes import also_conflict, condition_error, explain_also_errors
from epochal.store.queueing import Key, QueuePlace
from epochal.store.refusals import count_refusals, note_outcomes
from epochal.store.tag_turns import ends_left, keys_of, leave_ends, tags_of

if TYPE_CHECKING:
    from epochal.store.streams import Streams
    from epochal.store.tagged_pages import TaggedEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendOptions:
    """The append condition of a call: a query that must match no event beyond a position.

    Attributes:
        fail_if: the query; None for no condition on events.
        after: position up to which matching events do not count; None: all events count.
        takes: function that says whether a conflict brings one more of the matching events; None: it brings all.
        also: writes to tables of the caller's own, in the transaction of the append.
    """

    fail_if: Query | None = None
    after: Position | None = None
    takes: Takes | None = None
    also: Also = ()

    def with_validated_writes(self, store: Streams) -> AppendOptions:
        """Return these options with their writes `also` checked against a store; raise if one is not allowed.

        Raises:
            InvalidInput: the layout cannot append in a transaction, or `also` is malformed.
            TooLarge: as `epochal.store.also.validate_writes`.
        """
        if not self.also:
            return self
        require_transactional_layout(store.layout, "also")
        own = (store.table,) if store.archive is None else (store.table, store.archive.table)
        return replace(self, also=validate_writes(self.also, own))


def try_append(store: Streams, append: StreamAppend, options: AppendOptions, key: str | None) -> Outcome:
    """Append to one stream with tags, a query or other writes; return the outcome (`Streams.try_append`)."""
    outcome = _append_all(store, [append], options.with_validated_writes(store), key)
    if not outcome.streams:
        return outcome
    only, capacity = outcome.streams[append.stream], outcome.capacity
    if isinstance(only, Appended) and isinstance(outcome, Appended):
        return replace(only, position=outcome.position, versions=outcome.versions, capacity=capacity)
    return replace(only, capacity=capacity)


def try_append_all(
    store: Streams, appends: Sequence[StreamAppend], options: AppendOptions, key: str | None
) -> Outcome:
    """Append to several streams, all or nothing; return the outcome (`Streams.try_append_all`)."""
    options = options.with_validated_writes(store)
    _check(appends, key, len(options.also))
    require_transactional_layout(store.layout)
    if len(appends) > 1:
        return _append_all(store, appends, options, key)
    (only,) = appends
    with _placed(0):
        alone = store.try_append(
            only.stream,
            only.events,
            unfolds=only.unfolds,
            expected=only.expected,
            fail_if=options.fail_if,
            after=options.after,
            takes=options.takes,
            idempotency_key=key,
            also=options.also,
        )
    if isinstance(alone, Conflict) and (alone.events or alone.unmet):
        return alone
    outcome = combine_outcomes({only.stream: replace(alone, capacity=NOTHING)}, alone.capacity)
    if isinstance(alone, Appended) and isinstance(outcome, Appended):
        return replace(outcome, position=alone.position, versions=alone.versions)
    return outcome


def append_on(
    store: Streams,
    known_heads: Mapping[str, Known[Head]],
    appends: Sequence[StreamAppend],
    options: AppendOptions,
    key: DecisionKey | str | None,
) -> Outcome:
    """Append tagged events or under a query, if all known heads are still current; return the outcome.

    Args:
        known_heads: known heads of the streams that are appended to, and of others that are only read and must be
            unchanged.
        options: the condition, and writes to other tables.
        key: idempotency key of the decision.

    Returns:
        The outcome, with that of each stream; or a conflict with the events that match the query, or the items that
        `also` forbids.
    """
    options, writes = options.with_validated_writes(store), list[StreamAppend]()
    for append in appends:
        _check_tags(store, append.events)
        token = token_of(known_heads[append.stream])
        writes.append(replace(append, expected=NO_STREAM if token is None else replace(token, refused=0)))
    writing = {append.stream for append in appends}
    read_heads = {stream: head for stream, head in known_heads.items() if stream not in writing}
    with explain_also_errors(options.also):
        stored = batches(store, writes, tagged=True)
        record = key if isinstance(key, str) else None
        if isinstance(key, DecisionKey):
            stored = [key.on(*stored)]
        with _turn(store, writes, options, tagged=True) as turn:
            outcome = _with_tags(store, writes, stored, options, record, turn=turn, read_heads=read_heads)
    return also_conflict(outcome) if isinstance(outcome, Conflict) and outcome.unmet else outcome


def append_tagged_on(
    store: Streams,
    known_heads: Mapping[str, Known[Head]],
    appends: Sequence[StreamAppend],
    key: DecisionKey | str | None,
    also: Also,
) -> Outcome:
    """Append tagged events on exactly the known heads; return the outcome, or raise if `also` is unmet.

    Returns:
        The outcome, with that of each stream.

    Raises:
        ConditionUnmet: a condition of `also` does not hold.
    """
    outcome = append_on(store, known_heads, appends, AppendOptions(also=also), key)
    if isinstance(outcome, Conflict) and outcome.unmet:
        raise condition_error(outcome)
    return outcome


def append_all_on(
    store: Streams,
    writes: Sequence[tuple[Batch, Known[Head]]],
    known_heads: Mapping[str, Known[Head]],
    key: str | None,
    also: Also,
) -> Outcome:
    """Append batches on the known heads, all or none; return the outcome, or raise if `also` is unmet.

    Args:
        writes: batches with the known heads of their streams.
        known_heads: known heads of these streams, and of others that are only read.

    Returns:
        The outcome, with that of each stream.

    Raises:
        ConditionUnmet: a condition of `also` does not hold.
    """
    also = AppendOptions(also=also).with_validated_writes(store).also
    writing = [batch.stream for batch, _ in writes]
    read_heads = [(stream, head) for stream, head in known_heads.items() if stream not in writing]
    with explain_also_errors(also):
        outcome = store.driver.run(
            require_transactional_layout(store.layout).append_all_on(
                store.table, writes, read_heads, key, also
            )
        )
    if isinstance(outcome, Conflict) and outcome.unmet:
        raise condition_error(also_conflict(outcome))
    return outcome


def require_transactional_layout(layout: AnyStreamLayout, field: str = "appends") -> SeveralStreams:
    """Return the layout if it can append to several streams in one transaction; else raise `InvalidInput`.

    Raises:
        InvalidInput: it cannot.
    """
    if isinstance(layout, SeveralStreams):
        return layout
    raise InvalidInput(field, f"cannot be appended in one transaction with the layout {layout.name}")


@contextmanager
def _placed(place: int, count: int = 2) -> Iterator[None]:
    """Prefix the field of an `InvalidInput` from the block with `appends[place]`, if there are several.

    Args:
        place: index of the append in the call.
        count: number of appends in the call; with one append the field stays as it is.
    """
    try:
        yield
    except InvalidInput as error:
        if count > 1 and error.field.startswith(("stream", "expected", "events", "unfolds")):
            error.call_it(f"appends[{place}].{error.field}")
        raise


def batches(
    store: Streams,
    appends: Sequence[StreamAppend],
    key: str | None = None,
    also: Also = (),
    *,
    tagged: bool = False,
) -> list[Batch]:
    """Encode the appends of one call as batches that share an etag and an append id.

    Args:
        key: idempotency key that the append id derives from; None for a random id.
        tagged: whether events may have tags.
    """
    now, etag = store.now(), store.fresh(16).hex()
    identity = store.fresh(16) if key is None else b""
    batches_made = list[Batch]()
    for place, append in enumerate(appends):
        with _placed(place, count=len(appends)):
            batches_made.append(
                store.batch(append.stream, append.events, append.unfolds, now, key=key, tagged=tagged)
            )
    identity = identity or identity_of(appends, key or "", also)
    return [replace(batch, etag=etag, append_id=identity) for batch in batches_made]


def _check(appends: Sequence[StreamAppend], key: str | None, also: int) -> None:
    """Raise `InvalidInput` or `TooLarge` unless appends can form one transaction.

    Nothing is read: only the arguments are checked.

    Args:
        key: idempotency key, whose record takes one more item where there are several streams.
        also: number of writes to other tables.
    """
    must_be_list(StreamAppend, appends, "appends")
    if not appends:
        raise InvalidInput("appends", "must not be empty")
    # A key of one stream alone needs no record, except with tags.
    most = TRANSACTION_ITEMS - (key is not None and len(appends) > 1) - also
    if len(appends) > most:
        raise TooLarge("appends", len(appends), most, "streams")
    streams = set[str]()
    for place, append in enumerate(appends):
        with _placed(place):
            check_expected(append.expected)
            no_step(stream_name(append.stream), "stream")
            must_be_list(Event, append.events, "events")
        if append.stream in streams:
            raise InvalidInput("appends", f"must not name a stream twice: {append.stream}")
        streams.add(append.stream)


def _append_all(
    store: Streams, appends: Sequence[StreamAppend], options: AppendOptions, key: str | None
) -> Outcome:
    """Append to streams, all or nothing, with tags, a query or other writes if given; return the outcome."""
    tagged = options.fail_if is not None or options.after is not None
    if tagged or any(event.tags for append in appends for event in append.events):
        tagged = True
        for place, append in enumerate(appends):
            with _placed(place, count=len(appends)):
                _check_tags(store, append.events)
    counts, expected = zip(*(refusals_of(append.expected) for append in appends), strict=True)
    refused = max(counts)
    if refusals := REFUSALS.get():
        remembered = (count_refusals(store.driver, store.table, append.stream) for append in appends)
        refused = max(refused, *remembered)
    stored = batches(store, appends, key, options.also, tagged=tagged)
    given = [replace(append, expected=version) for append, version in zip(appends, expected, strict=True)]
    driver, meter = store.driver.metered()
    store = store.on(driver)
    with meter, explain_also_errors(options.also), _turn(store, given, options, tagged=tagged) as turn:
        began = driver.clock()
        if tagged:
            outcome = _with_tags(store, given, stored, options, key, turn=turn)
        else:
            pairs = list(zip(stored, expected, strict=True))
            turn.write()
            outcome = driver.run(
                require_transactional_layout(store.layout).append_all(store.table, pairs, key, options.also)
            )
            turn.changed = isinstance(outcome, Appended)
    outcome = complete(outcome, meter.capacity, began=began, refused=refused)
    if refusals or isinstance(outcome, Conflict):
        note_outcomes(store.driver, store.table, outcome.streams)
    return outcome


def _turn(
    store: Streams, appends: Sequence[StreamAppend], options: AppendOptions, *, tagged: bool
) -> QueuePlace:
    """Make the append's place, not yet taken, in the queues of its tags and of its streams at any version.

    Args:
        tagged: whether events have tags, or there is a condition.
    """
    keys: list[Key] = [
        (store.table, append.stream) for append in appends if append.expected in (ANY, STREAM_EXISTS)
    ]
    if tagged:
        tags = store.tagged
        condition = tags.condition(options.fail_if, options.after, options.takes)
        keys += keys_of(tags.site.table, tags_of(tags.site, _events_with_tags(appends), condition))
    return QueuePlace(store.driver, *keys, inner=True)


def _events_with_tags(appends: Sequence[StreamAppend]) -> list[Event]:
    return [event for append in appends for event in append.events if event.tags]


def _require_tagged_layout(layout: AnyStreamLayout, field: str) -> TaggedStreams:
    """Return the layout if it keeps tags; else raise `InvalidInput`.

    Raises:
        InvalidInput: it keeps none.
    """
    if isinstance(layout, TaggedStreams):
        return layout
    raise InvalidInput(field, "must not be given: this store keeps no tags")


def _check_tags(store: Streams, events: Sequence[Event]) -> None:
    """Raise `InvalidInput` for malformed tags or types of tagged events, or if the layout keeps no tags."""
    place = next((place for place, event in enumerate(events) if event.tags), None)
    _require_tagged_layout(store.layout, "fail_if" if place is None else f"events[{place}].tags")
    for place, event in enumerate(events):
        if event.tags:
            check_type(event.type, f"events[{place}].type")
        for tag in event.tags:
            no_step(check_tag(tag, f"events[{place}].tags"), f"events[{place}].tags")


def _with_tags(
    store: Streams,
    appends: Sequence[StreamAppend],
    batches: Sequence[Batch],
    options: AppendOptions,
    key: str | None,
    *,
    turn: QueuePlace,
    read_heads: Mapping[str, Known[Head]] | None = None,
) -> Outcome:
    """Run an append of events with tags; return its outcome, with the outcome of each stream.

    Args:
        turn: place of the append in the queues of `_turn`.
        read_heads: known heads of streams that a decision only read; None where this append is no decision.
        key: idempotency key of the append, or of the decision.
    """
    layout, tagged = _require_tagged_layout(store.layout, "fail_if"), store.tagged
    condition = tagged.condition(options.fail_if, options.after, options.takes)
    ends = ends_left(tagged.site.table, turn)
    turn.write()
    outcome = store.driver.run(
        layout.append_tagged(
            tagged.site,
            [
                (batch, append.expected)
                for batch, append in zip(_labelled(appends, batches), appends, strict=True)
            ],
            _tagged(appends, batches, options.also, ends),
            condition,
            key,
            read_heads=read_heads,
        )
    )
    leave_ends(tagged.site.table, turn, outcome)
    if isinstance(outcome, Undetermined):
        return outcome
    if isinstance(outcome, Appended) and not outcome.position.seen and read_heads is None:
        # An earlier call made the append, and the key's record tells nothing of tags.
        return _replayed(outcome, replace(tagged, driver=store.driver.reading_back()), appends, options)
    if options.takes is None and outcome.events:
        outcome = replace(outcome, events=tagged.whole(outcome.events))
    return _with_events(outcome) if isinstance(outcome, Appended) else outcome


def _with_events(outcome: Appended) -> Appended:
    """Return an outcome with the events with tags also in the outcome of their stream."""
    streams = {
        name: replace(appended, events=tuple(event for event in outcome.events if event.stream == name))
        for name, appended in outcome.streams.items()
    }
    return replace(outcome, streams=streams)


def _labelled(appends: Sequence[StreamAppend], batches: Sequence[Batch]) -> list[Batch]:
    """Return the batches with a label on each tagged event: its tags and its place in the append."""
    places, labelled = count(), list[Batch]()
    for append, batch in zip(appends, batches, strict=True):
        given = zip(append.events, batch.events, places, strict=False)
        events = tuple(
            stored._replace(label=label_of(event.tags, place)) if event.tags else stored
            for event, stored, place in given
        )
        labelled.append(replace(batch, events=events))
    return labelled


def _tagged(
    appends: Sequence[StreamAppend], batches: Sequence[Batch], also: Also, ends: Mapping[str, Reached]
) -> TaggedBatch:
    """Make one tagged batch of the events of all streams, each with its stream and place there.

    Args:
        also: writes to other tables in the same transaction.
        ends: ends of tags that need not be read.
    """
    first = batches[0]
    stored = [(batch.stream, place, event) for batch in batches for place, event in enumerate(batch.events)]
    return TaggedBatch(
        events=tuple(
            map(_dated, (event for append in appends for event in with_metadata(append.events)), stored)
        ),
        bodies=tuple((event.data, event.meta) for _, _, event in stored),
        now=first.now,
        append_id=first.append_id,
        etag=first.etag,
        dated=any(batch.dated for batch in batches),
        homes=tuple((stream, place) for stream, place, _ in stored),
        also=also,
        ends=ends,
    )


def _dated(event: Event, stored: tuple[str, int, EncodedEvent]) -> Event:
    """Return an event for the tags: with its stored timestamp if it has one, and without its id.

    The id is kept only in the event's stream.
    """
    dated = event if event.timestamp is None else replace(event, timestamp=stored[2].timestamp)
    return dated if dated.id is None else replace(dated, id=None)


def _replayed(
    outcome: Appended, tagged: TaggedEvents, appends: Sequence[StreamAppend], options: AppendOptions
) -> Appended:
    """Return an earlier call's outcome with `after` as its position and the current counts of its tags."""
    events = _events_with_tags(appends)
    versions = tagged.counts(own_tags(events)) if events else {}
    return replace(outcome, position=options.after or Position(), versions=versions)
