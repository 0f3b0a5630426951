"""Queries: which heads fence a query, and which events it matches, whatever the layout.

An item that names tags is fenced by one of them, the first in order: a match carries all of its tags, and so
moves that head. An item by type alone needs the head of each type, and one that names nothing the head of
everything; both exist only where type heads are on, at the price of heads that every append moves.

A read of a query returns the events that match and lie beyond a position through every item that they match.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Final, Protocol

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.positions import Position, Reached
from epochal.model.tag_answers import Reach, Takes
from epochal.model.tags import EVERYTHING, Query, QueryItem, Trail, type_tag

MARK: Final = 12
"""Hex digits of an item's mark."""


class IdTaken(InvalidInput):
    """An id of an append is stored already: with other contents, or without the append's other events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A query with the tags whose heads fence each of its items.

    Attributes:
        query: the query.
        tags: fencing tags of each item of the query.
        together: numbers of items whose matching events count as seen only if all fencing tags of the item have reached
            them.
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
        """Marks of the items that several fencing tags could fence; a position keeps them (`fence_after`)."""
        reached = frozenset(self.all_tags)
        return frozenset(
            _mark(item)
            for item, tags in zip(self.query.items, self.tags, strict=True)
            if tags == _default(item) and len(_candidates(item, reached)) > 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendCondition:
    """The condition that no event matches a query beyond a position; without a position, that none does.

    Attributes:
        fence: the query with its fencing tags.
        after: position up to which matching events do not count; None: all events count.
        takes: function that says whether a conflict brings one more of the matching events; None: it brings all.
    """

    fence: Fence
    after: Position | None = None
    takes: Takes | None = None


TypeHeads = bool | frozenset[str]
"""Whether there are heads of every type and of everything; or the reserved tags that there are heads of."""


def fence(query: Query, *, type_heads: TypeHeads) -> Fence:
    """Return a query's fence: for each item, the tags whose heads show new matches; raise without these.

    Args:
        type_heads: which types have heads.

    Raises:
        InvalidInput: an item names no tags, and there are no heads of its types.
    """
    return Fence(query=query, tags=tuple(_fencing(item, type_heads=type_heads) for item in query.items))


def fence_after(query: Query, position: Position, *, type_heads: TypeHeads, field: str = "after") -> Fence:
    """Return a query's fence from the tags that a position has seen; raise if they do not fence each item.

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
            default = _fencing(item, type_heads=type_heads)[0]
            raise InvalidInput(field, f"is the position of a read that did not include {default!r}")
        if len(candidates) == 1:
            tags.append(candidates[0])
        elif _mark(item) in position.items:
            tags.append(_default(item))
        elif item.tags.issuperset(candidates[-1]):
            tags.append(tuple(tag for chosen in candidates for tag in chosen))
            together.add(number)
        else:
            tags.append(candidates[-1])
    fenced = Fence(query=query, tags=tuple(tags), together=frozenset(together))
    check_covered(position, fenced, field)
    return fenced


def _candidates(item: QueryItem, seen: Collection[str]) -> list[tuple[str, ...]]:
    """List the sets of heads among those seen that fence an item: by each tag, types, or everything.

    Args:
        seen: tags that a position has seen.
    """
    candidates: list[tuple[str, ...]] = [(tag,) for tag in sorted(item.tags) if tag in seen]
    types = tuple(sorted(map(type_tag, item.types)))
    if types and all(tag in seen for tag in types):
        candidates.append(types)
    if EVERYTHING in seen:
        candidates.append((EVERYTHING,))
    return candidates


def _mark(item: QueryItem) -> str:
    """Compute the mark of a query's item: 12 hex digits of a hash over types and tags."""
    item_text = json.dumps([sorted(item.types), sorted(item.tags)])
    return hashlib.sha256(item_text.encode()).hexdigest()[:MARK]


def check_covered(position: Position, fenced: Fence, field: str = "after") -> None:
    """Raise `InvalidInput` if a position has not seen all fencing tags of a query."""
    missing = [tag for tag in fenced.all_tags if tag not in position.seen]
    if missing:
        raise InvalidInput(field, f"is the position of a read that did not include {missing[0]!r}")


def _fencing(item: QueryItem, *, type_heads: TypeHeads) -> tuple[str, ...]:
    """Choose the fencing tags of a query's item by the types that have heads; raise if none can fence it.

    Raises:
        InvalidInput: the item names no tags, and its types have no heads.
    """
    default = _default(item)
    if item.tags or type_heads is True or (type_heads and type_heads.issuperset(default)):
        return default
    if type_heads and EVERYTHING in type_heads:
        return (EVERYTHING,)
    raise InvalidInput("query", "each item must name a tag, unless the store was opened with its types")


def _default(item: QueryItem) -> tuple[str, ...]:
    """Return the tags that fence an item by default: its first tag, its types, or everything."""
    return (min(item.tags),) if item.tags else tuple(sorted(map(type_tag, item.types))) or (EVERYTHING,)


class Matchable(Protocol):
    """The fields of an event, or of its entry under a tag, that a query compares."""

    @property
    def type(self) -> str:
        """Type of the event."""

    @property
    def tags(self) -> Collection[str]:
        """Tags of the event."""

    @property
    def place(self) -> str:
        """Place of the event among all events."""


def begun(fenced: Fence, before: Reach) -> Reach:
    """Return the point of each fencing tag at which a read of events new since `before` begins."""
    return {tag: before.get(tag, Reached()) for tag in fenced.all_tags}


def types_fenced_by(fenced: Fence, tag: str) -> frozenset[str]:
    """Return the types that items fenced by a tag ask for; none if one of them asks for any type."""
    types = [item.types for item, tags in zip(fenced.query.items, fenced.tags, strict=True) if tag in tags]
    return frozenset().union(*types) if all(types) else frozenset()


def at_the_end(events: tuple[Recorded, ...], position: Position) -> tuple[Recorded, ...]:
    """Return the events of a read, the last of them with the position of the whole read."""
    if not events:
        return events
    return (*events[:-1], replace(events[-1], trail=Trail.of(position)))


def is_new(event: Matchable, fenced: Fence, before: Reach, until: Reach) -> bool:
    """Return whether an event matches a query and lies beyond `before`, but not beyond `until`.

    It must lie beyond `before` through every item that it matches.

    An event may lie beyond the fence of one item but have been seen already through the fence of another, because heads
    are not read at one moment. Within a tag ids only increase, so the id shows on which side of a fence an event lies.
    """
    carried = {*event.tags, type_tag(event.type), EVERYTHING}
    seen, reached = _reached(event, before), _reached(event, until)
    fences = {
        number: carried.intersection(tags)
        for number, (item, tags) in enumerate(zip(fenced.query.items, fenced.tags, strict=True))
        if item.matches(event.type, event.tags)
    }
    was_seen = any(
        tags <= seen if number in fenced.together else not tags.isdisjoint(seen)
        for number, tags in fences.items()
    )
    return not was_seen and any(not tags.isdisjoint(reached) for tags in fences.values())


def _reached(event: Matchable, position: Reach) -> set[str]:
    """Return the tags of a position that have reached an event's place."""
    return {tag for tag, reached in position.items() if event.place <= reached.last}
