"""Entries of tags: how a read finds those that a head counts, and what their sort keys tell.

The sort key of an entry is its event's sortable id and id: `<30 digits>#<uuid>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from epochal.contrib.sekiban.items import TagSite
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.fences import Fence
from epochal.layout.matching import types_fenced_by
from epochal.model.versions import Reached
from epochal.plan.ops import Steps
from epochal.plan.values import Item, Key, read_number

T = TypeVar("T")

LOOKS: Final = 10
"""Looks for entries that a head counts and that are not there: milliseconds apart, as long as an append takes."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries of one tag, in ascending order; `whole` if none is left in the order of reading."""

    entries: tuple[Item, ...]
    whole: bool


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
    """A sort key behind the last entry reached."""
    return after_id(reached.last)


def after_id(sortable_id: str | None) -> str:
    """A sort key behind all entries of a sortable id, or before the first: event ids have no character as high as ~."""
    return f"{sortable_id}#~" if sortable_id else "0"


def read_entries(
    site: TagSite,
    tag: str,
    between: tuple[str, str],
    last: Key | None,
    *,
    forward: bool = True,
    limit: int | None = None,
) -> Steps[tuple[list[Item], Key | None]]:
    """A page of a tag's entries between two sort keys, and where the next goes on.

    Entries of the original library have no index, and are no part of what heads count.
    """
    reply = yield site.entries(tag, *between, forward=forward, limit=limit, after=last)
    return [item for item in reply.items if "tagIndex" in item], reply.last


def whole(
    look: Callable[[], Steps[T | None]],
    site: TagSite,
    tag: str,
    until: Reached,
    given: Sequence[Reached],
    *,
    field: str = "after",
) -> Steps[T]:
    """What `look` finds of a tag up to `until`, once nothing is missing from it: it is None until then.

    Args:
        given: ends that came from outside, in `field`. One that the tag never reached is of another store, or was
            altered. It is looked for last: it may be that of an entry which does not show yet either.

    Raises:
        InvalidInput: an end of `given` is none of the tag's.
        CorruptData: the tag lacks entries that its head counts.
    """
    for _ in range(LOOKS):
        found = yield from look()
        if found is not None:
            return found
    for end in given:
        if not (yield from _was_reached(site, tag, end)):
            rule = f"does not fit what is stored of {tag!r}: it is of another store, or altered"
            raise InvalidInput(field, rule)
    raise CorruptData(f"tag {tag!r}: its head counts {until.count} events, its entries do not")


def _was_reached(site: TagSite, tag: str, reached: Reached) -> Steps[bool]:
    if not reached.count:
        return True
    reply = yield site.entries(tag, reached.last, just_after(reached), limit=1)
    return [read_number(item, "tagIndex") for item in reply.items] == [reached.count - 1]
