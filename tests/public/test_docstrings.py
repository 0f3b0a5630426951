"""Every argument of a public function, method or constructor is described where the reader looks: in its docstring."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.public import docstrings
from tests.public.library_names import Module

UNLISTED: Final = frozenset(
    {
        "epochal.cdk.store.EventStore.stores",
        "epochal.cdk.store.EventStore.topic_arn",
        "epochal.cdk.store.Store.add_reaction",
        "epochal.cdk.store.Store.grant_append",
        "epochal.cdk.store.Store.grant_feed",
        "epochal.cdk.store.Store.grant_read",
        "epochal.cdk.store.Store.layers",
        "epochal.cdk.store.Store.stores",
        "epochal.cdk.store.Store.topic_arn",
        "epochal.cdk.store_options.StoreOptions",
        "epochal.contrib.equinox.EquinoxOptions",
        "epochal.contrib.equinox.append.ByCost.calves",
        "epochal.contrib.equinox.append.Fixed.calves",
        "epochal.contrib.equinox.streams.memory_tips",
        "epochal.contrib.event_store_adapter.AdapterOptions",
        "epochal.contrib.event_store_adapter.deciders.AggregateDeciders.load",
        "epochal.contrib.event_store_adapter.deciders.AggregateDeciders.query",
        "epochal.contrib.event_store_adapter.deciders.StateCodec.misfit",
        "epochal.contrib.event_store_adapter.deciders.by_size",
        "epochal.contrib.event_store_adapter.deciders.every",
        "epochal.contrib.event_store_adapter.model.AggregateEvent.json",
        "epochal.contrib.event_store_adapter.model.AggregateId",
        "epochal.contrib.event_store_adapter.model.AggregateTypes",
        "epochal.contrib.event_store_adapter.model.AggregateTypes.check",
        "epochal.contrib.event_store_adapter.model.AggregateTypes.id",
        "epochal.contrib.event_store_adapter.model.AggregateTypes.read",
        "epochal.contrib.event_store_adapter.model.Serializer.event",
        "epochal.contrib.event_store_adapter.model.Serializer.snapshot",
        "epochal.contrib.event_store_adapter.model.Serializer.type_of",
        "epochal.contrib.event_store_adapter.model.aggregate_id",
        "epochal.contrib.event_store_adapter.store.AggregateStore.decided",
        "epochal.contrib.event_store_adapter.store.AggregateStore.events_after",
        "epochal.contrib.event_store_adapter.store.AggregateStore.latest_snapshot",
        "epochal.contrib.event_store_adapter.store.AggregateStore.lock",
        "epochal.contrib.event_store_adapter.store.AggregateStore.persist_event",
        "epochal.contrib.event_store_adapter.store.AggregateStore.persist_event_and_snapshot",
        "epochal.contrib.event_store_adapter.store.AggregateStore.recorded",
        "epochal.contrib.event_store_adapter.store.AggregateStore.replay",
        "epochal.contrib.event_store_adapter.store.AggregateStore.retire",
        "epochal.contrib.event_store_adapter.store.AggregateStore.since",
        "epochal.contrib.event_store_adapter.store.AggregateStore.try_append",
        "epochal.contrib.eventsourcing.EpochalDCBRecorder.append",
        "epochal.contrib.eventsourcing.EpochalDCBRecorder.read",
        "epochal.contrib.eventsourcing.EpochalDCBRecorder.subscribe",
        "epochal.contrib.eventsourcing.EpochalFactory.aggregate_recorder",
        "epochal.contrib.eventsourcing.EpochalFactory.tracking_recorder",
        "epochal.contrib.eventsourcing.recorders.EpochalAggregateRecorder.insert_events",
        "epochal.contrib.eventsourcing.recorders.EpochalAggregateRecorder.select_events",
        "epochal.contrib.eventsourcing.recorders.EpochalApplicationRecorder.insert_events",
        "epochal.contrib.eventsourcing.recorders.EpochalApplicationRecorder.select_notifications",
        "epochal.contrib.eventsourcing.recorders.EpochalApplicationRecorder.subscribe",
        "epochal.contrib.eventsourcing.recorders.EpochalTrackingRecorder",
        "epochal.contrib.eventsourcing.recorders.EpochalTrackingRecorder.insert_tracking",
        "epochal.contrib.eventsourcing.recorders.EpochalTrackingRecorder.max_tracking_id",
        "epochal.contrib.eventsourcing.recorders.EpochalTrackingRecorder.tracked",
        "epochal.contrib.http_client.deciders.HttpDeciders.query",
        "epochal.contrib.http_client.feed.HttpFeed.follow",
        "epochal.contrib.http_client.feed.HttpFeed.page",
        "epochal.contrib.http_client.feed.HttpFeed.read",
        "epochal.contrib.http_client.feed.HttpFeed.wait_for",
        "epochal.contrib.http_client.streams.HttpStreams.append",
        "epochal.contrib.http_client.streams.HttpStreams.append_each",
        "epochal.contrib.http_client.streams.HttpStreams.delete",
        "epochal.contrib.http_client.streams.HttpStreams.load",
        "epochal.contrib.http_client.streams.HttpStreams.page",
        "epochal.contrib.http_client.streams.HttpStreams.prune",
        "epochal.contrib.http_client.streams.HttpStreams.read",
        "epochal.contrib.http_client.streams.HttpStreams.try_append",
        "epochal.contrib.http_client.streams.HttpStreams.try_append_all",
        "epochal.contrib.http_client.streams.HttpStreams.try_delete",
        "epochal.contrib.http_client.tagged.HttpTaggedEvents.event",
        "epochal.contrib.http_client.tagged.HttpTaggedEvents.read",
        "epochal.contrib.http_client.tagged.HttpTaggedEvents.try_append",
        "epochal.contrib.lake.cdk.Lake.grant_query",
        "epochal.contrib.otel.tracing.instrument",
        "epochal.contrib.processes.process.Process.fold",
        "epochal.contrib.processes.process.Process.instance_of",
        "epochal.contrib.processes.process.Process.instances",
        "epochal.contrib.processes.process.Process.message",
        "epochal.contrib.processes.process.Process.of",
        "epochal.contrib.processes.process.Rules.evolve",
        "epochal.contrib.processes.process.Rules.react",
        "epochal.contrib.processes.process.process",
        "epochal.contrib.processes.process.process_of",
        "epochal.contrib.processes.testing.GivenProcess.after",
        "epochal.contrib.processes.testing.GivenProcess.then",
        "epochal.contrib.processes.testing.GivenProcess.then_state",
        "epochal.contrib.processes.testing.GivenProcess.when",
        "epochal.contrib.processes.testing.given_process",
        "epochal.contrib.publish.cloudevents.cloud_event",
        "epochal.contrib.schemas.columns.Column",
        "epochal.contrib.schemas.columns.Column.value",
        "epochal.contrib.schemas.columns.TypedColumns.values",
        "epochal.contrib.schemas.columns.columns",
        "epochal.contrib.sekiban.SekibanOptions",
        "epochal.contrib.sekiban.items.RecordedTaggedEvent",
        "epochal.contrib.sekiban.items.TaggedEvent.of",
        "epochal.contrib.sekiban.listings.TagListings.count",
        "epochal.contrib.sekiban.listings.TagListings.tagged",
        "epochal.contrib.sekiban.opening.DcbImporter",
        "epochal.contrib.sekiban.opening.memory_dcb_events",
        "epochal.contrib.sekiban.opening.memory_projection_states",
        "epochal.contrib.sekiban.opening.open_dcb_events",
        "epochal.contrib.sekiban.projections.ProjectionStates.delete",
        "epochal.contrib.sekiban.projections.ProjectionStates.find",
        "epochal.contrib.sekiban.projections.ProjectionStates.find_any",
        "epochal.contrib.sekiban.projections.ProjectionStates.list",
        "epochal.contrib.sekiban.projections.ProjectionStates.open",
        "epochal.contrib.sekiban.projections.ProjectionStates.orphans",
        "epochal.contrib.sekiban.projections.ProjectionStates.page",
        "epochal.contrib.sekiban.projections.ProjectionStates.projectors_in",
        "epochal.contrib.sekiban.projections.ProjectionStates.remove_orphans",
        "epochal.contrib.sekiban.projections.ProjectionStates.try_save",
        "epochal.contrib.sekiban.states.StoredState",
        "epochal.contrib.sekiban.store.DcbEvents",
        "epochal.contrib.sql.read_models.SqlReadModel.apply",
        "epochal.contrib.sql.read_models.SqlReadModel.place",
        "epochal.contrib.sql.read_models.SqlReadModel.remove",
        "epochal.contrib.sql.read_models.SqlReadModel.wait_for",
        "epochal.contrib.sql.read_models.SqlReadModels.drop",
        "epochal.contrib.sql.read_models.SqlReadModels.live",
        "epochal.contrib.sql.read_models.SqlReadModels.open",
        "epochal.contrib.sql.read_models.SqlReadModels.swap",
        "epochal.contrib.subjects.aio.AsyncSubjects.forget",
        "epochal.contrib.subjects.aio.AsyncSubjects.is_forgotten",
        "epochal.contrib.subjects.aio.AsyncSubjects.seal",
        "epochal.contrib.subjects.aio.AsyncSubjects.unseal",
        "epochal.contrib.subjects.cdk.SubjectKeys.grant_forgetting",
        "epochal.contrib.subjects.cdk.SubjectKeys.grant_sealing",
        "epochal.contrib.subjects.sealing.Shredded",
        "epochal.contrib.subjects.sealing.Subjects.forget",
        "epochal.contrib.subjects.sealing.Subjects.is_forgotten",
        "epochal.contrib.subjects.sealing.Subjects.seal",
        "epochal.contrib.subjects.sealing.Subjects.unseal",
        "epochal.contrib.subjects.sealing.Wrapping.fresh",
        "epochal.contrib.subjects.sealing.Wrapping.unwrap",
        "epochal.contrib.subjects.sealing.open_subjects",
        "epochal.contrib.subjects.sealing.sealed_codec",
        "epochal.contrib.subjects.testing.memory_subjects",
        "epochal.contrib.timers.aio.AsyncStreamTimers",
        "epochal.contrib.timers.aio.AsyncTagTimers",
        "epochal.contrib.timers.aio.async_timers_of",
        "epochal.contrib.timers.stores.StreamTimers.cancel",
        "epochal.contrib.timers.stores.StreamTimers.pending",
        "epochal.contrib.timers.stores.StreamTimers.schedule",
        "epochal.contrib.timers.stores.TagTimers.cancel",
        "epochal.contrib.timers.stores.TagTimers.pending",
        "epochal.contrib.timers.stores.TagTimers.schedule",
        "epochal.contrib.timers.stores.timers_of",
        "epochal.contrib.transfer.importing.encoded_names.decode_name",
        "epochal.contrib.transfer.importing.encoded_names.encode_name",
        "epochal.contrib.transfer.rows.as_json",
        "epochal.errors.BeyondTheEnd",
        "epochal.errors.ConditionUnmet",
        "epochal.errors.ConflictError",
        "epochal.errors.Contended",
        "epochal.errors.DeniedBody",
        "epochal.errors.EventsPruned",
        "epochal.errors.GroupMissing",
        "epochal.errors.InvalidInput",
        "epochal.errors.InvalidInput.call_it",
        "epochal.errors.InvalidRequest",
        "epochal.errors.Misconfigured",
        "epochal.errors.MissingBody",
        "epochal.errors.MissingBucket",
        "epochal.errors.MissingTable",
        "epochal.errors.OutcomeUndetermined",
        "epochal.errors.Refused",
        "epochal.errors.StreamDeleted",
        "epochal.errors.SubjectForgotten",
        "epochal.errors.TooLarge",
        "epochal.errors.Unavailable",
        "epochal.errors.UnknownEncoding",
        "epochal.errors.UnknownType",
        "epochal.errors.WrongExpectedVersion",
        "epochal.errors.WrongTable",
        "epochal.feed.events.FeedEvent",
        "epochal.feed.ordered.OrderedCheckpoint.parse",
        "epochal.feed.reader.FeedReader.categories",
        "epochal.feed.reader.FeedReader.end_of",
        "epochal.feed.reader.FeedReader.events",
        "epochal.feed.reader.FeedReader.follow",
        "epochal.feed.reader.FeedReader.hydrate",
        "epochal.feed.reader.FeedReader.hydrate_unopened",
        "epochal.feed.reader.FeedReader.items",
        "epochal.feed.reader.FeedReader.newest",
        "epochal.feed.reader.FeedReader.on",
        "epochal.feed.reader.FeedReader.ordered",
        "epochal.feed.reader.FeedReader.page",
        "epochal.feed.reader.FeedReader.page_within",
        "epochal.feed.reader.FeedReader.place",
        "epochal.feed.reader.FeedReader.read",
        "epochal.feed.reader.FeedReader.removal_of",
        "epochal.feed.reader.FeedReader.spans",
        "epochal.feed.reader.FeedReader.streams",
        "epochal.feed.reader.FeedReader.streams_by_name",
        "epochal.feed.reader.FeedReader.wait_for",
        "epochal.feed.results.FeedItem",
        "epochal.feed.results.FeedItem.of",
        "epochal.feed.results.FeedPage",
        "epochal.feed.results.ListedStream",
        "epochal.feed.results.NamedStreams",
        "epochal.feed.results.NewestPage",
        "epochal.feed.results.PartitionTail",
        "epochal.feed.results.StreamsPage",
        "epochal.hosting.function.lambda_handler",
        "epochal.index.checkpoints.Checkpoint.of",
        "epochal.index.checkpoints.FeedPosition.covers",
        "epochal.index.checkpoints.Moment",
        "epochal.index.checkpoints.parse_checkpoint",
        "epochal.layout.changes.Span",
        "epochal.layout.changes.Span.since",
        "epochal.layout.changes.Span.until",
        "epochal.model.events.Recorded",
        "epochal.model.events.RecordedUnfold",
        "epochal.model.tag_answers.BackwardPage",
        "epochal.model.tag_answers.Seen",
        "epochal.model.tag_answers.TagCount",
        "epochal.model.tag_answers.TagEntry",
        "epochal.model.tag_answers.TaggedPage",
        "epochal.model.tags.Query",
        "epochal.model.tags.Query.matches",
        "epochal.model.tags.QueryItem",
        "epochal.model.tags.QueryItem.matches",
        "epochal.model.tags.Trail.at",
        "epochal.model.tags.Trail.in_tags",
        "epochal.model.tags.Trail.of",
        "epochal.model.versions.AtVersion",
        "epochal.model.versions.Conflict",
        "epochal.model.versions.Undetermined",
        "epochal.model.versions.parse_token",
        "epochal.plan.conditions.Absent",
        "epochal.plan.ops.Put",
        "epochal.reactions.composite.Composite.reactions",
        "epochal.reactions.definition.Delivery.key",
        "epochal.reactions.definition.Reaction.wants",
        "epochal.reactions.definition.Reaction.wants_event",
        "epochal.reactions.definition.Reaction.wants_removal",
        "epochal.reactions.definition.Selector.takes",
        "epochal.reactions.definition.Selector.takes_event",
        "epochal.reactions.definition.reaction",
        "epochal.reactions.parking.Parking.discard",
        "epochal.reactions.parking.Parking.of",
        "epochal.reactions.parking.Parking.replay",
        "epochal.reactions.parking.Parking.skip",
        "epochal.reactions.parking.Parking.streams",
        "epochal.reactions.steering.Groups.begin",
        "epochal.reactions.steering.Groups.delete",
        "epochal.reactions.steering.Groups.members",
        "epochal.reactions.steering.Groups.pause",
        "epochal.reactions.steering.Groups.resume",
        "epochal.read_models.asking.FoundDocument",
        "epochal.read_models.documents.Documents",
        "epochal.read_models.documents.Documents.delete",
        "epochal.read_models.documents.Documents.get",
        "epochal.read_models.documents.Documents.put",
        "epochal.read_models.documents.ReadModel.apply",
        "epochal.read_models.documents.ReadModel.count",
        "epochal.read_models.documents.ReadModel.find",
        "epochal.read_models.documents.ReadModel.list",
        "epochal.read_models.documents.ReadModel.place",
        "epochal.read_models.documents.ReadModel.remove",
        "epochal.read_models.documents.ReadModel.wait_for",
        "epochal.read_models.documents.ReadModels",
        "epochal.read_models.documents.ReadModels.drop",
        "epochal.read_models.documents.ReadModels.swap",
        "epochal.read_models.keys.DeclaredKey",
        "epochal.read_models.keys.ModelKeys",
        "epochal.read_models.keys.ModelKeys.entries",
        "epochal.store.joined.JoinedAppends",
        "epochal.store.listings.Listings.count",
        "epochal.store.listings.Listings.tagged",
        "epochal.testing.feeds.MemoryFeed.advance",
        "epochal.testing.feeds.MemoryFeed.parking",
        "epochal.testing.feeds.MemoryFeed.react",
        "epochal.testing.feeds.MemoryFeed.run",
        "epochal.testing.feeds.MemoryFeed.stop_clock",
        "epochal.testing.memory.Faults",
        "epochal.testing.memory.Faults.execute",
        "epochal.testing.memory.Late",
        "epochal.testing.memory.MemoryTables",
        "epochal.testing.memory.MemoryTables.changes",
        "epochal.testing.memory.MemoryTables.execute",
        "epochal.testing.memory.MemoryTables.items",
        "epochal.testing.scenarios.Given.after",
        "epochal.testing.scenarios.Given.and_then",
        "epochal.testing.scenarios.Given.stored",
        "epochal.testing.scenarios.Given.then_state",
        "epochal.testing.scenarios.Given.when",
        "epochal.testing.scenarios.GivenTagged",
        "epochal.testing.scenarios.GivenTagged.then_states",
        "epochal.testing.scenarios.GivenTagged.when",
        "epochal.testing.scenarios.given_tagged",
        "epochal.testing.stores.memory_settings",
        "epochal.testing.stores.memory_streams",
        "epochal.testing.stores.memory_tagged_events",
    }
)
"""Names that do not describe all of their arguments yet, most of them of extensions: the set may only shrink."""


def test_every_argument_is_described_in_a_docstring() -> None:
    lacking = {place: names for place, names in docstrings.all_undescribed().items() if place not in UNLISTED}
    assert not lacking, "list these arguments below `Args:` or `Attributes:`, by name"


def test_no_exception_outlives_its_reason() -> None:
    complete = UNLISTED - set(docstrings.all_undescribed())
    assert not complete, "remove these from UNLISTED: they describe all arguments, or are gone"


def undescribed_in(folder: Path, source: str, name: str) -> dict[str, list[str]]:
    path = folder / "module.py"
    path.write_text(source, "utf-8")
    return docstrings.undescribed(Module("epochal.module", path), name)


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("Sell an item.", []),
        ("Sell an item.\n\nArgs:\n    item: name.\n        price: of a line that goes on.", ["item"]),
        (
            "Sell an item.\n\nArgs:\n    item, price: as for `buy`.\n    *more: others.",
            ["item", "more", "price"],
        ),
        ("A sale.\n\nAttributes:\n    item: name.\n\nRaises:\n    KeyError: there is none.", ["item"]),
        ("Sell an item.\n\nReturns:\n    price: what it costs.", []),
    ],
)
def test_names_are_read_from_the_sections_of_arguments_alone(docstring: str, names: list[str]) -> None:
    assert sorted(docstrings.described_names(docstring)) == names


def test_arguments_of_functions_count_but_private_ones_and_typed_keywords(tmp_path: Path) -> None:
    source = "def sell(item, /, price=0, *more, tax, _now, **others: Unpack[Options]):\n    'Sell.'\n"
    assert undescribed_in(tmp_path, source, "sell") == {
        "epochal.module.sell": ["item", "price", "more", "tax"]
    }


def test_a_class_may_describe_its_constructor_itself_and_methods_are_asked_too(tmp_path: Path) -> None:
    source = (
        "class Shop:\n"
        '    """A shop.\n\n    Args:\n        name: its name.\n    """\n'
        "    def __init__(self, name, size): ...\n"
        "    def sell(self, item):\n        'Sell.'\n"
        "    @staticmethod\n    def of(text):\n        'Parse.'\n"
        "    def _count(self, item): ...\n"
    )
    assert undescribed_in(tmp_path, source, "Shop") == {
        "epochal.module.Shop": ["size"],
        "epochal.module.Shop.sell": ["item"],
        "epochal.module.Shop.of": ["text"],
    }


def test_fields_of_dataclasses_are_described_in_the_class_or_below_the_field(tmp_path: Path) -> None:
    source = (
        "@dataclass(frozen=True)\n"
        "class Sale:\n"
        '    """A sale.\n\n    Attributes:\n        item: its name.\n    """\n'
        "    item: str\n"
        "    price: int\n"
        "    'What it costs.'\n"
        "    tax: int\n"
        "    kind: ClassVar[str] = 'sale'\n"
        "    total: int = field(init=False)\n"
    )
    assert undescribed_in(tmp_path, source, "Sale") == {"epochal.module.Sale": ["tax"]}
