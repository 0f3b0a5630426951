"""Splits a long history into appends, each as large as a transaction allows, in the order of the history.

Sizes are upper bounds, because the size of a head is known only once the head has been read: an entry is larger than a
head without its lists, and larger than the part that one event adds to these lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from epochal.contrib.sekiban.items import TaggedEvent, TagSite, write_entry, write_event
from epochal.contrib.sekiban.transaction import recorded, tags_of
from epochal.model.tag_answers import DatedEvent
from epochal.plan.limits import TRANSACTION_BYTES, TRANSACTION_ITEMS
from epochal.plan.values import item_size

_PER_TAG: Final = 3
"""Item sizes counted for each tag of an event: an entry, a head, and the event's part of the head's lists."""

_LAST_INDEX: Final = 10**20
"""An index with more digits than any tag's index will ever have, for upper bounds of sizes."""


def parts_of(site: TagSite, history: Iterable[DatedEvent]) -> Iterator[tuple[DatedEvent, ...]]:
    """Split a history into consecutive batches, each small enough for one append.

    A single event that exceeds the limits is a batch of its own. No event id appears twice in a batch.
    """
    chosen: list[DatedEvent] = []
    ids: set[str | None] = set()
    tags: set[str] = set()
    items, size = 0, 0
    for dated in history:
        own = set(tags_of(dated.event, type_heads=site.type_heads))
        items += 1 + len(own) + len(own - tags)
        size += _bytes(site, dated, own)
        if chosen and (items > TRANSACTION_ITEMS or size > TRANSACTION_BYTES or dated.event.id in ids):
            yield tuple(chosen)
            chosen, ids, tags = [], set(), set()
            items, size = 1 + 2 * len(own), _bytes(site, dated, own)
        chosen.append(dated)
        ids.add(dated.event.id)
        tags |= own
    if chosen:
        yield tuple(chosen)


def _bytes(site: TagSite, dated: DatedEvent, tags: set[str]) -> int:
    """Return an upper bound of the bytes that an event, its entries and heads take in a transaction."""
    stored = recorded(dated.event, dated.place, dated.timestamp)
    entries = sum(item_size(write_entry(site.keys, tag, _LAST_INDEX, stored)) for tag in tags)
    return item_size(write_event(site.keys, stored, TaggedEvent.of(dated.event).expires)) + _PER_TAG * entries
