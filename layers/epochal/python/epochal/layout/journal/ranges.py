"""Ranges of a journal that hold event numbers: as unpadded text they come as 1, 10, 100, 101, 11, 2.

Between the texts of two numbers of equal length are the numbers between them, in order; among these are shorter ones,
one for ten of them, and longer ones, ten for each. How many is arithmetic, so what a range costs is known before it
is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from epochal.plan.limits import BATCH_KEYS

SORTED_AT_MOST: Final = 20_000
"""Events that are held at once, to be sorted."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Sort keys from one text up to another, both behind the aggregate's id; `most` of its events are there."""

    low: str
    high: str
    most: int


def worthwhile(first: int, last: int, total: int) -> list[KeyRange]:
    """Ranges that hold fewer than twice the events wanted of them: `first` to `last` of the `total` there are.

    One for all, or one for each length of number, where more events of it are wanted than a request reads by key.
    """
    parts = list(_parts(first, last))
    if len(parts) == 1:
        return [each for each in (_alike(*parts[0], total),) if _is_dense(each, first, last)]
    whole = KeyRange("0", ":", total)
    if last - first < SORTED_AT_MOST and _is_dense(whole, first, last):
        return [whole]
    long = [part for part in parts if part[1] - part[0] >= BATCH_KEYS]
    return [found for part in long if _is_dense(found := _alike(*part, total), *part)]


def beginning(first: int, last: int, total: int) -> KeyRange | None:
    """The range that holds the first of these numbers, all those of equal length, in order; None where another way
    is cheaper.
    """
    end = _end(first, last)
    found = _alike(first, end, total)
    return found if _is_dense(found, first, end) else None


def _parts(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The numbers by their lengths."""
    while first <= last:
        yield first, _end(first, last)
        first = _end(first, last) + 1


def _end(first: int, last: int) -> int:
    longest: int = 10 ** len(str(first)) - 1
    return min(last, longest)


def _is_dense(found: KeyRange, first: int, last: int) -> bool:
    return found.most < 2 * (last - first + 1)


def _alike(first: int, last: int, total: int) -> KeyRange:
    """The range of numbers of equal length."""
    lengths = range(1, len(str(total)) + 1)
    return KeyRange(str(first), str(last), sum(_lying(length, first, last, total) for length in lengths))


def _lying(length: int, first: int, last: int, total: int) -> int:
    """How many numbers of this length, up to `total`, are in the range."""
    digits = len(str(first))
    scale: int = 10 ** abs(length - digits)
    if length > digits:
        # A text is before all those that it begins: those of `first` are in the range, those of `last` are not.
        lowest, highest = first * scale, last * scale - 1
    else:
        lowest, highest = first // scale + (length < digits), last // scale
    return max(0, min(highest, total) - lowest + 1)
