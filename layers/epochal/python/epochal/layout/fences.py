"""Which heads fence a query, and the text form of positions.

An item that names tags is fenced by one of them, the first in order: a match carries all of its tags, and so
moves that head. An item by type alone needs the head of each type, and one that names nothing the head of
everything; both exist only where type heads are on, at the price of heads that every append moves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.tags import EVERYTHING, Query, QueryItem, Takes, type_tag
from epochal.model.versions import Position

MARK: Final = 12
"""Hex digits of an item's mark."""


class IdTaken(InvalidInput):
    """An id of an append is there already, with other contents, or without the others of the append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A query with the tags whose heads fence each of its items.

    Attributes:
        together: numbers of items of which an event has been seen only if all of their tags have it.
    """

    query: Query
    tags: tuple[tuple[str, ...], ...]
    together: frozenset[int] = frozenset()

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Every fencing tag once, in order."""
        return tuple(dict.fromkeys(tag for tags in self.tags for tag in tags))

    @property
    def marks(self) -> frozenset[str]:
        """What a position keeps of the items that several of the fencing tags could fence: see `fence_after`."""
        reached = frozenset(self.all_tags)
        return frozenset(
            _mark(item)
            for item, tags in zip(self.query.items, self.tags, strict=True)
            if tags == _default(item) and len(_candidates(item, reached)) > 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Fail if an event matches that `after` has not seen; without a position, if any matches at all.

    Attributes:
        takes: how many of the events in the way are wanted; None is all, however many there are.
    """

    fence: Fence
    after: Position | None = None
    takes: Takes | None = None


TypeHeads = bool | frozenset[str]
"""Whether there are heads of every type and of everything; or the reserved tags that there are heads of."""


def fence(query: Query, *, type_heads: TypeHeads) -> Fence:
    """The heads that fence a query.

    Raises:
        InvalidInput: an item names no tags, and there are no heads of its types.
    """
    return Fence(query=query, tags=tuple(_fencing(item, type_heads=type_heads) for item in query.items))


def fence_after(query: Query, position: Position, *, type_heads: TypeHeads, field: str = "after") -> Fence:
    """The heads that fence a query after a position, which may be of another, broader read.

    Any tag of an item fences it, and so do the heads of its types and of everything. So an item is fenced by what the
    position has seen of these. Where that is more than one, the heads were not read at one moment, and what one of them
    reaches the read may not have shown through another:

        an item of the read itself          is fenced as in the read
        another, and everything was read    by everything: what that reaches was shown
        another, and its types were read    by these, likewise
        another                             by all of its tags that were read, and only what all of them reach is seen

    Raises:
        InvalidInput: nothing that the position has seen fences one of the items.
    """
    tags, together = list[tuple[str, ...]](), set[int]()
    for number, item in enumerate(query.items):
        candidates = _candidates(item, position.seen.keys())
        if not candidates:
            wanted = _fencing(item, type_heads=type_heads)[0]
            raise InvalidInput(field, f"is of a read that did not ask for {wanted!r}")
        if len(candidates) == 1:
            tags.append(candidates[0])
        elif _mark(item) in position.items:
            tags.append(_default(item))
        elif item.tags.issuperset(candidates[-1]):
            tags.append(tuple(tag for each in candidates for tag in each))
            together.add(number)
        else:
            tags.append(candidates[-1])
    fenced = Fence(query=query, tags=tuple(tags), together=frozenset(together))
    check_covered(position, fenced, field)
    return fenced


def _candidates(item: QueryItem, seen: Collection[str]) -> list[tuple[str, ...]]:
    """Heads among those seen that fence an item, each way to do so: by one of its tags, by its types, by everything."""
    found: list[tuple[str, ...]] = [(tag,) for tag in sorted(item.tags) if tag in seen]
    types = tuple(sorted(map(type_tag, item.types)))
    if types and all(tag in seen for tag in types):
        found.append(types)
    if EVERYTHING in seen:
        found.append((EVERYTHING,))
    return found


def _mark(item: QueryItem) -> str:
    asked = json.dumps([sorted(item.types), sorted(item.tags)])
    return hashlib.sha256(asked.encode()).hexdigest()[:MARK]


def check_covered(position: Position, fenced: Fence, field: str = "after") -> None:
    """Refuse a position of a read that has not seen the heads that fence the condition."""
    missing = [tag for tag in fenced.all_tags if tag not in position.seen]
    if missing:
        raise InvalidInput(field, f"is of a read that did not ask for {missing[0]!r}")


def _fencing(item: QueryItem, *, type_heads: TypeHeads) -> tuple[str, ...]:
    wanted = _default(item)
    if item.tags or type_heads is True or (type_heads and type_heads.issuperset(wanted)):
        return wanted
    if type_heads and EVERYTHING in type_heads:
        return (EVERYTHING,)
    raise InvalidInput(
        "query",
        "an item must name a tag, unless the store was opened for its types: see docs/guide/tagged-events.md",
    )


def _default(item: QueryItem) -> tuple[str, ...]:
    return (min(item.tags),) if item.tags else tuple(sorted(map(type_tag, item.types))) or (EVERYTHING,)
