"""Recorders for the `eventsourcing` library: its applications, on streams of Epochal's.

    PERSISTENCE_MODULE=epochal.contrib.eventsourcing

An aggregate's events are a stream, `Kennel-<id>`; its snapshots another, `Kennel_snapshots-<id>`. An application's
notifications are a stream as well, `Kennel_log-all`, which every save appends to, in the transaction that appends to
the aggregates. So they are numbered from 1 without gaps, and each is there as soon as its event is; and so all saves of
an application take turns. How far a process has come with what another application tells is `Kennel_tracking-<name>`.
Events of an application with dynamic consistency boundaries are the stream `Kennel_dcb-all`, where they carry their
tags.

    EPOCHAL_STREAMS_TABLE    the table of streams; `:memory:` for one in memory, as the library has it for SQLite
    EPOCHAL_BUCKET           of bodies too large for an item; without one they are refused

As all settings of the library's, each may begin with an application's name (`KENNEL_EPOCHAL_STREAMS_TABLE`). Region,
credentials and endpoint are AWS's own settings.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, TypeVar

from epochal.dynamo.stores import open_streams
from epochal.errors import brought_by
from epochal.settings import variable
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

with brought_by("eventsourcing", "its recorders", "eventsourcing"):
    from eventsourcing.dcb.persistence import DCBInfrastructureFactory
    from eventsourcing.persistence import (
        AggregateRecorder,
        ApplicationRecorder,
        InfrastructureFactory,
        InfrastructureFactoryError,
        ProcessRecorder,
    )
    from eventsourcing.utils import resolve_topic

    from epochal.contrib.eventsourcing.recorders import (
        EpochalAggregateRecorder,
        EpochalApplicationRecorder,
        EpochalProcessRecorder,
        EpochalTrackingRecorder,
    )
    from epochal.contrib.eventsourcing.tagged import EpochalDCBRecorder

__all__ = [
    "EpochalAggregateRecorder",
    "EpochalApplicationRecorder",
    "EpochalDCBRecorder",
    "EpochalFactory",
    "EpochalProcessRecorder",
    "EpochalTrackingRecorder",
]

T = TypeVar("T")

TABLE: Final = variable("streams_table")
BUCKET: Final = variable("bucket")
MEMORY: Final = ":memory:"
KEPT_BESIDE: Final = ("_dcb", "_log", "_snapshots", "_tracking")
"""What the categories end with of what an application keeps beside its events."""
UNNAMED: Final = "Stored"
"""The category of an application without a name."""


class EpochalFactory(
    InfrastructureFactory[EpochalTrackingRecorder], DCBInfrastructureFactory[EpochalTrackingRecorder]
):
    """Makes recorders on the streams that the environment names."""

    @cached_property
    def streams(self) -> Streams:
        """The streams of all its recorders.

        Raises:
            InfrastructureFactoryError: the environment names no table.
        """
        table = self.env.get(TABLE)
        if not table:
            raise InfrastructureFactoryError(f"{TABLE} must name the table of streams, or be {MEMORY}")
        return memory_streams() if table == MEMORY else open_streams(table, bucket=self.env.get(BUCKET, ""))

    @property
    def category(self) -> str:
        """What the names of the aggregates' streams begin with.

        Raises:
            InfrastructureFactoryError: it would be no category: `A-B` with the id `1` is `A` with the id `B-1`. Or
                it would be that of what another application keeps beside its events: `A_log` has A's notifications.
        """
        if "-" in self.env.name:
            raise InfrastructureFactoryError(f"{self.env.name!r} cannot name streams: it has a hyphen")
        if self.env.name.endswith(KEPT_BESIDE):
            ends = ", ".join(KEPT_BESIDE)
            raise InfrastructureFactoryError(
                f"{self.env.name!r} cannot name streams: what ends with {ends} is another application's"
            )
        return self.env.name or UNNAMED

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Of the application's events, or of another purpose: `snapshots`, whose versions have gaps."""
        if purpose == "events":
            return EpochalAggregateRecorder(self.streams, self.category)
        return EpochalAggregateRecorder(self.streams, f"{self.category}_{purpose}", gaps=True)

    def application_recorder(self) -> ApplicationRecorder:
        """Of events and notifications."""
        return self._named(self.APPLICATION_RECORDER_TOPIC, EpochalApplicationRecorder)(
            self.streams, self.category
        )

    def dcb_recorder(self) -> EpochalDCBRecorder:
        """Of events with tags."""
        return EpochalDCBRecorder(self.streams, self.category)

    def tracking_recorder(
        self, tracking_recorder_class: type[EpochalTrackingRecorder] | None = None
    ) -> EpochalTrackingRecorder:
        """Of positions alone."""
        kind = tracking_recorder_class or self._named(self.TRACKING_RECORDER_TOPIC, EpochalTrackingRecorder)
        return kind(self.streams, self.category)

    def process_recorder(self) -> ProcessRecorder:
        """Of events, notifications and positions."""
        return self._named(self.PROCESS_RECORDER_TOPIC, EpochalProcessRecorder)(self.streams, self.category)

    def _named(self, setting: str, otherwise: type[T]) -> type[T]:
        """The class that a setting names, one of the same kind."""
        topic = self.env.get(setting)
        kind = resolve_topic(topic) if topic else otherwise
        if not (isinstance(kind, type) and issubclass(kind, otherwise)):
            raise InfrastructureFactoryError(f"{setting} must name a subclass of {otherwise.__name__}")
        return kind
