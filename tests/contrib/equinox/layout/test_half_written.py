"""A transactional calve that is being carried out may show in parts: readers wait for its calf."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.contrib.equinox import port
from epochal.contrib.equinox.calving import Fixed, calve_at_once
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.errors import CorruptData
from epochal.index.checkpoints import tip_key
from epochal.index.tip import read_tip
from epochal.model.events import Event
from epochal.plan.ops import Get, Put, Refusal, Transact, TransactionWrite, Update
from epochal.plan.values import number
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from tests.contrib.equinox.layout.items import STREAM, TABLE, calf, numbered, store, tip
from tests.simulation.gradual import Gradual

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
    streams = Streams(
        driver=driver, table=TABLE, layout=Tips(calving=Fixed(max_events=1, mode="transactional"))
    )
    for index in range(EVENTS):
        tables.carry_out()
        tables.late = _is_calf if index == EVENTS - 1 else None
        streams.append(STREAM, [Event(type="E", data=b"%d" % index)])
    return streams


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_one_who_waits_for_the_calf_need_not_look_often(
    read: Callable[[Streams], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "LOOKS", 1)
    assert read(half_written()) == list(range(EVENTS))


PRUNED = tip(7, numbered(5, 7), a=number(1))
"""As a prune by Equinox leaves it: there is nothing below 5."""


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_first_calf_that_a_pruned_stream_has_is_not_taken_for_pruned_while_it_does_not_show(
    direction: Direction,
) -> None:
    """Nothing lies below it, and its key is nowhere to be seen: only looking again can tell."""
    tables = Gradual({TABLE: TIPS})
    store(tables, PRUNED)
    tables.late = _is_calf
    driver = Driver(execute=tables.execute, meter=Meter(), sleep=lambda _: None)
    streams = Streams(
        driver=driver, table=TABLE, layout=Tips(calving=Fixed(max_events=2, mode="transactional"))
    )
    streams.append(STREAM, [Event(type="E")])

    found = [event.index for event in streams.read(STREAM, direction=direction)]

    assert sorted(found) == [5, 6, 7]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_one_who_looked_once_would_take_it_for_pruned(
    direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the test above proves something."""
    monkeypatch.setattr(port, "LOOKS", 0)
    with pytest.raises(AssertionError, match=r"\[7\]"):
        test_the_first_calf_that_a_pruned_stream_has_is_not_taken_for_pruned_while_it_does_not_show(direction)


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
    monkeypatch.setattr(port, "LOOKS", 0)
    monkeypatch.setattr(
        port, "_build_barrier_read", lambda table, cursor: Get(table=table, key=tip_key(cursor.head.stream))
    )
    with pytest.raises(CorruptData, match="is in no item"):
        read(half_written())


def test_a_transaction_that_may_have_been_ours_is_doubted_though_its_calf_is_met_first() -> None:
    """Its response was lost; the repeat meets the calf, and the next one a Tip that others have pruned since."""
    before = read_tip(tip(2, numbered(0, 2)))
    update = Update(table=TABLE, key=tip_key(STREAM), sets=())
    steps = calve_at_once(TABLE, before, update)
    next(steps)
    alone = steps.send(Refusal(items=(calf(0, numbered(0, 2)), None), failed=(True, False), ambiguous=True))
    assert alone == Transact(writes=(update,))

    with pytest.raises(StopIteration) as ended:
        steps.send(Refusal(items=(tip(3, numbered(2, 3), l=number(2)),), failed=(True,)))

    assert ended.value.value.ambiguous
