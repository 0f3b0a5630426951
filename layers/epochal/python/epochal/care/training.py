"""Training a dictionary on how the events of a category are written, and on nothing that a person could be told by.

    example      an event as a frame has it, without ids and times; JSON alone, and nothing that is sealed
    token        a word, a run of digits, or any other character; blank where it may tell of a person (`telling`)
    fragment     tokens in a row, none of them blank, that examples of enough holders have, as many as they share
    dictionary   the fragments that would have saved most, and zstd's statistics of the examples

A holder is whose streams are: eight orders of one customer are one holder's. What is schema, `SHARED_BY` holders must
have; a row with a word of a value, `SAID_BY`. The statistics tell how often characters occur, and are taken of examples
whose other tokens are replaced by noise of their kind.

zstd's own trainer keeps whatever is long and often, be it the notes of one stream.

A category's next dictionary: trained on some of its streams, measured on others, and in use where that pays.

Frames under an older one stay as they are, and are read as before.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from epochal.care.auditor import Trained
from epochal.care.telling import BLANK, WORD, Holders, Link, Piece, Told, blanked
from epochal.codec import json
from epochal.codec.bodies import DIRECT, EMPTY, Encoded, decode
from epochal.codec.dictionaries import Dictionary, finished
from epochal.errors import CorruptData
from epochal.layout.pages.dictionaries import (
    category_with_one,
    find_in_use,
    learn_for,
    put_in_use,
    training_due,
)
from epochal.layout.pages.frames import Frame, pack_events, time_of, write_events
from epochal.layout.pages.items import Page, read_page
from epochal.layout.streams import EncodedEvent
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Ticks, format_ticks, from_unix_nanoseconds, sealed_in
from epochal.plan.ops import Steps
from epochal.plan.values import Item

SHARED_BY: Final = 5
"""Holders that must have a fragment, at least, of names and punctuation alone."""

SAID_BY: Final = 10
"""And one that has a word of a value."""

_ONE_IN: Final = 40
"""Of many streams, one in so many must: what few of a thousand have crowds out what saves more."""

_SAID_ONE_IN: Final = 20
"""And of streams that have a word of a value."""

ROOM: Final = 3_600
"""Bytes of a dictionary at most, so that its item is read for one unit; some two hundred are statistics."""

_STATISTICS: Final = 250
_MOST_TOKENS: Final = 48
"""Of a fragment: a longer one is several."""

_META: Final = "metadata"
_LETTER: Final = re.compile(rb"[A-Za-z0-9_\x80-\xff]")
_DIGITS: Final = b"0123456789"
_COPY: Final = 3
"""Bytes that a fragment still takes where it is named."""

_WORTH: Final = 1_000
"""A fragment that saves less than this part of all that can be saved is left out: it is in the way of better ones."""

_MOMENT: Final = from_unix_nanoseconds(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An event to train on, and whose it is."""

    stream: str
    told: Told


def example_of(stream: str, event: EncodedEvent) -> Example | None:
    """An event, if it may be trained on."""
    data, meta = _plain(event.data), _plain(event.meta)
    if data is None:
        return None
    bare = event._replace(
        data=Encoded(DIRECT, data),
        meta=Encoded(DIRECT, meta) if meta else EMPTY,
        timestamp=format_ticks(_MOMENT),
        correlation_id=None,
        causation_id=None,
    )
    content, told, kind = write_events([bare], _MOMENT), Told(), event.type.encode()
    at = content.index(kind, 1)
    told.framing(content[:at])
    told.schema(kind)
    at += len(kind)
    for where, body in ((event.type, data), (_META, meta or b"")):
        begins = content.index(body, at)
        told.framing(content[at:begins])
        told.body(body, where)
        at = begins + len(body)
    told.of_stream(stream)
    return Example(stream=stream, told=told)


def train(
    examples: Sequence[Example], subjects: Mapping[str, Iterable[str]] | None = None
) -> Dictionary | None:
    """A dictionary of what the examples share; None where that is nothing.

    Args:
        subjects: of streams, whom something in them is sealed for: streams that have one in common are one holder's.
    """
    content, noisy = content_of(examples, subjects or {})
    return finished(content, noisy, ROOM) if content else None


def content_of(
    examples: Sequence[Example], subjects: Mapping[str, Iterable[str]]
) -> tuple[bytes, list[bytes]]:
    """What is said in a dictionary of the examples, and the examples that its statistics are taken of."""
    links: dict[str, set[Link]] = {}
    for example in examples:
        links.setdefault(example.stream, set()).update(example.told.links)
    for stream, sealed_for in subjects.items():
        if stream in links:
            links[stream].update(Link("$subject", each, sure=True) for each in sealed_for)
    holders, streams = Holders(links, 2 * SAID_BY), [example.stream for example in examples]
    tokens = _said_by_many(streams, blanked(example.told for example in examples), holders)
    longest = _longest_shared(streams, tokens, holders)
    return _joined(_chosen(_fragments(tokens, longest))), list(_noisy(tokens, longest))


def subjects_of(event: EncodedEvent) -> Iterator[str]:
    """Whom something in an event is sealed for."""
    for body in (event.data, event.meta):
        try:
            found = decode(body)
            sealed = sealed_in(json.loads(found)) if isinstance(found, bytes) and found else ()
        except (CorruptData, ValueError):
            continue
        yield from (each["subject"] for each in sealed if isinstance(each.get("subject"), str))


def _plain(body: Encoded) -> bytes | None:
    """A body that may be trained on, as it was given; None for any other."""
    try:
        found = decode(body)
        if not isinstance(found, bytes):
            return None
        return None if found and any(sealed_in(json.loads(found))) else found
    except (CorruptData, ValueError):
        return None


def _said_by_many(
    streams: Sequence[str], tokens: Sequence[list[Piece]], holders: Holders
) -> list[list[Piece]]:
    """The tokens, with words blank that too few holders have."""
    enough = max(SAID_BY, len(set(streams)) // _SAID_ONE_IN)
    having: dict[bytes, set[str]] = {}
    for stream, mine in zip(streams, tokens, strict=True):
        for token in mine:
            if token.role == WORD:
                having.setdefault(token.text, set()).add(stream)
    kept = {word for word, by in having.items() if holders.are(by, enough)}
    return [
        [
            token._replace(role=BLANK) if token.role == WORD and token.text not in kept else token
            for token in mine
        ]
        for mine in tokens
    ]


def _longest_shared(
    streams: Sequence[str], tokens: Sequence[list[Piece]], holders: Holders
) -> list[list[int]]:
    """Of every token, how many in a row from there on enough holders have.

    Runs grow by a token at a time: one that is shared begins with one that is.
    """
    enough = max(SHARED_BY, len(set(streams)) // _ONE_IN)
    longest = [[0] * len(mine) for mine in tokens]
    runs = [{at: 0 for at, token in enumerate(mine) if token.role != BLANK} for mine in tokens]
    for length in range(1, _MOST_TOKENS + 1):
        having: dict[tuple[int, bytes], set[str]] = {}
        for stream, mine, growing in zip(streams, tokens, runs, strict=True):
            for at, run in growing.items():
                if at + length <= len(mine) and (last := mine[at + length - 1]).role != BLANK:
                    having.setdefault((run, last.text), set()).add(stream)
        shared = {row: number for number, (row, by) in enumerate(having.items()) if holders.are(by, enough)}
        if not shared:
            break
        for position, (mine, growing) in enumerate(zip(tokens, runs, strict=True)):
            grown = {
                at: shared[run, mine[at + length - 1].text]
                for at, run in growing.items()
                if at + length <= len(mine)
                and mine[at + length - 1].role != BLANK
                and (run, mine[at + length - 1].text) in shared
            }
            runs[position] = grown
            for at in grown:
                longest[position][at] = length
    return longest


def _fragments(tokens: Sequence[list[Piece]], longest: Sequence[list[int]]) -> Counter[bytes]:
    """How often each fragment occurs."""
    return Counter(
        piece
        for mine, reach in zip(tokens, longest, strict=True)
        for piece, shared in _pieces(mine, reach)
        if shared
    )


def _pieces(mine: list[Piece], reach: list[int]) -> Iterator[tuple[bytes, bool]]:
    """An example as fragments, and between them tokens that too few streams have."""
    at = 0
    while at < len(mine):
        length = reach[at]
        yield b"".join(token.text for token in mine[at : at + max(1, length)]), length > 0
        at += max(1, length)


def _chosen(fragments: Counter[bytes]) -> list[bytes]:
    """Those that save most, the best of them last: what is near is named in fewer bytes."""
    saved = {piece: count * (len(piece) - _COPY) for piece, count in fragments.items() if count > 1}
    chosen: list[bytes] = []
    room = ROOM - _STATISTICS
    least = max(1, sum(saved.values()) // _WORTH)
    for piece in sorted(saved, key=lambda each: (-saved[each], each)):
        if saved[piece] < least:
            break
        if len(piece) <= room and not any(piece in other for other in chosen):
            chosen.append(piece)
            room -= len(piece)
    return chosen[::-1]


def _joined(fragments: Iterable[bytes]) -> bytes:
    """One after another, so that the end of one and the beginning of the next make no other word."""
    joined = b""
    for piece in fragments:
        joined += (b" " if _LETTER.match(joined[-1:]) and _LETTER.match(piece) else b"") + piece
    return joined


def _noisy(tokens: Sequence[list[Piece]], longest: Sequence[list[int]]) -> Iterator[bytes]:
    """The examples, with digits for digits and shared letters for letters in what is not shared."""
    pieces = [list(_pieces(mine, reach)) for mine, reach in zip(tokens, longest, strict=True)]
    letters = b"".join(piece for example in pieces for piece, shared in example if shared and piece.isalpha())
    size = sum(len(piece) for example in pieces for piece, shared in example if not shared)
    noise = iter(hashlib.shake_256(b"noise").digest(2 * size))
    for example in pieces:
        yield b"".join(
            piece if shared else _noise(piece, letters or b"e", noise) for piece, shared in example
        )


def _noise(piece: bytes, letters: bytes, noise: Iterable[int]) -> bytes:
    drawn = iter(noise)
    numbers = [256 * next(drawn) + next(drawn) for _ in piece]
    return bytes(
        _DIGITS[number % 10] if each in _DIGITS else letters[number % len(letters)]
        for each, number in zip(piece, numbers, strict=True)
    )


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


def retrain_if_due(table: str, category: str, images: Iterable[Item], now: Ticks) -> Steps[Trained | None]:
    """The same, if it is the category's turn; then it is not for a week."""
    if (yield from training_due(table, category, now)):
        return (yield from retrain(table, category, images))
    return None


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
