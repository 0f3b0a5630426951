"""Entries of tags: which a read is of, and what their sort keys tell.

The sort key of an entry is its event's sortable id and id: `<30 digits>#<uuid>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from epochal.layout.dcb.conditions import Fence
from epochal.model.dcb import Reached
from epochal.model.tagged_results import Reach
from epochal.plan.values import Item, read_number


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries of one tag, in ascending order; `whole` if none is left in the order of reading."""

    entries: tuple[Item, ...]
    whole: bool


def begun(fenced: Fence, before: Reach) -> Reach:
    """Where a read of what is new since `before` begins, by tag."""
    return {tag: before.get(tag, Reached()) for tag in fenced.all_tags}


def possible_keys(fenced: Fence, slices: Mapping[str, Slice]) -> set[str]:
    """Sort keys of the entries whose events may match."""
    keys: set[str] = set()
    for tag, part in slices.items():
        types = types_fenced_by(fenced, tag)
        keys.update(key_of(item) for item in part.entries if not types or item["eventType"]["S"] in types)
    return keys


def key_of(entry: Item) -> str:
    """The sort key of an entry."""
    key: str = entry["sk"]["S"]
    return key


def event_id_of(key: str) -> str:
    """The id of the event that the entry with this sort key names."""
    return key.partition("#")[2]


def places_of(entries: Iterable[Item]) -> list[tuple[str, int]]:
    """Keys of entries, with their indices, as a trail has them."""
    return [(key_of(entry), read_number(entry, "tagIndex") or 0) for entry in entries]


def just_after(reached: Reached) -> str:
    """A sort key behind the last entry reached: event ids have no character as high as ~."""
    return f"{reached.last}#~" if reached.last else "0"


def types_fenced_by(fenced: Fence, tag: str) -> frozenset[str]:
    """Types that the items fenced by a tag ask for; none where one of them asks for any."""
    types = [item.types for item, tags in zip(fenced.query.items, fenced.tags, strict=True) if tag in tags]
    return frozenset().union(*types) if all(types) else frozenset()
