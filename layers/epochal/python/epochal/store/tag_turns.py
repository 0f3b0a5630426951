"""Turns of appends under tags: those of one process that write to or check the same tag do so one after the other.

Without turns, appends of one process under a hot tag refuse each other, and each refused one pays for all pages of its
transaction. An append takes a place in the queue of every tag of its events and of its condition (`queueing`). When it
leaves, it tells the next one where the tags end, so that they need not be read.

Queues of tags are taken after those of streams, so that a decision on a stream can wait for the tags of its events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from epochal.layout.queries import AppendCondition
from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Reached
from epochal.store.queueing import Key, QueuePlace

_AFTER_STREAMS: Final = "\x7f"
"""Text that sorts after every stream name."""


def tags_of(site: TagStreams, events: Iterable[Event], condition: AppendCondition | None) -> Collection[str]:
    """Return the tags that an append writes to or checks: those of its events, and of its condition."""
    tags = {tag for event in events for tag in site.tags_of(event.type, event.tags)}
    return tags if condition is None else tags.union(condition.fence.all_tags)


def keys_of(table: str, tags: Iterable[str]) -> list[Key]:
    """Return the keys of the queues of tags in a table."""
    return [_key(table, tag) for tag in tags]


def ends_left(table: str, place: QueuePlace) -> Mapping[str, Reached]:
    """Return the ends of tags that the last callers on them have left, by tag."""
    return {key[-1]: end for key, end in place.fresh_notes.items() if key == _key(table, key[-1])}


def leave_ends(table: str, place: QueuePlace, outcome: object) -> None:
    """Leave the tags' ends for a waiting caller after an append; mark a conflict as no change.

    After a conflict, which has written nothing, callers may go on together.
    """
    if isinstance(outcome, Conflict):
        place.changed = False
    if not isinstance(outcome, Appended) or outcome.replayed or not place.is_awaited:
        return
    for tag, reached in {**outcome.position.heads, **outcome.position.seen}.items():
        if reached.count:
            place.leave_note(reached, *_key(table, tag))


def _key(table: str, tag: str) -> Key:
    return (table, _AFTER_STREAMS, tag)
