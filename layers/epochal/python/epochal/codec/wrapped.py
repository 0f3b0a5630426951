"""Payloads of the `journal` layout: JSON under its type, `{"type":...,"data":...}`, as the original libraries do it.

That is the default of event-store-adapter's JSON serializers. This outlives the code: FORMATS §2.

An event is written once and read for ever. So what a reader could not read back is refused: JSON nested so deeply that
it depends on the reader's stack, and half of a surrogate pair, which UTF-8 cannot hold. Other libraries write both:
half a pair is read all the same, and stays escaped.
"""

from __future__ import annotations

from typing import Any, Final

from epochal.codec import json
from epochal.codec.json import MARK
from epochal.errors import CorruptData, InvalidInput

MAX_DEPTH: Final = 500
"""Levels of lists and objects: half of what Python's stack allows."""

_PLAIN: Final = b',"data":'
_MARKED: Final = _PLAIN + MARK


def wrap(kind: str, data: bytes) -> bytes:
    """The payload of an event or a snapshot; raises `InvalidInput` where `data` is not UTF-8 JSON, or is too deep."""
    checked(data)
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def checked(data: bytes) -> Any:
    """Parse data that is to be stored; raises `InvalidInput` where a reader could not read it back."""
    if data.startswith(MARK):
        raise InvalidInput("data", "must be JSON without a byte order mark before it")
    try:
        value = json.loads(data)
        if b"\\u" in data:
            json.dumps(value)
    except UnicodeEncodeError as error:
        raise InvalidInput("data", "must be JSON that UTF-8 can hold, without lone surrogates") from error
    except ValueError as error:
        raise InvalidInput("data", "must be UTF-8 JSON") from error
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise InvalidInput("data", f"must not nest more than {MAX_DEPTH} lists and objects")
    return value


def unwrap(payload: bytes) -> tuple[str, bytes]:
    """Type and data of a payload; raises `CorruptData` where it is not of that form."""
    # A mark before the data was taken once, and is no JSON there. In a text, the quotes before it would be escaped.
    plain = payload.replace(_MARKED, _PLAIN, 1) if _MARKED in payload else payload
    try:
        fields = json.loads(plain)
        kind = fields["type"]
        return kind if isinstance(kind, str) else "", json.dumps_again(fields["data"])
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error


def _depth(value: Any) -> int:
    """How deep lists and objects are nested, without a stack of calls."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth
