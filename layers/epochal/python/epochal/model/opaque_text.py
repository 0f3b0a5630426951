"""Text without what nobody can read in it: long runs of characters, or of numbers, that may be anything, encoded.

Whether such a run holds something that must not be shown cannot be told: it may be compressed, or in an encoding that
is not known here. So only what can be read is let through, and with it ids, hashes and links, which are short or made
of words.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from typing import Any, Final

from epochal.model.base85 import decode_base85
from epochal.model.seal_search import finds_seal

_SHORT: Final = 65
"""Characters below which a text holds no sealed body, however it is encoded. A SHA-256 in hexadecimal has 64."""

_FEW: Final = 10
"""Different characters below which a run repeats itself, and encodes nothing."""

_MANY: Final = _SHORT // 2
"""Bytes, one after another as digits, from which on they may be a sealed body. A SHA-256 has 32."""

_LITERAL: Final = re.compile(
    rf'"(?:[^"\\]|\\.)*"|\[\s*[0-9]{{1,3}}(?:\s*,\s*[0-9]{{1,3}}){{{_MANY},}}\s*\]', re.DOTALL
)
"""A string of JSON, or a list of small numbers: Node writes bytes so."""

_NUMBERS: Final = re.compile(rf"\b[0-9]{{1,3}}(?:(?:\s*[,;]\s*|\s+)[0-9]{{1,3}}){{{_MANY},}}\b")
_PAIRS: Final = re.compile(rf"\b[0-9A-Fa-f]{{2}}(?:[\s:,-]+[0-9A-Fa-f]{{2}}){{{_MANY},}}\b")
"""Bytes in decimal and in hexadecimal digits, with something between them."""
_LETTER: Final = re.compile(r"[A-Fa-f]")

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
_LINE_END: Final = re.compile(r"[\r\n]+")
_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9:.-]{0,40}/?>")
_TOKEN: Final = re.compile(rf"[!-~]{{{_SHORT},}}")
_BASE64: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{_SHORT},}}={{0,2}}")
_BASE85: Final = re.compile(rf"[0-9A-Za-z!#$%&()*+;<=>?@^_`{{|}}~-]{{{_SHORT},}}")
_WORD: Final = re.compile(r"(?=.{0,24}$)(?:(?:[A-Z]*[a-z]+|[A-Z]+|[0-9]+){0,3}|[0-9a-f]{4,12})")
"""A part of a name or of an id, as `AWSDynamoDB` or `s3`. Random letters change more often."""

_USUAL: Final = re.compile(r'[A-Za-z0-9\-_./:,=&"{}]')

_ASCII: Final = 0x7F
_BYTE: Final = 0xFF
_RANDOM: Final = 0.25
"""Share of bytes above ASCII from which on bytes may be compressed or encrypted: there it is about a half. Numbers
that count something are mostly smaller."""

_READABLE: Final = 0.9
"""Share of the usual characters in code, links and tables; in base85 they are three of four."""


def without_opaque_strings(text: str) -> str:
    """Replace each unreadable string in JSON text by a note of its length."""
    return _LITERAL.sub(_withhold_if_opaque, text)


def is_readable(text: str) -> bool:
    """Return whether people can read all of a text, or it is too short to hide encoded data."""
    texts = [text]
    while texts:
        text = texts.pop()
        if len(text) < _SHORT:
            continue
        if _CONTROL.search(text) or _holds_opaque_bytes(text):
            return False
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        except RecursionError:
            return False
        if isinstance(value, dict | list | str):
            texts += _strings_in(value)
            continue
        for token in _TOKEN.findall(_TAG.sub(" ", _LINE_END.sub("", text))):
            decoded = _encoded_texts(token)
            if decoded is None:
                return False
            texts += decoded
    return True


def _holds_opaque_bytes(text: str) -> bool:
    """Return whether a text has bytes, written as digits, that are no text themselves."""
    pairs = filter(_LETTER.search, _PAIRS.findall(text))  # digits alone are decimal
    contents = [bytes.fromhex("".join(re.findall("[0-9A-Fa-f]{2}", run))) for run in pairs]
    for run in _NUMBERS.findall(text):
        numbers = map(int, re.findall("[0-9]+", run))
        contents.append(bytes(number for number in numbers if number <= _BYTE))
    return any(map(_is_opaque, contents))


def _is_opaque(content: bytes) -> bool:
    if sum(byte > _ASCII for byte in content) < _RANDOM * len(content):
        return False
    try:
        return _CONTROL.search(content.decode()) is not None
    except ValueError:
        return True


def _withhold_if_opaque(match_: re.Match[str]) -> str:
    """Return a JSON string or list of numbers as it is, or a note of its length if nobody can read it."""
    literal = match_.group()
    if literal.startswith("["):
        count = literal.count(",") + 1
        return f'"({count} numbers withheld)"' if _holds_opaque_bytes(literal) else literal
    if len(literal) < _SHORT + len('""'):
        return literal
    text = json.loads(literal)
    return literal if is_readable(text) else f'"({len(text)} characters withheld)"'


def _strings_in(value: Any) -> list[str]:
    """List all strings in a JSON value, names of members included."""
    strings: list[str] = []
    values = [value]
    while values:
        node = values.pop()
        if isinstance(node, str):
            strings.append(node)
        elif isinstance(node, dict):
            strings += node
            values += node.values()
        elif isinstance(node, list):
            values += node
    return strings


def _encoded_texts(token: str) -> list[str] | None:
    """Decode the base64 runs in a token; return None if something in the token cannot be read."""
    if sum(map(len, _USUAL.findall(token))) < _READABLE * len(token):
        return None
    texts: list[str] = []
    for run in _BASE64.findall(token):
        if len({*run}) < _FEW or all(map(_WORD.fullmatch, re.split("[-/_]", run))):
            continue
        text = _decode_base64(run)
        if text is None:
            return None
        texts.append(text)
    # Base85 of what repeats itself, as other digits do, has few marks, and may look like a link.
    if any(map(finds_seal, decode_base85(token))):
        return None
    rest = _BASE64.sub(" ", token)
    return None if any(len({*run}) >= _FEW for run in _BASE85.findall(rest)) else texts


def _decode_base64(run: str) -> str | None:
    """Decode base64 into text; return None if the result is not text."""
    digits = run.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return urlsafe_b64decode(digits + "=" * (-len(digits) % 4)).decode()
    except ValueError:
        return None
