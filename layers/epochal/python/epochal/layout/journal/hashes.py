"""What each of event-store-adapter's libraries hashes an aggregate's key with, as its default resolver does. This
outlives the code: another hash looks for an aggregate in another partition.

    javascript     over the whole id: 31 * h + unit over UTF-16 units, in 32 bits, unsigned
    rust           over the value: SipHash-1-3 of its bytes and one byte 0xff, the key all zeros (`DefaultHasher`)
    go             over the value: FNV-1a in 64 bits
    java           over the value: the size of `hashCode`, below zero for one of them; Kotlin and Scala likewise
    php            over the value: CRC-32

.NET's hash of a text is another one in every process, so nothing is found by it, not by .NET itself either.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from epochal.layout.journal.keys import javascript, times_31
from epochal.model.aggregates import Hash

_64: Final = 0xFFFF_FFFF_FFFF_FFFF


def java_size(text: str) -> int:
    """`Math.abs(text.hashCode())`: of the least number there is no positive one in 32 bits, so it stays as it is."""
    unsigned = times_31(text)
    return unsigned if unsigned < 1 << 31 else -unsigned if unsigned == 1 << 31 else (1 << 32) - unsigned


def fnv_1a(data: bytes) -> int:
    """FNV-1a in 64 bits."""
    total = 0xCBF2_9CE4_8422_2325
    for byte in data:
        total = (total ^ byte) * 0x100_0000_01B3 & _64
    return total


def siphash_1_3(data: bytes) -> int:
    """SipHash with a key of zeros, one round for a block and three at the end, as a number."""
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
"""By the library whose default it is."""
