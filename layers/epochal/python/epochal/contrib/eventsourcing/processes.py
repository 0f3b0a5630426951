"""How far a process has come with what other applications tell: an unfold of a stream, one for each of them.

A position only increases. It is written on the exact state that it was compared with, in one transaction with the
events that the process makes of the notification, so that each is processed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from eventsourcing.persistence import (
    IntegrityError,
    OperationalError,
    ProcessRecorder,
    StoredEvent,
    Tracking,
    TrackingRecorder,
)

from epochal.contrib.eventsourcing.aggregates import ATTEMPTS
from epochal.contrib.eventsourcing.applications import EpochalApplicationRecorder
from epochal.contrib.eventsourcing.records import as_the_library_has_them
from epochal.model.events import Unfold
from epochal.model.versions import NO_STREAM, Appended, ExpectedVersion, StreamAppend
from epochal.store.streams import Streams

POSITION: Final = "Position"


class EpochalTrackingRecorder(TrackingRecorder):
    """Records positions in what other applications tell.

    A view that is to be exactly as far as its position belongs into the same write: such a subclass appends to its own
    streams together with `tracked`.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        self._streams = streams
        self._category = category

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position; `IntegrityError` where it is not above the last one."""
        with as_the_library_has_them():
            for _ in range(ATTEMPTS):
                each = self.tracked(tracking)
                made = self._streams.try_append(each.stream, (), unfolds=each.unfolds, expected=each.expected)
                if isinstance(made, Appended):
                    return
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def max_tracking_id(self, application_name: str) -> int | None:
        """The last position recorded for an application; None before the first."""
        with as_the_library_has_them():
            return self._position(application_name)[0]

    def tracked(self, tracking: Tracking) -> StreamAppend:
        """What records a position, for an `append_all`; `IntegrityError` where it is not above the last one."""
        last, expected = self._position(tracking.application_name)
        if last is not None and last >= tracking.notification_id:
            raise IntegrityError(
                f"{tracking.application_name} is tracked to {last}, so not to {tracking.notification_id}"
            )
        position = Unfold(type=POSITION, data=str(tracking.notification_id).encode())
        return StreamAppend(
            stream=self._tracking_of(tracking.application_name), unfolds=[position], expected=expected
        )

    def _position(self, application: str) -> tuple[int | None, ExpectedVersion]:
        state = self._streams.load(self._tracking_of(application))
        if state is None:
            return None, NO_STREAM
        position = int(state.unfolds[0].content) if state.unfolds else None  # its stream has been deleted
        return position, state.token

    def _tracking_of(self, application: str) -> str:
        return f"{self._category}_tracking-{application}"


class EpochalProcessRecorder(EpochalTrackingRecorder, EpochalApplicationRecorder, ProcessRecorder):
    """Records events together with the position of the notification that they were made of.

    At most 98 aggregates are inserted to at once with a position.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        EpochalApplicationRecorder.__init__(self, streams, category)

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:
        others = super()._beside(stored_events, **kwargs)
        tracking: Tracking | None = kwargs.get("tracking")
        return others if tracking is None else [*others, self.tracked(tracking)]
