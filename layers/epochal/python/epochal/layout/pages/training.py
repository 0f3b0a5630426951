"""Training a dictionary on what events of many streams have in common, and on nothing that is one stream's.

    example      an event as a frame has it, without ids and times; JSON alone, and nothing that is sealed
    token        a word, a run of digits, or any other character by itself
    fragment     tokens in a row that examples of at least `SHARED_BY` streams have, as many as they share
    dictionary   the fragments that would have saved most, and zstd's statistics of the examples

All that a dictionary says is said by several streams, in these words and this order; names, numbers or notes of one
stream are in none. The statistics tell how often characters occur, and are taken of examples whose other tokens are
replaced by noise of their kind.

zstd's own trainer keeps whatever is long and often, be it the notes of one stream.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from epochal.codec import json
from epochal.codec.bodies import DIRECT, EMPTY, Encoded, decode
from epochal.codec.dictionaries import Dictionary, finished
from epochal.errors import CorruptData
from epochal.layout.pages.contents import write_events
from epochal.layout.stored import EncodedEvent
from epochal.model.json_bodies import SEALED
from epochal.model.times import format_ticks, from_unix_nanoseconds

SHARED_BY: Final = 5
"""Streams that must have a fragment, at least."""

_ONE_IN: Final = 40
"""Of many streams, one in so many must: some of a thousand have the same four digits by chance, after the same word.
Such fragments crowd out those that save more."""

ROOM: Final = 3_600
"""Bytes of a dictionary at most, so that its item is read for one unit; some two hundred are statistics."""

_STATISTICS: Final = 250
_MOST_TOKENS: Final = 48
"""Of a fragment: a longer one is several."""

_TOKEN: Final = re.compile(rb"[A-Za-z_\x80-\xff]+|[0-9]+|[^A-Za-z0-9_\x80-\xff]", re.DOTALL)
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
    content: bytes


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
    return Example(stream=stream, content=write_events([bare], _MOMENT))


def train(examples: Sequence[Example]) -> Dictionary | None:
    """A dictionary of what the examples share; None where that is nothing."""
    tokens = [_TOKEN.findall(example.content) for example in examples]
    longest = _longest_shared([example.stream for example in examples], tokens)
    fragments = _chosen(_fragments(tokens, longest))
    noisy = list(_noisy(tokens, longest))
    return finished(b"".join(fragments), noisy, ROOM) if fragments else None


def _plain(body: Encoded) -> bytes | None:
    """A body that may be trained on, as it was given; None for any other."""
    try:
        found = decode(body)
        if not isinstance(found, bytes):
            return None
        return None if found and _holds_sealed(json.loads(found)) else found
    except (CorruptData, ValueError):
        return None


def _holds_sealed(value: Any) -> bool:
    """Whether something in it is sealed for a subject (FORMATS §7)."""
    level = [value]
    while level:
        if any(isinstance(each, dict) and SEALED in each for each in level):
            return True
        nested = (
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        )
        level = [inner for each in nested for inner in each]
    return False


def _longest_shared(streams: Sequence[str], tokens: Sequence[list[bytes]]) -> list[list[int]]:
    """Of every token, how many in a row from there on enough streams have.

    Runs grow by a token at a time: one that is shared begins with one that is.
    """
    enough = max(SHARED_BY, len(set(streams)) // _ONE_IN)
    longest = [[0] * len(mine) for mine in tokens]
    runs = [dict.fromkeys(range(len(mine)), 0) for mine in tokens]
    for length in range(1, _MOST_TOKENS + 1):
        having: dict[tuple[int, bytes], set[str]] = {}
        for stream, mine, growing in zip(streams, tokens, runs, strict=True):
            for at, run in growing.items():
                if at + length <= len(mine):
                    having.setdefault((run, mine[at + length - 1]), set()).add(stream)
        shared = {run: number for number, (run, by) in enumerate(having.items()) if len(by) >= enough}
        if not shared:
            break
        for position, (mine, growing) in enumerate(zip(tokens, runs, strict=True)):
            grown = {
                at: shared[run, mine[at + length - 1]]
                for at, run in growing.items()
                if at + length <= len(mine) and (run, mine[at + length - 1]) in shared
            }
            runs[position] = grown
            for at in grown:
                longest[position][at] = length
    return longest


def _fragments(tokens: Sequence[list[bytes]], longest: Sequence[list[int]]) -> Counter[bytes]:
    """How often each fragment occurs."""
    return Counter(
        piece
        for mine, reach in zip(tokens, longest, strict=True)
        for piece, shared in _pieces(mine, reach)
        if shared
    )


def _pieces(mine: list[bytes], reach: list[int]) -> Iterator[tuple[bytes, bool]]:
    """An example as fragments, and between them tokens that too few streams have."""
    at = 0
    while at < len(mine):
        length = reach[at]
        yield b"".join(mine[at : at + max(1, length)]), length > 0
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


def _noisy(tokens: Sequence[list[bytes]], longest: Sequence[list[int]]) -> Iterator[bytes]:
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
