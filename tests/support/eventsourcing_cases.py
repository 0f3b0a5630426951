"""The test cases that the `eventsourcing` library ships for persistence modules, asked of Epochal's recorders.

A module of tests imports them, and says by a fixture which table the environment names.
"""

from __future__ import annotations

import json
import os
from typing import ClassVar

import pytest
from eventsourcing.dcb.msgpack import MessagePackMapper
from eventsourcing.dcb.tests import DCBRecorderTestCase
from eventsourcing.persistence import Tracking
from eventsourcing.tests import application, persistence, projection
from eventsourcing.utils import Environment, get_topic

from epochal import StreamAppend, Unfold
from epochal.contrib.eventsourcing import (
    NEAR,
    EpochalAggregateRecorder,
    EpochalApplicationRecorder,
    EpochalDCBRecorder,
    EpochalFactory,
    EpochalProcessRecorder,
    EpochalTrackingRecorder,
)
from epochal.model.outcomes import Appended


def factory(name: str = "Kennel") -> EpochalFactory:
    """What the environment names."""
    return EpochalFactory(Environment(name, dict(os.environ)))


class AggregateRecorderCase(persistence.AggregateRecorderTestCase):
    """Of recorders of aggregates."""

    def create_recorder(self) -> EpochalAggregateRecorder:
        """A new one."""
        made = factory()
        return EpochalAggregateRecorder(made.streams, made.category)


class SnapshotRecorderCase(AggregateRecorderCase):
    """Of those whose versions have gaps."""

    def create_recorder(self) -> EpochalAggregateRecorder:
        """A new one."""
        made = factory()
        return EpochalAggregateRecorder(made.streams, f"{made.category}_snapshots", gaps=True)


class ApplicationRecorderCase(persistence.ApplicationRecorderTestCase[EpochalApplicationRecorder]):
    """Of recorders of applications."""

    def create_recorder(self) -> EpochalApplicationRecorder:
        """A new one."""
        made = factory()
        return EpochalApplicationRecorder(made.streams, made.category)

    def test_insert_subscribe(self) -> None:
        """The case that a module of the library's chooses, where it has subscriptions."""
        self.optional_test_insert_subscribe()

    @pytest.mark.proof
    def test_concurrent_no_conflicts(self, initial_position: int = 0) -> None:
        """10,000 events of ten writers, with two readers that never pause."""
        super().test_concurrent_no_conflicts(initial_position)


class NonInterleavingCase(persistence.NonInterleavingNotificationIDsBaseCase):
    """Of the ids of two inserts at once."""

    def create_recorder(self) -> EpochalApplicationRecorder:
        """A new one."""
        made = factory()
        return EpochalApplicationRecorder(made.streams, made.category)


class TrackingRecorderCase(persistence.TrackingRecorderTestCase):
    """Of recorders of positions."""

    def create_recorder(self) -> EpochalTrackingRecorder:
        """A new one."""
        made = factory()
        return EpochalTrackingRecorder(made.streams, made.category)


class ProcessRecorderCase(persistence.ProcessRecorderTestCase):
    """Of recorders of processes."""

    def create_recorder(self) -> EpochalProcessRecorder:
        """A new one."""
        made = factory()
        return EpochalProcessRecorder(made.streams, made.category)


class CountersView(EpochalTrackingRecorder, projection.EventCountersView):
    """Counts in a stream of its own, which moves together with the position."""

    def get_created_event_counter(self) -> int:
        """As the library asks."""
        return self._counts()["created"]

    def get_subsequent_event_counter(self) -> int:
        """As the library asks."""
        return self._counts()["subsequent"]

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        """As the library asks."""
        self._add("created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        """As the library asks."""
        self._add("subsequent", tracking)

    @property
    def _stream(self) -> str:
        return f"{self._category}_counts-all"

    def _counts(self) -> dict[str, int]:
        found = self._streams.load(self._stream)
        counts = {} if found is None else json.loads(found.unfolds[0].content)
        return {"created": 0, "subsequent": 0, **counts}

    def _add(self, name: str, tracking: Tracking) -> None:
        counts = self._counts()
        counts[name] += 1
        counted = StreamAppend(
            stream=self._stream, unfolds=[Unfold(type="Counts", data=json.dumps(counts).encode())]
        )
        made = self._streams.append_all([counted, self.tracked(tracking)])
        assert isinstance(made, Appended)
        assert all(isinstance(each, Appended) for each in made.streams.values())


class EventCountersViewCase(projection.EventCountersViewTestCase):
    """Of views that record positions."""

    def construct_event_counters_view(self) -> CountersView:
        """A new one."""
        return factory().tracking_recorder(CountersView)  # type: ignore[return-value]  # the class that was handed in


class AggregateEventCountersCase(projection.AggregateEventCountersProjectionTestCase):
    """Of projections into such a view."""

    view_class = CountersView


class EventSourcedProjectionCase(projection.EventSourcedProjectionTestCase):
    """Of projections that are applications themselves."""


class TaggedRecorderCase(DCBRecorderTestCase):
    """Of recorders of events with tags."""

    near = NEAR

    def create_recorder(self) -> EpochalDCBRecorder:
        """A new one."""
        made = factory()
        return EpochalDCBRecorder(made.streams, made.category, near=self.near)

    def test_append_read(self) -> None:
        """As the library's own modules call it."""
        self._test_append_read(self.create_recorder())

    def test_append_subscribe(self) -> None:
        """Likewise."""
        self._test_append_subscribe(self.create_recorder())


class TaggedRecorderByTagsCase(TaggedRecorderCase):
    """Of those that read by tags wherever there are some."""

    near = 0


class TaggedDecisionCountersCase(projection.TaggedDecisionCountersProjectionTestCase):
    """Of projections of such events."""

    view_class = CountersView
    env: ClassVar[dict[str, str]] = {"MAPPER_TOPIC": get_topic(MessagePackMapper)}


class FactoryCase(persistence.InfrastructureFactoryTestCase[EpochalFactory]):
    """Of the factory."""

    def setUp(self) -> None:
        """With an environment of this case's own."""
        self.env = Environment("", dict(os.environ))
        super().setUp()

    def expected_factory_class(self) -> type[EpochalFactory]:
        """As the library asks."""
        return EpochalFactory

    def expected_aggregate_recorder_class(self) -> type[EpochalAggregateRecorder]:
        """As the library asks."""
        return EpochalAggregateRecorder

    def expected_application_recorder_class(self) -> type[EpochalApplicationRecorder]:
        """As the library asks."""
        return EpochalApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[EpochalTrackingRecorder]:
        """As the library asks."""
        return EpochalTrackingRecorder

    def tracking_recorder_subclass(self) -> type[EpochalTrackingRecorder]:
        """As the library asks."""
        return CountersView

    def expected_process_recorder_class(self) -> type[EpochalProcessRecorder]:
        """As the library asks."""
        return EpochalProcessRecorder


class ExampleApplicationCase(application.ExampleApplicationTestCase):
    """Of the library's own example."""

    expected_factory_topic = get_topic(EpochalFactory)


class ApplicationCase(application.ApplicationTestCase):
    """Of applications."""

    @pytest.mark.filterwarnings("default")  # it looks for a warning
    def test_application_log(self) -> None:
        """As the library has it."""
        super().test_application_log()


CASES = (
    AggregateRecorderCase,
    SnapshotRecorderCase,
    ApplicationRecorderCase,
    NonInterleavingCase,
    TrackingRecorderCase,
    ProcessRecorderCase,
    EventCountersViewCase,
    AggregateEventCountersCase,
    EventSourcedProjectionCase,
    TaggedRecorderCase,
    TaggedRecorderByTagsCase,
    TaggedDecisionCountersCase,
    FactoryCase,
    ExampleApplicationCase,
    ApplicationCase,
)


def on_table(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    """Applications and factories are Epochal's, on this table."""
    monkeypatch.setenv("PERSISTENCE_MODULE", "epochal.contrib.eventsourcing")
    monkeypatch.setenv("EPOCHAL_STREAMS_TABLE", table)
