"""Payloads of the `journal` layout: JSON under its type, `{"type":...,"data":...}`, as the original libraries do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from epochal.codec import json
from epochal.errors import CorruptData, InvalidInput

Wrap = Callable[[str, bytes], bytes]
Unwrap = Callable[[bytes], tuple[str | None, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFormat:
    """How events and snapshots become payloads: `wrap(type, data)`, and back, the type None where there is none."""

    wrap: Wrap
    unwrap: Unwrap


def _wrap(kind: str, data: bytes) -> bytes:
    try:
        json.loads(data)
    except (ValueError, ArithmeticError, RecursionError) as error:
        # A Decimal whose exponent has no end is an ArithmeticError.
        raise InvalidInput("data", "must be UTF-8 JSON") from error
    # Spliced, not parsed and written again: the user's bytes stay as they are.
    return b'{"type":' + json.dumps(kind) + b',"data":' + data + b"}"


def _unwrap(payload: bytes) -> tuple[str | None, bytes]:
    try:
        fields = json.loads(payload)
        return fields["type"], json.dumps(fields["data"])
    except (ValueError, ArithmeticError, RecursionError, TypeError, KeyError) as error:
        raise CorruptData("a payload is not JSON of the form {type, data}") from error


WRAPPED = PayloadFormat(wrap=_wrap, unwrap=_unwrap)
"""The default of event-store-adapter's JSON serializers."""

PLAIN = PayloadFormat(wrap=lambda _, data: data, unwrap=lambda payload: (None, payload))
"""Payloads as they are, for tables that only Epochal uses; types then stand in `event_type` alone."""
