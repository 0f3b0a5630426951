"""Pauses of an append that others have refused: how long they are, and what is written after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from epochal import NO_STREAM, ConflictError, Event, Query, QueryItem
from epochal.deployment import Deployment
from epochal.layout.giving_way import ROUND_TRIPS, pause_after
from epochal.model.outcomes import Appended
from epochal.plan.failures import Lost
from epochal.plan.ops import QUICKEST, SLOWEST, Done, Op, Pause, Put, Reply, Steps, Transact, Update
from epochal.plan.values import number, text
from epochal.store.backing_off import back_off
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings, memory_tables

TAG = "course:1"
OF_TAG = Query(items=(QueryItem(tags=[TAG]),))
PUT = Put(table="t", item={"p": text("a"), "i": number(0)})


def enrolled(name: str) -> Event:
    return Event(type="Enrolled", data=name.encode(), tags=(TAG,))


class Timed:
    """A driver's clock, whose requests take some time, and the pauses that it made."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.now, self.seconds = 100.0, seconds
        self.pauses: list[float] = []

    def execute(self, _: Op) -> Reply:
        self.now += self.seconds
        return Done()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def driver(self, luck: float = 1.0) -> Driver:
        return Driver(
            execute=self.execute, meter=Meter(), clock=lambda: self.now, sleep=self.sleep, luck=lambda: luck
        )


def writing(*pauses: Pause) -> Steps[list[Any]]:
    answers = []
    yield PUT
    for pause in pauses:
        answers.append((yield pause))  # noqa: PERF401  a generator cannot be listed
    return answers


def test_a_pause_is_a_random_multiple_of_the_duration_of_the_request_before_it_and_no_request() -> None:
    pause = Pause(least=2, most=4)
    for luck, length in ((0.0, 0.02), (0.5, 0.03), (1.0, 0.04)):
        timed = Timed()
        driver = timed.driver(luck)
        assert driver.run(writing(pause, pause)) == [None, None]
        assert timed.pauses == pytest.approx([length, length])
        assert driver.meter.requests == 1


@pytest.mark.parametrize(("seconds", "counted"), [(0.0, QUICKEST), (3.0, SLOWEST)])
def test_a_request_that_was_very_quick_or_was_retried_for_long_counts_as_an_ordinary_one(
    seconds: float, counted: float
) -> None:
    timed = Timed(seconds)
    timed.driver().run(writing(Pause(least=1, most=10)))

    assert timed.pauses == pytest.approx([10 * counted])


def test_a_pause_does_not_go_beyond_the_time_that_the_caller_allows() -> None:
    timed = Timed()
    timed.driver().within(0.05).run(writing(Pause(least=1, most=1000)))

    assert timed.pauses == pytest.approx([0.04])


def test_a_pause_before_another_decision_leaves_half_of_the_time_that_is_left_for_it() -> None:
    timed = Timed()

    assert not back_off(timed.driver().within(0.05), 2, timed.now - SLOWEST)

    assert timed.pauses == pytest.approx([0.025])


def test_an_append_is_sent_again_at_once_then_after_long_pauses_and_then_after_shorter_ones() -> None:
    assert pause_after(1) is None
    pauses = [pause_after(refusals) for refusals in range(2, 10)]
    longest = [pause.most for pause in pauses if pause is not None]
    assert longest[:4] == list(ROUND_TRIPS)
    assert longest[4:] == [ROUND_TRIPS[-1]] * 4
    assert all(pause is not None and pause.least == pause.most / 2 for pause in pauses)


@dataclass(slots=True)
class Rivals:
    """A store before each of whose writes a rival may write, and the pauses that it made.

    Attributes:
        rival: writes, before the write with a number is sent.
    """

    rival: Callable[[Streams, int], object]
    pauses: list[float] = field(default_factory=list)
    tables: MemoryTables = field(default_factory=memory_tables)
    _writes: int = 0
    _now: float = 0.0

    @property
    def other(self) -> Streams:
        """The store of the rival."""
        return _streams(Driver(execute=self.tables.execute, meter=Meter()))

    @property
    def streams(self) -> Streams:
        """The store that meets the rival."""
        return _streams(
            Driver(
                execute=self._execute,
                meter=Meter(),
                clock=lambda: self._now,
                sleep=self.pauses.append,
                luck=lambda: 0.0,
            )
        )

    def _execute(self, op: Op) -> Reply:
        self._now += 0.01
        if isinstance(op, Put | Update | Transact):
            self._writes += 1
            self.rival(self.other, self._writes)
        return self.tables.execute(op)


def _streams(driver: Driver) -> Streams:
    return Deployment(settings=memory_settings(), driver=driver, bucket=MemoryBucket()).streams


def test_an_append_under_a_busy_tag_pauses_from_its_second_refusal_on_and_reads_the_tag_again() -> None:
    def rival(other: Streams, write: int) -> None:
        if write <= 4:
            other.tagged.append([enrolled(f"rival {write}")])

    world = Rivals(rival)
    outcome = world.streams.append("Student-1", [enrolled("1")], expected=NO_STREAM)

    assert world.pauses == pytest.approx([0.16, 0.24, 0.16])
    assert outcome.versions == {TAG: 5}
    assert outcome.capacity.requests == 1 + 5 + 3, "a read, the writes, and a read after each pause"
    assert [event.data for event in world.other.tagged.read(OF_TAG).events][-1] == b"1"


def test_what_moves_during_a_pause_may_still_be_a_conflict() -> None:
    """The rival's event matches only once it has written three times."""

    def rival(other: Streams, write: int) -> None:
        other.tagged.append([replace(enrolled("rival"), type="Renamed" if write < 3 else "Closed")])

    closed = Query(items=(QueryItem(types=["Closed"], tags=[TAG]),))
    world = Rivals(rival)
    with pytest.raises(ConflictError) as refused:
        world.streams.append("Student-1", [enrolled("1")], fail_if=closed)

    assert [event.type for event in refused.value.outcome.events] == ["Closed"]
    assert world.pauses == pytest.approx([0.16]), "a conflict is answered without a pause"


def test_a_stream_that_is_no_longer_as_expected_is_told_without_a_pause() -> None:
    def rival(other: Streams, write: int) -> None:
        if write == 2:
            other.append("Student-1", [Event(type="Left")])
        other.tagged.append([enrolled("rival")])

    world = Rivals(rival)
    with pytest.raises(ConflictError):
        world.streams.append("Student-1", [enrolled("1")], expected=NO_STREAM)
    assert world.pauses == []
    assert world.other.tagged.count(TAG) == 2


def test_an_append_whose_answer_was_lost_before_a_pause_is_made_once() -> None:
    """The retry of the second write meets the rival, and says nothing of whether the first try was applied."""
    lost = list[int]()

    def rival(other: Streams, write: int) -> None:
        if write in (1, 2, 4):
            other.tagged.append([enrolled("rival")])
        if write in (2, 3):
            lost.append(write)
            raise Lost("cut off")

    world = Rivals(rival)
    outcome = world.streams.append("Student-1", [enrolled("1")], expected=NO_STREAM)

    assert isinstance(outcome, Appended)
    assert lost == [2, 3]
    assert [event.data for event in world.other.read("Student-1")] == [b"1"]
    assert world.other.tagged.count(TAG) == 4
