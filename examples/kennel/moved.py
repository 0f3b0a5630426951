"""What one store has, copied to another.

Notifications come in the order of their ids, so copied in that order they get the same ones, as long as none is missing
in between: then who follows the application goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from eventsourcing.persistence import ApplicationRecorder, Notification, StoredEvent

AT_ONCE = 100


def copy_events(old: ApplicationRecorder, new: ApplicationRecorder) -> int:
    """Copy all that `new` has not yet, and answer how many there are; called again, it goes on."""
    last = new.max_notification_id() or 0
    while page := old.select_notifications(last, AT_ONCE, inclusive_of_start=False):
        for events in _runs(page):
            if [each.id for each in events] != list(range(last + 1, last + 1 + len(events))):
                raise ValueError(f"ids after {last} have gaps, so they cannot be kept")
            new.insert_events([_stored(each) for each in events])
            last = events[-1].id
    return last


def _runs(page: Iterable[Notification]) -> Iterator[list[Notification]]:
    """Events of one aggregate that follow each other, which are inserted at once."""
    for _, events in groupby(page, key=lambda each: each.originator_id):
        yield list(events)


def _stored(each: Notification) -> StoredEvent:
    return StoredEvent(each.originator_id, each.originator_version, each.topic, each.state)
