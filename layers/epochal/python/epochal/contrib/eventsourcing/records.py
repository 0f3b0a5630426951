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
from epochal.model.events import Event, Recorded, content_of

VERSION: Final = "originator_version"
NAME: Final = "originator_id"
KEY: Final = "originator_uuid"
TAGS: Final = "tags"


def event_at(index: int, stored: StoredEvent) -> Event:
    """What the stream of its aggregate gets, at this index."""
    version = stored.originator_version
    meta = b"" if version == index + 1 else json.dumps({VERSION: version})
    return Event(type=stored.topic, data=stored.state, meta=meta)


def logged(stored: StoredEvent) -> Event:
    """What the log gets."""
    originator = stored.originator_id
    name = KEY if isinstance(originator, UUID) else NAME
    meta = json.dumps({name: str(originator), VERSION: stored.originator_version})
    return Event(type=stored.topic, data=stored.state, meta=meta)


def version_of(event: Recorded) -> int:
    """The version of its aggregate that an event made. Raises `CorruptData` where somebody else wrote its metadata."""
    with _written_here(event):
        return int(_members(event).get(VERSION, event.index + 1))


def stored_event(originator: UUID | str, event: Recorded) -> StoredEvent:
    """An event of this aggregate's stream."""
    return StoredEvent(originator, version_of(event), event.type, event.content)


def notification(event: Recorded) -> Notification:
    """An event of the log. Raises `CorruptData` where somebody else wrote it."""
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
    """An event with tags, as the log of an application with dynamic consistency boundaries gets it."""
    own = sorted(set(tags))
    meta = b"" if own == list(tags) else json.dumps({TAGS: list(tags)})
    return Event(type=kind, data=data, meta=meta, tags=tuple(prefix + tag for tag in own))


def tags_of(event: Recorded, prefix: str) -> list[str]:
    """Its tags, as they were given. Raises `CorruptData` where somebody else wrote its metadata."""
    with _written_here(event):
        given: list[str] | None = _members(event).get(TAGS)
        return [tag.removeprefix(prefix) for tag in event.tags] if given is None else given


@contextmanager
def _written_here(event: Recorded) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"{event.stream}@{event.index} is none that an application wrote") from error


def _members(event: Recorded) -> dict[str, Any]:
    meta = content_of(event.meta)
    found: dict[str, Any] = json.loads(meta) if meta else {}
    return found


# Errors of Epochal's as those that the library's applications catch.


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
"""The first that fits."""


@contextmanager
def as_the_library_has_them() -> Iterator[None]:
    """Errors raised within the block, as the library names them; Epochal's own is the cause."""
    try:
        yield
    except EpochalError as error:
        twin = next((twin for kind, twin in _TWINS if isinstance(error, kind)), DatabaseError)
        raise twin(str(error)) from error
