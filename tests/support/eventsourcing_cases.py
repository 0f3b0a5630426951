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
    """Return the factory that the environment specifies."""
    return EpochalFactory(Environment(name, dict(os.environ)))


class AggregateRecorderCase(persistence.AggregateRecorderTestCase):
    """The library's cases for recorders of aggregates."""

    def create_recorder(self) -> EpochalAggregateRecorder:
        """Return a new recorder."""
        made = factory()
        return EpochalAggregateRecorder(made.streams, made.category)


class SnapshotRecorderCase(AggregateRecorderCase):
    """The library's cases for recorders of snapshots, whose versions have gaps."""

    def create_recorder(self) -> EpochalAggregateRecorder:
        """Return a new recorder."""
        made = factory()
        return EpochalAggregateRecorder(made.streams, f"{made.category}_snapshots", gaps=True)


class ApplicationRecorderCase(persistence.ApplicationRecorderTestCase[EpochalApplicationRecorder]):
    """The library's cases for recorders of applications."""

    def create_recorder(self) -> EpochalApplicationRecorder:
        """Return a new recorder."""
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
    """The library's cases for the notification ids of concurrent inserts."""

    def create_recorder(self) -> EpochalApplicationRecorder:
        """Return a new recorder."""
        made = factory()
        return EpochalApplicationRecorder(made.streams, made.category)


class TrackingRecorderCase(persistence.TrackingRecorderTestCase):
    """The library's cases for recorders of positions."""

    def create_recorder(self) -> EpochalTrackingRecorder:
        """Return a new recorder."""
        made = factory()
        return EpochalTrackingRecorder(made.streams, made.category)


class ProcessRecorderCase(persistence.ProcessRecorderTestCase):
    """The library's cases for recorders of processes."""

    def create_recorder(self) -> EpochalProcessRecorder:
        """Return a new recorder."""
        made = factory()
        return EpochalProcessRecorder(made.streams, made.category)


class CountersView(EpochalTrackingRecorder, projection.EventCountersView):
    """Counts in its own stream, which change together with the position."""

    def get_created_event_counter(self) -> int:
        """Return the counter of created events, as the library's cases require."""
        return self._counts()["created"]

    def get_subsequent_event_counter(self) -> int:
        """Return the counter of later events, as the library's cases require."""
        return self._counts()["subsequent"]

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        """Increment the counter of created events, as the library's cases require."""
        self._add("created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        """Increment the counter of later events, as the library's cases require."""
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
    """The library's cases for views that record positions."""

    def construct_event_counters_view(self) -> CountersView:
        """Return a new view."""
        return factory().tracking_recorder(CountersView)  # type: ignore[return-value]  # the class that was handed in


class AggregateEventCountersCase(projection.AggregateEventCountersProjectionTestCase):
    """The library's cases for projections into such a view."""

    view_class = CountersView


class EventSourcedProjectionCase(projection.EventSourcedProjectionTestCase):
    """The library's cases for projections that are applications themselves."""


class TaggedRecorderCase(DCBRecorderTestCase):
    """The library's cases for recorders of events with tags."""

    near = NEAR

    def create_recorder(self) -> EpochalDCBRecorder:
        """Return a new recorder."""
        made = factory()
        return EpochalDCBRecorder(made.streams, made.category, near=self.near)

    def test_append_read(self) -> None:
        """As the library's own modules call it."""
        self._test_append_read(self.create_recorder())

    def test_append_subscribe(self) -> None:
        """Likewise."""
        self._test_append_subscribe(self.create_recorder())


class TaggedRecorderByTagsCase(TaggedRecorderCase):
    """The library's cases for recorders that read by tags if a query has any."""

    near = 0


class TaggedDecisionCountersCase(projection.TaggedDecisionCountersProjectionTestCase):
    """The library's cases for projections of events with tags."""

    view_class = CountersView
    env: ClassVar[dict[str, str]] = {"MAPPER_TOPIC": get_topic(MessagePackMapper)}


class FactoryCase(persistence.InfrastructureFactoryTestCase[EpochalFactory]):
    """The library's cases for factories."""

    def setUp(self) -> None:
        """Create an environment for this case."""
        self.env = Environment("", dict(os.environ))
        super().setUp()

    def expected_factory_class(self) -> type[EpochalFactory]:
        """Return the class, as the library's cases require."""
        return EpochalFactory

    def expected_aggregate_recorder_class(self) -> type[EpochalAggregateRecorder]:
        """Return the class, as the library's cases require."""
        return EpochalAggregateRecorder

    def expected_application_recorder_class(self) -> type[EpochalApplicationRecorder]:
        """Return the class, as the library's cases require."""
        return EpochalApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[EpochalTrackingRecorder]:
        """Return the class, as the library's cases require."""
        return EpochalTrackingRecorder

    def tracking_recorder_subclass(self) -> type[EpochalTrackingRecorder]:
        """Return the class, as the library's cases require."""
        return CountersView

    def expected_process_recorder_class(self) -> type[EpochalProcessRecorder]:
        """Return the class, as the library's cases require."""
        return EpochalProcessRecorder


class ExampleApplicationCase(application.ExampleApplicationTestCase):
    """The library's cases for its own example."""

    expected_factory_topic = get_topic(EpochalFactory)


class ApplicationCase(application.ApplicationTestCase):
    """The library's cases for applications."""

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
    """Configure applications and factories to use Epochal with this table."""
    monkeypatch.setenv("PERSISTENCE_MODULE", "epochal.contrib.eventsourcing")
    monkeypatch.setenv("EPOCHAL_STREAMS_TABLE", table)
