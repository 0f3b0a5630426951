"""Stored events of the library as events of streams, and back.

    topic                        type
    state                        data, as it is
    originator_version           the index and one; where it is another, a member of `meta`
    originator, in the log       members of `meta`
    tags                         tags, after the application's name; a member of `meta`, where their order is not that
                                 of text

A stream holds one aggregate's events, so its name tells whose they are. In the log each event says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from eventsourcing.persistence import (
    DatabaseError,
    DataError,
    IntegrityError,
    InternalError,
    Notification,
    OperationalError,
    PersistenceError,
    ProgrammingError,
    StoredEvent,
)

from epochal.codec import json
from epochal.errors import (
    ConflictError,
    CorruptData,
    EpochalError,
    InvalidInput,
    Misconfigured,
    MissingBucket,
    MissingTable,
    OutcomeUndetermined,
    Refused,
    Unavailable,
    WrongTable,
)
from epochal.model.bodies import content_of
from epochal.model.events import Event, Recorded

VERSION: Final = "originator_version"
NAME: Final = "originator_id"
KEY: Final = "originator_uuid"
TAGS: Final = "tags"


def event_at(index: int, stored: StoredEvent) -> Event:
    """Convert a stored event of the library to an event for its aggregate's stream, at an index."""
    version = stored.originator_version
    meta = b"" if version == index + 1 else json.dumps({VERSION: version})
    return Event(type=stored.topic, data=stored.state, meta=meta)


def logged(stored: StoredEvent) -> Event:
    """Convert a stored event of the library to an event for the application's log."""
    originator = stored.originator_id
    name = KEY if isinstance(originator, UUID) else NAME
    meta = json.dumps({name: str(originator), VERSION: stored.originator_version})
    return Event(type=stored.topic, data=stored.state, meta=meta)


def version_of(event: Recorded) -> int:
    """Return an event's aggregate version, from metadata or else index + 1; may raise `CorruptData`.

    Raises:
        CorruptData: the event's metadata was not written by this module.
    """
    with _written_here(event):
        return int(_members(event).get(VERSION, event.index + 1))


def stored_event(originator: UUID | str, event: Recorded) -> StoredEvent:
    """Convert an event of an aggregate's stream to a stored event of the library."""
    return StoredEvent(originator, version_of(event), event.type, event.content)


def notification(event: Recorded) -> Notification:
    """Convert an event of the log to a notification of the library; raise `CorruptData` if malformed.

    Raises:
        CorruptData: the event was not written by this module.
    """
    with _written_here(event):
        members = _members(event)
        return Notification(
            originator_id=UUID(members[KEY]) if KEY in members else str(members[NAME]),
            originator_version=int(members[VERSION]),
            topic=event.type,
            state=event.content,
            id=event.index + 1,
        )


def tagged_as(kind: str, data: bytes, tags: Sequence[str], prefix: str) -> Event:
    """Make an event with prefixed tags for the log of an application with consistency boundaries.

    The metadata has the tags in their order if that differs from the order of text.
    """
    own = sorted(set(tags))
    meta = b"" if own == list(tags) else json.dumps({TAGS: list(tags)})
    return Event(type=kind, data=data, meta=meta, tags=tuple(prefix + tag for tag in own))


def tags_of(event: Recorded, prefix: str) -> list[str]:
    """Return an event's tags in their original order, without the prefix.

    Raises:
        CorruptData: the event's metadata was not written by this module.
    """
    with _written_here(event):
        tags: list[str] | None = _members(event).get(TAGS)
        return [tag.removeprefix(prefix) for tag in event.tags] if tags is None else tags


@contextmanager
def _written_here(event: Recorded) -> Iterator[None]:
    """Raise `CorruptData` within a block that decodes an event, if its metadata has an unexpected form."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"{event.stream}@{event.index} was not written by an application") from error


def _members(event: Recorded) -> dict[str, Any]:
    """Decode an event's metadata into its members."""
    meta = content_of(event.meta)
    members: dict[str, Any] = json.loads(meta) if meta else {}
    return members


# The library's error for each error of Epochal, so that applications of the library can catch it.


_TWINS: Final[tuple[tuple[type[EpochalError], type[PersistenceError]], ...]] = (
    (ConflictError, IntegrityError),
    (WrongTable, ProgrammingError),
    (InvalidInput, DataError),
    (MissingTable, ProgrammingError),
    (MissingBucket, ProgrammingError),
    (Misconfigured, ProgrammingError),
    (Refused, OperationalError),
    (Unavailable, OperationalError),
    (OutcomeUndetermined, OperationalError),
    (CorruptData, InternalError),
)
"""Pairs of an error of Epochal and the library's error for it; the first pair that fits applies."""


@contextmanager
def as_the_library_has_them() -> Iterator[None]:
    """Translate errors of Epochal within a block to the library's errors.

    Epochal's own error is the cause of the one raised.
    """
    try:
        yield
    except EpochalError as error:
        twin = next((twin for kind, twin in _TWINS if isinstance(error, kind)), DatabaseError)
        raise twin(str(error)) from error
