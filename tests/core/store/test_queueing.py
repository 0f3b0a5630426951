"""Callers that take turns on a key: who goes on when, whatever happens to the one before."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from multiprocessing import Pipe, get_context
from typing import Any

import pytest

from epochal.aio.bridge import run
from epochal.plan.ops import Done
from epochal.store import queueing
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.queueing import QueuePlace

KEY = ("streams", "Cart-1")
OTHER = ("streams", "Cart-2")
SOON = 5.0
"""Seconds by which whatever is to happen has happened."""


@pytest.fixture
def driver() -> Driver:
    return Driver(execute=lambda _: Done(), meter=Meter())


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(queueing, "_QUEUES", queues := {})  # those of other tests may be left for good
    yield
    assert not queues, "a queue is left behind"


@pytest.fixture
def never_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 60.0)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < end, "it has not come to pass"
        time.sleep(0.001)


def waiting(driver: Driver, key: tuple[str, ...] = KEY) -> int:
    queue = queueing._QUEUES.get((driver.place, 0, *key))  # noqa: SLF001  it shows nowhere else
    return 0 if queue is None else len(queue.waiting)


class Caller(threading.Thread):
    """A thread that takes a place, and leaves it when it is told to."""

    def __init__(
        self, driver: Driver, *keys: tuple[str, ...], changed: bool = True, note: object = None
    ) -> None:
        super().__init__(daemon=True)
        self.inside = threading.Event()
        self.over = threading.Event()
        self.error: BaseException | None = None
        self.place = QueuePlace(driver, *(keys or (KEY,)))
        self.found: object = None
        self._changed = changed
        self._note = note
        self.start()

    def run(self) -> None:
        try:
            with self.place as place:
                self.found = place.note(*KEY)
                self.inside.set()
                assert self.over.wait(SOON)
                place.changed = self._changed
                place.leave_note(self._note, *KEY)
                if self.error is not None:
                    raise self.error  # noqa: TRY301  as the caller's own function would
        except BaseException as error:  # noqa: BLE001  the test looks at it
            self.error = error

    def end(self) -> None:
        self.over.set()
        self.join(SOON)
        assert not self.is_alive()


def lined_up(driver: Driver, count: int) -> list[Caller]:
    """One caller at work, and the others behind it in their order."""
    callers = []
    for number in range(count):
        callers.append(Caller(driver))
        until(lambda number=number: waiting(driver) == number)
    assert callers[0].inside.wait(SOON)
    return callers


@pytest.mark.usefixtures("never_stuck")
def test_callers_go_on_one_at_a_time_in_the_order_of_their_calls(driver: Driver) -> None:
    callers = lined_up(driver, 5)

    for place, caller in enumerate(callers):
        assert caller.inside.wait(SOON)
        assert [each.inside.is_set() for each in callers] == [True] * (place + 1) + [False] * (4 - place)
        caller.end()


@pytest.mark.usefixtures("never_stuck")
def test_callers_on_other_keys_and_other_tables_do_not_wait(driver: Driver) -> None:
    with QueuePlace(driver, KEY):
        for keys in ((OTHER,), (("archive", "Cart-1"),)):
            caller = Caller(driver, *keys)
            assert caller.inside.wait(SOON)
            caller.end()
        elsewhere = Caller(Driver(execute=lambda _: Done(), meter=Meter()))
        assert elsewhere.inside.wait(SOON)
        elsewhere.end()


@pytest.mark.usefixtures("never_stuck")
def test_a_caller_that_fails_or_is_interrupted_at_work_lets_the_next_one_in(driver: Driver) -> None:
    first, second, third = lined_up(driver, 3)
    first.error = ValueError("sold out")
    second.error = KeyboardInterrupt()

    first.end()
    assert second.inside.wait(SOON)
    second.end()
    assert third.inside.wait(SOON)
    third.end()


@pytest.mark.usefixtures("never_stuck")
def test_after_callers_that_change_nothing_twice_as_many_go_on_together_until_one_writes(
    driver: Driver,
) -> None:
    callers = lined_up(driver, 12)

    def inside() -> int:
        return sum(caller.inside.is_set() and caller.is_alive() for caller in callers)

    callers[0]._changed = False  # noqa: SLF001  it is asked for at the end
    callers[0].end()
    until(lambda: inside() == 2)
    callers[1]._changed = False  # noqa: SLF001  as above
    callers[1].end()
    until(lambda: inside() == 4)
    for left, caller in zip((3, 2, 1, 1, 1, 1, 1, 1, 1, 0), callers[2:], strict=True):
        assert caller.inside.wait(SOON)
        caller.end()
        until(lambda left=left: inside() == left)


def test_a_caller_that_is_stuck_is_passed_and_disturbs_nobody_when_it_leaves(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 0.2)
    stuck, second = lined_up(driver, 2)
    assert second.inside.wait(SOON)
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 60.0)
    third = Caller(driver)
    until(lambda: waiting(driver) == 1)

    stuck.end()
    time.sleep(0.02)

    assert not third.inside.is_set(), "the second one is still at work"
    second.end()
    third.end()


def test_a_caller_that_passes_a_stuck_one_gets_no_note_since_that_one_may_have_written(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, stuck = Caller(driver, note="token"), Caller(driver)
    until(lambda: waiting(driver) == 1)
    first.end()
    assert stuck.inside.wait(SOON)
    assert stuck.found == "token"
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 0.05)
    behind = Caller(driver)
    assert behind.inside.wait(SOON)
    assert behind.found is None
    stuck.end()
    behind.end()


def test_callers_behind_one_that_makes_progress_do_not_take_it_for_stuck(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 0.5)
    most, inside, lock = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal most, inside
        with QueuePlace(driver, KEY) as place:
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.1)
            with lock:
                inside -= 1
            place.changed = True

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(12)))

    assert most == 1


@pytest.mark.usefixtures("never_stuck")
@pytest.mark.parametrize("limit", ["deadline", "patience"])
def test_a_caller_whose_time_is_over_goes_on_without_a_turn(driver: Driver, limit: str) -> None:
    with QueuePlace(driver, KEY):
        began = time.monotonic()
        hurried = (
            driver.within(0.05) if limit == "deadline" else replace(driver, patience=Patience(seconds=0.05))
        )
        caller = Caller(hurried)
        assert caller.inside.wait(SOON)
        assert 0.04 < time.monotonic() - began < SOON
        behind = Caller(driver)
        until(lambda: waiting(driver) == 1)
        caller.end()
        assert not behind.inside.is_set()
    assert behind.inside.wait(SOON)
    behind.end()


@pytest.mark.usefixtures("never_stuck")
def test_a_caller_waits_in_all_of_its_queues_together_no_longer_than_its_time(driver: Driver) -> None:
    keys = [("streams", f"Cart-{number}") for number in range(8)]
    hurried = replace(driver, patience=Patience(seconds=0.2))
    with QueuePlace(driver, *keys):
        began = time.monotonic()
        caller = Caller(hurried, *keys)
        assert caller.inside.wait(SOON)
        assert 0.19 < time.monotonic() - began < 4 * 0.2
        caller.end()


@pytest.mark.usefixtures("never_stuck")
def test_a_caller_whose_deadline_has_passed_does_not_wait_at_all(driver: Driver) -> None:
    late = replace(driver, deadline=driver.clock() - 1)
    with QueuePlace(driver, KEY):
        caller = Caller(late)
        assert caller.inside.wait(SOON)
        caller.end()


@pytest.mark.usefixtures("never_stuck")
def test_a_call_within_a_call_waits_for_nobody(driver: Driver) -> None:
    """Each waits for the other otherwise: the one at work on a key calls on the key of the other, or on its own."""
    both = threading.Barrier(2)

    def work(mine: tuple[str, ...], other: tuple[str, ...]) -> None:
        with QueuePlace(driver, mine):
            both.wait(SOON)
            with QueuePlace(driver, other), QueuePlace(driver, mine), QueuePlace(driver, mine, other):
                both.wait(SOON)

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(work, KEY, OTHER), pool.submit(work, OTHER, KEY)]
        assert not wait(calls, SOON).not_done
        for call in calls:
            call.result()


@pytest.mark.usefixtures("never_stuck")
def test_an_inner_place_waits_for_keys_that_come_after_those_of_the_outer_one_and_for_no_others(
    driver: Driver,
) -> None:
    """The one at work on the later key never waits for the earlier one, so that both go on."""
    first, second = Caller(driver, OTHER), threading.Event()

    def work() -> None:
        with (
            QueuePlace(driver, KEY),
            QueuePlace(driver, OTHER, KEY, inner=True),
            QueuePlace(driver, KEY, OTHER, inner=True),
        ):
            second.set()

    thread = threading.Thread(target=work, daemon=True)
    assert first.inside.wait(SOON)
    thread.start()
    until(lambda: waiting(driver, OTHER) == 1)
    with QueuePlace(driver, ("streams", "Cart-3")), QueuePlace(driver, KEY, OTHER, inner=True):
        assert not second.is_set()
    first.end()
    assert second.wait(SOON)
    thread.join(SOON)


@pytest.mark.usefixtures("never_stuck")
def test_inner_places_in_any_order_never_wait_for_each_other_for_ever(driver: Driver) -> None:
    keys = [("streams", f"Cart-{number}") for number in range(4)]

    def work(number: int) -> None:
        dice = random.Random(number)
        for _ in range(50):
            outer, inner, innermost = (dice.sample(keys, dice.randint(1, 3)) for _ in range(3))
            with QueuePlace(driver, *outer), QueuePlace(driver, *inner, inner=True):
                time.sleep(0.0001)
                with QueuePlace(driver, *innermost, inner=True):
                    pass

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(work, number) for number in range(8)]
        assert not wait(calls, 4 * SOON).not_done
        for call in calls:
            call.result()


def test_a_note_is_fresh_only_where_it_was_left_on_the_same_key(driver: Driver) -> None:
    """A caller on one of two keys may have written to it since."""
    with QueuePlace(driver, KEY, OTHER) as place:
        first = threading.Thread(target=lambda: notes.append(_notes_of(driver, KEY)))
        second = threading.Thread(target=lambda: notes.append(_notes_of(driver, OTHER, KEY)))
        notes = list[tuple[object, ...]]()
        first.start()
        until(lambda: waiting(driver) == 1)
        place.write()
        place.leave_note("left", *OTHER)
    first.join(SOON)
    assert notes == [("left", None)]
    with QueuePlace(driver, OTHER) as place:
        second.start()
        until(lambda: waiting(driver, OTHER) == 1)
        place.write()
        place.leave_note("later", *OTHER)
    second.join(SOON)
    assert notes == [("left", None), ("later", "later")]


def _notes_of(driver: Driver, *keys: tuple[str, ...]) -> tuple[object, ...]:
    """The note on the second key, and the fresh one."""
    with QueuePlace(driver, *keys) as place:
        return place.note(*OTHER), place.fresh_notes.get(OTHER)


@pytest.mark.usefixtures("never_stuck")
def test_a_copied_context_waits_again_once_the_call_that_it_was_copied_in_is_over(driver: Driver) -> None:
    with QueuePlace(driver, KEY):
        copied = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(copied.run, lambda: QueuePlace(driver, KEY).__enter__()).result(SOON)
    outside = Caller(driver)
    assert outside.inside.wait(SOON)
    entered = threading.Event()

    def call() -> None:
        with QueuePlace(driver, KEY):
            entered.set()

    thread = threading.Thread(target=copied.run, args=(call,), daemon=True)
    thread.start()
    until(lambda: waiting(driver) == 1)
    assert not entered.is_set()
    outside.end()
    thread.join(SOON)
    assert entered.is_set()


@pytest.mark.usefixtures("never_stuck")
def test_places_in_several_queues_are_taken_in_one_order(driver: Driver) -> None:
    def work(turn: int) -> None:
        with QueuePlace(driver, *((KEY, OTHER) if turn % 2 else (OTHER, KEY, OTHER))) as place:
            time.sleep(0.001)
            place.changed = True

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(work, turn) for turn in range(40)]
        assert not wait(calls, SOON).not_done


@pytest.mark.usefixtures("never_stuck")
def test_the_next_caller_gets_what_the_last_one_has_left(driver: Driver) -> None:
    first, second = Caller(driver, note="token"), Caller(driver)
    until(lambda: waiting(driver) == 1)
    assert first.inside.wait(SOON)
    first.end()
    assert second.inside.wait(SOON)
    assert second.found == "token"
    second.end()
    with QueuePlace(driver, KEY) as place:
        assert place.note(*KEY) is None, "nobody has waited for it"


def test_an_interrupt_while_a_caller_waits_leaves_its_place(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002  of the protocol
            raise KeyboardInterrupt

    with QueuePlace(driver, KEY):
        monkeypatch.setattr(queueing, "turn", Interrupted)
        caller = Caller(driver)
        caller.join(SOON)
        assert isinstance(caller.error, KeyboardInterrupt)
        assert not waiting(driver)


def test_an_interrupt_that_comes_with_the_turn_lets_the_next_one_in(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            super().wait(timeout)
            raise KeyboardInterrupt

    monkeypatch.setattr(queueing, "STUCK_SECONDS", 60.0)
    first = Caller(driver)
    assert first.inside.wait(SOON)
    with monkeypatch.context() as patch:
        patch.setattr(queueing, "turn", Late)
        second = Caller(driver)
        until(lambda: waiting(driver) == 1)
    third = Caller(driver)
    until(lambda: waiting(driver) == 2)
    first.end()
    assert third.inside.wait(SOON)
    assert isinstance(second.error, KeyboardInterrupt)
    third.end()


def test_tasks_of_a_loop_take_turns_and_a_cancelled_one_leaves_its_place(driver: Driver) -> None:
    async def main() -> list[str]:
        log: list[str] = []
        first_may_end = asyncio.Event()

        def work(name: str) -> None:
            from epochal.aio.bridge import wait as wait_for  # noqa: PLC0415  its name is taken

            with QueuePlace(driver, KEY) as place:
                log.append(f"{name} begins")
                wait_for(first_may_end.wait() if name == "first" else asyncio.sleep(0))
                log.append(f"{name} ends")
                place.changed = True

        tasks = [asyncio.create_task(run(work, name)) for name in ("first", "second", "third", "fourth")]
        for _ in range(5):
            await asyncio.sleep(0)
        tasks[2].cancel()
        first_may_end.set()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), SOON)
        assert tasks[2].cancelled()
        return log

    names = ("first", "second", "fourth")
    assert asyncio.run(main()) == [f"{name} {what}" for name in names for what in ("begins", "ends")]


def test_threads_and_tasks_do_not_wait_for_each_other(driver: Driver) -> None:
    def work() -> str:
        with QueuePlace(driver, KEY):
            return "done"

    async def main() -> str:
        return await asyncio.wait_for(run(work), SOON)

    with QueuePlace(driver, KEY), ThreadPoolExecutor(1) as pool:
        assert pool.submit(contextvars.Context().run, asyncio.run, main()).result(SOON) == "done"


@pytest.mark.usefixtures("never_stuck")
def test_tasks_of_one_loop_do_not_wait_for_those_of_another_loop_of_their_thread(driver: Driver) -> None:
    from epochal.aio.bridge import wait as wait_for  # noqa: PLC0415  its name is taken

    halted, may_end = asyncio.new_event_loop(), asyncio.Event()

    def stay() -> None:
        with QueuePlace(driver, KEY):
            wait_for(may_end.wait())

    def work() -> str:
        with QueuePlace(driver, KEY):
            return "done"

    async def main() -> str:
        return await asyncio.wait_for(run(work), SOON)

    task = halted.create_task(run(stay))
    halted.run_until_complete(asyncio.sleep(0))
    try:
        assert asyncio.run(main()) == "done"
    finally:
        may_end.set()
        halted.run_until_complete(task)
        halted.close()


def halted_loop(
    driver: Driver, callers: int
) -> tuple[asyncio.AbstractEventLoop, list[Coroutine[Any, Any, str]]]:
    """A loop that has stopped with a task at work on the key, and others that wait behind it; and their coroutines."""
    from epochal.aio.bridge import wait as wait_for  # noqa: PLC0415  its name is taken

    loop, never = asyncio.new_event_loop(), asyncio.Event()

    def work() -> str:
        with QueuePlace(driver, KEY) as place:
            wait_for(never.wait())
            place.changed = True
            return "done"

    calls = [run(work) for _ in range(callers)]
    tasks = [loop.create_task(call) for call in calls]
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  it is to be lost
        loop.run_until_complete(asyncio.sleep(0))
    return loop, calls


@pytest.mark.usefixtures("never_stuck")
def test_neither_another_loop_nor_a_thread_waits_for_tasks_of_a_loop_that_was_closed(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, calls = halted_loop(driver, 3)
    loop.close()

    def work() -> str:
        with QueuePlace(driver, KEY):
            return "done"

    async def main() -> str:
        return await asyncio.wait_for(run(work), SOON)

    assert asyncio.run(main()) == "done"
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result(SOON) == "done"
    for call in calls:
        call.close()


@pytest.mark.usefixtures("never_stuck")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_tasks_that_end_after_their_loop_was_closed_leave_their_places(
    driver: Driver, order: tuple[int, ...]
) -> None:
    loop, calls = halted_loop(driver, 3)
    loop.close()

    for place in order:
        calls[place].close()


@pytest.mark.usefixtures("never_stuck")
@pytest.mark.parametrize("place", [0, 1], ids=["at work", "waiting"])
def test_a_task_that_is_lost_while_its_loop_goes_on_lets_the_next_one_in(driver: Driver, place: int) -> None:
    loop, calls = halted_loop(driver, 2)
    calls.pop(place).close()

    def work() -> str:
        with QueuePlace(driver, KEY):
            return "done"

    task = loop.create_task(run(work))
    (other,) = calls
    loop.run_until_complete(asyncio.sleep(0))
    other.close()
    assert loop.run_until_complete(asyncio.wait_for(task, SOON)) == "done"
    loop.close()


def test_a_run_that_fails_or_is_cancelled_leaves_no_place_of_its_tasks(driver: Driver) -> None:
    from epochal.aio.bridge import finished  # noqa: PLC0415  as above
    from epochal.aio.bridge import wait as wait_for  # noqa: PLC0415  its name is taken

    def work() -> None:
        with QueuePlace(driver, KEY):
            wait_for(asyncio.sleep(60))

    async def main(error: BaseException) -> None:
        tasks = [asyncio.create_task(finished(run(work)) if number % 2 else run(work)) for number in range(4)]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in tasks)
        raise error

    for error in (ValueError("failed"), asyncio.CancelledError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            asyncio.run(main(error))
        assert not queueing._QUEUES  # noqa: SLF001  it shows nowhere else


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@forks
@pytest.mark.usefixtures("never_stuck")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("callers", [1, 3])
def test_a_child_process_leaves_its_place_without_the_locks_of_its_parents_threads(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, callers: int
) -> None:
    """A thread of the parent may have held the lock of its turn in that moment: nobody lets it go in the child."""
    receives, sends = Pipe(duplex=False)
    parent, lock = os.getpid(), threading.Lock()

    class Locked(threading.Event):
        def set(self) -> None:
            if os.getpid() != parent:
                lock.acquire()
            super().set()

    monkeypatch.setattr(queueing, "turn", Locked)
    place = QueuePlace(driver, KEY)

    def child() -> None:
        place.__exit__()
        with QueuePlace(driver, KEY):
            sends.send("done")

    with lock, place:
        others = [Caller(driver) for _ in range(callers)]
        until(lambda: waiting(driver) == callers)
        process = get_context("fork").Process(target=child)
        process.start()
        done = receives.poll(SOON)
        process.kill()
        process.join(SOON)
    for other in others:
        other.over.set()
    for other in others:
        other.end()
    assert done


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_that_is_forked_while_it_waits_goes_on_without_a_turn(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receives, sends = Pipe(duplex=False)
    children: list[int] = []
    first, second = lined_up(driver, 2)

    class Forking(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not children:
                children.append(os.fork())
                if children == [0]:
                    return False
                first.over.set()
                second.over.set()
            return super().wait(timeout)

    monkeypatch.setattr(queueing, "turn", Forking)
    try:
        with QueuePlace(driver, KEY):
            if children == [0]:
                sends.send("done")
    finally:
        if children == [0]:
            os._exit(0)
    os.waitpid(children[0], 0)
    assert receives.poll(SOON)
    first.end()
    second.end()


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_does_not_wait_for_its_parents_threads(driver: Driver) -> None:
    receives, sends = Pipe(duplex=False)

    def child() -> None:
        with QueuePlace(driver, KEY):
            sends.send("done")

    other = Caller(driver)
    assert other.inside.wait(SOON)
    process = get_context("fork").Process(target=child)
    process.start()
    assert receives.poll(SOON)
    process.join(SOON)
    other.end()


def test_what_nobody_has_waited_for_is_freed(driver: Driver) -> None:
    class Note:
        pass

    note = Note()
    freed = weakref.ref(note)
    with QueuePlace(driver, KEY) as place:
        place.write()
        place.leave_note(note, *KEY)
    del note, place
    gc.collect()
    assert freed() is None


def test_many_callers_on_many_keys_neither_wait_for_ever_nor_leave_anything(driver: Driver) -> None:
    def work(number: int) -> int:
        with QueuePlace(driver, ("streams", f"Cart-{number % 7}")) as place:
            place.changed = bool(number % 3)
            return number

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(work, range(3_000))) == sum(range(3_000))
