"""Text without what nobody can read in it: long runs of characters that may be anything, encoded.

Whether such a run holds something that must not be shown cannot be told: it may be compressed, or in an encoding that
is not known here. So only what can be read is let through, and with it ids, hashes and links, which are short or made
of words.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from typing import Any, Final

_SHORT: Final = 65
"""Characters below which a text holds no sealed body, however it is encoded. A SHA-256 in hexadecimal has 64."""

_FEW: Final = 10
"""Different characters below which a run repeats itself, and encodes nothing."""

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
_LINE_END: Final = re.compile(r"[\r\n]+")
_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9:.-]{0,40}/?>")
_TOKEN: Final = re.compile(rf"[!-~]{{{_SHORT},}}")
_BASE64: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{_SHORT},}}={{0,2}}")
_BASE85: Final = re.compile(rf"[0-9A-Za-z!#$%&()*+;<=>?@^_`{{|}}~-]{{{_SHORT},}}")
_WORD: Final = re.compile(r"(?=.{0,24}$)(?:(?:[A-Z]*[a-z]+|[A-Z]+|[0-9]+){0,3}|[0-9a-f]{4,12})")
"""A part of a name or of an id, as `AWSDynamoDB` or `s3`. Random letters change more often."""

_USUAL: Final = re.compile(r'[A-Za-z0-9\-_./:,=&"{}]')

_READABLE: Final = 0.9
"""Share of the usual characters in code, links and tables; in base85 they are three of four."""


def without_opaque_strings(text: str) -> str:
    """JSON text, each string in it that cannot be read replaced by how long it is."""
    return _STRING.sub(_withheld, text)


def is_readable(text: str) -> bool:
    """Whether all of a text can be read, or is too short to hide anything."""
    texts = [text]
    while texts:
        text = texts.pop()
        if len(text) < _SHORT:
            continue
        if _CONTROL.search(text):
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
            decoded = _read_token(token)
            if decoded is None:
                return False
            texts += decoded
    return True


def _withheld(string: re.Match[str]) -> str:
    literal = string.group()
    if len(literal) < _SHORT + len('""'):
        return literal
    text = json.loads(literal)
    return literal if is_readable(text) else f'"({len(text)} characters withheld)"'


def _strings_in(value: Any) -> list[str]:
    strings: list[str] = []
    values = [value]
    while values:
        each = values.pop()
        if isinstance(each, str):
            strings.append(each)
        elif isinstance(each, dict):
            strings += each
            values += each.values()
        elif isinstance(each, list):
            values += each
    return strings


def _read_token(token: str) -> list[str] | None:
    """What has to be readable for a token to be so; None where it is not."""
    if sum(map(len, _USUAL.findall(token))) < _READABLE * len(token):
        return None
    texts: list[str] = []
    for run in _BASE64.findall(token):
        if len({*run}) < _FEW or all(map(_WORD.fullmatch, re.split("[-/_]", run))):
            continue
        text = _decoded(run)
        if text is None:
            return None
        texts.append(text)
    rest = _BASE64.sub(" ", token)
    return None if any(len({*run}) >= _FEW for run in _BASE85.findall(rest)) else texts


def _decoded(run: str) -> str | None:
    """The text that is in base64; None where it is no text."""
    digits = run.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return urlsafe_b64decode(digits + "=" * (-len(digits) % 4)).decode()
    except ValueError:
        return None
