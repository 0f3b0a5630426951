"""G2: two calls under one key at one moment, request by request: one has made the append, and the other is told so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.layout.key_records import PREFIX
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended, Outcome
from epochal.model.stream_append import StreamAppend
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Done, Execute, Op, Put, Reply, Transact, Update
from epochal.store.also import put
from epochal.store.bulk import Bulk, BulkAppend
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, MemoryTables
from epochal.testing.stores import memory_streams, memory_tables
from tests.simulation.scheduler import Process, every_order, mortal, run
from tests.simulation.world import EQUAL, NOON, SECOND, bytes_of, driver_on, key_of

STREAM, OTHER = "Cart-1", "Cart-2"
TAGGED = replace(EQUAL, tags=("cart:1",))
NOTHING_OF = Query(items=(QueryItem(tags=frozenset({"cart:9"})),))
UNFOLDS = [Unfold(type="Cart", data=b"{}")]

Call = Callable[[Streams, str, ExpectedVersion], Outcome]


def _append(events: list[Event], **more: object) -> Call:
    return lambda store, key, expected: store.try_append(
        STREAM,
        events,
        expected=expected,
        idempotency_key=key,
        **more,  # type: ignore[arg-type]
    )


def _several(store: Streams, key: str, expected: ExpectedVersion) -> Outcome:
    appends = [StreamAppend(stream=each, events=[EQUAL], expected=expected) for each in (STREAM, OTHER)]
    return store.try_append_all(appends, idempotency_key=key)


CALLS: dict[str, Call] = {
    "events": _append([EQUAL]),
    "on a condition": _append([EQUAL], fail_if=NOTHING_OF),
    "with tags": _append([TAGGED]),
    "unfolds alone": _append([], unfolds=UNFOLDS),
    "with an item": _append([EQUAL], also=[put("mine", {"k": "1"})]),
    "unfolds with an item": _append([], unfolds=UNFOLDS, also=[put("mine", {"k": "1"})]),
    "to two streams": _several,
}


def _store(tables: MemoryTables, name: str, execute: Execute | None = None, now: int = NOON) -> Streams:
    driver = driver_on(execute or tables.execute)
    return replace(memory_streams(tables), driver=driver, fresh=bytes_of(name), now=lambda: now)


def _started(events: int, ahead: int) -> MemoryTables:
    tables = memory_tables(mine="k")
    for stream in (STREAM, OTHER) if events else ():
        _store(tables, "before", now=NOON + ahead).append(stream, [Event(type="Opened")])
    return tables


def _replayed(outcome: Outcome) -> bool:
    assert isinstance(outcome, Appended), outcome
    return outcome.replayed


@pytest.mark.parametrize("key", ["k", key_of("k", NOON)])
@pytest.mark.parametrize(
    ("events", "ahead", "expected"), [(0, 0, NO_STREAM), (0, 0, ANY), (1, SECOND, ANY)], ids=repr
)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_of_two_calls_under_one_key_at_one_moment_one_is_told_that_it_made_the_append(
    call: Call, events: int, ahead: int, expected: ExpectedVersion, key: str
) -> None:
    def race(choose: Callable[[list[str]], str]) -> None:
        tables, told = _started(events, ahead), dict[str, Outcome]()

        def body(name: str) -> Callable[[Execute], None]:
            return lambda execute: told.update({name: call(_store(tables, name, execute), key, expected)})

        run({name: Process(name, tables.execute, body(name)) for name in ("one", "two")}, choose)
        assert sorted(map(_replayed, told.values())) == [False, True]

    assert sum(1 for _ in every_order(race)) > 1


@pytest.mark.parametrize("events", [0, 1])
def test_a_call_of_many_is_told_that_another_made_the_append_in_the_moment_of_its_own_write(
    events: int,
) -> None:
    tables, others = _started(events, SECOND), list[Outcome]()

    def execute(op: Op) -> Reply:
        if isinstance(op, Put | Update) and PREFIX not in repr(op) and not others:
            others.append(_append([EQUAL])(_store(tables, "other"), "k", ANY))
        return tables.execute(op)

    bulk = Bulk(streams=_store(tables, "ours", execute), at_once=1)
    keyed = BulkAppend(stream=STREAM, events=[EQUAL], idempotency_key="k")
    told, _ = bulk.append([keyed, BulkAppend(stream=STREAM, unfolds=UNFOLDS)])
    assert isinstance(told, Appended)
    assert [_replayed(each) for each in (told, *others)] == [True, False]
    assert len(list(_store(tables, "reader").read(STREAM))) == events + 1


CONDITIONS: dict[str, tuple[Call, Call]] = {
    "events": (CALLS["events"], CALLS["on a condition"]),
    "with tags": (CALLS["with tags"], _append([TAGGED], fail_if=NOTHING_OF)),
}


@pytest.mark.slow
@pytest.mark.parametrize("key", ["k", key_of("k", NOON)])
@pytest.mark.parametrize(("events", "expected"), [(0, NO_STREAM), (0, ANY), (1, ANY)], ids=repr)
@pytest.mark.parametrize("calls", CONDITIONS.values(), ids=CONDITIONS)
def test_of_a_call_and_one_on_a_condition_under_one_key_one_makes_the_append_and_none_is_refused(
    calls: tuple[Call, Call], events: int, expected: ExpectedVersion, key: str
) -> None:
    """One of them may also die, wherever it is: the other has made the append then, or makes it."""
    deaths: list[dict[str, int | None]] = [{}, *({name: at} for name in ("0", "1") for at in (1, 2))]
    for dies in deaths:

        def race(choose: Callable[[list[str]], str], dies: dict[str, int | None] = dies) -> None:
            tables, told = _started(events, SECOND), dict[str, Outcome]()

            def body(place: int, name: str) -> Callable[[Execute], None]:
                def act(execute: Execute) -> None:
                    store = _store(tables, name, mortal(execute, dies.get(name)))
                    told[name] = calls[place](store, key, expected)

                return act

            names = dict(enumerate(("0", "1")))
            run({name: Process(name, tables.execute, body(at, name)) for at, name in names.items()}, choose)
            assert [_replayed(each) for each in told.values()].count(False) <= 1
            assert len(told) == 1 or not all(map(_replayed, told.values()))
            for call in calls:
                assert _replayed(call(_store(tables, "later"), key, expected))
            assert len(list(_store(tables, "reader").read(STREAM))) == events + 1

        assert sum(1 for _ in every_order(race)) >= 1


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_who_made_an_append_and_lost_the_answer_is_told_that_it_made_it(call: Call) -> None:
    sent: list[bool] = []

    def noting(tables: MemoryTables) -> Execute:
        def execute(op: Op) -> Reply:
            reply = tables.execute(op)
            sent.append(isinstance(reply, Done) and (isinstance(op, Transact) or "$" not in repr(op)))
            return reply

        return execute

    tables = _started(1, 0)
    call(_store(tables, "ours", noting(tables)), "k", ANY)
    assert any(sent)
    for at in (at for at, made in enumerate(sent) if made):
        tables = _started(1, 0)
        outcome = call(
            _store(tables, "ours", Faults(tables.execute, {at: Fault.UNANSWERED}).execute), "k", ANY
        )
        assert not _replayed(outcome)
