"""Bodies of requests as JSON documents: their media type, their encoding, and how deep they may nest."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.errors import InvalidInput
from epochal.http.nodes import Node
from epochal.http.operation import Request
from epochal.http.problems import UnsupportedMedia

MAX_DEPTH: Final = 100
"""Most levels of nested arrays and objects. Parsers in other languages often stop at 64 to 512, Python's at 1,000."""

_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Translates each bracket to a step as a signed byte: 1 for a level deeper, and -1 back."""

_OTHERS: Final = bytes(set(range(256)) - set(b'[{]}"'))
_TEXT: Final = re.compile(rb'"[^"]*"')
_TOO_DEEP: Final = f"may nest at most {MAX_DEPTH} levels"


def document(request: Request) -> Node:
    """Return the root of a request's JSON body; raise `InvalidInput` or `UnsupportedMedia` if it is none.

    A missing Content-Type is taken for JSON.

    Raises:
        UnsupportedMedia: the headers name another media type, charset or encoding.
        InvalidInput: the body is empty, not JSON, not UTF-8, or nested too deep.
    """
    _check_media(request)
    if not request.body:
        raise InvalidInput("body", "must not be empty")
    if request.body.startswith(MARK):
        raise InvalidInput("body", "must be JSON without a byte order mark before it")
    try:
        value = json.loads(request.body)
    except json.TooDeep as error:
        raise InvalidInput("body", _TOO_DEEP) from error
    except ValueError as error:
        raise InvalidInput("body", f"must be JSON in UTF-8: {str(error).partition('; ')[0]}") from error
    if nests_too_deep(request.body):
        raise InvalidInput("body", _TOO_DEEP)
    return Node(value)


def no_document(request: Request) -> None:
    """Raise `InvalidInput` where a request has a body, for operations that take none."""
    if request.body:
        raise InvalidInput("body", "must be empty")


def _check_media(request: Request) -> None:
    """Raise `UnsupportedMedia` unless a request's headers declare JSON in UTF-8, without compression."""
    media, _, parameter = (request.header("Content-Type") or "application/json").lower().partition(";")
    kind = media.strip()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMedia("Content-Type", "must be application/json")
    if parameter.replace(" ", "").replace('"', "") not in ("", "charset=utf-8"):
        raise UnsupportedMedia("Content-Type", "must be application/json, in UTF-8")
    if (request.header("Content-Encoding") or "identity").lower() != "identity":
        raise UnsupportedMedia("Content-Encoding", "must be identity: bodies are not decompressed")


def nests_too_deep(text: bytes) -> bool:
    """Return whether JSON nests deeper than `MAX_DEPTH` levels; the caller has parsed it already.

    It takes 0.14 seconds for 5 MB, whatever they hold.
    """
    # Usually there are fewer brackets than allowed levels, which is cheap to check.
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    steps = _brackets(text).translate(_STEPS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > MAX_DEPTH


def _brackets(text: bytes) -> bytes:
    """Return the brackets of JSON in their order, without those inside texts."""
    if b"\\" in text:  # escapes occur only inside texts
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Without all other characters, texts without brackets are two quotes; where two texts meet, they become one.
    bare = text.translate(None, _OTHERS).replace(b'""', b"")
    return _TEXT.sub(b"", bare) if b'"' in bare else bare
