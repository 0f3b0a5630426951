"""Callers that take turns, in every order of what they do: one at a time, and all of them in the end.

A caller goes on until it waits for its turn or is at work. Nobody is passed here, so a caller whom nobody wakes is
found at once.
"""

# ruff: noqa: SLF001  a mutant reaches inside

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from epochal.plan.ops import Done
from epochal.store import queueing
from epochal.store.driver import TURN, Driver, Meter
from epochal.store.queueing import CallerQueue, QueuePlace, Ticket
from tests.simulation.mutants import Mutants, Patch
from tests.support.caller_orders import Interrupted, Pending, every_order, let_others_go_on, run_callers

CART, ACCOUNT = ("streams", "Cart-1"), ("streams", "Account-1")
MUTANTS = Mutants()
mutant = MUTANTS.add

Keys = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What callers do.

    Attributes:
        calls: keys of each caller, and of the call that it makes while it is at work.
        interrupts: number of interrupts of callers that wait or are at work.
    """

    calls: tuple[tuple[Keys, Keys], ...]
    interrupts: int = 0


CASES = {
    "three on one key": Case(calls=(((CART,), ()),) * 3),
    "four on one key, one interrupted": Case(calls=(((CART,), ()),) * 4, interrupts=1),
    "three on one key, two interrupted": Case(calls=(((CART,), ()),) * 3, interrupts=2),
    "two on both keys, in either order, and one on each": Case(
        calls=(((CART, ACCOUNT), ()), ((ACCOUNT, CART), ()), ((CART,), ()), ((ACCOUNT,), ()))
    ),
    "two on both keys, one interrupted": Case(
        calls=(((CART, ACCOUNT), ()), ((ACCOUNT, CART), ()), ((CART,), ())), interrupts=1
    ),
    "each calls on the key of the other, one interrupted": Case(
        calls=(((CART,), (ACCOUNT,)), ((ACCOUNT,), (CART,))), interrupts=1
    ),
    "each calls on the key of the other": Case(calls=(((CART,), (ACCOUNT,)), ((ACCOUNT,), (CART,)))),
    "two call on their own key": Case(calls=(((CART,), (CART,)), ((CART,), (CART,)))),
}


@dataclass
class Play:
    """One order of what callers do.

    Attributes:
        working: callers at work by key.
        arrivals: callers by key, in the order in which they have joined its queue.
        served: callers by key, in the order in which they were at work.
    """

    case: Case
    working: dict[tuple[str, ...], int] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    served: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.driver = Driver(execute=lambda _: Done(), meter=Meter())

    def _call(self, number: int, keys: Keys, inner: Keys) -> Callable[[], None]:
        def call() -> None:
            TURN.set(Pending)
            self.started.append(number)
            try:
                with QueuePlace(self.driver, *keys) as place:
                    place.changed = True
                    self._work(number, keys)
                    if inner:
                        with QueuePlace(self.driver, *inner):
                            let_others_go_on()
            except Interrupted:
                self.given_up.append(number)
            else:
                self.ends.append(number)

        return call

    def _work(self, number: int, keys: Keys) -> None:
        for key in keys:
            assert key not in self.working, "two callers are at work on one key"
            self.working[key] = number
        self.served.append(number)
        try:
            let_others_go_on()
        finally:
            for key in keys:
                del self.working[key]

    def run(self, choices: list[int]) -> list[int]:
        calls = [self._call(number, *keys) for number, keys in enumerate(self.case.calls)]
        return run_callers(calls, choices, interrupts=self.case.interrupts, at_work=True)

    def check(self) -> None:
        """Everybody has had a turn or was interrupted, in the order of the calls, and no queue is left."""
        assert sorted([*self.ends, *self.given_up]) == list(range(len(self.case.calls)))
        if len({keys for keys, _ in self.case.calls}) == 1:
            assert self.served == [number for number in self.started if number in self.served], (
                "one overtakes"
            )
        assert not queueing._QUEUES, "a queue is left behind"


def orders(case: Case) -> Iterator[Play]:
    """Every order, each once."""

    def begin() -> Play:
        queueing._QUEUES.clear()
        return Play(case)

    return every_order(begin, Play.run)


@pytest.fixture(autouse=True)
def nobody_is_passed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(CallerQueue, "pass_by", lambda _: None)
    monkeypatch.setattr(queueing, "_QUEUES", {})
    yield
    queueing._QUEUES.clear()


def explore() -> None:
    """Check every order of every case."""
    for name, case in CASES.items():
        try:
            for play in orders(case):
                play.check()
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_in_every_order_callers_take_turns_and_nobody_waits_for_ever() -> None:
    explore()


def test_there_is_something_to_choose() -> None:
    for case in CASES.values():
        assert sum(1 for _ in orders(case)) > 2


@mutant("nobody wakes")
def a_caller_that_leaves_lets_nobody_in(patch: Patch) -> None:
    patch.setattr(CallerQueue, "_let_in_next", lambda _: None)


@mutant("two callers are at work")
def a_caller_goes_on_without_its_turn(patch: Patch) -> None:
    patch.setattr(QueuePlace, "_wait", lambda *_: None)


@mutant("nobody wakes")
def a_call_within_a_call_waits(patch: Patch) -> None:
    patch.setattr(QueuePlace, "is_taken", False)


@mutant("a queue is left behind")
def an_interrupted_caller_keeps_its_place(patch: Patch) -> None:
    patch.setattr(CallerQueue, "give_up", lambda *_: None)


@mutant("a queue is left behind")
def a_caller_that_is_interrupted_at_work_keeps_its_place(patch: Patch) -> None:
    leave = QueuePlace.__exit__

    def stay(place: QueuePlace, *error: object) -> None:
        if error[0] is None:
            leave(place, *error)

    patch.setattr(QueuePlace, "__exit__", stay)


@mutant("nobody wakes")
def places_in_several_queues_are_taken_in_the_callers_order(patch: Patch) -> None:
    patch.setattr(queueing, "sorted", list, raising=False)


@mutant("one overtakes")
def the_last_who_comes_goes_first(patch: Patch) -> None:
    join = CallerQueue.join

    def pushed(self: CallerQueue, ticket: Ticket) -> None:
        join(self, ticket)
        self.waiting.rotate(ticket.waits())

    patch.setattr(CallerQueue, "join", pushed)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_some_order_finds_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, message = MUTANTS[name]
    change(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        explore()
