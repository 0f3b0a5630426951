"""Recorders of how far a process has read the notifications of other applications: an unfold of a stream for each.

A position only increases. It is written on condition of the exact state that it was compared with, in one transaction
with the events that the process makes from the notification, so that each notification is processed once.
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

from epochal.contrib.eventsourcing.application_recorder import EpochalApplicationRecorder
from epochal.contrib.eventsourcing.recorders import ATTEMPTS
from epochal.contrib.eventsourcing.records import as_the_library_has_them
from epochal.model.events import Unfold
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.model.stream_append import StreamAppend
from epochal.store.streams import Streams

POSITION: Final = "Position"


class EpochalTrackingRecorder(TrackingRecorder):
    """A recorder of positions in the notifications of other applications.

    A view that must be exactly as far as its position has to be written together with it: a subclass for that appends
    to its own streams together with `tracked`.

    Args:
        streams: store of the streams.
        category: beginning of the names of the recorder's streams.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        self._streams = streams
        self._category = category

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position in another application's notifications; raise if it is not above the last one.

        Args:
            tracking: name of the other application, and id of its notification.

        Raises:
            IntegrityError: the position is not above the last one.
            OperationalError: other writers were faster at every attempt.
        """
        with as_the_library_has_them():
            for _ in range(ATTEMPTS):
                tracked = self.tracked(tracking)
                outcome = self._streams.try_append(
                    tracked.stream, (), unfolds=tracked.unfolds, expected=tracked.expected
                )
                if isinstance(outcome, Appended):
                    return
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def max_tracking_id(self, application_name: str) -> int | None:
        """Return the last recorded position in an application's notifications, or None if there is none.

        Args:
            application_name: name of the other application.
        """
        with as_the_library_has_them():
            return self._position(application_name)[0]

    def tracked(self, tracking: Tracking) -> StreamAppend:
        """Build an append of a position, for `append_all`; raise if it is not above the last recorded one.

        Args:
            tracking: name of the other application, and id of its notification.

        Raises:
            IntegrityError: the position is not above the last one.
        """
        last, expected = self._position(tracking.application_name)
        if last is not None and last >= tracking.notification_id:
            raise IntegrityError(
                f"{tracking.application_name} is already tracked to {last}, so not to {tracking.notification_id}"
            )
        position = Unfold(type=POSITION, data=str(tracking.notification_id).encode())
        return StreamAppend(
            stream=self._tracking_of(tracking.application_name), unfolds=[position], expected=expected
        )

    def _position(self, application: str) -> tuple[int | None, ExpectedVersion]:
        """Return the position recorded for an application, or None, with the expected version to replace it."""
        state = self._streams.load(self._tracking_of(application), events=False)
        if state is None:
            return None, NO_STREAM
        # There is no unfold if the stream has been deleted.
        position = int(state.unfolds[0].content) if state.unfolds else None
        return position, state.token

    def _tracking_of(self, application: str) -> str:
        """Return the name of the stream with the position in an application's notifications."""
        return f"{self._category}_tracking-{application}"


class EpochalProcessRecorder(EpochalTrackingRecorder, EpochalApplicationRecorder, ProcessRecorder):
    """A recorder of events together with the position of the notification that caused them.

    At most 98 aggregates are saved at once with a position.
    """

    def __init__(self, streams: Streams, category: str) -> None:
        EpochalApplicationRecorder.__init__(self, streams, category)

    def _beside(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[StreamAppend]:
        """Return the append to the log, with the append of the tracking position if there is one."""
        others = super()._beside(stored_events, **kwargs)
        tracking: Tracking | None = kwargs.get("tracking")
        return others if tracking is None else [*others, self.tracked(tracking)]
