"""Which heads fence a query, and the text form of positions.

An item that names tags is fenced by one of them, the first in order: a match carries all of its tags, and so
moves that head. An item by type alone needs the head of each type, and one that names nothing the head of
everything; both exist only where type heads are on, at the price of heads that every append moves.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.dcb import EVERYTHING, Position, Query, QueryItem, Reached, parse_sortable_id, type_tag

MAX_COUNT: Final = 2**53 - 1
"""Events of a tag that a position can have seen: as far as every reader of JSON counts, and a number of DynamoDB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A query with the tags whose heads fence each of its items."""

    query: Query
    tags: tuple[tuple[str, ...], ...]

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Every fencing tag once, in order."""
        return tuple(dict.fromkeys(tag for tags in self.tags for tag in tags))


def fence(query: Query, *, type_heads: bool) -> Fence:
    """The heads that fence a query.

    Raises:
        InvalidInput: an item names no tags, and type heads are off.
    """
    return Fence(query=query, tags=tuple(_fencing(item, type_heads=type_heads) for item in query.items))


def write_position(position: Position) -> str:
    """A position as text: opaque, safe in URLs."""
    body = {"s": _plain(position.seen), "h": _plain(position.heads)}
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_position(written: str, field: str = "after") -> Position:
    """Read `write_position` back, and nothing else; raises `InvalidInput` naming `field`."""
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        body = json.loads(raw)
        position = Position(seen=_reached(body["s"]), heads=_reached(body["h"]))
        if write_position(position) == written:
            return position
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InvalidInput(field, "must be a position that a read or an append returned")


def check_covered(position: Position, fenced: Fence, field: str = "after") -> None:
    """Refuse a position of a read that did not look at what the condition fences."""
    missing = [tag for tag in fenced.all_tags if tag not in position.seen]
    if missing:
        raise InvalidInput(field, f"is of a read that did not ask for {missing[0]!r}")


def _fencing(item: QueryItem, *, type_heads: bool) -> tuple[str, ...]:
    if item.tags:
        return (min(item.tags),)
    if not type_heads:
        raise InvalidInput(
            "query", "an item without tags needs type heads, which are off: see docs/design.md"
        )
    return tuple(sorted(map(type_tag, item.types))) or (EVERYTHING,)


def _plain(tags: Mapping[str, Reached]) -> dict[str, list[object]]:
    return {tag: [reached.count, reached.last] for tag, reached in sorted(tags.items())}


def _reached(body: Mapping[str, list[object]]) -> dict[str, Reached]:
    found: dict[str, Reached] = {}
    for tag, (count, last) in body.items():
        if type(count) is not int or not 0 <= count <= MAX_COUNT or not isinstance(last, str):
            raise ValueError("not a position")
        found[tag] = Reached(count, parse_sortable_id(last) if count else "")
    return found
