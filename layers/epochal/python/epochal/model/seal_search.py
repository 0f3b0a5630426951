"""Looking for a sealed body inside of another body, however it was wrapped before it was stored.

Applications wrap bodies in envelopes: as JSON, as text in JSON (once or several times escaped), in base64, as
hexadecimal digits or a list of numbers. Each of these is undone, and what it gives is searched again.

    what is compressed or encrypted     cannot be looked into, and is not found
    text that only mentions the mark    counts as sealed: to hide an event too many does no harm
    too much to search                  counts as sealed: only a body that was made for it takes so long
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator
from typing import Final

from epochal.model.body_marks import SEALED

_MARK: Final = SEALED.encode()

_ESCAPE: Final = re.compile(
    rb"\\(?:u(?P<json>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|[nrt]|(?P<itself>(?s:.)))?"
    rb"|%(?P<address>[0-9a-fA-F]{2})|&#[xX](?P<markup>[0-9a-fA-F]{1,6});|&#(?P<decimal>[0-9]{1,7});"
)
"""A character as JSON, an address or markup escapes it."""

_BLANKS: Final = re.compile(rb"=?\s+")
"""Between lines of base64, pairs of digits, and numbers; with `=`, the end of a line in quoted-printable."""

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{40,}")
_HEX: Final = re.compile(rb"[0-9a-fA-F]{40,}")
_NUMBERS: Final = re.compile(rb"(?:[0-9]{1,3},){20,}[0-9]{1,3}")
"""Shorter ones hold no sealed body."""

_ROUNDS: Final = 32
"""Escapes of escapes that are undone; each one of a writer doubles the backslashes."""

_WORK: Final = 32
_LEAST_WORK: Final = 100_000
"""Bytes that are searched at most, as a multiple of the body's, and however small that is."""


def finds_seal(body: bytes) -> bool:
    """Return whether a body contains a sealed one, however encoded, or is too costly to search."""
    budget = max(_LEAST_WORK, _WORK * len(body))
    contents = [body]
    while contents:
        content = contents.pop()
        budget -= len(content)
        if budget < 0 or _MARK in content:
            return True
        plain = _without_escapes(content)
        if plain is None:
            return True
        joined = _BLANKS.sub(b"", plain)
        if _MARK in plain or _MARK in joined:
            return True
        contents += _decode_runs(joined)
    return False


def _without_escapes(content: bytes) -> bytes | None:
    """Remove zero bytes and undo all escapes in a body, level by level; return None after 32 levels.

    Zeros may be escaped, and escapes may be in UTF-16, so each round removes the zeros that the one before has left.
    """
    for _ in range(_ROUNDS):
        content = content.replace(b"\0", b"")
        if b"\\" not in content and b"%" not in content and b"&#" not in content:
            return content
        plain = _ESCAPE.sub(_unescape, content)
        if plain == content:
            return content
        content = plain
    return None


def _unescape(escape: re.Match[bytes]) -> bytes:
    """Return the byte that an escape stands for: `?` if not ASCII, nothing for a line's end."""
    if escape["itself"] is not None:
        return escape["itself"]
    digits = escape["json"] or escape["byte"] or escape["address"] or escape["markup"]
    if digits is None and escape["decimal"] is None:
        return b""  # of a line's end, or of nothing
    code = int(escape["decimal"]) if digits is None else int(digits, 16)
    return bytes((code,)) if code <= _ASCII else b"?"


def _decode_runs(content: bytes) -> Iterator[bytes]:
    """Yield what each run of base64, hexadecimal digits or numbers in a body decodes to, from each start.

    Something may stand right before a run, so every possible start is tried.
    """
    for run in _BASE64.findall(content):
        digits = run.translate(_STANDARD)
        for start in range(4):
            complete = digits[start : start + (len(digits) - start) // 4 * 4]
            rest = digits[start + len(complete) :]
            try:
                yield a2b_base64(complete + (rest + b"=" * (4 - len(rest)) if len(rest) > 1 else b""))
            except Error:
                continue
    for run in _HEX.findall(content):
        for start in range(2):
            yield bytes.fromhex(run[start : start + (len(run) - start) // 2 * 2].decode())
    for run in _NUMBERS.findall(content):
        yield bytes(number for number in map(int, run.split(b",")) if number <= _BYTE)


_ASCII: Final = 0x7F
_BYTE: Final = 0xFF
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
