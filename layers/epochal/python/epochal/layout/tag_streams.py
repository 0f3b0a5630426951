"""Where a layout keeps tagged events: a table, and the reserved tags that have streams there."""

from __future__ import annotations

from collections.abc import Collection

from epochal.codec.bodies import MAX_DECODED
from epochal.lazy_dataclasses import dataclass
from epochal.model.tags import EVERYTHING, UNTAGGED, type_tag


@dataclass(frozen=True, slots=True, kw_only=True)
class TagStreams:
    """A table of tagged events, and the reserved tags that have streams there: of types, and of everything.

    Attributes:
        table: name of the table.
        type_heads: the reserved tags.
        largest: bytes that a body may have; an event with a larger one is read without its bodies, as `OutlinedEvent`.
    """

    table: str
    type_heads: frozenset[str] = frozenset()
    largest: int = MAX_DECODED

    def tags_of(self, kind: str, tags: Collection[str]) -> tuple[str, ...]:
        """Return the tags in whose streams an event is stored; the first of them has its body."""
        own = tuple(sorted(set(tags))) or (UNTAGGED,)
        return (*own, *(tag for tag in (type_tag(kind), EVERYTHING) if tag in self.type_heads))
