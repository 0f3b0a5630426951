"""G13: throttling and outages are waited out or reported, and reported as what they may have been."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from epochal.dynamo.interpreter import open_deployment
from epochal.errors import EpochalError, MissingTable, Refused, TooLarge, Unavailable
from epochal.plan.failures import Lost, RequestFailure, RequestNotApplied, Unreached
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import (
    BatchGet,
    Delete,
    Done,
    Found,
    Get,
    Op,
    Overflow,
    Put,
    Query,
    Refusal,
    Reply,
    Scan,
    Several,
    Steps,
    Transact,
    Update,
)
from epochal.plan.values import Units, number, text
from epochal.settings import Settings
from epochal.store.driver import PERSISTENT, Driver, Meter, Patience

KEY = {"p": text("a"), "i": number(0)}
GET = Get(table="t", key=KEY)
PUT = Put(table="t", item=KEY)
READS: list[Op] = [
    GET,
    BatchGet(table="t", keys=(KEY,)),
    Query(table="t", partition=("p", text("a"))),
    Scan(table="t"),
]
WRITES: list[Op] = [
    PUT,
    Update(table="t", key=KEY, sets=()),
    Delete(table="t", key=KEY),
    Transact(writes=(PUT,)),
]
REFUSED = Refusal(items=(None,), units=Units(write=1))


class Clock:
    """Time that only sleeping spends."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def driver(answers: Iterable[Reply | RequestFailure], clock: Clock, **options: object) -> Driver:
    """A driver whose interpreter gives these answers, one a request."""
    left = iter(answers)

    def execute(_: Op) -> Reply:
        answer = next(left)
        if isinstance(answer, RequestFailure):
            raise answer
        return answer

    whole = Driver(execute=execute, meter=Meter(), clock=clock, sleep=clock.sleep, luck=lambda: 1.0)
    return replace(whole, **options)


def ask(*ops: Op) -> Steps[list[Reply]]:
    replies = []
    for op in ops:
        reply = yield op
        replies.append(reply)
    return replies


def forever(failure: Callable[[], RequestFailure]) -> Iterable[RequestFailure]:
    while True:
        yield failure()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_replies_go_to_the_steps_that_asked_and_their_outcome_comes_back(clock: Clock) -> None:
    answers = [Found(item=KEY), Done()]

    assert driver(answers, clock).run(ask(GET, PUT)) == answers
    assert clock.sleeps == []


def test_a_failure_is_tried_again_until_it_is_none(clock: Clock) -> None:
    answers = [RequestNotApplied("throttled"), Lost("timed out"), RequestNotApplied("throttled"), Done()]

    assert driver(answers, clock).run(ask(PUT)) == [Done()]
    assert len(clock.sleeps) == 3


def test_waits_double_up_to_the_longest_and_luck_spreads_them_from_zero(clock: Clock) -> None:
    patience = Patience(first=0.05, longest=2.0)

    assert [patience.wait(tries, 1.0) for tries in range(1, 9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert patience.wait(3, 0.5) == pytest.approx(0.1)
    assert patience.wait(3, 0.0) == 0.0
    assert patience.wait(10_000, 1.0) == 2.0


def test_by_default_waits_are_spread_at_random() -> None:
    whole = Driver(execute=lambda _: Done(), meter=Meter())

    assert len({whole.luck() for _ in range(20)}) > 10
    assert all(0 <= whole.luck() <= 1 for _ in range(100))


def test_after_the_time_allowed_it_gives_up_and_names_the_cause(clock: Clock) -> None:
    began = clock.now

    with pytest.raises(Unavailable, match="throttled") as gave_up:
        driver(forever(lambda: RequestNotApplied("throttled")), clock, patience=Patience(seconds=25)).run(
            ask(PUT)
        )

    assert gave_up.value.cause == "throttled"
    assert not gave_up.value.maybe_applied
    assert clock.now - began < 25


def test_an_address_that_never_answered_is_given_up_soon(clock: Clock) -> None:
    began = clock.now

    with pytest.raises(Unavailable, match="nobody at http://here") as gave_up:
        driver(forever(lambda: Unreached("nobody at http://here")), clock).run(ask(PUT))

    assert not gave_up.value.maybe_applied
    assert clock.now - began < 2


def test_an_address_that_is_just_opening_is_waited_for(clock: Clock) -> None:
    answers = [*[Unreached("nobody at http://here")] * 5, Done()]

    assert driver(answers, clock).run(ask(PUT)) == [Done()]


def test_after_the_retries_allowed_it_gives_up_however_much_time_is_left(clock: Clock) -> None:
    answers = [RequestNotApplied("throttled") for _ in range(3)]

    with pytest.raises(Unavailable, match="throttled"):
        driver(answers, clock, patience=Patience(seconds=1e9, retries=2)).run(ask(PUT))

    assert len(clock.sleeps) == 2
    assert driver([*answers[:2], Done()], clock, patience=Patience(retries=2)).run(ask(PUT)) == [Done()]


@pytest.mark.parametrize("retries", [0, 2])
def test_a_deployed_function_tries_a_request_again_as_often_as_its_stage_says(retries: int) -> None:
    asked: list[Op] = []

    def throttled(op: Op) -> Reply:
        asked.append(op)
        raise RequestNotApplied("throttled")

    opened = open_deployment(Settings(retries=retries), execute=throttled)
    with pytest.raises(Unavailable):
        replace(opened.driver, sleep=lambda _: None).ask(GET)
    assert len(asked) == 1 + retries


def test_retries_are_counted_for_each_request_anew(clock: Clock) -> None:
    answers = [RequestNotApplied("throttled"), Done(), RequestNotApplied("throttled"), Done()]

    assert len(driver(answers, clock, patience=Patience(retries=1)).run(ask(PUT, PUT))) == 2


def test_who_is_persistent_tries_ten_times_more_and_waits_thirty_seconds_at_most(clock: Clock) -> None:
    answers = [RequestNotApplied("throttled") for _ in range(11)]

    with pytest.raises(Unavailable):
        driver(answers, clock, patience=PERSISTENT).run(ask(PUT))

    assert len(clock.sleeps) == 10
    assert sum(clock.sleeps) > 30
    assert PERSISTENT.wait(50, 1.0) == 30.0


@pytest.mark.parametrize("op", WRITES, ids=lambda op: type(op).__name__)
def test_giving_up_on_a_write_whose_answer_was_lost_says_that_it_may_have_been_applied(
    clock: Clock, op: Op
) -> None:
    answers = [Lost("timed out"), *[RequestNotApplied("throttled")] * 99]

    with pytest.raises(Unavailable) as gave_up:
        driver(answers, clock).run(ask(op))

    assert gave_up.value.maybe_applied


@pytest.mark.parametrize("op", READS, ids=lambda op: type(op).__name__)
def test_giving_up_on_a_read_applied_nothing(clock: Clock, op: Op) -> None:
    with pytest.raises(Unavailable) as gave_up:
        driver(forever(lambda: Lost("timed out")), clock).run(ask(op))

    assert not gave_up.value.maybe_applied


def test_a_lost_write_stays_in_doubt_while_what_would_settle_it_cannot_be_read(clock: Clock) -> None:
    found = Found(item=None)
    answers = [Lost("timed out"), REFUSED, found, found, *[RequestNotApplied("throttled")] * 99]

    with pytest.raises(Unavailable) as gave_up:
        driver(answers, clock).run(ask(PUT, GET, GET, GET))

    assert gave_up.value.maybe_applied


def test_a_refusal_is_ambiguous_only_after_an_answer_was_lost(clock: Clock) -> None:
    plain = driver([RequestNotApplied("throttled"), REFUSED], clock).run(ask(PUT))
    doubtful = driver([Lost("timed out"), RequestNotApplied("throttled"), REFUSED], clock).run(ask(PUT))
    retried_by_boto = driver([replace(REFUSED, ambiguous=True)], clock).run(ask(PUT))

    assert [reply.ambiguous for reply in plain if isinstance(reply, Refusal)] == [False]
    assert [reply.ambiguous for reply in doubtful if isinstance(reply, Refusal)] == [True]
    assert [reply.ambiguous for reply in retried_by_boto if isinstance(reply, Refusal)] == [True]


def test_doubt_about_one_request_is_none_about_the_next(clock: Clock) -> None:
    replies = driver([Lost("timed out"), Done(), REFUSED], clock).run(ask(PUT, PUT))

    assert replies == [Done(), REFUSED]


def test_every_request_is_counted_and_its_units_added_up(clock: Clock) -> None:
    whole = driver(
        [RequestNotApplied("x"), Found(item=None, units=Units(read=0.5)), Done(units=Units(write=3))], clock
    )

    whole.run(ask(GET, PUT))

    assert (whole.meter.requests, whole.meter.units) == (3, Units(read=0.5, write=3))


def test_a_deadline_ends_what_never_fails_but_never_finishes_either(clock: Clock) -> None:
    def busy(_: Op) -> Reply:
        clock.now += 1
        return REFUSED

    def endless() -> Steps[None]:
        for _ in range(1_000):
            yield PUT

    whole = Driver(execute=busy, meter=Meter(), clock=clock, sleep=clock.sleep).within(10)

    with pytest.raises(Unavailable, match="time limit of the call"):
        whole.run(endless())
    assert whole.meter.requests == 11


def test_a_deadline_that_passes_over_a_write_in_doubt_says_that_it_may_have_been_applied(
    clock: Clock,
) -> None:
    def ended_after(op: Op) -> Unavailable:
        answers = iter([Lost("timed out"), REFUSED])

        def busy(_: Op) -> Reply:
            clock.now += 6
            answer = next(answers)
            if isinstance(answer, RequestFailure):
                raise answer
            return answer

        whole = Driver(execute=busy, meter=Meter(), clock=clock, sleep=lambda _: None, luck=lambda: 0.0)
        with pytest.raises(Unavailable, match="time limit of the call") as gave_up:
            replace(whole, deadline=clock.now + 11).run(ask(op, GET))
        return gave_up.value

    assert ended_after(PUT).maybe_applied
    assert not ended_after(GET).maybe_applied


@pytest.mark.parametrize("error", [Refused("GetItem", "the token is expired"), MissingTable("t")])
def test_a_write_stays_in_doubt_while_what_would_settle_it_is_denied(
    clock: Clock, error: EpochalError
) -> None:
    """The retry was refused, by the write itself or by another's: only a read tells by which."""

    def raised_after(*before: Reply | RequestFailure) -> EpochalError:
        answers = iter(before)

        def execute(_: Op) -> Reply:
            answer = next(answers, error)
            if isinstance(answer, Exception):
                raise answer
            return answer

        whole = Driver(execute=execute, meter=Meter(), clock=clock, sleep=clock.sleep)
        with pytest.raises(EpochalError) as raised:
            whole.run(ask(PUT, GET))
        return raised.value

    doubtful = raised_after(Lost("timed out"), REFUSED)
    assert isinstance(doubtful, Unavailable)
    assert doubtful.maybe_applied
    assert doubtful.__cause__ is error
    assert raised_after(RequestNotApplied("throttled"), REFUSED) is error
    assert raised_after(Lost("timed out"), Overflow()).__cause__ is error


def test_a_write_that_became_too_large_after_a_lost_answer_may_have_been_applied(clock: Clock) -> None:
    """The item has grown meanwhile: the first try may have been applied before that, or be applied when it fits."""

    def append() -> Steps[None]:
        if isinstance((yield PUT), Overflow):
            raise TooLarge("events", ITEM_BYTES + 1, ITEM_BYTES)

    def raised_after(*before: Reply | RequestFailure) -> EpochalError:
        with pytest.raises(EpochalError) as raised:
            driver([*before, Overflow()], clock).run(append())
        return raised.value

    assert isinstance(raised_after(), TooLarge)
    assert isinstance(raised_after(RequestNotApplied("throttled")), TooLarge)
    doubtful = raised_after(Lost("timed out"))
    assert isinstance(doubtful, Unavailable)
    assert doubtful.maybe_applied
    assert isinstance(doubtful.__cause__, TooLarge)


def test_whatever_fails_while_a_write_is_told_of_says_that_it_may_have_been_applied(clock: Clock) -> None:
    reading_back = driver([RequestNotApplied("throttled")] * 99, clock).reading_back()
    with pytest.raises(Unavailable) as raised:
        reading_back.run(ask(GET))
    assert raised.value.maybe_applied


def test_a_lost_write_that_is_done_after_all_leaves_no_doubt_about_what_follows(clock: Clock) -> None:
    """Nothing is otherwise than had no answer been lost; what was lost besides stays in doubt."""
    throttled = [RequestNotApplied("throttled")] * 99

    def raised_after(*before: Reply | RequestFailure) -> EpochalError:
        with pytest.raises(EpochalError) as raised:
            driver([*before, *throttled], clock).run(ask(PUT, PUT, GET))
        return raised.value

    settled = raised_after(Lost("timed out"), Done(), Done())
    besides = raised_after(Lost("timed out"), Done(), Lost("timed out"), REFUSED)
    assert isinstance(settled, Unavailable)
    assert isinstance(besides, Unavailable)
    assert (settled.maybe_applied, besides.maybe_applied) == (False, True)


def test_a_deadline_is_one_for_all_that_is_run_within_it(clock: Clock) -> None:
    whole = driver(forever(lambda: RequestNotApplied("throttled")), clock).within(5)
    began = clock.now
    for _ in range(3):
        with pytest.raises(Unavailable):
            whole.run(ask(GET))

    assert clock.now - began < 5


# ---------------------------------------------------------------------------------------------------- several together


def puts(*names: str) -> Several:
    return Several(ops=tuple(Put(table="t", item={"p": text(name)}) for name in names))


def together(several: Several) -> Steps[list[Reply]]:
    replies: list[Reply] = yield several
    return replies


def test_several_are_answered_in_their_order_one_after_the_other_unless_more_may_be_under_way(
    clock: Clock,
) -> None:
    answers: list[Reply | RequestFailure] = [Found(item=KEY), Done(), REFUSED]

    assert driver(answers, clock).run(together(Several(ops=(GET, PUT, PUT)))) == answers


def test_several_are_under_way_at_once_and_each_gets_its_own_answer() -> None:
    all_there = threading.Barrier(4)

    def execute(op: Op) -> Reply:
        all_there.wait(timeout=120)
        assert isinstance(op, Put)
        return Refusal(items=(op.item,))

    several = puts(*"abcdefgh")
    whole = Driver(execute=execute, meter=Meter(), at_once=4)
    assert whole.run(together(several)) == [Refusal(items=(op.item,)) for op in several.ops]  # type: ignore[union-attr]
    assert whole.meter.requests == 8


def test_of_several_only_what_failed_is_tried_again_and_only_its_own_refusal_is_in_doubt(
    clock: Clock,
) -> None:
    answers: list[Reply | RequestFailure] = [Done(), Lost("cut off"), REFUSED, REFUSED]

    replies = driver(answers, clock).run(together(puts("a", "b", "c")))

    assert replies == [Done(), replace(REFUSED, ambiguous=True), REFUSED]


@pytest.mark.parametrize("at_once", [1, 2])
def test_of_several_none_is_begun_after_one_has_been_given_up(at_once: int) -> None:
    begun = []

    def execute(op: Op) -> Reply:
        begun.append(op)
        raise RequestNotApplied("throttled")

    whole = Driver(execute=execute, meter=Meter(), patience=Patience(seconds=0), at_once=at_once)
    with pytest.raises(Unavailable, match="throttled"):
        whole.run(together(puts(*"abcdefgh")))
    assert len(begun) <= at_once
