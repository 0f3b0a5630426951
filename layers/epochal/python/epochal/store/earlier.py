"""A stream as it was, at a version or at a moment. Few look back, so it is loaded by those who do."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.errors import EventsPruned, InvalidInput
from epochal.index.checkpoints import Moment
from epochal.layout.streams import Head
from epochal.lazy_dataclasses import replace
from epochal.model.events import Recorded, parse_time
from epochal.model.kinds import must_be_whole
from epochal.model.versions import Token
from epochal.store.reading import Hole, Reader, StreamState
from epochal.store.streams import Streams


def state_at(store: Streams, head: Head, since: int, as_of: int | Moment, *, fetch: bool) -> StreamState:
    """The stream of a head as it was, with its events from `since` on; raises as `Streams.load` does."""
    whole = store._state(head, head.version, fetch=fetch)  # noqa: SLF001  of one store
    if head.deleted:
        return whole
    version = version_at(store.reader(fetch=False), head.stream, head, as_of)
    return replace(
        whole,
        version=version,
        token=whole.token if version == head.version else Token(version=version),
        unfolds=tuple(each for each in whole.unfolds if each.version <= version),
        events=tuple(_events(store.reader(fetch=fetch), head, since, version)),
    )


def version_at(reader: Reader, stream: str, head: Head | None, as_of: int | Moment) -> int:
    """A version that a stream has had: the one given, or that with its last event of a moment or before.

    Raises:
        InvalidInput: it is neither, or beyond the end.
    """
    if not isinstance(as_of, Moment):
        must_be_whole(as_of, "as_of", 0)
        if as_of > (0 if head is None else head.version):
            raise InvalidInput("as_of", f"is beyond the end of {stream}")
        return as_of
    for found in () if head is None else reader.onward(head, None, "backward"):
        if isinstance(found, Hole):
            return found.end
        if parse_time(found.timestamp) <= as_of.ticks:
            return found.index + 1
    return 0


def _events(reader: Reader, head: Head, since: int, end: int) -> Iterator[Recorded]:
    if since > end:
        raise InvalidInput("since", f"is beyond the end of {head.stream}, at version {end}")
    limit = None if end == head.version else end - since
    for found in reader.onward(head, since, "forward", limit) if since < end else ():
        if isinstance(found, Hole):
            raise EventsPruned(head.stream, found.first, found.end)
        if found.index >= end:
            return
        yield found
