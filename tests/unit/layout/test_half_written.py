"""A transactional calve that is being carried out may show in parts: readers wait for its calf."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.errors import CorruptData
from epochal.layout.tables import TIPS
from epochal.layout.tips import reading
from epochal.layout.tips.calving import Fixed
from epochal.model.events import Event
from epochal.plan.ops import Put, TransactionWrite
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.simulation.gradual import Gradual
from tests.unit.layout.items import STREAM, TABLE

EVENTS = 4

READS: dict[str, Callable[[Streams], list[int]]] = {
    "forward": lambda streams: [event.index for event in streams.read(STREAM)],
    "from the middle": lambda streams: [0, *(event.index for event in streams.read(STREAM, start=1))],
    "backward": lambda streams: [event.index for event in streams.read(STREAM, direction="backward")][::-1],
}


def half_written() -> Streams:
    """A stream of which the Tip shows already, and the newest calf not yet."""
    tables = Gradual({TABLE: TIPS})
    driver = Driver(execute=tables.execute, meter=Meter())
    streams = Streams(driver=driver, table=TABLE, calving=Fixed(max_events=1, mode="transactional"))
    for number in range(EVENTS):
        tables.carry_out()
        tables.late = _is_calf if number == EVENTS - 1 else None
        streams.append(STREAM, [Event(type="E", data=b"%d" % number)])
    return streams


def _is_calf(write: TransactionWrite) -> bool:
    return isinstance(write, Put)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_reader_who_meets_a_tip_before_its_calf_misses_nothing(
    read: Callable[[Streams], list[int]],
) -> None:
    assert read(half_written()) == list(range(EVENTS))


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_one_who_looked_once_would_take_it_for_lost(
    read: Callable[[Streams], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the test above proves something."""
    monkeypatch.setattr(reading, "LOOKS", 1)
    with pytest.raises(CorruptData, match="is in no item"):
        read(half_written())
