"""Dictionaries: what the events of a category have in common, so that none of them need say it again (FORMATS §8).

    packed    id of the dictionary (4 bytes)   the one block of a frame of zstd (RFC 8878, 3.1.1.2), compressed

This outlives the code. An id is the beginning of the SHA-256 of what the dictionary holds. So a dictionary that this
process has met is the one of that id for whoever asks, whatever table it is from, and it is kept.

What stands before a block is the same for every event but for the block's size, so it is not stored. Level 6 costs half
of what brotli costs at its level 5.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from typing import Final

from epochal.errors import CorruptData, UnknownDictionary

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ID_BYTES: Final = 4

LEVEL: Final = 6

_FRAME: Final = b"\x28\xb5\x2f\xfd\x00"
"""The first bytes of a zstd frame without content size, dictionary id and checksum."""

_WINDOW: Final = b"\x38"
"""The window descriptor for 128 KiB, the most that a block holds."""

_BLOCK_AT: Final = len(_FRAME) + len(_WINDOW)
_SIZE_BYTES: Final = 3
_COMPRESSED: Final = 2
_LAST: Final = 1

_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: LEVEL,
    zstd.CompressionParameter.min_match: 5,
    zstd.CompressionParameter.checksum_flag: 0,
    zstd.CompressionParameter.content_size_flag: 0,
    zstd.CompressionParameter.dict_id_flag: 0,
}

_LONG: Final = 512
"""Bytes from which on a body gains by matches of five bytes and more alone. zstd takes that with a dictionary that it
makes ready anew for each, which costs ten microseconds; one that is ready has the matches of its level."""


class Dictionary:
    """A dictionary of zstd, ready for use by any number of threads.

    Attributes:
        content: as stored.
        id: what frames call it.
    """

    __slots__ = ("_loaded", "content", "id")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.id = id_of(content)
        try:
            self._loaded = zstd.ZstdDict(content)
        except (ValueError, zstd.ZstdError) as error:
            raise CorruptData(f"dictionary {self.id.hex()} is none of zstd's") from error

    def pack(self, body: bytes) -> bytes | None:
        """Compress a body, under this dictionary's id; None where that takes more than one block, or gains nothing."""
        ready = self._loaded.as_digested_dict if len(body) < _LONG else self._loaded
        frame: bytes = zstd.compress(body, options=_OPTIONS, zstd_dict=ready)
        block = frame[_BLOCK_AT + _SIZE_BYTES :]
        # Of frames that begin so, those with less of a window, or as much, come first.
        alone = frame[:_BLOCK_AT] <= _FRAME + _WINDOW and frame[_BLOCK_AT:] == _headed(block)
        return self.id + block if alone else None

    def unpack(self, packed: bytes, limit: int) -> bytes:
        """The inverse; at most `limit` bytes. Raises `CorruptData`."""
        expander = zstd.ZstdDecompressor(zstd_dict=self._loaded)
        try:
            body: bytes = expander.decompress(_FRAME + _WINDOW + _headed(packed[ID_BYTES:]), limit)
        except (OverflowError, zstd.ZstdError) as error:
            raise CorruptData(f"it is not packed by dictionary {self.id.hex()}") from error
        if not expander.eof or expander.unused_data or not body:
            raise CorruptData("what a dictionary packed is cut off, too large or followed by something")
        return body


def _headed(block: bytes) -> bytes:
    """A block with what stands before it where it is compressed and the last one."""
    return (len(block) << 3 | _COMPRESSED << 1 | _LAST).to_bytes(_SIZE_BYTES, "little") + block


_KNOWN: dict[bytes, Dictionary] = {}


def id_of(content: bytes) -> bytes:
    """The id by which frames name a dictionary."""
    return hashlib.sha256(content).digest()[:ID_BYTES]


def learn(content: bytes) -> Dictionary:
    """A dictionary, known from now on. Raises `CorruptData` where it is none, or another has its id."""
    found = _KNOWN.get(id_of(content))
    if found is None:
        found = Dictionary(content)
        _KNOWN[found.id] = found
    if found.content != content:
        raise CorruptData(f"two dictionaries are called {found.id.hex()}")
    return found


def finished(content: bytes, samples: Sequence[bytes], size: int) -> Dictionary | None:
    """A dictionary of this content, with statistics of what samples take besides; None where that makes none.

    Args:
        size: bytes of it, at most.
    """
    try:
        return learn(
            zstd.finalize_dict(zstd.ZstdDict(content, is_raw=True), samples, size, LEVEL).dict_content
        )
    except (ValueError, zstd.ZstdError, CorruptData):
        return None


def is_known(dictionary: bytes) -> bool:
    """Whether this process has the dictionary of an id."""
    return dictionary in _KNOWN


def unpack(packed: bytes, limit: int) -> bytes:
    """Decompress content that was packed with the dictionary it names.

    Raises:
        UnknownDictionary: this process has not met it.
        CorruptData: it did not pack this.
    """
    dictionary = _KNOWN.get(packed[:ID_BYTES])
    if dictionary is None:
        raise UnknownDictionary(packed[:ID_BYTES].hex())
    return dictionary.unpack(packed, limit)
