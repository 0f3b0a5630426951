"""Puts the changes of a batch into the order of their appends.

An append to several tags changes one head for each tag, and the table's stream reports the heads one after another.
Layouts number the events within an append, and this module sorts the events of one append by these numbers: an event
with several tags comes through all of them before the next event.

Appends without tags have no such numbers, so a batch without streams of tags keeps its order.

A change joins an earlier one only if no other change of its stream lies between, since streams keep their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from epochal.layout.changes import Change, Span
from epochal.layout.source import Source
from epochal.model.stream_names import TAG_STREAMS
from epochal.plan.values import Item

R = TypeVar("R")


class _Part(NamedTuple):
    """A span that one append has added to a stream, with the numbers of its events in the append."""

    span: Span
    numbers: Sequence[int]


def in_append_order(source: Source, changes: Sequence[tuple[Item, Change, R]]) -> list[tuple[Change, R]]:
    """Return the changes in order; events that one append put in several streams come by their numbers.

    Args:
        source: source of the images.
        changes: images with their changes, and an object that stays with each.
    """
    parts = _parts(source, changes)
    if not parts:
        return [(change, rest) for _, change, rest in changes]
    groups = list[list[tuple[int, Change, R]]]()
    of_append, of_stream = dict[bytes, int](), dict[str, int]()
    for place, (_, change, rest) in enumerate(changes):
        append = parts[place][0] if place in parts else b""
        group = of_append.get(append, -1)
        if not append or group <= of_stream.get(change.stream, -1):
            group = len(groups)
            groups.append([])
            of_append.update({append: group} if append else {})
        groups[group].append((place, change, rest))
        of_stream[change.stream] = group
    ordered = list[tuple[Change, R]]()
    for members in groups:
        if len(members) == 1:
            ordered += [(change, rest) for _, change, rest in members]
        else:
            joined = _joined([parts[place][1] for place, _, _ in members])
            ordered += [(span, members[number][2]) for number, span in joined]
    return ordered


def _parts(source: Source, changes: Sequence[tuple[Item, Change, object]]) -> dict[int, tuple[bytes, _Part]]:
    """Return the append id and numbered span of each change that shares an append, by place in `changes`."""
    tagged = any(change.stream.startswith(TAG_STREAMS) for _, change, _ in changes)
    if source.append_id is None or source.numbers is None or not tagged:
        return {}
    appends = [source.append_id(image) if isinstance(change, Span) else None for image, change, _ in changes]
    shared = {append for append, count in Counter(appends).items() if append and count > 1}
    parts: dict[int, tuple[bytes, _Part]] = {}
    for place, (append, (image, change, _)) in enumerate(zip(appends, changes, strict=True)):
        if append is None or append not in shared or not isinstance(change, Span):
            continue
        numbers = source.numbers(image)
        if numbers is not None and len(numbers) == len(change.types) and [*numbers] == sorted(numbers):
            parts[place] = append, _Part(change, numbers)
    return parts


def _joined(parts: Sequence[_Part]) -> Iterator[tuple[int, Span]]:
    """Yield an append's events in order of their numbers, as pieces of spans, each with its part's place."""
    events = sorted(
        (number, part, offset)
        for part, (_, numbers) in enumerate(parts)
        for offset, number in enumerate(numbers)
    )
    for part, run in groupby(events, key=lambda event: event[1]):
        offsets = [offset for _, _, offset in run]
        span = parts[part].span
        yield part, span.until(span.index + offsets[-1] + 1).since(span.index + offsets[0])
