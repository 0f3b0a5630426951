"""Many appends in one call: each is answered as if it had been made alone, after those before it to its stream."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from epochal import metadata
from epochal.aio.stores import AsyncBulk
from epochal.errors import EpochalError, InvalidInput, MissingTable, NotTried, TooLarge, Unavailable
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.stream_append import StreamAppend
from epochal.model.tags import Query, QueryItem
from epochal.model.tokens import Token
from epochal.pages.frames import time_of
from epochal.pages.items import read_page
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Op, Put, Reply, Update
from epochal.store.bulk import MAX_APPENDS, Answer, Bulk, BulkAppend
from epochal.store.driver import Patience
from epochal.store.encoding import BodyCodec
from epochal.store.joined import JOINED_APPENDS, JOINED_BYTES
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables

S, OTHER = "Seat-1", "Seat-2"
ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"


def to(stream: str = S, *data: str, **more: Any) -> BulkAppend:
    """An append of events with these bodies."""
    events = [Event(type="Taken", data=each.encode()) for each in data or ("1",)]
    return BulkAppend(stream=stream, events=events, **more)


def alone(streams: Streams, append: BulkAppend) -> Answer:
    """The same append, made alone."""
    try:
        return streams.try_append(
            append.stream,
            append.events,
            unfolds=append.unfolds,
            expected=append.expected,
            fail_if=append.fail_if,
            after=append.after,
            idempotency_key=append.idempotency_key,
        )
    except EpochalError as error:
        return error


def said(answer: Answer) -> Any:
    """What an answer says, but for tokens, which name a state by the moment that it was written."""
    match answer:
        case Appended(first=first, version=version, replayed=replayed):
            return "appended", first, version, replayed
        case Conflict(version=version, deleted=deleted, token=token, events=events):
            return "conflict", version, deleted, token is not None, [each.data for each in events]
        case Undetermined(first=first):
            return "undetermined", first
        case _:
            return type(answer), str(answer)


def stored(streams: Streams, stream: str) -> Any:
    state = streams.load(stream)
    if state is None:
        return None
    events = [(each.index, each.type, each.data, each.tags) for each in streams.read(stream)]
    return state.version, state.deleted, events, [each.data for each in state.unfolds]


# What is said of each.


SHAPES = ["plain"] * 12 + ["two", "unfolds", "both", "id", "tag", "condition", "empty", "odd"]
EXPECTED = [ANY, ANY, ANY, NO_STREAM, STREAM_EXISTS, "token", "old token"]
"""What an append expects; the token of what is stored before the call, or before that."""


def drawn(luck: random.Random) -> tuple[Any, ...]:
    expected = luck.choice([*EXPECTED, AtVersion(luck.randint(0, 5)), Token(version=luck.randint(0, 4))])
    key = luck.choice([None, None, None, "k", "l", "m"])
    return luck.choice([S, S, OTHER]), luck.choice("ab"), luck.choice(SHAPES), expected, key


def made_of(drew: tuple[Any, ...], tokens: dict[str, list[Token]]) -> BulkAppend:
    stream, data, shape, expected, key = drew
    if isinstance(expected, str):
        known = tokens.get(stream)
        expected = NO_STREAM if known is None else known[-1 if expected == "token" else 0]
    event = Event(type="E", data=data.encode())
    events: Any = [event]
    more: dict[str, Any] = {"expected": expected, "idempotency_key": key}
    match shape:
        case "two":
            events = [event, event]
        case "unfolds":
            events, more["unfolds"] = [], [Unfold(type="U", data=data.encode())]
        case "both":
            more["unfolds"] = [Unfold(type="U", data=data.encode())]
        case "id":
            events = [replace(event, id=ID)]
        case "tag":
            events = [replace(event, tags=(f"of:{stream}",))]
        case "condition":
            more["fail_if"] = Query(items=(QueryItem(tags=frozenset((f"of:{stream}",))),))
        case "empty":
            events = []
        case "odd":
            events = [object()]
    return BulkAppend(stream=stream, events=events, **more)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 300), marks=pytest.mark.proof)], ids=str)
def test_each_is_answered_and_stored_as_if_all_had_been_made_alone_in_their_order(seeds: range) -> None:
    for seed in seeds:
        try:
            play(random.Random(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def play(luck: random.Random) -> None:
    """One history in two stores, and the same appends to both."""
    before = [drawn(luck) for _ in range(luck.randint(0, 5))]
    appends = [drawn(luck) for _ in range(luck.randint(1, 9))]
    deleted = luck.choice([None, None, "left open", "gone"])
    together, apart = memory_streams(), memory_streams()
    tokens = [dict[str, list[Token]](), dict[str, list[Token]]()]
    for streams, known in zip((together, apart), tokens, strict=True):
        for each in before:
            outcome = alone(streams, made_of(each, {}))
            if isinstance(outcome, Appended):
                known.setdefault(each[0], []).append(outcome.token)
        if deleted and streams.load(S) is not None:
            streams.try_delete(S, leave_open=deleted == "left open")
    for _ in range(luck.randint(1, 2)):
        answers = Bulk(together).append([made_of(each, tokens[0]) for each in appends])
        singles = [alone(apart, made_of(each, tokens[1])) for each in appends]

        assert list(map(said, answers)) == list(map(said, singles))
        for stream in (S, OTHER):
            assert stored(together, stream) == stored(apart, stream)
            mine, theirs = (newest(stream, appends, each) for each in (answers, singles))
            if mine is not None and theirs is not None:
                after = [
                    each.try_append(stream, [Event(type="Next")], expected=token)
                    for each, token in ((together, mine), (apart, theirs))
                ]
                assert said(after[0]) == said(after[1]), "a token is as good as that of an append alone"
    more = together.driver.meter.units.write - apart.driver.meter.units.write
    # That a key was used before is asked for once more, where several are appended to its stream.
    assert more <= sum(each[-1] is not None for each in appends) * 2, "none costs more for it"
    if all(each[-1] is None for each in appends):
        assert more <= 0, "none costs more for it"


def newest(stream: str, appends: Sequence[tuple[Any, ...]], answers: Sequence[Answer]) -> Token | None:
    """The token of the last answer about a stream."""
    found = [answer for each, answer in zip(appends, answers, strict=True) if each[0] == stream]
    return found[-1].token if found and isinstance(found[-1], Appended | Conflict) else None


# How it is written.


@dataclass
class Network:
    """A store that counts what is asked of it, and may be meddled with."""

    tables: MemoryTables = field(default_factory=memory_tables)
    meddle: Callable[[Op], None] = lambda _: None
    after: Callable[[Op], None] = lambda _: None
    ops: list[Op] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.others = memory_streams(self.tables)
        driver = replace(
            self.others.driver,
            execute=self.execute,
            patience=Patience(seconds=1.0),
            sleep=lambda _: None,
        )
        self.streams: Streams = replace(self.others, driver=driver)

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        self.meddle(op)
        reply = self.tables.execute(op)
        self.after(op)
        return reply

    @property
    def writes(self) -> list[Put | Update]:
        """Of pages."""
        return [op for op in self.ops if isinstance(op, Put | Update) and not is_record(op)]

    def append(self, *appends: BulkAppend, **options: Any) -> list[Answer]:
        return Bulk(self.streams, **options).append(appends)

    def read(self, stream: str = S) -> list[Any]:
        return [event.data for event in self.others.read(stream)]


def is_record(op: Op) -> bool:
    """Whether it is of a key's record."""
    return isinstance(op, Put) and op.item["p"]["S"].startswith("$Idempotency-")


def firsts(answers: Sequence[Answer]) -> list[Any]:
    return [answer.first if isinstance(answer, Appended) else type(answer) for answer in answers]


def test_those_to_one_stream_go_out_as_one_write_a_frame_each_and_conflicts_cost_nothing() -> None:
    network = Network()
    answers = network.append(
        to(S, "1", expected=NO_STREAM),
        to(S, "2", "3", expected=AtVersion(1)),
        to(S, "x", expected=AtVersion(1)),
        to(S, "4", expected=STREAM_EXISTS),
    )

    assert firsts(answers) == [0, 1, Conflict, 3]
    assert len(network.ops) == 1, "the first says what there is"
    (page,) = map(read_page, network.tables.items("streams"))
    assert [frame.count for frame in page.frames] == [1, 2, 1]
    times = [time_of(frame.stamp) for frame in page.frames]
    assert [later - earlier for earlier, later in pairwise(times)] == [1, 1]
    assert sum(each.capacity.write for each in answers if isinstance(each, Appended | Conflict)) == 1.0
    assert network.read() == [b"1", b"2", b"3", b"4"]


def test_every_append_of_a_write_is_stamped_above_a_clock_that_was_ahead() -> None:
    network = Network()
    replace(network.others, now=lambda: 2 * 10**18).append(S, [Event(type="Ahead")])
    network.streams = replace(network.streams, now=lambda: 10**18)
    network.append(to(S, "1"), to(S, "2"), to(S, "3"))
    (page,) = map(read_page, network.tables.items("streams"))
    times = [time_of(frame.stamp) for frame in page.frames]
    assert [later - earlier for earlier, later in pairwise(times)] == [1, 1, 1]
    assert page.time == times[-1]


def test_keys_of_one_stream_are_one_write_after_their_records() -> None:
    network = Network()
    appends = [to(S, str(number), idempotency_key=f"k{number}") for number in range(5)]
    assert firsts(network.append(*appends)) == [0, 1, 2, 3, 4]
    assert len(network.writes) == 1
    again = network.append(*appends)
    assert firsts(again) == [0, 1, 2, 3, 4]
    assert all(isinstance(each, Appended) and each.replayed for each in again)
    assert len(network.writes) == 1


def test_a_write_takes_so_many_appends_and_bytes() -> None:
    network = Network()
    network.append(*(to(S, "1") for _ in range(JOINED_APPENDS + 1)))
    assert len(network.writes) == 2
    body = random.Random(1).randbytes(JOINED_BYTES // 5).hex()
    network.append(*(to(OTHER, body) for _ in range(5)))
    assert len(network.writes) == 2 + 2


@pytest.mark.parametrize("place", range(3))
def test_an_append_of_more_bytes_than_a_write_takes_goes_out_all_the_same(place: int) -> None:
    streams = replace(memory_streams(), codec=BodyCodec(compress=False))
    readings = iter(range(1_000))
    driver = replace(streams.driver, deadline=900, clock=lambda: next(readings))
    large = "x" * (JOINED_BYTES + 1)
    many = [to(S, large if number == place else str(number)) for number in range(3)]
    answers = Bulk(replace(streams, driver=driver)).append(many)
    assert [each.first for each in answers if isinstance(each, Appended)] == [0, 1, 2], answers
    assert [len(event.data) for event in streams.read(S)] == [len(each.events[0].data) for each in many]


def test_another_writer_in_between_is_no_conflict_but_for_who_expects_otherwise() -> None:
    network, once = Network(), iter([True])

    def overtake(op: Op) -> None:
        if isinstance(op, Put) and not is_record(op) and next(once, False):
            network.others.append(S, [Event(type="Other", data=b"other")])

    network.meddle = overtake
    answers = network.append(
        to(S, "1", expected=NO_STREAM),
        to(S, "2"),
        to(S, "3", expected=AtVersion(2)),
        to(S, "4", idempotency_key="k"),
    )
    assert firsts(answers) == [Conflict, 1, 2, 3]
    assert network.read() == [b"other", b"2", b"3", b"4"]


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("others", [False, True], ids=["nobody else", "another writer"])
def test_an_answer_that_was_lost_is_settled_for_all_of_the_write(*, keyed: bool, others: bool) -> None:
    network, once = Network(), iter([True])

    def lose(op: Op) -> None:
        if isinstance(op, Put) and not is_record(op) and next(once, False):
            if others:
                network.others.append(S, [Event(type="Other", data=b"other")])
            raise Lost("the test's fault")

    network.after = lose
    answers = network.append(*(to(S, each, idempotency_key=each if keyed else None) for each in "abc"))
    assert firsts(answers) == [0, 1, 2]
    assert not any(each.replayed for each in answers if isinstance(each, Appended))
    assert network.read()[:3] == [b"a", b"b", b"c"]


def test_what_nobody_can_tell_any_more_is_undetermined_for_each_and_what_comes_after_is_made() -> None:
    network, once = Network(), iter([True])

    def lose(op: Op) -> None:
        if isinstance(op, Put) and next(once, False):
            network.others.append(S, [Event(type="Other")])
            network.others.prune(S, 3)
            raise Lost("the test's fault")

    network.after = lose
    answers = network.append(to(S, "1"), to(S, "2"), to(S, "3", expected=AtVersion(9)), to(S, "4"))
    assert firsts(answers) == [Undetermined, Undetermined, Conflict, Undetermined]


def test_what_nobody_can_tell_of_a_write_is_looked_for_by_each_of_its_keys() -> None:
    """The write never arrives, and its place is pruned; under one of its keys another process has appended since."""
    network, once = Network(), iter([True])

    def lose(op: Op) -> None:
        if isinstance(op, Put) and not is_record(op) and next(once, False):
            network.others.append(S, [Event(type="Other", data=b"other")] * 3)
            network.others.append(S, [Event(type="Taken", data=b"b")], idempotency_key="b")
            network.others.prune(S, 3)
            raise Lost("the test's fault")

    network.meddle = lose
    answers = network.append(to(S, "a", idempotency_key="a"), to(S, "b", idempotency_key="b"), to(S, "c"))
    assert firsts(answers) == [Undetermined, 3, Undetermined]
    assert isinstance(answers[1], Appended)
    assert answers[1].replayed
    assert network.read() == [b"b"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_key_that_another_process_uses_meanwhile_is_one_append(place: int) -> None:
    """It has put its record before, or puts it after; and makes the append before the write of the call, or after."""
    for moment in ("record", "page"):
        network, once = Network(), iter([True])

        def meet(
            op: Op, network: Network = network, once: Iterator[bool] = once, moment: str = moment
        ) -> None:
            if isinstance(op, Put) and is_record(op) == (moment == "record") and next(once, False):
                network.others.append(
                    S, [Event(type="Taken", data=b"abc"[place : place + 1])], idempotency_key="abc"[place]
                )

        network.meddle = meet
        answers = network.append(*(to(S, each, idempotency_key=each) for each in "abc"))
        assert sorted(network.read()) == [b"a", b"b", b"c"]
        assert sorted(firsts(answers)) == [0, 1, 2]
        replayed = [isinstance(each, Appended) and each.replayed for each in answers]
        assert replayed == [number == place for number in range(3)]


def test_streams_are_written_side_by_side_and_one_that_is_throttled_keeps_no_other() -> None:
    network = Network()

    def throttle(op: Op) -> None:
        if isinstance(op, Put) and op.item["p"]["S"] == "Seat-0":
            raise RequestNotApplied("throttled")

    network.meddle = throttle
    network.streams = replace(
        network.streams, driver=replace(network.streams.driver, patience=Patience(retries=3))
    )
    answers = network.append(*(to(f"Seat-{number}", expected=NO_STREAM) for number in range(40)))
    assert isinstance(answers[0], Unavailable)
    assert not answers[0].maybe_applied
    assert firsts(answers[1:]) == [0] * 39


def test_so_many_requests_at_once_and_no_more() -> None:
    network, lock, under_way, most = Network(), threading.Lock(), 0, 0
    barrier = threading.Barrier(3)

    def count(_: Op) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        barrier.wait(120)
        with lock:
            under_way -= 1

    network.meddle = count
    network.append(*(to(f"Seat-{number}", expected=NO_STREAM) for number in range(9)), at_once=3)
    assert most == 3


def test_what_had_no_turn_before_the_time_was_over_was_not_tried() -> None:
    network, now = Network(), [0.0]
    driver = replace(network.streams.driver, clock=lambda: now[0])
    network.streams = replace(network.streams, driver=driver)

    def late(_: Op) -> None:
        now[0] += 3

    network.meddle = late
    appends = [to(f"Seat-{number}", expected=NO_STREAM) for number in range(4)]
    answers = network.append(*appends, at_once=1, seconds=5)
    assert firsts(answers) == [0, 0, NotTried, NotTried]
    assert len(network.ops) == 2


def test_what_is_wrong_with_one_is_its_own_answer_and_with_all_a_refusal() -> None:
    network = Network()
    answers = network.append(
        to(S, "1"),
        to("no dash!"),
        BulkAppend(stream=S, events=[]),
        BulkAppend(stream=S, events=[object()]),  # type: ignore[list-item]
        to(S, "2", expected=7),
        to(S, "3"),
    )
    assert firsts(answers) == [0, InvalidInput, InvalidInput, InvalidInput, InvalidInput, 1]
    with pytest.raises(TooLarge, match="appends"):
        network.append(*[to(S)] * (MAX_APPENDS + 1))
    with pytest.raises(InvalidInput, match="appends"):
        Bulk(network.streams).append([StreamAppend(stream=S)])  # type: ignore[list-item]
    assert Bulk(network.streams).append([]) == []


def test_what_is_too_much_together_is_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochal.pages.attempts.MAX_VERSION", 2)
    assert firsts(Network().append(to(S, "1"), to(S, "2"), to(S, "3"))) == [0, 1, InvalidInput]


def test_a_failure_is_told_each_that_it_happened_to_as_an_error_of_its_own() -> None:
    network = Network()

    def fail(op: Op) -> None:
        if isinstance(op, Put):
            raise MissingTable("streams")

    network.meddle = fail
    answers = network.append(to(S, "1"), to(S, "2"))
    assert firsts(answers) == [MissingTable, MissingTable]
    assert answers[0] is not answers[1]


def test_the_metadata_of_a_block_around_the_call_is_that_of_all_its_events() -> None:
    network = Network()
    with metadata(correlation_id="c-1"):
        network.append(to(S, "1"), to(S, "2"), to(OTHER, "3"))
    found = [*network.others.read(S), *network.others.read(OTHER)]
    assert [event.correlation_id for event in found] == ["c-1"] * 3


def test_tasks_append_many_at_once() -> None:
    network = Network()
    answers = asyncio.run(AsyncBulk(Bulk(network.streams)).append([to(S, "1"), to(OTHER, "2"), to(S, "3")]))
    assert firsts(answers) == [0, 0, 1]
    assert len(network.writes) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"at_once": "4"}, "at_once: must be a number, not str"),
        ({"at_once": True}, "at_once: must be a number, not bool"),
        ({"at_once": 0}, "at_once: must be at least 1, got 0"),
        ({"seconds": "4"}, "seconds: must be seconds, not str"),
        ({"seconds": float("nan")}, "seconds: must be seconds, not nan"),
    ],
)
def test_a_bulk_that_cannot_work_is_refused_when_it_is_made(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Bulk(memory_streams(), **wrong)
    assert str(refused.value) == words
