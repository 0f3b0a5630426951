"""Hashes of the ids of aggregates, as the libraries of event-store-adapter make them (FORMATS §2).

With another hash, an aggregate is looked for in another partition.

    javascript     over the whole id: 31 * h + unit over UTF-16 units, in 32 bits, unsigned
    rust           over the value: SipHash-1-3 of its bytes and one byte 0xff, the key all zeros (`DefaultHasher`)
    go             over the value: FNV-1a in 64 bits
    java           over the value: the size of `hashCode`, below zero for one of them; Kotlin and Scala likewise
    php            over the value: CRC-32

The hash of a text in .NET is another one in every process, so nothing is found by it, not by .NET itself either.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from epochal.contrib.event_store_adapter import LIBRARY
from epochal.contrib.event_store_adapter.ids import AggregateId, Hash
from epochal.errors import InvalidInput

_32: Final = 0xFFFF_FFFF


def times_31(text: str) -> int:
    """Hash a text as Java and JavaScript do: `h = 31 * h + unit` over UTF-16 units, 32 bits, unsigned."""
    total = 0
    units = text.encode("utf-16-le")
    for low, high in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + (high << 8 | low)) & _32
    return total


def javascript(aggregate: AggregateId) -> int:
    """Hash an aggregate's whole id as the JavaScript library does; this is the default."""
    return times_31(str(aggregate))


def hash_of(given: str | Hash, field: str = "keys") -> Hash:
    """Return the hash function of the given library, or the given function; raise for other names.

    Raises:
        InvalidInput: there is no hash for that name; the error names `field`.
    """
    if not isinstance(given, str):
        return given
    if given == "dotnet":
        raise InvalidInput(
            field, ".NET's own hash differs in every process: give the hash that the application uses"
        )
    if given == LIBRARY:
        return javascript
    if given not in HASHES:
        raise InvalidInput(field, f"must be one of {', '.join(HASHES)}, or a hash function of aggregate ids")
    return HASHES[given]


_64: Final = 0xFFFF_FFFF_FFFF_FFFF


def java_size(text: str) -> int:
    """Hash a text as Java's `Math.abs(text.hashCode())` does.

    The least number has no positive counterpart in 32 bits, so it stays negative.
    """
    unsigned = times_31(text)
    return unsigned if unsigned < 1 << 31 else -unsigned if unsigned == 1 << 31 else (1 << 32) - unsigned


def fnv_1a(data: bytes) -> int:
    """Hash bytes with FNV-1a in 64 bits."""
    total = 0xCBF2_9CE4_8422_2325
    for byte in data:
        total = (total ^ byte) * 0x100_0000_01B3 & _64
    return total


def siphash_1_3(data: bytes) -> int:
    """Hash bytes with SipHash-1-3 and a key of zeros; return the hash as a number of 64 bits.

    There is one round for each block, and three at the end.
    """
    state = [0x736F_6D65_7073_6575, 0x646F_7261_6E64_6F6D, 0x6C79_6765_6E65_7261, 0x7465_6462_7974_6573]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for start in range(0, len(padded), 8):
        block = int.from_bytes(padded[start : start + 8], "little")
        state[3] ^= block
        _sip_round(state)
        state[0] ^= block
    state[2] ^= 0xFF
    for _ in range(3):
        _sip_round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(state: list[int]) -> None:
    """Do one round of SipHash on the state, four numbers of 64 bits, in place."""
    a, b, c, d = state
    a = a + b & _64
    b = _turned(b, 13) ^ a
    a = _turned(a, 32)
    c = c + d & _64
    d = _turned(d, 16) ^ c
    a = a + d & _64
    d = _turned(d, 21) ^ a
    c = c + b & _64
    b = _turned(b, 17) ^ c
    state[:] = a, b, _turned(c, 32), d


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _64


HASHES: Final[Mapping[str, Hash]] = MappingProxyType(
    {
        "javascript": javascript,
        "rust": lambda aggregate: siphash_1_3(aggregate.value.encode() + b"\xff"),
        "go": lambda aggregate: fnv_1a(aggregate.value.encode()),
        "java": lambda aggregate: java_size(aggregate.value),
        "php": lambda aggregate: zlib.crc32(aggregate.value.encode()),
    }
)
"""Hash functions by the name of the library whose default they are."""
