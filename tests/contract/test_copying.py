"""A stream is copied to whatever keeps the contract, begun as one that is pruned, and gone on with there."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import AtVersion
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place
from tests.support.stream_layouts import LAYOUTS


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_pruned_stream_is_copied_and_gone_on_with(place: Place, layout: AnyStreamLayout) -> None:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    original, copy = memory_tips(), Streams(driver=driver, table=place.table, layout=layout)
    stream = place.partition
    for number in range(4):
        unfolds = [Unfold(type="State", data=b"of 3")] if number == 2 else None
        original.append(stream, [Event(type=f"E{number}", data=bytes(number))], unfolds=unfolds)
    original.prune(stream, 2)
    copier = StreamCopier(source=StreamSource(original), target=copy)
    assert copier.copy(stream).ending == "copied"
    original.append(stream, [Event(type="E4")])
    assert copier.copy(stream).copied == 1
    assert copier.copy(stream).ending == "unchanged"
    copy.append(stream, [Event(type="E5")], expected=AtVersion(version=5))
    found = [(event.index, event.type) for event in copy.read(stream)]
    assert found == [(2, "E2"), (3, "E3"), (4, "E4"), (5, "E5")]
    state = copy.load(stream)
    assert state is not None
    assert [(each.version, each.data) for each in state.unfolds] == [(3, b"of 3")]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_tombstone_is_copied(place: Place, layout: AnyStreamLayout) -> None:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    original, copy = memory_tips(), Streams(driver=driver, table=place.table, layout=layout)
    original.append(place.partition, [Event(type="Opened")])
    original.delete(place.partition)
    copier = StreamCopier(source=StreamSource(original), target=copy)
    assert [copier.copy(place.partition).ending for _ in range(2)] == ["tombstone"] * 2
    state = copy.load(place.partition)
    assert state is not None
    assert (state.deleted, state.version) == (True, 1)
