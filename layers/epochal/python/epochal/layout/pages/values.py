"""Whole numbers, texts and bytes one after another, each in one form only (FORMATS §8).

A number is written in groups of seven bits, the lowest first, and each byte but the last has its high bit set; no byte
is written that adds nothing. One that may be below zero is doubled first, and less one where it was. Texts and bytes
follow their length.
"""

from __future__ import annotations

from typing import Final

from epochal.errors import CorruptData

_MORE: Final = 0x80
_BITS: Final = 63
"""A number has at most, so that it takes at most nine bytes."""

_CUT_OFF: Final = "it ends too early"


class Writer:
    """Puts values together."""

    __slots__ = ("_out",)

    def __init__(self) -> None:
        self._out = bytearray()

    def byte(self, value: int) -> None:
        """A number below 256."""
        self._out.append(value)

    def number(self, value: int) -> None:
        """A number of at least 0."""
        while value >= _MORE:
            self._out.append(value & 0x7F | _MORE)
            value >>= 7
        self._out.append(value)

    def signed(self, value: int) -> None:
        """A number that may be below 0."""
        self.number(value << 1 if value >= 0 else (-value << 1) - 1)

    def blob(self, value: bytes) -> None:
        """Bytes, after their length."""
        self.number(len(value))
        self._out += value

    def text(self, value: str) -> None:
        """UTF-8, after its length."""
        self.blob(value.encode())

    def add(self, value: bytes) -> None:
        """Bytes without their length."""
        self._out += value

    def written(self) -> bytes:
        """All of it."""
        return bytes(self._out)


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of at least 0, and where the next value is. Raises `CorruptData` where there is none in its one form."""
    try:
        byte = data[at]
        if byte < _MORE:  # as nearly all are
            return byte, at + 1
        value, shift = byte & 0x7F, 0
        while byte >= _MORE:
            at, shift = at + 1, shift + 7
            if shift >= _BITS:
                raise CorruptData("a number is too long")
            byte = data[at]
            value |= (byte & 0x7F) << shift
    except IndexError:
        raise CorruptData(_CUT_OFF) from None
    if not byte:
        raise CorruptData("a number is longer than it needs to be")
    return value, at + 1


def byte_at(data: bytes, at: int) -> tuple[int, int]:
    """A number below 256, likewise."""
    try:
        return data[at], at + 1
    except IndexError:
        raise CorruptData(_CUT_OFF) from None


def signed_at(data: bytes, at: int) -> tuple[int, int]:
    """A number that may be below 0, likewise."""
    doubled, at = number_at(data, at)
    return doubled >> 1 if doubled % 2 == 0 else -(doubled + 1 >> 1), at


def blob_at(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes, after their length, likewise."""
    length, at = number_at(data, at)
    end = at + length
    if end > len(data):
        raise CorruptData(_CUT_OFF)
    return data[at:end], end


def text_at(data: bytes, at: int) -> tuple[str, int]:
    """UTF-8, after its length, likewise."""
    value, at = blob_at(data, at)
    try:
        return value.decode(), at
    except UnicodeDecodeError as error:
        raise CorruptData("a text is not UTF-8") from error


class ByteReader:
    """Takes values apart, one after another, as the functions above do."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    @property
    def at_end(self) -> bool:
        """Whether all is read."""
        return self._at == len(self._data)

    def byte(self) -> int:
        """A number below 256."""
        value, self._at = byte_at(self._data, self._at)
        return value

    def number(self) -> int:
        """A number of at least 0."""
        value, self._at = number_at(self._data, self._at)
        return value

    def text(self) -> str:
        """UTF-8, after its length."""
        value, self._at = text_at(self._data, self._at)
        return value

    def take(self, length: int) -> bytes:
        """So many bytes."""
        end = self._at + length
        if end > len(self._data):
            raise CorruptData(_CUT_OFF)
        taken, self._at = self._data[self._at : end], end
        return taken

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._at)
