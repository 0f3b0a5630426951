"""Faults do exactly what their schedule says, or the tests that rely on them prove nothing."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox.port import TIPS
from epochal.plan.failures import Lost, RequestFailure, RequestNotApplied
from epochal.plan.ops import Extend, Get, Op, Update
from epochal.plan.values import number, sequence, text
from epochal.testing.memory import Fault, Faults, Late, MemoryTables, Schedule

KEY = {"p": text("a"), "i": number(0)}
READ = Get(table="tips", key=KEY)


def add(mark: str) -> Update:
    return Update(table="tips", key=KEY, sets=(Extend("e", sequence([text(mark)])),))


class Stage:
    """Requests one by one, and what they left behind."""

    def __init__(self, schedule: Schedule) -> None:
        self.memory = MemoryTables({"tips": TIPS})
        self.faults = Faults(self.memory.execute, schedule)

    def ask(self, op: Op) -> str:
        try:
            self.faults.execute(op)
        except RequestFailure as failure:
            return type(failure).__name__
        return "answered"

    def applied(self) -> list[str]:
        item = self.memory.execute(READ).item
        return [] if item is None else [mark["S"] for mark in item["e"]["L"]]


def test_without_a_fault_a_request_is_performed_and_answered() -> None:
    stage = Stage({1: Fault.LOST})

    assert stage.ask(add("0")) == "answered"
    assert (stage.applied(), stage.faults.requests) == (["0"], 1)


@pytest.mark.parametrize(
    ("fault", "answer", "applied"),
    [
        (Fault.THROTTLED, RequestNotApplied, []),
        (Fault.LOST, Lost, []),
        (Fault.UNANSWERED, Lost, ["0"]),
        (Late(1), Lost, []),
    ],
)
def test_a_fault_befalls_its_request_and_no_other(
    fault: Fault | Late, answer: type[RequestFailure], applied: list[str]
) -> None:
    stage = Stage({0: fault})

    assert stage.ask(add("0")) == answer.__name__
    assert stage.applied() == applied
    assert stage.ask(READ) == "answered"


@pytest.mark.parametrize(
    ("late", "order"), [(0, ["late", "1", "2"]), (1, ["1", "late", "2"]), (2, ["1", "2"])]
)
def test_a_late_request_lands_after_as_many_others(late: int, order: list[str]) -> None:
    stage = Stage({0: Late(late)})

    assert [stage.ask(add(mark)) for mark in ("late", "1", "2")] == ["Lost", "answered", "answered"]

    assert stage.applied() == order


def test_what_is_still_late_can_be_made_to_land_once() -> None:
    stage = Stage({0: Late(99), 1: Late(99)})
    stage.ask(add("0"))
    stage.ask(add("1"))
    assert stage.applied() == []

    stage.faults.land()
    stage.faults.land()

    assert stage.applied() == ["0", "1"]
