"""Appends of one process under the same tags take turns: none refuses another, whatever becomes of each."""

from __future__ import annotations

import asyncio
import threading

import pytest

from epochal import NO_STREAM, ConflictError, Query, QueryItem, StreamAppend
from epochal.aio.bridge import run
from epochal.errors import InvalidInput, Unavailable
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Transact, Update
from epochal.testing.stores import pause
from tests.support.counted_stores import EACH, SOON, WRITERS, at_once
from tests.support.shared_tags import COURSE, STUDENT, TERM, World, enrolled

pytestmark = pytest.mark.usefixtures("no_queue_stays")


def of(*tags: str, types: tuple[str, ...] = ()) -> Query:
    return Query(items=(QueryItem(types=types, tags=tags),))


@pytest.fixture
def world() -> World:
    return World()


def test_events_of_own_streams_under_one_tag_take_little_more_than_a_request_each(world: World) -> None:
    def work(number: int) -> None:
        expected = NO_STREAM
        for _ in range(EACH):
            expected = world.streams.append(f"Student-{number}", [enrolled()], expected=expected).token

    at_once(work)

    assert world.count() == WRITERS * EACH
    assert not world.refusals
    assert world.requests < 1.5 * WRITERS * EACH, "the ends of tags are handed on, and not read"


def test_events_without_a_stream_take_little_more_than_a_request_each(world: World) -> None:
    at_once(lambda _: [world.tagged.append([enrolled()]) for _ in range(EACH)])

    assert world.count() == WRITERS * EACH
    assert not world.refusals
    assert world.requests < 1.5 * WRITERS * EACH


def test_pages_that_fill_meanwhile_are_followed_by_others(world: World) -> None:
    body = bytes(range(256)) * 8
    at_once(lambda _: [world.tagged.append([enrolled(data=body)]) for _ in range(EACH)])

    assert [event.data for event in world.plain.tagged.read(of(COURSE)).events] == [body] * WRITERS * EACH
    assert not world.refusals


def test_appends_under_several_tags_in_any_order_neither_refuse_each_other_nor_wait_for_ever(
    world: World,
) -> None:
    tags = (
        (COURSE, TERM),
        (TERM, COURSE),
        (STUDENT, TERM),
        (COURSE, STUDENT),
        (TERM,),
        (STUDENT, COURSE, TERM),
    )

    def work(number: int) -> None:
        for step in range(EACH):
            event = enrolled(*tags[(number + step) % len(tags)])
            if step % 2:
                world.tagged.append([event])
            else:
                world.streams.append(f"Student-{number}", [event])

    at_once(work)

    expected = [
        tag for number in range(WRITERS) for step in range(EACH) for tag in tags[(number + step) % len(tags)]
    ]
    for tag in (COURSE, TERM, STUDENT):
        assert world.count(tag) == expected.count(tag)
    assert not world.refusals


def test_several_streams_and_their_tags_are_taken_in_one_order(world: World) -> None:
    def work(number: int) -> None:
        names = ("Student-1", "Student-2") if number % 2 else ("Student-2", "Student-1")
        tags = (COURSE, TERM) if number % 3 else (TERM, COURSE)
        for _ in range(EACH):
            appends = [
                StreamAppend(stream=name, events=[enrolled(tag)])
                for name, tag in zip(names, tags, strict=True)
            ]
            world.streams.append_all(appends)

    at_once(work)

    assert world.count() == world.count(TERM) == WRITERS * EACH
    assert not world.refusals


def test_a_condition_waits_for_appends_under_its_tag_and_meets_what_they_have_stored(world: World) -> None:
    """All know the tag as it was at first: each but the first is told of what came before it."""
    seen = world.tagged.read(of(COURSE))
    conflicts = list[Conflict]()

    def work(number: int) -> None:
        answer = world.streams.try_append(
            f"Student-{number}", [enrolled()], fail_if=of(COURSE), after=seen.position
        )
        if isinstance(answer, Conflict):
            conflicts.append(answer)

    at_once(work)

    assert world.count() == 1
    assert len(conflicts) == WRITERS - 1
    assert [len(conflict.events) for conflict in conflicts] == [1] * len(conflicts)
    world.streams.append("Student-9", [enrolled()], fail_if=of(COURSE), after=conflicts[0].position)


def test_appends_whose_condition_alone_has_a_tag_wait_for_those_whose_events_have_it(world: World) -> None:
    closed = of(COURSE, types=("Closed",))

    def work(number: int) -> None:
        for _ in range(EACH):
            if number % 2:
                world.tagged.append([enrolled()])
            else:
                world.streams.append(f"Student-{number}", [enrolled(f"student:{number}")], fail_if=closed)

    at_once(work)

    assert world.count() == WRITERS // 2 * EACH
    assert not world.refusals


def test_what_was_handed_on_is_compared_with_the_condition_although_nothing_is_refused(world: World) -> None:
    """The tag has grown by events that match since its position, and by others since."""
    seen = world.tagged.read(of(COURSE, types=("Closed",)))

    def work(number: int) -> None:
        for _ in range(EACH):
            if number == 0:
                world.tagged.append([enrolled(kind="Closed")])
            elif number == 1:
                world.tagged.append([enrolled()])
            else:
                outcome = world.tagged.try_append(
                    [enrolled(TERM)], fail_if=of(COURSE, types=("Closed",)), after=seen.position
                )
                assert isinstance(outcome, Appended) or outcome.events[0].type == "Closed"

    at_once(work)

    events = world.plain.tagged.read(of(COURSE)).events
    first = next(place for place, event in enumerate(events) if event.type == "Closed")
    late = [event for event in world.plain.tagged.read(of(TERM)).events if event.key > events[first].key]
    assert late == [], "an append was made although a matching event had been stored"


def test_a_tag_that_another_process_has_written_to_meanwhile_is_read_again(world: World) -> None:
    def rival(op: Op) -> None:
        if isinstance(op, Put | Update | Transact) and not world.requests % 7:
            world.plain.tagged.append([enrolled(kind="Other")])

    world.before = rival
    at_once(lambda number: [world.streams.append(f"Student-{number}", [enrolled()]) for _ in range(EACH)])

    events = world.plain.tagged.read(of(COURSE)).events
    assert sum(event.type == "Enrolled" for event in events) == WRITERS * EACH


def test_an_append_that_fails_lets_the_next_one_in(world: World) -> None:
    def fail(op: Op) -> None:
        if isinstance(op, Put | Update | Transact) and not world.requests % 3:
            world.requests += 1
            raise Unavailable("out of order")

    world.before = fail
    made = list[bool]()

    def work(number: int) -> None:
        for step in range(EACH):
            try:
                world.tagged.append([enrolled(data=b"%d" % (number * EACH + step))])
            except Unavailable:
                made.append(False)
            else:
                made.append(True)

    at_once(work)

    assert world.count() == made.count(True)
    assert set(made) == {True, False}


def test_an_append_that_is_refused_as_invalid_lets_the_next_one_in(world: World) -> None:
    position = world.tagged.read(of(TERM)).position

    def work(number: int) -> None:
        for _ in range(EACH):
            if number % 2:
                with pytest.raises(InvalidInput):
                    world.tagged.append([enrolled()], fail_if=of(COURSE), after=position)
            else:
                world.tagged.append([enrolled()])

    at_once(work)

    assert world.count() == WRITERS // 2 * EACH


def test_an_append_whose_answer_was_lost_is_made_once(world: World) -> None:
    lost = set[int]()

    def cut_off(op: Op) -> None:
        if isinstance(op, Put | Update | Transact) and world.requests % 5 == 0 and world.requests not in lost:
            lost.add(world.requests)
            world.plain.driver.execute(op)
            raise Lost("cut off")

    world.before = cut_off
    at_once(lambda number: [world.streams.append(f"Student-{number}", [enrolled()]) for _ in range(EACH)])

    assert lost
    assert world.count() == WRITERS * EACH
    for number in range(WRITERS):
        assert len(list(world.plain.streams.read(f"Student-{number}"))) == EACH


def test_repeats_under_one_key_are_one_append(world: World) -> None:
    outcomes = list[Appended]()

    def work(_: int) -> None:
        outcomes.append(world.tagged.append([enrolled()], idempotency_key="once"))

    at_once(work)

    assert world.count() == 1
    assert sorted(outcome.replayed for outcome in outcomes) == [False] + [True] * (WRITERS - 1)


def test_an_append_within_an_append_under_its_tag_does_not_wait(world: World) -> None:
    """What chooses the events of a conflict appends under the tag, for itself and for a condition of its own."""
    store = world.tagged
    store.append([enrolled()])

    def takes(_: object) -> bool:
        store.append([enrolled(COURSE, TERM)])
        with pytest.raises(ConflictError):
            store.append([enrolled(TERM)], fail_if=of(TERM))
        return True

    outcome = store.try_append([enrolled()], fail_if=of(COURSE), takes=takes)

    assert isinstance(outcome, Conflict)
    assert world.count() >= 2


def test_appends_that_conflict_go_on_together(world: World) -> None:
    """Names that are taken: nobody writes, so nobody waits for more than the first few."""
    world.plain.tagged.append([enrolled()])
    together, most = 0, 0

    def meet(_: Op) -> None:
        nonlocal together, most
        with world.lock:
            together += 1
            most = max(most, together)
        pause(0.005)
        with world.lock:
            together -= 1

    world.before = meet

    def work(_: int) -> None:
        for _ in range(EACH):
            assert isinstance(world.tagged.try_append([enrolled()], fail_if=of(COURSE)), Conflict)

    at_once(work)

    assert most >= 2


def test_appends_under_different_tags_do_not_wait_for_each_other(world: World) -> None:
    barrier = threading.Barrier(WRITERS)
    world.before = lambda op: barrier.wait(SOON) if isinstance(op, Put) else None

    at_once(lambda number: world.tagged.append([enrolled(f"course:{number}")]))


def test_tasks_of_a_loop_take_turns_under_a_tag(world: World) -> None:
    async def work(number: int) -> None:
        for _ in range(EACH):
            await run(lambda: world.streams.append(f"Student-{number}", [enrolled()]))

    async def all_of_them() -> None:
        await asyncio.gather(*map(work, range(WRITERS)))

    asyncio.run(all_of_them())

    assert world.count() == WRITERS * EACH
    assert not world.refusals
