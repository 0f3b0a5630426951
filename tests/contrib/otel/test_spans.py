"""Spans tell what stores and reactions do; a trace goes through events into the reactions to them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from epochal import (
    NO_STREAM,
    Decider,
    Deciders,
    Decisions,
    Delivery,
    Event,
    Query,
    QueryItem,
    StreamAppend,
    metadata,
    projection,
    reaction,
)
from epochal.aio.stores import AsyncStreams
from epochal.codec import json
from epochal.contrib.event_store_adapter import AggregateDeciders, AggregateEvent, aggregate_id
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.otel import tracing as otel
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import handle_all
from epochal.errors import StreamDeleted
from epochal.store.bulk import Bulk, BulkAppend
from epochal.testing.feeds import MemoryStore

CODEC = EventCodec[int](
    encode=lambda number: Event(type="Added", data=b"%d" % number), decode=lambda stored: int(stored.data)
)
DECIDER = Decider[int, int, int](
    initial=int, evolve=lambda total, added: total + added, decide=lambda added, _: [added]
)


class Traced:
    """A provider, and the spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def taken(self) -> list[ReadableSpan]:
        """Those that have ended since."""
        found = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return found


@pytest.fixture
def traced() -> Iterator[Traced]:
    found = Traced()
    otel.instrument(found.provider)
    yield found
    otel.uninstrument()


@pytest.fixture
def feed() -> MemoryStore:
    return MemoryStore()


def _id(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id  # type: ignore[union-attr]


def _parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def _meta(feed: MemoryStore, stream: str) -> Any:
    (*_, last) = feed.streams.read(stream)
    return json.loads(last.meta)  # type: ignore[arg-type]


def test_an_append_is_a_span_with_its_category_outcome_and_cost_and_without_the_streams_name(
    traced: Traced, feed: MemoryStore
) -> None:
    token = feed.streams.append("Cart-zuse", [Event(type="Opened")], expected=NO_STREAM).token
    traced.taken()
    feed.streams.append("Cart-zuse", [Event(type="Paid")], expected=token)
    feed.streams.try_append("Cart-zuse", [Event(type="Opened")], expected=NO_STREAM)
    made, refused = traced.taken()
    assert (made.name, made.kind) == ("append", SpanKind.CLIENT)
    assert made.attributes == {
        "epochal.category": "Cart",
        "epochal.outcome": "appended",
        "epochal.read_units": 0.0,
        "epochal.write_units": 1.0,
        "epochal.requests": 1,
    }
    assert refused.attributes is not None
    assert refused.attributes["epochal.outcome"] == "conflict"
    assert refused.status.status_code is StatusCode.UNSET
    assert "zuse" not in made.to_json() + refused.to_json()


def test_reads_are_spans_and_one_that_goes_on_ends_with_its_last_event(
    traced: Traced, feed: MemoryStore
) -> None:
    feed.streams.append("Cart-1", [Event(type="Opened"), Event(type="Paid")])
    feed.tagged.append([Event(type="Taken", tags=["course:1"])])
    feed.aggregates.append(
        aggregate_id("account", "1"), [AggregateEvent(type="O", data=b"{}")], snapshot=b"{}"
    )
    assert [span.name for span in traced.taken()] == ["append"] * 3
    events = feed.streams.read("Cart-1")
    next(events)
    assert traced.taken() == []
    list(events)
    (read,) = traced.taken()
    assert read.attributes == {"epochal.category": "Cart", "epochal.events": 2}
    feed.streams.load("Cart-1")
    feed.streams.page("Cart-1")
    feed.tagged.read(Query(items=(QueryItem(tags=frozenset({"course:1"})),)))
    feed.aggregates.replay(aggregate_id("account", "1"))
    spans = traced.taken()
    assert [span.name for span in spans] == ["read"] * 4
    assert [dict(span.attributes or {}).get("epochal.category") for span in spans] == [
        "Cart",
        "Cart",
        None,
        "account",
    ]


def test_a_decision_is_a_span_around_its_load_and_its_appends(traced: Traced, feed: MemoryStore) -> None:
    deciders = Deciders(streams=feed.streams, decider=DECIDER, codec=CODEC)
    deciders.handle("Sum-1", 3)
    load, append, decide = traced.taken()
    assert [each.name for each in (load, append, decide)] == ["read", "append", "decide"]
    assert {_parent(load), _parent(append)} == {_id(decide)}
    assert (decide.kind, decide.attributes["epochal.category"]) == (SpanKind.INTERNAL, "Sum")  # type: ignore[index]
    assert append.attributes == {"epochal.category": "Sum", "epochal.outcome": "appended"}

    handle_all((deciders.on("Sum-1"), deciders.on("Sum-2")), lambda one, two: ([one], [two + 1]))
    state = StateCodec[int](encode=lambda total: b"%d" % total, decode=int)
    aggregates = AggregateDeciders(store=feed.aggregates, decider=DECIDER, codec=CODEC, state=state)
    aggregates.handle(aggregate_id("account", "1"), 1)
    taken = projection(tags=["course:1"], on={"Taken": lambda count, _: count + 1}, initial=0)
    event = Event(type="Taken", tags=["course:1"])
    Decisions(store=feed.tagged).handle({"taken": taken}, lambda _: [event])
    assert [span.name for span in traced.taken()] == [
        *("read", "read", "append", "decide"),
        *("read", "append", "decide"),
        *("read", "append", "decide"),
    ]


def test_a_call_that_fails_says_of_what_kind_its_error_is_and_not_its_words(
    traced: Traced, feed: MemoryStore
) -> None:
    deciders = Deciders(streams=feed.streams, decider=DECIDER, codec=CODEC)

    def refused(_: int) -> list[int]:
        raise LookupError("zuse")

    with pytest.raises(LookupError):
        deciders.handle("Sum-1", decide=refused)
    decide = traced.taken()[-1]
    assert decide.attributes["error.type"] == "LookupError"  # type: ignore[index]
    assert (decide.status.status_code, decide.events) == (StatusCode.ERROR, ())
    assert "zuse" not in decide.to_json()


def test_a_trace_goes_on_through_an_event_into_its_reaction_and_what_that_appends(
    traced: Traced, feed: MemoryStore
) -> None:
    @reaction(name="receipts", types=["Paid"])
    def receipts(delivery: Delivery) -> None:
        feed.streams.append("Receipt-1", [Event(type="Printed")])

    with traced.tracer.start_as_current_span("checkout") as checkout:
        feed.streams.append("Cart-1", [Event(type="Paid")])
    feed.react(receipts)
    paid, _, printed, react = traced.taken()
    assert [each.name for each in (paid, printed, react)] == ["append", "append", "react"]
    assert _parent(react) == _id(paid)
    assert _parent(printed) == _id(react)
    assert _id(paid)[0] == checkout.get_span_context().trace_id
    assert react.kind is SpanKind.CONSUMER
    assert react.attributes == {
        "epochal.reaction": "receipts",
        "epochal.partition": 30_000,
        "epochal.events": 1,
        "epochal.attempt": 1,
    }
    assert _meta(feed, "Receipt-1")["traceparent"].split("-")[1] == f"{_id(paid)[0]:032x}"


def test_a_delivery_of_several_traces_is_linked_to_each_and_goes_on_with_each_in_its_turn(
    traced: Traced, feed: MemoryStore
) -> None:
    @reaction(name="receipts", types=["Paid"])
    def receipts(delivery: Delivery) -> None:
        for event in delivery.each():
            feed.streams.append(f"Receipt-{event.index}", [Event(type="Printed")])

    for _ in range(2):
        feed.streams.append("Cart-1", [Event(type="Paid")])
    first, second = traced.taken()
    feed.react(receipts)
    *_, react = spans = traced.taken()
    assert _parent(react) is None
    assert [(link.context.trace_id, link.context.span_id) for link in react.links] == [
        _id(first),
        _id(second),
    ]
    inner = [span for span in spans if span.name == "react"][:2]
    assert [_parent(span) for span in inner] == [_id(first), _id(second)]
    assert [(link.context.trace_id, link.context.span_id) for link in inner[0].links] == [_id(react)]
    assert [_parent(span) for span in spans if span.name == "append"] == [_id(span) for span in inner]


def test_a_handler_that_raises_is_a_span_that_failed_at_each_attempt(
    traced: Traced, feed: MemoryStore
) -> None:
    @reaction(name="receipts", attempts=2)
    async def receipts(_: Delivery) -> None:
        await asyncio.sleep(0)
        raise LookupError("zuse")

    feed.streams.append("Cart-1", [Event(type="Paid")])
    feed.react(receipts)
    spans = [span for span in traced.taken() if span.name == "react"]
    assert [dict(span.attributes or {})["epochal.attempt"] for span in spans] == [1, 2]
    assert {dict(span.attributes or {})["error.type"] for span in spans} == {"LookupError"}


def test_a_task_and_a_handler_that_is_awaited_have_their_own_spans_as_parents(
    traced: Traced, feed: MemoryStore
) -> None:
    streams = AsyncStreams(feed.streams)

    @reaction(name="receipts", types=["Paid"])
    async def receipts(delivery: Delivery) -> None:
        await streams.append(f"Receipt-{delivery.stream}", [Event(type="Printed")])

    async def pay(number: int) -> tuple[int, int]:
        with traced.tracer.start_as_current_span("checkout") as span:
            await asyncio.sleep(0)
            await streams.append(f"Cart-{number}", [Event(type="Paid")])
            return span.get_span_context().trace_id, span.get_span_context().span_id

    async def live() -> list[tuple[int, int]]:
        return await asyncio.gather(*map(pay, range(3)))

    paid = asyncio.run(live())
    assert sorted(_parent(span) or (0, 0) for span in traced.taken() if span.name == "append") == sorted(paid)
    feed.react(receipts)
    assert {_id(span)[0] for span in traced.taken() if span.name in ("react", "append")} == {
        each for each, _ in paid
    }


def test_every_event_of_an_append_has_the_context_behind_what_its_block_and_itself_say(
    traced: Traced, feed: MemoryStore
) -> None:
    with metadata(user="ada"):
        feed.streams.append_all(
            [StreamAppend(stream=name, events=[Event(type="Moved")]) for name in ("Door-1", "Door-2")]
        )
        feed.tagged.append([Event(type="Taken", tags=["course:1"])])
    assert set(_meta(feed, "Door-1")) == set(_meta(feed, "Door-2")) == {"user", "traceparent"}
    (taken,) = feed.tagged.read(Query(items=(QueryItem(tags=frozenset({"course:1"})),))).events
    assert set(json.loads(taken.meta)) == {"user", "traceparent"}
    feed.streams.append("Door-3", [Event(type="Moved", meta=b'{"traceparent":"own"}')])
    assert _meta(feed, "Door-3") == {"traceparent": "own"}
    feed.streams.append("Door-4", [Event(type="Moved", meta=b"\x00")])
    assert next(iter(feed.streams.read("Door-4"))).meta == b"\x00"


@pytest.mark.parametrize(
    "meta", [b'{"traceparent":7}', b'{"traceparent"', b'["traceparent"]', b'"traceparent"']
)
def test_an_event_that_tells_no_trace_begins_one(traced: Traced, feed: MemoryStore, meta: bytes) -> None:
    @reaction(name="receipts")
    def receipts(_: Delivery) -> None:
        """Nothing to do."""

    feed.streams.append("Cart-1", [Event(type="Paid", meta=meta)])
    feed.react(receipts)
    *_, react = traced.taken()
    assert (react.name, _parent(react), react.links) == ("react", None, ())


def test_an_append_that_is_repeated_in_another_trace_is_made_once(traced: Traced, feed: MemoryStore) -> None:
    once = Event(type="Taken", tags=["course:1"], id="00000000-0000-4000-8000-000000000001")
    for _ in range(2):
        with traced.tracer.start_as_current_span("request"):
            feed.streams.append("Cart-1", [Event(type="Paid")], idempotency_key="k")
            feed.tagged.append([once])
    assert len(list(feed.streams.read("Cart-1"))) == 1
    assert len(feed.tagged.read(Query(items=(QueryItem(tags=frozenset({"course:1"})),))).events) == 1


def test_a_read_that_fails_is_a_span_that_failed(traced: Traced, feed: MemoryStore) -> None:
    feed.streams.append("Cart-1", [Event(type="Paid")])
    feed.streams.delete("Cart-1")
    traced.taken()
    with pytest.raises(StreamDeleted):
        feed.streams.append("Cart-1", [Event(type="Paid")])
    (refused,) = traced.taken()
    assert refused.attributes["epochal.outcome"] == "conflict"  # type: ignore[index]


def test_without_a_provider_nothing_is_added_and_what_was_wrapped_is_as_it_was_before(
    feed: MemoryStore,
) -> None:
    before = feed.streams.try_append.__func__  # type: ignore[attr-defined]
    otel.instrument()
    otel.instrument(trace.NoOpTracerProvider())
    feed.streams.append("Cart-1", [Event(type="Paid")])
    assert next(iter(feed.streams.read("Cart-1"))).meta == b""
    otel.uninstrument()
    assert feed.streams.try_append.__func__ is before  # type: ignore[attr-defined]


def test_many_appends_are_in_one_span_that_tells_the_worst_and_their_events_carry_the_trace(
    feed: MemoryStore, traced: Traced
) -> None:
    one = BulkAppend(stream="Cart-1", events=[Event(type="Opened")], expected=NO_STREAM)
    other = BulkAppend(stream="Cart-2", events=[Event(type="Opened")])
    Bulk(feed.streams).append([one, one, other])
    *below, span = traced.taken()
    assert (span.name, span.attributes["epochal.outcome"]) == ("append", "conflict")  # type: ignore[index]
    assert {each.parent.span_id for each in below if each.parent} == {span.context.span_id}  # type: ignore[union-attr]
    Bulk(feed.streams).append([BulkAppend(stream="no dash!", events=[Event(type="E")])])
    assert traced.taken()[-1].attributes["epochal.outcome"] == "failed"  # type: ignore[index]
    metas = [json.loads(event.meta) for name in ("Cart-1", "Cart-2") for event in feed.streams.read(name)]  # type: ignore[arg-type]
    assert len(metas) == 2
    assert all(f"{span.context.trace_id:032x}" in each["traceparent"] for each in metas)  # type: ignore[union-attr]
