"""Callers that take turns, in every order of what they do: one at a time, and all of them in the end.

Callers are greenlets of one thread. Each goes on until it waits for its turn or is at work, and then whoever is chosen
goes on; every choice is made once. Nobody is passed here, so a caller whom nobody wakes is found at once.
"""

# ruff: noqa: SLF001  a mutant reaches inside

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from greenlet import getcurrent, greenlet

from epochal.plan.ops import Done
from epochal.store import queueing
from epochal.store.driver import TURN, Driver, Meter
from epochal.store.queueing import CallerQueue, QueuePlace, Ticket
from tests.simulation.mutants import Mutants, Patch

CART, ACCOUNT = ("streams", "Cart-1"), ("streams", "Account-1")
MOST_STEPS = 100
"""More than any order of these callers takes."""

MUTANTS = Mutants()
mutant = MUTANTS.add

Keys = tuple[tuple[str, ...], ...]


class Interrupted(BaseException):
    """As a signal interrupts a thread, or the end of a loop a task."""


class Pending:
    """A turn for which a caller waits by letting others go on."""

    def __init__(self) -> None:
        self.come = False

    def set(self) -> None:
        self.come = True

    def is_set(self) -> bool:
        return self.come

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        if not self.come:
            let_others_go_on(self)
        return self.come


def let_others_go_on(waits_for: Pending | None = None) -> None:
    parent = getcurrent().parent
    assert parent is not None
    if parent.switch(waits_for) == "interrupt":
        raise Interrupted


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
    """One order of what callers do: of those who can go on, the one whom the next of `choices` names, else the first.

    Attributes:
        options: how many there were to choose from, each time.
        working: callers at work by key.
        arrivals: callers by key, in the order in which they have joined its queue.
        served: callers by key, in the order in which they were at work.
    """

    case: Case
    choices: list[int]
    options: list[int] = field(default_factory=list)
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

    def run(self) -> None:
        waits: dict[int, tuple[greenlet, Pending | None]] = {
            number: (greenlet(self._call(number, *keys)), None) for number, keys in enumerate(self.case.calls)
        }
        choices, interrupts = iter(self.choices), self.case.interrupts
        for _ in range(MOST_STEPS):
            able = [(number, "") for number, (_, turn) in waits.items() if turn is None or turn.come]
            assert able or not waits, f"nobody wakes {sorted(waits)}"
            if not waits:
                return
            if interrupts:
                able += [(number, "interrupt") for number, (caller, _) in waits.items() if caller]
            self.options.append(len(able))
            number, how = able[next(choices, 0)]
            interrupts -= how == "interrupt"
            caller, _ = waits.pop(number)
            turn = caller.switch(*([how] if caller else []))
            if not caller.dead:
                waits[number] = (caller, turn)
        raise AssertionError("callers go on without end")

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
    choices: list[int] = []
    while True:
        queueing._QUEUES.clear()
        play = Play(case, choices)
        play.run()
        yield play
        choices = [*choices, *[0] * (len(play.options) - len(choices))]
        while choices and choices[-1] + 1 == play.options[len(choices) - 1]:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1


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
