"""Loads the state of a stream at an earlier version or moment.

It is a module of its own since few programs need it, and those that do not load faster without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epochal.errors import EventsPruned, InvalidInput
from epochal.layout.streams import Head
from epochal.lazy_dataclasses import replace
from epochal.model.events import Recorded
from epochal.model.kinds import must_be_whole
from epochal.model.moments import AsOf, Moment, as_of_moment, parse_time
from epochal.model.tokens import Token
from epochal.store.reading import Hole, Reader, StreamState

if TYPE_CHECKING:
    from epochal.store.streams import Streams


def state_at(store: Streams, head: Head, start: int, as_of: AsOf, *, fetch: bool) -> StreamState:
    """Return the state of a stream at an earlier version or moment, with the events from `start` on.

    Args:
        head: the head of the stream.
        start: index of the first event that is returned.
        as_of: a version, or a moment.
        fetch: whether bodies in the bucket are fetched.

    Raises:
        EventsPruned: an event from `start` on is gone.
        InvalidInput: `start` or `as_of` is beyond the end.
    """
    newest = store._state(head, head.version, fetch=fetch)  # noqa: SLF001  of one store
    if head.deleted:
        return newest
    version = version_at(store.reader(fetch=False), head.stream, head, as_of)
    return replace(
        newest,
        version=version,
        token=newest.token if version == head.version else Token(version=version),
        unfolds=tuple(unfold for unfold in newest.unfolds if unfold.version <= version),
        events=tuple(_events(store.reader(fetch=fetch), head, start, version)),
    )


def version_at(reader: Reader, stream: str, head: Head | None, as_of: AsOf) -> int:
    """Return the version that a stream had at a moment; a given version is checked and returned.

    The version at a moment is that after the last event that happened at the moment or before; 0 if there is none.

    Raises:
        InvalidInput: `as_of` is neither a moment nor a version, or is a version beyond the end.
    """
    as_of = as_of_moment(as_of)
    if not isinstance(as_of, Moment):
        must_be_whole(as_of, "as_of", 0)
        if as_of > (0 if head is None else head.version):
            raise InvalidInput("as_of", f"is beyond the end of {stream}")
        return as_of
    for event in () if head is None else reader.onward(head, None, "backward"):
        if isinstance(event, Hole):
            return event.end
        if parse_time(event.timestamp) <= as_of.ticks:
            return event.index + 1
    return 0


def _events(reader: Reader, head: Head, start: int, end: int) -> Iterator[Recorded]:
    """Yield the events of a stream from index `start` to `end - 1`; raise `EventsPruned` at a hole.

    Raises:
        EventsPruned: one of them is gone.
        InvalidInput: `start` is above `end`.
    """
    if start > end:
        raise InvalidInput("start", f"is beyond the end of {head.stream}, at version {end}")
    limit = None if end == head.version else end - start
    for event in reader.onward(head, start, "forward", limit) if start < end else ():
        if isinstance(event, Hole):
            raise EventsPruned(head.stream, event.first, event.end)
        if event.index >= end:
            return
        yield event
