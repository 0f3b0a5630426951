"""A category's next dictionary: trained on some of its streams, measured on others, and in use where that pays.

Frames under an older one stay as they are, and are read as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from epochal.errors import CorruptData
from epochal.layout.pages.dictionaries import category_with_one, find_in_use, learn_for, put_in_use
from epochal.layout.pages.frames import Frame, pack_events, time_of
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.training import SHARED_BY, Example, example_of, subjects_of, train
from epochal.layout.stored import EncodedEvent
from epochal.model.training import Trained
from epochal.plan.ops import Steps
from epochal.plan.values import Item

if TYPE_CHECKING:
    from epochal.codec.dictionaries import Dictionary

PAYS: Final = 0.9
"""Of what appends take now; for less gain a process need not load another dictionary."""

EXAMPLES: Final = 240
"""At most: more of them find little more. With all below, training takes half a second."""

LEAST: Final = 30
"""Examples without which nothing is trained."""

HELD_OUT: Final = 3
"""One of so many streams is not trained on, so that it can be measured on."""

EACH: Final = 4
"""Examples of one stream, at most, so that a long one does not count for many."""

LARGEST: Final = 8 * 1024
"""Bytes of an example: a larger event has enough in itself to be compressed by."""

TOGETHER: Final = 128 * 1024
"""Bytes of all examples."""

MEASURED: Final = 200
"""Appends that a dictionary is measured on, at most."""


def retrain(table: str, category: str, images: Iterable[Item]) -> Steps[Trained]:
    """Train on pages of a category, and put the dictionary in use where it pays."""
    pages = [page for page in _readable(images, table) if category_with_one(page.stream) == category]
    yield from learn_for(table, pages)
    held_out = set(list(dict.fromkeys(page.stream for page in pages))[::HELD_OUT])
    subjects: dict[str, set[str]] = {}
    examples = list(_examples((page for page in pages if page.stream not in held_out), subjects))
    streams = len({example.stream for example in examples})
    enough = len(examples) >= LEAST and streams >= SHARED_BY
    dictionary = train(examples, subjects) if enough else None
    current = yield from find_in_use(table, category)
    measured = list(_appends(page for page in pages if page.stream in held_out))
    before = _taken(measured, current)
    after = before if dictionary is None else _taken(measured, dictionary)
    pays = dictionary is not None and after <= PAYS * before and bool(measured)
    if dictionary is not None and pays:
        yield from put_in_use(table, category, dictionary)
    return Trained(
        category=category,
        streams=streams,
        events=len(examples),
        measured=len(measured),
        before=before,
        after=after,
        dictionary=None if dictionary is None else dictionary.id.hex(),
        in_use=pays,
    )


def _readable(images: Iterable[Item], table: str) -> Iterator[Page]:
    for image in images:
        try:
            yield read_page(image, table)
        except CorruptData:
            continue


def _examples(pages: Iterable[Page], subjects: dict[str, set[str]]) -> Iterator[Example]:
    """Events to train on, few of each stream, as many as there is time for; and whom others are sealed for."""
    count = room = 0
    of_stream: dict[str, int] = {}
    for page in pages:
        for event in _events(page):
            if count == EXAMPLES or of_stream.get(page.stream, 0) == EACH:
                break
            subjects.setdefault(page.stream, set()).update(subjects_of(event))
            size = len(event.data.data) + len(event.meta.data)
            if (
                size > LARGEST
                or room + size > TOGETHER
                or (example := example_of(page.stream, event)) is None
            ):
                continue
            yield example
            count += 1
            room += size
            of_stream[page.stream] = of_stream.get(page.stream, 0) + 1


def _events(page: Page) -> Iterator[EncodedEvent]:
    """The events of a page that can be read and are not pruned, the last ones first."""
    span = page.span
    for offset in reversed(range(span.next - span.base)):
        try:
            yield span.read(offset)
        except CorruptData:
            continue


def _appends(pages: Iterable[Page]) -> Iterator[tuple[Frame, Sequence[EncodedEvent]]]:
    """Appends to measure a dictionary on, the last of each page."""
    frames = ((page, position) for page in pages for position in range(len(page.frames))[-EACH:])
    for page, position in islice(frames, MEASURED):
        try:
            yield page.frames[position], page.read_frame(position)
        except CorruptData:
            continue


def _taken(appends: Iterable[tuple[Frame, Sequence[EncodedEvent]]], dictionary: Dictionary | None) -> int:
    """Bytes that appends take where they are packed under a dictionary, or without one."""
    return sum(
        len(pack_events(events, time_of(frame.stamp), dictionary=dictionary).data)
        for frame, events in appends
    )
