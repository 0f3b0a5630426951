"""G14 at a prompt: whoever hands over something of another kind hears of the field and the rule; nothing is written.

Of some of these a store would otherwise make an answer: an expectation that is none is equal to no stream, so that
every append is a conflict; one tag by itself is a tag for each of its letters.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from epochal import AtVersion, Event, Query, QueryItem, Unfold, lambda_handler, reaction
from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, memory_aggregates
from epochal.contrib.event_store_adapter.ids import AggregateTypes
from epochal.contrib.sekiban import memory_dcb_events
from epochal.errors import InvalidInput
from epochal.layout.tables import store_tables
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

E = Event(type="E")
T = Event(type="T", data=b"{}", tags=("course:1",))
A = AggregateEvent(type="A", data=b"{}")
ORDER = aggregate_id("order", "1")
OF_COURSE = Query(items=(QueryItem(tags=frozenset({"course:1"})),))

Call = Callable[[Any], object]
"""With a store of a layout, as somebody without a type checker would."""

VALUES: dict[str, tuple[Call, str]] = {
    "a text for a body": (lambda _: Event(type="E", data="{}"), "data: must be bytes, not str"),
    "a dict for a body": (lambda _: Event(type="E", data={"a": 1}), "data: must be bytes, not dict"),
    "a dict for metadata": (lambda _: Event(type="E", meta={}), "meta: must be bytes, not dict"),
    "a dict for an unfold": (lambda _: Unfold(type="U", data={}), "data: must be bytes, not dict"),
    "no type": (lambda _: Event(type=None), "type: must be text, not NoneType"),
    "a number for an id": (lambda _: Event(type="E", causation_id=7), "causation_id: must be text, not int"),
    "a datetime without a time zone": (
        lambda _: Event(type="E", timestamp=datetime(2026, 1, 31)),  # noqa: DTZ001  that is the mistake
        "timestamp: must have a time zone",
    ),
    "a number for a time": (
        lambda _: Event(type="E", timestamp=17),
        "timestamp: must be ISO 8601 text or a datetime, not int",
    ),
    "a text for a version": (lambda _: AtVersion(version="1"), "version: must be a number, not str"),
    "one tag": (
        lambda _: Event(type="T", data=b"{}", tags="course:1"),
        "tags: must be a list of str, not str",
    ),
    "one tag to ask for": (
        lambda _: QueryItem(tags="course:1"),
        "tags: must be a list of names, not one",
    ),
    "a list of types to ask for": (
        lambda _: QueryItem(types=[5]),
        "types: must be a list of names, not int",
    ),
    "one item": (lambda _: Query(items=QueryItem()), "items: must be a list of QueryItem, not QueryItem"),
    "a text for an aggregate's body": (
        lambda _: AggregateEvent(type="A", data="{}"),
        "data: must be bytes, not str",
    ),
    "a number for an aggregate": (lambda _: aggregate_id("order", 1), "value: must be text, not int"),
    "one type of aggregates": (
        lambda _: AggregateTypes("order"),
        "types: must be a list of names, not a string",
    ),
    "one category": (
        lambda _: reaction(name="r", categories="Flight")(print),
        "must be a list of names, not one",
    ),
    "one layout": (
        lambda _: reaction(name="r", sources="pages")(print),
        "sources: must be a list of names, not one",
    ),
    "a way to fail that is none": (
        lambda _: reaction(name="r", on_failure="stop")(print),
        "on_failure: must be park or block",
    ),
}

EXPECTED = "expected: must be ANY, NO_STREAM, STREAM_EXISTS, AtVersion(version=…) or a "

STREAMS: dict[str, tuple[Call, str]] = {
    "no stream": (lambda store: store.append(None, [E]), "stream: must be text, not NoneType"),
    "one event": (lambda store: store.append("A-1", E), "events: must be a list of Event, not Event"),
    "dicts": (lambda store: store.append("A-1", [E, {"type": "E"}]), "events[1]: must be Event, not dict"),
    "a generator": (
        lambda store: store.append("A-1", (each for each in [E])),
        "events: must be a list of Event, not generator",
    ),
    "one unfold": (
        lambda store: store.append("A-1", [E], unfolds=Unfold(type="U")),
        "unfolds: must be a list of Unfold, not Unfold",
    ),
    "a bare number expected": (
        lambda store: store.append("A-1", [E], expected=0),
        EXPECTED + "token, not int",
    ),
    "a word expected": (lambda store: store.append("A-1", [E], expected="any"), EXPECTED + "token, not str"),
    "nothing expected": (lambda store: store.delete("A-1", expected=None), EXPECTED + "token, not NoneType"),
    "a number for a key": (
        lambda store: store.append("A-1", [E], idempotency_key=7),
        "idempotency_key: must be text, not int",
    ),
    "another direction": (
        lambda store: store.read("A-1", direction="back"),
        "direction: must be forward or backward",
    ),
    "a text to begin at": (lambda store: store.page("A-1", start="1"), "start: must be a number, not str"),
    "a text to prune below": (lambda store: store.prune("A-1", "1"), "before: must be a number"),
}

TAGGED: dict[str, tuple[Call, str]] = {
    "one event": (lambda store: store.append(T), "events: must be a list of Event, not Event"),
    "a text for a query": (lambda store: store.read("course:1"), "query: must be a Query, not str"),
    "a text for a condition": (
        lambda store: store.append([T], fail_if="course:1"),
        "fail_if: must be a Query, not str",
    ),
    "a text for a position": (
        lambda store: store.append([T], fail_if=OF_COURSE, after="abc"),
        "after: must be a position that a read returned, not str",
    ),
}

AGGREGATES: dict[str, tuple[Call, str]] = {
    "one event": (
        lambda store: store.append(ORDER, A, snapshot=b"{}"),
        "events: must be a list of AggregateEvent, not AggregateEvent",
    ),
    "a dict for a snapshot": (
        lambda store: store.append(ORDER, [A], snapshot={}),
        "snapshot: must be bytes, not dict",
    ),
    "a bare number expected": (
        lambda store: store.append(ORDER, [A], snapshot=b"{}", expected=0),
        EXPECTED + "Lock, not int",
    ),
    "a text for an id": (
        lambda store: store.append("order-1", [A], snapshot=b"{}"),
        "aggregate: must be an AggregateId, as aggregate_id(type, value) returns, not str",
    ),
    "a text to replay": (lambda store: store.replay("order-1"), "aggregate: must be an AggregateId"),
    "a text to read": (lambda store: store.events_after("order-1"), "aggregate: must be an AggregateId"),
    "a text to look at": (
        lambda store: store.latest_snapshot("order-1"),
        "aggregate: must be an AggregateId",
    ),
    "a text to lock": (lambda store: store.lock("order-1"), "aggregate: must be an AggregateId"),
}

LAYOUTS: dict[str, tuple[Callable[[MemoryTables], object], dict[str, tuple[Call, str]]]] = {
    "values": (memory_tips, VALUES),
    "streams": (memory_tips, STREAMS),
    "tagged events": (memory_dcb_events, TAGGED),
    "aggregates": (memory_aggregates, AGGREGATES),
}


@pytest.mark.parametrize(
    ("layout", "case"), [(layout, case) for layout, (_, cases) in LAYOUTS.items() for case in cases]
)
def test_what_is_of_another_kind_is_refused_by_its_field_and_writes_nothing(layout: str, case: str) -> None:
    opened, cases = LAYOUTS[layout]
    call, said = cases[case]
    tables = memory_tables()
    with pytest.raises(InvalidInput) as refused:
        call(opened(tables))
    assert said in str(refused.value)
    assert not any(list(tables.items(spec.kind)) for spec in store_tables())


@pytest.mark.parametrize("call", [MemoryStore().react, MemoryStore().parking, lambda_handler])
def test_a_function_that_is_no_reaction_yet_is_told_how_it_becomes_one(call: Call) -> None:
    with pytest.raises(InvalidInput, match=r"reaction: must be a function decorated with @reaction"):
        call(print)
