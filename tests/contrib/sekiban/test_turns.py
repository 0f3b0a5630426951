"""Appends and decisions under the same tags of Sekiban's tables: those of one process take turns, others pause."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from epochal import ConflictError, Event, Query, QueryItem
from epochal.aio.bridge import run
from epochal.contrib.sekiban.opening import memory_dcb_events
from epochal.contrib.sekiban.store import DcbEvents, opened
from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import projection
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import Op, Reply, Transact
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import memory_deployment
from tests.support.counted_stores import EACH, SOON, WRITERS, CountedStores, at_once
from tests.support.shared_tags import COURSE, STUDENT, TERM, enrolled

pytestmark = pytest.mark.usefixtures("no_queue_stays")

COUNT = projection(tags=[COURSE], initial=0, on={"Enrolled": lambda count, _: count + 1})
ENROLLED = Query(items=(QueryItem(tags=[COURSE]),))


@pytest.fixture
def world() -> CountedStores:
    return CountedStores()


def dcb(world: CountedStores) -> DcbEvents:
    return opened(replace(world.plain, driver=Driver(execute=world.execute, meter=Meter())))


def count(store: DcbEvents) -> int:
    return store.counts([COURSE])[COURSE]


def take_a_seat(model: Mapping[str, Any]) -> list[Event]:
    return [enrolled(data=b"%d" % model["count"])]


def test_appends_under_one_tag_refuse_nobody_and_take_little_more_than_a_request_each(
    world: CountedStores,
) -> None:
    at_once(lambda _: [dcb(world).append([enrolled()]) for _ in range(EACH)])

    assert count(dcb(world)) == WRITERS * EACH
    assert not world.refusals
    assert world.requests < 1.5 * WRITERS * EACH, "the heads of tags are handed on, and not read"


def test_appends_under_several_tags_in_any_order_neither_refuse_each_other_nor_wait_for_ever(
    world: CountedStores,
) -> None:
    tags = ((COURSE, TERM), (TERM, COURSE), (STUDENT, TERM), (COURSE,), (STUDENT, COURSE, TERM), (TERM,))
    at_once(lambda number: [dcb(world).append([enrolled(*tags[number])]) for _ in range(EACH)])

    counts = {tag: sum(tag in tags_of_one for tags_of_one in tags) * EACH for tag in (COURSE, TERM, STUDENT)}
    assert dcb(world).counts([COURSE, TERM, STUDENT]) == counts
    assert not world.refusals


def test_events_without_tags_or_of_one_type_wait_for_what_they_share(world: CountedStores) -> None:
    """They have one head in common: that of events without tags, or that of their type."""
    tags = ((), (), ("course:2",), ("course:3",), ("course:4",), ())
    world.plain = memory_deployment(type_heads=True)

    def work(number: int) -> None:
        for _ in range(EACH):
            dcb(world).append([Event(type="Enrolled", data=b"{}", tags=tags[number])])

    at_once(work)

    assert not world.refusals


def test_decisions_on_a_tag_refuse_nobody(world: CountedStores) -> None:
    at_once(
        lambda _: [Decisions(store=dcb(world)).handle({"count": COUNT}, take_a_seat) for _ in range(EACH)]
    )

    seats = [int(event.data) for event in dcb(world).read(ENROLLED).events]  # type: ignore[arg-type]
    assert seats == list(range(WRITERS * EACH))
    assert not world.refusals


def test_of_appends_on_one_condition_one_is_made_and_the_others_are_refused_without_a_write(
    world: CountedStores,
) -> None:
    made: list[bool] = []

    def work(_: int) -> None:
        outcome = dcb(world).try_append([enrolled()], fail_if=ENROLLED)
        made.append(isinstance(outcome, Appended))

    at_once(work)

    assert sorted(made) == [False] * (WRITERS - 1) + [True]
    assert not world.refusals


def test_an_append_under_a_key_is_made_once_by_callers_who_take_turns(world: CountedStores) -> None:
    def work(number: int) -> None:
        for turn in range(EACH):
            dcb(world).append([enrolled()], idempotency_key=f"{number % 3}-{turn}")

    at_once(work)

    assert count(dcb(world)) == 3 * EACH


def test_an_append_in_a_queue_notices_what_another_process_has_appended(world: CountedStores) -> None:
    others, left = opened(world.plain), iter(range(5))

    def before(op: Op) -> None:
        if isinstance(op, Transact) and next(left, None) is not None:
            others.append([enrolled()])

    world.before = before
    at_once(lambda _: [dcb(world).append([enrolled()]) for _ in range(EACH)])

    assert count(dcb(world)) == WRITERS * EACH + 5
    assert world.refusals <= 5


def test_appends_of_tasks_take_turns(world: CountedStores) -> None:
    async def work() -> None:
        for _ in range(EACH):
            await run(dcb(world).append, [enrolled()])

    async def main() -> None:
        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(WRITERS))), SOON)

    asyncio.run(main())

    assert count(dcb(world)) == WRITERS * EACH
    assert not world.refusals


# Between processes.


@dataclass(eq=False)
class Contended:
    """A process that is refused: another one appends before each of its first transactions.

    Attributes:
        tag: tag of what the other one appends.
        left: how many transactions are refused.
        during_pauses: tags of what the other one appends during each pause.
    """

    tag: str = COURSE
    left: int = 4
    during_pauses: tuple[str, ...] = ()
    waited: list[float] = field(default_factory=list)
    requests: int = 0

    def __post_init__(self) -> None:
        self.others = memory_dcb_events()

    def execute(self, op: Op) -> Reply:
        self.requests += 1
        if self.left and isinstance(op, Transact):
            self.left -= 1
            self.others.append([enrolled(self.tag, STUDENT)])
        return self.others.driver.execute(op)

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        for tag in self.during_pauses:
            self.others.append([enrolled(tag)])

    @property
    def store(self) -> DcbEvents:
        return replace(self.others, driver=Driver(execute=self.execute, meter=Meter(), sleep=self.sleep))


def test_an_append_that_other_processes_refuse_again_pauses_and_reads_the_heads_again() -> None:
    contended = Contended(during_pauses=(COURSE,))

    appended = contended.store.append([enrolled()])

    assert appended.versions == {COURSE: 8}
    assert len(contended.waited) == 3
    assert contended.requests == 1 + 5 + 3, (
        "it reads, sends the transaction five times, and reads after pauses"
    )


@pytest.mark.parametrize("tag", [COURSE, TERM], ids=["of the condition", "of another"])
def test_a_condition_holds_in_what_others_append_during_a_pause(tag: str) -> None:
    contended = Contended(tag=STUDENT, left=2, during_pauses=(tag,))

    outcome = contended.store.try_append([enrolled(STUDENT, TERM)], fail_if=ENROLLED)

    assert len(contended.waited) == 1
    assert isinstance(outcome, Conflict if tag == COURSE else Appended)
    assert count(contended.others) == (tag == COURSE)


def test_a_conflict_is_told_without_a_pause() -> None:
    contended = Contended(tag=COURSE)

    with pytest.raises(ConflictError):
        contended.store.append([enrolled()], fail_if=ENROLLED, after=contended.others.read(ENROLLED).position)
    assert not contended.waited
