"""Spans of OpenTelemetry around what stores and reactions do, and its trace context in events (docs/guide/tracing.md).

    from epochal.contrib import otel

    otel.instrument()

    append     of events; each gets the `traceparent` of its append in its metadata, and reactions go on with that trace
    read       of a stream, an aggregate, or a query of tagged events
    decide     loads, decisions and appends of one command, until one stands
    react      one call of a handler, and one event of several in it that `delivery.each()` gives

Methods are wrapped where they are, as instruments of other libraries do: who does not call this loads nothing, and pays
for nothing. A span names categories and numbers. Names of streams, tags and texts of errors may identify people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import chain
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.loading import Loader
from epochal.deciders.loop import DecisionSource
from epochal.errors import EpochalError, InvalidInput, brought_by
from epochal.feed.events import FeedEvent
from epochal.lazy_dataclasses import dataclass
from epochal.model.capacity import NOTHING
from epochal.model.events import Event
from epochal.model.stream_names import category_of
from epochal.plugins import layouts
from epochal.reactions.calls import Calls
from epochal.reactions.definition import Delivery
from epochal.store.bulk import Bulk
from epochal.store.context import Context
from epochal.store.encoding import AMBIENT
from epochal.store.joined import JoinedAppends
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

with brought_by("otel", "spans", "opentelemetry"):
    from opentelemetry import trace
    from opentelemetry.context import Context as TraceContext
    from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

W3C: Final = TraceContextTextMapPropagator()

_CALLS: Final[tuple[tuple[str, type, tuple[str, ...]], ...]] = (
    ("append", Streams, ("try_append", "append_on", "try_append_all")),
    ("append", JoinedAppends, ("append",)),
    ("append", Bulk, ("append",)),
    ("append", TaggedStore, ("try_append",)),
    ("read", Streams, ("load", "page")),
    ("read", Loader, ("load",)),
    ("read", TaggedStore, ("read", "page", "page_back")),
    ("decide", DecisionSource, ("decide",)),
)
"""Names of spans, each with a class and the methods that are wrapped in them."""

_unwrapped: list[tuple[type, str, Any]] = []


def instrument(tracer_provider: TracerProvider | None = None) -> None:
    """Wrap stores and reactions so that their calls make OpenTelemetry spans from now on.

    The spans come from the provider given, or else from the one that is set globally. A second call changes nothing.

    Args:
        tracer_provider: source of the tracer; None for the one that is set globally.
    """
    if _unwrapped:
        return
    tracer = trace.get_tracer("epochal", tracer_provider=tracer_provider)
    for name, kind, methods in chain(_CALLS, *_spans_of_layouts()):
        for method in methods:
            _wrap(kind, method, _spanned(tracer, name, getattr(kind, method)))
    _wrap(Streams, "read", _iterated(tracer, Streams.read))
    _wrap(Calls, "__call__", _called(tracer, Calls.__call__))
    _wrap(Delivery, "each", _each(tracer, Delivery.each))


def _spans_of_layouts() -> Iterator[Iterable[tuple[str, type, tuple[str, ...]]]]:
    """Yield the calls of each layout that get a span."""
    for layout in layouts():
        if layout.plugin.spans is not None:
            yield layout.plugin.spans()


def uninstrument() -> None:
    """Put the original methods back, so that no more spans are made."""
    while _unwrapped:
        kind, method, function = _unwrapped.pop()
        setattr(kind, method, function)


def _wrap(kind: type, method: str, function: Any) -> None:
    """Replace a method of a class by a function, and keep the original for `uninstrument`."""
    _unwrapped.append((kind, method, getattr(kind, method)))
    setattr(kind, method, function)


def _spanned(tracer: Tracer, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method so that each call makes a span with its category, outcome and capacity."""
    kind = SpanKind.INTERNAL if name == "decide" else SpanKind.CLIENT

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _span(tracer, name, kind, _build_category_attributes(args)) as span, _stamping(name):
            outcome = function(*args, **kwargs)
            span.set_attributes(_build_result_attributes(name, outcome))
            return outcome

    return call


def _iterated(tracer: Tracer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method that yields events, so that a span covers the whole iteration.

    The span is the parent of no other, and ends with the iteration.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return taken(function(*args, **kwargs), _build_category_attributes(args))

    def taken(events: Iterator[Any], said: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the events within a span, which gets their number or the error at its end."""
        count, span = 0, tracer.start_span("read", kind=SpanKind.CLIENT, attributes=said)
        try:
            for count, event in enumerate(events, 1):  # noqa: B007  the number of events so far
                yield event
        except Exception as error:
            _failed(span, error)
            raise
        finally:
            span.set_attribute("epochal.events", count)
            span.end()

    return call


def _called(tracer: Tracer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the call of a reaction's handler in a span that continues the trace of its events.

    Where the events are of several traces, the span is linked to each of them instead.
    """

    @wraps(function)
    def call(self: Calls, delivery: Delivery) -> None:
        """Call the handler within a span with the reaction, partition, events and attempt."""
        attributes = {
            "epochal.reaction": delivery.group,
            "epochal.partition": delivery.partition,
            "epochal.events": len(delivery.events),
            "epochal.attempt": delivery.attempt,
        }
        with _continued(tracer, delivery.events, attributes):
            function(self, delivery)

    return call


def _each(tracer: Tracer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `Delivery.each` so that each of several events is handled in a span of its own trace."""

    @wraps(function)
    def each(self: Delivery) -> Iterator[FeedEvent]:
        """Yield the events of the delivery, each within its span; a single event gets none."""
        if len(self.events) == 1:
            yield from function(self)
            return
        for event in function(self):
            with _continued(tracer, [event], {"epochal.reaction": self.group, "epochal.events": 1}):
                yield event

    return each


@contextmanager
def _continued(tracer: Tracer, events: Sequence[FeedEvent], said: Mapping[str, Any]) -> Iterator[None]:
    """Make a span of a reaction, in the trace of its events or linked to their several traces."""
    around = trace.get_current_span().get_span_context()
    origins = {context.trace_id: context for context in map(_origin, events) if context.is_valid}
    parent, links = None, list(origins.values())
    if len(origins) == 1:
        parent = trace.set_span_in_context(trace.NonRecordingSpan(links[0]), TraceContext())
        links = [around] if around.is_valid else []
    with _span(tracer, "react", SpanKind.CONSUMER, said, parent=parent, links=map(Link, links)):
        yield


@contextmanager
def _span(
    tracer: Tracer,
    name: str,
    kind: SpanKind,
    said: Mapping[str, Any],
    *,
    parent: TraceContext | None = None,
    links: Iterable[Link] = (),
) -> Iterator[Span]:
    """Make a current span around a block, which is marked as failed if the block raises."""
    with tracer.start_as_current_span(
        name, parent, kind, said, tuple(links), record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            _failed(span, error)
            raise


def _failed(span: Span, error: Exception) -> None:
    """Mark a span as failed, with the type of the error and without its text."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(StatusCode.ERROR)


def _build_category_attributes(args: Sequence[Any]) -> dict[str, Any]:
    """Return the category of the stream or aggregate that a call is about, as span attributes.

    Empty where the arguments name neither.
    """
    for argument in (getattr(args[0], "about", None), *args[1:3]):
        # Known heads come as a mapping by the names of streams.
        about = next(iter(argument)) if isinstance(argument, Mapping) and len(argument) == 1 else argument
        if isinstance(about, str):
            return {"epochal.category": category_of(about)}
        if isinstance(kind := getattr(about, "type", None), str):  # an aggregate's id
            return {"epochal.category": kind}
    return {}


def _build_result_attributes(name: str, answer: Any) -> dict[str, Any]:
    """Return the capacity of a call's result, and an append's outcome, as span attributes."""
    _, outcome = answer if isinstance(answer, tuple) and len(answer) == 2 else (None, answer)  # noqa: PLR2004  a result, too
    attributes: dict[str, Any] = {"epochal.outcome": _outcome(outcome)} if name == "append" else {}
    capacity = getattr(outcome, "capacity", NOTHING)
    if capacity is not NOTHING:
        attributes |= {
            "epochal.read_units": float(capacity.read),
            "epochal.write_units": float(capacity.write),
            "epochal.requests": capacity.requests,
        }
    return attributes


def _outcome(outcome: Any) -> str:
    """Return the outcome of an append in a word: conflict, failed, undetermined or appended.

    Of an append to several streams, this is the outcome that kept all of it from being made; of many appends, the
    worst.
    """
    kinds = {type(answer).__name__ for answer in (outcome if isinstance(outcome, list) else [outcome])}
    if any("Conflict" in kind for kind in kinds):
        return "conflict"
    if isinstance(outcome, list) and any(isinstance(answer, EpochalError) for answer in outcome):
        return "failed"
    return "undetermined" if "Undetermined" in kinds else "appended"


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Function that adds a trace context to events whose metadata is an object or nothing.

    It runs after `outer`, which adds what the enclosing block adds.
    """

    outer: Callable[[Event], Event] | None
    context: Context

    def __call__(self, event: Event, /) -> Event:
        """Return the event with the trace context; without it where the metadata is no object."""
        event = event if self.outer is None else self.outer(event)
        try:
            return self.context(event)
        except InvalidInput:
            return event


@contextmanager
def _stamping(name: str) -> Iterator[None]:
    """Add the current span's trace context to events of this block, if `name` is `append`."""
    carrier: dict[str, str] = {}
    if name == "append":
        W3C.inject(carrier)
    outer = AMBIENT.get()
    if not carrier or isinstance(outer, _Stamp):
        yield
        return
    token = AMBIENT.set(_Stamp(outer, Context(members=carrier)))
    try:
        yield
    finally:
        AMBIENT.reset(token)


def _origin(event: FeedEvent) -> trace.SpanContext:
    """Return the span context in which an event was appended; an invalid one if there is none."""
    meta = event.meta
    if not isinstance(meta, bytes) or b'"traceparent"' not in meta:
        return trace.INVALID_SPAN_CONTEXT
    try:
        metadata = json.loads(meta)
    except ValueError:
        return trace.INVALID_SPAN_CONTEXT
    carrier = metadata if isinstance(metadata, dict) else {}
    headers = {
        name: carrier[name] for name in ("traceparent", "tracestate") if isinstance(carrier.get(name), str)
    }
    return trace.get_current_span(W3C.extract(headers, TraceContext())).get_span_context()
