"""Recorders for the `eventsourcing` library: its applications, on streams of Epochal's.

    PERSISTENCE_MODULE=epochal.contrib.eventsourcing

An aggregate's events are a stream, `Kennel-<id>`; its snapshots another, `Kennel_snapshots-<id>`. An application's
notifications are a stream as well, `Kennel_log-all`, which every save appends to, in the transaction that appends to
the aggregates. So they are numbered from 1 without gaps, and each is there as soon as its event is; and so all saves of
an application take turns. How far a process has come with what another application tells is `Kennel_tracking-<name>`.
Events of an application with dynamic consistency boundaries are the stream `Kennel_dcb-all`, where they carry their
tags.
"""

from epochal.errors import brought_by

with brought_by("eventsourcing", "its recorders", "eventsourcing"):
    from epochal.contrib.eventsourcing.factory import EpochalFactory
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
