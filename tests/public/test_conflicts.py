"""What a user calls raises where nothing was written; its twin answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_type_hints

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban import memory_dcb_events, memory_projection_states
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.states import StoredState
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import ConflictError, EpochalError, OutcomeUndetermined, StreamDeleted
from epochal.errors import WrongExpectedVersion as Wrong
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tags import Query, QueryItem
from epochal.model.tokens import Token
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply, Update
from epochal.store.reading import Pruned
from epochal.store.streams import Streams
from epochal.testing.stores import memory_tables

S = "Cart-1"
E = Event(type="Added")
ALICE = aggregate_id("user", "alice")
CREATED = AggregateEvent(type="Created", data=b"{}")
TAKEN = Query(items=(QueryItem(tags=frozenset({"name:ann"})),))
TAKE = Event(type="Taken", data=b"{}", tags=("name:ann",))


def begun() -> Streams:
    streams = memory_tips()
    streams.append(S, [E])
    return streams


def aggregate() -> AggregateStore:
    store = memory_aggregates()
    store.append(ALICE, [CREATED], snapshot=b"{}", expected=NO_STREAM)
    return store


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (AtVersion(version=0), "version 0"),
        (AtVersion(version=7), "version 7"),
        (Token(version=1, etag="0" * 32), "version 1 with the etag of its token"),
        (NO_STREAM, "no_stream"),
    ],
)
@pytest.mark.parametrize(
    "write", [lambda s, e: s.append(S, [E], expected=e), lambda s, e: s.delete(S, expected=e)]
)
def test_a_stream_that_is_elsewhere_is_an_error_that_carries_the_outcome(
    write: Callable[..., object], expected: Any, said: str
) -> None:
    streams = begun()
    with pytest.raises(Wrong) as raised:
        write(streams, expected)
    assert str(raised.value) == f"{S}: expected {said}, but the stream is at version 1"
    assert (raised.value.stream, raised.value.expected, raised.value.actual) == (S, said, 1)
    state = streams.load(S)
    assert state is not None
    assert raised.value.outcome == Conflict(version=1, token=state.token)
    streams.append(S, [E], expected=raised.value.outcome.token)


@pytest.mark.parametrize("expected", [AtVersion(version=3), STREAM_EXISTS])
def test_a_stream_that_is_not_there_is_said_to_have_no_event(expected: Any) -> None:
    with pytest.raises(ConflictError, match="but there is no event"):
        memory_tips().append(S, [E], expected=expected)
    with pytest.raises(
        ConflictError, match="expected any version of an existing stream, but there is no event"
    ):
        memory_tips().delete(S)


@pytest.mark.parametrize("expected", [ANY, NO_STREAM, AtVersion(version=1), AtVersion(version=9)])
def test_a_deleted_stream_is_a_conflict_of_its_own_kind_whatever_is_expected(expected: Any) -> None:
    streams = begun()
    streams.delete(S)
    with pytest.raises(StreamDeleted, match="deleted at version 1") as raised:
        streams.append(S, [E], expected=expected)
    assert isinstance(raised.value, ConflictError)
    assert raised.value.outcome.deleted
    assert streams.try_append(S, [E], expected=expected) == raised.value.outcome


def test_an_outcome_that_nothing_can_tell_is_raised_and_is_no_conflict() -> None:
    tables = memory_tables()
    others = memory_tips(tables)
    lost = iter([True])

    def losing(op: Op) -> Reply:
        reply = tables.execute(op)
        if isinstance(op, Put | Update) and next(lost, False):
            others.append(S, [E])
            others.prune(S, 2)
            raise Lost("the test's fault")
        return reply

    streams = memory_tips(tables)
    with pytest.raises(OutcomeUndetermined) as raised:
        replace(streams, driver=replace(streams.driver, execute=losing)).append(S, [E])
    assert not isinstance(raised.value, ConflictError)
    assert (raised.value.stream, raised.value.version) == (S, 0)


@pytest.mark.parametrize(
    "write",
    [
        lambda store, lock: store.append(ALICE, [CREATED], expected=lock),
        lambda store, lock: store.persist_event(ALICE, CREATED, lock),
        lambda store, lock: store.persist_event_and_snapshot(ALICE, CREATED, b"{}", lock),
    ],
)
def test_an_aggregate_that_is_elsewhere_is_an_error_that_carries_the_outcome(
    write: Callable[[AggregateStore, Lock], object],
) -> None:
    store, stale = aggregate(), Lock(version=7, seq_nr=7)
    with pytest.raises(Wrong, match="user-alice: expected version 7 with last event 7") as raised:
        write(store, stale)
    assert raised.value.outcome == AggregateConflict(version=1)
    assert store.try_append(ALICE, [CREATED], expected=stale) == raised.value.outcome
    assert len(store.events_after(ALICE)) == 1


def test_a_condition_that_fails_is_an_error_that_names_events_and_carries_all() -> None:
    store = memory_dcb_events()
    for _ in range(5):
        store.append([TAKE])
    named = r"stored events match the condition: (Taken [-0-9a-f]{36}, ){2}Taken [-0-9a-f]{36} and others"
    with pytest.raises(ConflictError, match=named) as raised:
        store.append([TAKE], fail_if=TAKEN)
    assert isinstance(raised.value.outcome, Conflict)
    assert len(raised.value.outcome.events) == 5
    assert store.try_append([TAKE], fail_if=TAKEN) == raised.value.outcome
    store.append([TAKE], fail_if=TAKEN, after=raised.value.outcome.position)
    assert "position" not in str(raised.value), "none was given"


def test_a_state_that_is_behind_is_an_error_that_carries_the_one_ahead() -> None:
    states = memory_projection_states()

    def save(processed: int) -> None:
        states.save("Totals", "v1", [b"{}"], events_processed=processed, last_sortable_id="0" * 30)

    save(5)
    with pytest.raises(
        ConflictError, match="Totals v1: not stored: the stored state has processed 5 events"
    ) as raised:
        save(4)
    assert isinstance(raised.value.outcome, StoredState)
    assert raised.value.outcome.events_processed == 5


@pytest.mark.parametrize(
    ("call", "answers"),
    [
        (Streams.append, Appended),
        (Streams.delete, Pruned),
        (AggregateStore.append, AggregateAppended),
        (AggregateStore.persist_event, AggregateAppended),
        (AggregateStore.persist_event_and_snapshot, AggregateAppended),
        (DcbEvents.append, Appended),
        (ProjectionStates.save, type(None)),
    ],
)
def test_what_a_call_answers_by_its_type_is_success_alone(call: Callable[..., object], answers: type) -> None:
    assert get_type_hints(call, localns={"Query": Query})["return"] is answers


def test_one_except_catches_every_conflict() -> None:
    assert issubclass(ConflictError, EpochalError)
    assert not issubclass(OutcomeUndetermined, ConflictError)
