"""Payloads of the `journal` layout: JSON under its type, `{"type":...,"data":...}`, as the original libraries do it.

That is the default of event-store-adapter's JSON serializers. This outlives the code: FORMATS §2.
"""

from __future__ import annotations

from epochal.codec import json
from epochal.errors import CorruptData, InvalidInput


def wrap(kind: str, data: bytes) -> bytes:
    """The payload of an event or a snapshot; raises `InvalidInput` where `data` is not UTF-8 JSON."""
    try:
        json.loads(data)
    except (ValueError, ArithmeticError, RecursionError) as error:
        # A Decimal whose exponent has no end is an ArithmeticError.
        raise InvalidInput("data", "must be UTF-8 JSON") from error
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def unwrap(payload: bytes) -> tuple[str, bytes]:
    """Type and data of a payload; raises `CorruptData` where it is not of that form."""
    try:
        fields = json.loads(payload)
        return fields["type"] or "", json.dumps(fields["data"])
    except (ValueError, ArithmeticError, RecursionError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error
