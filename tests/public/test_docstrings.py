"""Every argument of a public function, method or constructor is described where the reader looks: in its docstring."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.public import docstrings
from tests.public.library_names import Module

UNLISTED: Final = frozenset(
    {
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
        "epochal.read_models.keys.DeclaredKey",
        "epochal.read_models.keys.ModelKeys",
        "epochal.read_models.keys.ModelKeys.entries",
        "epochal.store.joined.JoinedAppends",
        "epochal.store.listings.Listings.count",
        "epochal.store.listings.Listings.tagged",
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
