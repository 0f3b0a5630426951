"""Appends to named streams that concern tags: their events carry some, or a query may forbid them.

What a user hands in becomes batches of streams, and what the tags of all their events get; what the layout answers
becomes what is told of each stream, and of the tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from epochal.errors import InvalidInput
from epochal.layout.pages.tags.append import MixedResult, TaggedBatch
from epochal.layout.pages.tags.entries import label_of
from epochal.layout.streams import Also, Batch, EncodedEvent, Known, Result, TaggedStreams, Unmet, Written
from epochal.model.events import Event, no_step
from epochal.model.tags import Query, Takes, check_tag, check_type, own_tags
from epochal.model.versions import (
    NO_STREAM,
    NOTHING,
    Appended,
    Capacity,
    Conflict,
    Outcome,
    Position,
    StreamAppend,
    Token,
)
from epochal.store import several
from epochal.store.conflicts import going_with, unmet
from epochal.store.encoding import with_metadata
from epochal.store.streams import Streams, outcome_of, refusals_of
from epochal.store.tagged import TaggedEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """Events that an append must not meet: those that match, but for those that a position has seen.

    Attributes:
        takes: how many of them a conflict brings; None is all.
        also: goes with the append, to tables of the caller's own.
    """

    fail_if: Query | None = None
    after: Position | None = None
    takes: Takes | None = None
    also: Also = ()


def try_append(store: Streams, append: StreamAppend, forbidden: Forbidden, key: str | None) -> Outcome:
    """`Streams.try_append`, of one that concerns tags."""
    _check(store, append.events)
    refused, expected = refusals_of(append.expected)
    append = replace(append, expected=expected)
    (batch,) = store.batches([append], key, forbidden.also, tagged=True)
    since = store.driver.clock()
    results, tags, capacity = _ran(store, [append], [batch], forbidden, key)
    if isinstance(tags, Conflict):
        return replace(tags, capacity=capacity)
    outcome = outcome_of(results[append.stream], capacity, since=since, refused=refused)
    if not isinstance(outcome, Appended) or tags is None:
        return outcome
    return replace(outcome, events=tags.events, position=tags.position, versions=tags.versions)


def try_append_all(
    store: Streams, appends: Sequence[StreamAppend], forbidden: Forbidden, key: str | None
) -> Outcome:
    """`Streams.try_append_all`, of one that concerns tags."""
    if len(appends) == 1:
        (only,) = appends
        with several.placed(0):
            alone = try_append(store, only, forbidden, key)
        if isinstance(alone, Conflict) and (alone.events or alone.unmet):
            return alone
        found = several.told({only.stream: replace(alone, capacity=NOTHING)}, alone.capacity)
        return _with_tags(found, alone) if isinstance(alone, Appended) else found
    counts, expected = zip(*(refusals_of(each.expected) for each in appends), strict=True)
    appends = [replace(each, expected=wanted) for each, wanted in zip(appends, expected, strict=True)]
    for place, each in enumerate(appends):
        with several.placed(place):
            _check(store, each.events)
    batches = store.batches(appends, key, forbidden.also, tagged=True)
    shown = partial(outcome_of, since=store.driver.clock(), refused=max(counts))
    results, tags, capacity = _ran(store, appends, batches, forbidden, key)
    if isinstance(tags, Conflict):
        return replace(tags, capacity=capacity)
    found = several.outcome(appends, [results.get(each.stream) for each in appends], shown, capacity)
    return found if tags is None else _with_tags(found, tags)


def append_on(
    store: Streams, known: Known[Any], append: StreamAppend, forbidden: Forbidden
) -> Result[Any] | Conflict:
    """`Streams.append_on`, of one that concerns tags; or what is in the way of a query."""
    _check(store, append.events)
    token = known if known is None or isinstance(known, Token) else known.token()
    expected = NO_STREAM if token is None else replace(token, refused=0)
    append = replace(append, expected=expected)
    (batch,) = store.batches([append], tagged=True)
    results, tags, _ = _ran(store, [append], [batch], forbidden, None)
    if isinstance(tags, Conflict):
        return tags
    result: Result[Any] = results[append.stream]
    return result


def _check(store: Streams, events: Sequence[Event]) -> None:
    """Raise `InvalidInput` for tags that cannot be, and where there are none at all."""
    if not isinstance(store.layout, TaggedStreams):
        place = next((place for place, event in enumerate(events) if event.tags), None)
        field = "fail_if" if place is None else f"events[{place}].tags"
        raise InvalidInput(field, "must not be given: this store keeps no tags")
    for place, event in enumerate(events):
        if event.tags:
            check_type(event.type, f"events[{place}].type")
        for tag in event.tags:
            no_step(check_tag(tag, f"events[{place}].tags"), f"events[{place}].tags")


def _ran(
    store: Streams,
    appends: Sequence[StreamAppend],
    batches: Sequence[Batch],
    forbidden: Forbidden,
    key: str | None,
) -> tuple[Mapping[str, Any], Appended | Conflict | None, Capacity]:
    layout: TaggedStreams = store.layout  # type: ignore[assignment]  # as was checked
    tagged = store.tagged
    condition = tagged.condition(forbidden.fail_if, forbidden.after, forbidden.takes)
    steps = layout.append_tagged(
        tagged.site,
        [(batch, each.expected) for batch, each in zip(_labelled(appends, batches), appends, strict=True)],
        replace(_tagged(appends, batches), also=forbidden.also),
        condition,
        key,
    )
    driver, meter = store.driver.metered()
    with meter, going_with(forbidden.also):
        result: MixedResult | Unmet = driver.run(steps)
        if isinstance(result, Unmet):
            there = unmet(result.items)
            return {}, Conflict(events=(), position=Position(), unmet=there), meter.capacity
        tags = result.tags
        if tags is None and all(isinstance(each, Written) for each in result.streams.values()):
            tags = _replayed(replace(tagged, driver=driver.telling()), appends, forbidden)
        if tags is not None and forbidden.takes is None:
            tags = replace(tags, events=replace(tagged, driver=driver).whole(tags.events))
    return result.streams, tags, meter.capacity


def _labelled(appends: Sequence[StreamAppend], batches: Sequence[Batch]) -> list[Batch]:
    """The batches, whose events say their tags, and their places in the whole append."""
    places, labelled = count(), list[Batch]()
    for append, batch in zip(appends, batches, strict=True):
        given = zip(append.events, batch.events, places, strict=False)
        events = tuple(
            stored._replace(label=label_of(event.tags, place)) if event.tags else stored
            for event, stored, place in given
        )
        labelled.append(replace(batch, events=events))
    return labelled


def _tagged(appends: Sequence[StreamAppend], batches: Sequence[Batch]) -> TaggedBatch:
    """The events of all streams, with their homes."""
    first = batches[0]
    stored = [(batch.stream, at, event) for batch in batches for at, event in enumerate(batch.events)]
    return TaggedBatch(
        events=tuple(
            map(_dated, (event for each in appends for event in with_metadata(each.events)), stored)
        ),
        bodies=tuple((event.data, event.meta) for _, _, event in stored),
        now=first.now,
        append_id=first.append_id,
        etag=first.etag,
        dated=any(batch.dated for batch in batches),
        homes=tuple((stream, at) for stream, at, _ in stored),
    )


def _dated(event: Event, stored: tuple[str, int, EncodedEvent]) -> Event:
    """An event with its own time, where it has one, as that is stored."""
    return event if event.timestamp is None else replace(event, timestamp=stored[2].timestamp)


def _replayed(tagged: TaggedEvents, appends: Sequence[StreamAppend], forbidden: Forbidden) -> Appended:
    """What is told of tags where an earlier call had made the append."""
    events: list[Event] = [event for each in appends for event in each.events if event.tags]
    versions = tagged.counts(own_tags(events)) if events else {}
    return Appended(position=forbidden.after or Position(), versions=versions)


def _with_tags(found: Outcome, tags: Appended) -> Outcome:
    """The outcome with what is told of tags, and each stream's with its own events."""
    if not isinstance(found, Appended):
        return found
    streams = {
        name: replace(each, events=tuple(event for event in tags.events if event.stream == name))
        for name, each in found.streams.items()
    }
    return replace(found, streams=streams, position=tags.position, versions=tags.versions)
