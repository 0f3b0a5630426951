"""Search for a text in whatever a program has left: items, objects, files, log lines, messages, errors.

The search walks every value, whatever it is made of, and looks into what is encoded or compressed: base64, hex, escapes
of JSON, gzip, zlib, raw deflate, brotli and Parquet, one within another. So what a new feature stores is searched, too.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import brotli
import pyarrow.parquet as pq

DEPTH = 5
"""How many encodings may lie within one another."""

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){12,}")
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})")
_SPACE = {ord(character): None for character in "\t\r\n"}
_LARGE = 65_536
"""Bytes of what is looked into at its beginning alone, since nothing of ours is compressed behind so much."""


@dataclass
class Evidence:
    """What a program has left, by the place where it is."""

    places: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, place: str, *values: Any) -> None:
        self.places.setdefault(place, []).extend(values)

    def files(self, folder: Path) -> None:
        """Add every file below a folder."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                place = f"file {path.relative_to(folder).parts[0]}"
                self.add(place, path.read_bytes())
                if path.suffix == ".parquet":
                    self.add(place, pq.read_table(path).to_pylist())

    def holders(self, *markers: str) -> dict[str, set[str]]:
        """The places that hold each of the markers."""
        wanted = {marker: marker.encode() for marker in markers}
        found: dict[str, set[str]] = {marker: set() for marker in markers}
        decoded = cache(lambda data: tuple(_decoded(data)))  # many places hold the same
        for place, values in self.places.items():
            for marker in _markers_in(values, wanted, decoded):
                found[marker].add(place)
        return found


def _markers_in(
    values: Iterable[Any], wanted: Mapping[str, bytes], decoded: Callable[[bytes], Iterable[bytes]]
) -> set[str]:
    found, seen = set[str](), set[bytes]()
    waiting = [(leaf, DEPTH) for value in values for leaf in leaves(value)]
    while waiting:
        data, depth = waiting.pop()
        if data in seen:
            continue
        seen.add(data)
        found |= {marker for marker, text in wanted.items() if text in data}
        if depth and len(data) >= 12:
            waiting += [(inner, depth - 1) for inner in decoded(data)]
    return found


def leaves(value: Any, _above: tuple[int, ...] = ()) -> Iterator[bytes]:
    """Every text and every piece of binary data in a value, keys and attributes included."""
    if isinstance(value, bytes | bytearray | memoryview):
        yield bytes(value)
    elif isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
    elif value is None or isinstance(value, int | float | complex):
        yield str(value).encode()
    elif id(value) not in _above:
        for part in _parts(value):
            yield from leaves(part, (*_above, id(value)))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif hasattr(value, "__dataclass_fields__"):
        yield from (getattr(value, name) for name in value.__dataclass_fields__)
    else:
        yield repr(value)
        yield str(value)
        yield getattr(value, "__dict__", {})


def _decoded(data: bytes) -> Iterator[bytes]:
    if b"\\" in data:
        yield _ESCAPE.sub(lambda code: chr(int(code[1], 16)).encode("utf-8", "surrogatepass"), data)
        yield data.replace(b'\\"', b'"').replace(b"\\\\", b"\\")
    for run in _HEX.findall(data):
        yield binascii.unhexlify(run)
    for run in _BASE64.findall(data):
        text = run.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        # Where its length does not tell that it is one encoding, it is not known where in the run that begins.
        for start in range(1 if len(run) % 4 == 0 else min(4, len(text))):
            part = text[start:]
            if len(part) % 4 != 1:
                yield base64.b64decode(part + b"=" * (-len(part) % 4))
    if not _is_text(data):
        yield from _decompressed(data)


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().translate(_SPACE).isprintable()
    except UnicodeDecodeError:
        return False


def _decompressed(data: bytes) -> Iterator[bytes]:
    """What may be compressed in it, from any byte on: where a content begins only its own format knows."""
    for start in range(min(len(data) - 8, 64 if len(data) > _LARGE else len(data))):
        rest = data[start:]
        if rest.startswith(b"\x1f\x8b"):
            with contextlib.suppress(OSError, EOFError, zlib.error):
                yield gzip.GzipFile(fileobj=io.BytesIO(rest)).read()
        has_header = rest[0] & 0x0F == 8 and int.from_bytes(rest[:2]) % 31 == 0  # RFC 1950, 2.2
        for bits in (*([zlib.MAX_WBITS] if has_header else ()), -zlib.MAX_WBITS):
            try:
                inflated = zlib.decompressobj(bits).decompress(rest, 1_000_000)
            except zlib.error:
                continue
            if len(inflated) > 16:
                yield inflated
        with contextlib.suppress(brotli.error):
            yield brotli.decompress(rest)
