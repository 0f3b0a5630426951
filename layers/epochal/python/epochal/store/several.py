"""Appends to several streams at once, between what a user hands in and what a layout answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from epochal.errors import ConditionUnmet, ConflictError, EpochalError, InvalidInput, TooLarge
from epochal.layout.streams import Also, AnyStreamLayout, Result, SeveralStreams, Unmet
from epochal.model.events import Event, no_step, stream_name
from epochal.model.kinds import must_be_list
from epochal.model.versions import (
    ANY,
    NOTHING,
    Appended,
    Capacity,
    Conflict,
    Outcome,
    StreamAppend,
    Undetermined,
    check_expected,
)
from epochal.plan.ops import TRANSACTION_ITEMS, Steps
from epochal.store.conflicts import going_with, unmet
from epochal.store.conflicts import not_made as one_not_made
from epochal.store.driver import Driver
from epochal.store.encoding import contents_digest

T = TypeVar("T")


def check(appends: Sequence[StreamAppend], key: str | None, also: int) -> None:
    """Raise `InvalidInput` for what cannot be one append, with so many items `also`, whatever is stored."""
    must_be_list(StreamAppend, appends, "appends")
    if not appends:
        raise InvalidInput("appends", "must not be empty")
    # A key of one stream alone needs no record, but where tags do.
    most = TRANSACTION_ITEMS - (key is not None and len(appends) > 1) - also
    if len(appends) > most:
        raise TooLarge("appends", len(appends), most, "streams")
    seen = set[str]()
    for place, each in enumerate(appends):
        with placed(place):
            check_expected(each.expected)
            name = stream_name(each.stream)
            no_step(name, "stream")
        if name in seen:
            raise InvalidInput("appends", f"must name a stream once: {each.stream}")
        seen.add(name)


def have_tags(appends: Sequence[StreamAppend]) -> bool:
    """Whether an event of theirs has tags. Raises `InvalidInput` where their events are none."""
    for place, each in enumerate(appends):
        with placed(place):
            must_be_list(Event, each.events, "events")
    return any(event.tags for each in appends for event in each.events)


@contextmanager
def placed(place: int, of: int = 2) -> Iterator[None]:
    """Add the append's place to the field of an `InvalidInput`, where there are several `of` them."""
    try:
        yield
    except InvalidInput as error:
        if of > 1 and error.field.startswith(("stream", "expected", "events", "unfolds")):
            error.call_it(f"appends[{place}].{error.field}")
        raise


def layout_of(layout: AnyStreamLayout, field: str = "appends") -> SeveralStreams:
    """The layout, which can append to several streams. Raises `InvalidInput` where it cannot."""
    if isinstance(layout, SeveralStreams):
        return layout
    raise InvalidInput(field, f"cannot be one append where streams are stored as {layout.name}")


def ran(driver: Driver, steps: Steps[T], also: Also) -> T:
    """What came of an append that this goes with."""
    with going_with(also):
        return driver.run(steps)


def not_met(stood: Unmet) -> ConditionUnmet:
    """As an error."""
    return ConditionUnmet(list(stood.items), Conflict(unmet=unmet(stood.items)))


def of_one(told: Outcome) -> Outcome:
    """The outcome of an append to one stream."""
    if not told.streams:
        return told
    (only,) = told.streams.values()
    return replace(only, capacity=told.capacity)


def checked_also(layout: AnyStreamLayout, own: Container[str], also: Also) -> Also:
    """What goes with an append to a store with these tables; raises as `epochal.also.checked` does."""
    from epochal.also import checked  # noqa: PLC0415  few appends have anything with them

    layout_of(layout, "also")
    return checked(also, own)


def derived(appends: Sequence[StreamAppend], key: str, also: Also = ()) -> bytes:
    """The append id that follows from a key, the streams in any order, the contents, and what goes with them."""
    going = b""
    if also:
        from epochal.also import digest  # noqa: PLC0415  as above

        going = digest(also)
    ordered = sorted(appends, key=lambda each: each.stream)
    # To one stream alone it is as without what goes with it: a key is used once there.
    names = (*(each.stream for each in ordered), key)
    whose = hashlib.sha256("\0".join(names if len(ordered) == 1 else ("", *names)).encode()).digest()
    if len(ordered) == 1:
        return whose[:8] + contents_digest(ordered[0].events, ordered[0].unfolds, going)
    contents = b"".join(contents_digest(each.events, each.unfolds) for each in ordered)
    return whose[:8] + hashlib.sha256(contents + going).digest()[:8]


def outcome(
    appends: Sequence[StreamAppend],
    results: Sequence[Any] | Unmet,
    shown: Callable[[Result[Any], Capacity], Outcome],
    capacity: Capacity,
) -> Outcome:
    """A layout's results as one outcome, by the names of streams."""
    if isinstance(results, Unmet):
        return Conflict(unmet=unmet(results.items), capacity=capacity)
    outcomes = {
        each.stream: shown(result, NOTHING)
        for each, result in zip(appends, results, strict=True)
        if result is not None
    }
    return told(outcomes, capacity)


def told(outcomes: Mapping[str, Outcome], capacity: Capacity) -> Outcome:
    """One outcome of the whole append, from those of its streams."""
    if conflicts := _those(outcomes, Conflict):
        return Conflict(streams=conflicts, capacity=capacity)
    if undetermined := _those(outcomes, Undetermined):
        return Undetermined(streams=undetermined, capacity=capacity)
    return Appended(streams=_those(outcomes, Appended), capacity=capacity)


def not_made(appends: Sequence[StreamAppend], outcome: Conflict | Undetermined) -> EpochalError:
    """The error of an append that was not made. It speaks of the first stream; a conflict carries all of them."""
    if not outcome.streams:
        return one_not_made("", outcome, ANY)
    each_of: Mapping[str, Conflict | Undetermined] = outcome.streams
    stream, first = next(iter(each_of.items()))
    error = one_not_made(stream, first, next(each.expected for each in appends if each.stream == stream))
    error.capacity = outcome.capacity
    if isinstance(error, ConflictError):
        error.outcome = outcome
    return error


def _those(outcomes: Mapping[str, Outcome], kind: type[T]) -> dict[str, T]:
    return {stream: each for stream, each in outcomes.items() if isinstance(each, kind)}
