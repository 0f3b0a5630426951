"""A table that Equinox's applications use too: what they read and append after us, and we after them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from epochal.contrib.equinox import open_tips
from epochal.contrib.equinox.calving import ByCost, Calving, Fixed
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips, tips_of
from epochal.dynamo.stores import Place
from epochal.errors import InvalidInput
from epochal.feed.reader import reader_of
from epochal.feed.stream_history import DeployedHistory
from epochal.model.events import Event
from epochal.model.expected_version import AtVersion
from epochal.plan.ops import Execute, Op, Put, Reply, Transact
from epochal.settings import Settings, variable
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.contrib.equinox.layout.equinox import Equinox

STREAM = "Order-1"
OURS = Settings.of(tips_table="tips", index_table="index")
SHARED = OURS.having(equinox=True)


class Died(Exception):
    """The process is gone."""


def dying(execute: Execute, after: int) -> Execute:
    """Dies after so many writes of this process were applied."""
    left = count(after, -1)

    def perform(op: Op) -> Reply:
        reply = execute(op)
        if not isinstance(op, Put | Transact) and "Update" not in type(op).__name__:
            return reply
        if next(left) == 1:
            raise Died
        return reply

    return perform


def opened(execute: Execute, calving: Calving | None = None) -> Streams:
    streams = tips_of(SHARED, Driver(execute=execute, meter=Meter()), BodyCodec())
    return streams if calving is None else replace(streams, layout=Tips(calving=calving))


def filled(tables: MemoryTables, events: int) -> Streams:
    streams = opened(tables.execute, Fixed(max_events=2))
    for nth in range(events):
        streams.append(STREAM, [Event(type=f"ours-{nth}")])
    return streams


@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("events", range(2, 8))
def test_whatever_a_crash_leaves_equinox_reads_each_event_once_and_goes_on(
    tables: MemoryTables, events: int, writes: int
) -> None:
    streams = filled(tables, events)
    mortal = replace(streams, driver=replace(streams.driver, execute=dying(tables.execute, writes)))
    with suppress(Died):
        mortal.append(STREAM, [Event(type="dying")], expected=AtVersion(version=events))
    equinox = Equinox(tables.execute, "tips", max_events=2)
    for nth in range(6):
        seen = equinox.read(STREAM)
        assert [index for index, _ in seen] == list(range(len(seen)))
        assert equinox.append(STREAM, f"theirs-{nth}", f"{nth:032x}")
    read = [(event.index, event.type) for event in streams.read(STREAM)]
    assert read == equinox.read(STREAM)
    streams.append(STREAM, [Event(type="ours again")])
    assert equinox.read(STREAM)[-1] == (len(read), "ours again")


def test_in_two_steps_a_crash_blocks_equinox_for_ever_which_is_why_there_is_a_mode(
    tables: MemoryTables,
) -> None:
    two_steps = replace(filled(tables, 2), layout=Tips(calving=ByCost()))

    class Now(ByCost):
        def calves(self, *_: object) -> bool:
            return True

    mortal = replace(
        two_steps,
        layout=Tips(calving=Now()),
        driver=replace(two_steps.driver, execute=dying(tables.execute, 1)),
    )
    with pytest.raises(Died):
        mortal.append(STREAM, [Event(type="dying")])
    equinox = Equinox(tables.execute, "tips", max_events=2)
    assert [index for index, _ in equinox.read(STREAM)] == [0, 1, 0, 1]
    assert not any(equinox.append(STREAM, "theirs", f"{nth:032x}") for nth in range(5))


def test_equinox_appends_past_a_tombstone_so_a_shared_table_takes_none(tables: MemoryTables) -> None:
    streams = filled(tables, 1)
    before = list(tables.items("tips"))
    with pytest.raises(
        InvalidInput, match="leave_open: must be True, because other applications of this table"
    ):
        streams.delete(STREAM)
    assert list(tables.items("tips")) == before
    assert streams.delete(STREAM, leave_open=True) is not None
    equinox = Equinox(tables.execute, "tips", max_events=2)
    assert equinox.append(STREAM, "theirs", "e" * 32)
    assert [event.type for event in streams.read(STREAM)] == ["theirs"]

    alone = tips_of(OURS, streams.driver, BodyCodec())
    alone.delete(STREAM)
    assert equinox.append(STREAM, "past the tombstone", "f" * 32)
    assert list(alone.read(STREAM)) == []


@pytest.mark.parametrize(
    ("chosen", "calving"),
    [
        ({}, Fixed(mode="transactional")),
        ({"calving_max_bytes": "900", "calving_max_events": "7"}, Fixed(max_bytes=900, max_events=7)),
        ({"calving": "cost"}, ByCost(mode="transactional")),
        ({"equinox": "false"}, ByCost(mode="two-step")),
        ({"equinox": "false", "calving": "cost"}, ByCost(mode="two-step")),
        (
            {"equinox": "false", "calving": "fixed", "calving_max_events": "7"},
            Fixed(max_events=7, mode="two-step"),
        ),
    ],
)
def test_a_stage_says_when_events_leave_a_tip_whether_equinox_uses_it_too_or_not(
    chosen: dict[str, str], calving: Calving
) -> None:
    told = {"equinox": "true", "tips_table": "tips", **chosen}
    settings = Settings.from_environment({variable(name): text for name, text in told.items()})
    streams = tips_of(
        settings, Driver(execute=MemoryTables({"tips": TIPS}).execute, meter=Meter()), BodyCodec()
    )
    assert streams.layout == Tips(calving=calving)


def test_another_rule_is_refused() -> None:
    settings = Settings.of(equinox=True, tips_table="tips", calving="never")
    with pytest.raises(InvalidInput, match="EPOCHAL_CALVING"):
        tips_of(settings, Driver(execute=MemoryTables({"tips": TIPS}).execute, meter=Meter()), BodyCodec())


def test_the_mode_is_reached_from_code_from_a_stage_and_in_the_feed() -> None:
    place = Place(endpoint="http://127.0.0.1:1", region="eu-central-1")
    streams = open_tips("t", equinox=True, place=place)
    assert (streams.layout, streams.tombstones) == (Tips(calving=Fixed()), False)
    assert Fixed().mode == "transactional"
    small = Fixed(max_bytes=1_000, max_events=5)
    assert open_tips("t", equinox=True, calving=small, place=place).layout == Tips(calving=small)
    assert open_tips("t", calving=small, place=place).layout == Tips(calving=small)
    with pytest.raises(InvalidInput, match="calving: must be transactional"):
        open_tips("t", equinox=True, calving=ByCost(), place=place)
    assert Settings.from_environment({variable("equinox"): "true"}).value("equinox")
    (history,) = reader_of(SHARED, streams.driver, BodyCodec()).histories
    assert isinstance(history, DeployedHistory)
    assert not history.opened.store.tombstones


def test_equinoxs_own_limit_is_the_modes(tables: MemoryTables) -> None:
    streams = opened(tables.execute)
    for nth in range(40):
        streams.append(STREAM, [Event(type="E", data=Random(nth).randbytes(1_000))])
        state = streams.load(STREAM)
        assert state is not None
        assert sum(len(event.data) for event in state.events) <= 32 * 1024
    assert any(int(item["i"]["N"]) == 0 for item in tables.items("tips"))
