"""Cuts a long history into appends: each as large as a transaction allows, in the order of the history.

Sizes are reckoned upward, since what an append adds to a head is known only when the head is: an entry is larger than
a head without its lists, and than what one event adds to these lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from epochal.contrib.sekiban.events import TaggedEvent
from epochal.contrib.sekiban.items import TagSite, write_entry, write_event
from epochal.contrib.sekiban.writes import recorded, tags_of
from epochal.model.tags import DatedEvent
from epochal.plan.ops import TRANSACTION_BYTES, TRANSACTION_ITEMS
from epochal.plan.values import item_size

_PER_TAG: Final = 3
"""An entry, a head, and an event's part in the head's lists."""

_LAST_INDEX: Final = 10**20
"""More digits than a tag's index will ever have."""


def cut(site: TagSite, history: Iterable[DatedEvent]) -> Iterator[tuple[DatedEvent, ...]]:
    """Parts of a history, each an append within the limits, if its first event is. An id appears once in a part."""
    taken: list[DatedEvent] = []
    ids: set[str | None] = set()
    tags: set[str] = set()
    items, size = 0, 0
    for each in history:
        own = set(tags_of(each.event, type_heads=site.type_heads))
        items += 1 + len(own) + len(own - tags)
        size += _bytes(site, each, own)
        if taken and (items > TRANSACTION_ITEMS or size > TRANSACTION_BYTES or each.event.id in ids):
            yield tuple(taken)
            taken, ids, tags = [], set(), set()
            items, size = 1 + 2 * len(own), _bytes(site, each, own)
        taken.append(each)
        ids.add(each.event.id)
        tags |= own
    if taken:
        yield tuple(taken)


def _bytes(site: TagSite, dated: DatedEvent, tags: set[str]) -> int:
    stored = recorded(dated.event, dated.place, dated.timestamp)
    entries = sum(item_size(write_entry(site.keys, tag, _LAST_INDEX, stored)) for tag in tags)
    return item_size(write_event(site.keys, stored, TaggedEvent.of(dated.event).expires)) + _PER_TAG * entries
