"""What a text may hold in base85: as Adobe writes it, or as Git and RFC 1924 do.

Where it begins is not known, since something may stand right before it, so each of five places is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_GROUP: Final = 5
"""Characters of four bytes."""

_LARGEST: Final = (1 << 32) - 1

_ADOBE: Final = {chr(ord("!") + number): number for number in range(85)}
_RFC_1924: Final = {
    character: number
    for number, character in enumerate(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    )
}


def decode_base85(text: str) -> Iterator[bytes]:
    """Yield what base85 text may stand for, in each alphabet and from each start; invalid groups are `?`."""
    zeros_written_out = text.replace("z", "!" * _GROUP)  # Adobe's abbreviation
    for digits, written in ((_ADOBE, zeros_written_out), (_RFC_1924, text)):
        numbers = [digits.get(character) for character in written]
        for start in range(_GROUP):
            groups = range(start, len(numbers) - _GROUP + 1, _GROUP)
            yield b"".join(_decode_group(numbers[place : place + _GROUP]) for place in groups)


def _decode_group(numbers: list[int | None]) -> bytes:
    total = 0
    for number in numbers:
        if number is None:
            return b"????"
        total = total * len(_ADOBE) + number
    return total.to_bytes(4, "big") if total <= _LARGEST else b"????"
