"""The text form of positions in tagged events: opaque to callers, safe in URLs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.model.positions import Position, Reached
from epochal.model.tags import parse_place
from epochal.model.tokens import parse_token

MAX_COUNT: Final = 2**53 - 1
"""Events of a tag that a position can have seen: as far as every reader of JSON counts, and a number of DynamoDB."""


def write_position(position: Position) -> str:
    """Encode a position as opaque text that is safe in URLs."""
    body: dict[str, object] = {"s": _plain(position.seen), "h": _plain(position.heads)}
    if position.items:
        body["q"] = sorted(position.items)
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_position(written: str, field: str = "after") -> Position:
    """Decode the text of `write_position` and nothing else; raise `InvalidInput` naming `field`."""
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        body = json.loads(raw)
        items = frozenset(body.get("q", ()))
        position = Position(seen=_parse_reached(body["s"]), heads=_parse_reached(body["h"]), items=items)
        if all(isinstance(mark, str) for mark in items) and write_position(position) == written:
            return position
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InvalidInput(field, "must be a position that a read or an append returned")


def _plain(tags: Mapping[str, Reached]) -> dict[str, list[object]]:
    """Convert the counts of tags into JSON, sorted by tag."""
    return {tag: _figures(reached) for tag, reached in sorted(tags.items())}


def _figures(reached: Reached) -> list[object]:
    """Convert how far one tag has been read into a JSON list."""
    token = () if reached.token is None else (reached.token.text(),)
    return [reached.count, reached.last, *token]


def _parse_reached(body: Mapping[str, list[Any]]) -> dict[str, Reached]:
    """Parse how far each tag has been read from JSON; raise `ValueError` if it is malformed."""
    reached: dict[str, Reached] = {}
    for tag, (count, last, *token) in body.items():
        if type(count) is not int or not 0 <= count <= MAX_COUNT or not isinstance(last, str):
            raise ValueError("not a position")
        if len(token) > 1 or not all(isinstance(text, str) for text in token):
            raise ValueError("not a position")
        head_token = parse_token(token[0]) if token else None
        reached[tag] = Reached(count, parse_place(last) if count else "", head_token)
    return reached
