"""Reactions: functions called with every event of the categories they name, in order within a stream, at least once.

    @reaction(name="departures-board", categories=["Flight"])
    def board(delivery: Delivery) -> None:
        for event in delivery.each():
            ...

A handler is a function or an `async def`. When it returns, it has handled all of its delivery. One that raises is
called again with the same events one by one, and after `attempts` tries its stream is parked: the others go on.
Deliveries of different streams come at the same time, those of one stream never do.

A second function, `removed`, is called when events of a stream were removed. Its delivery has no events, but a
`removal`. It comes at the place in the feed where they were removed, and is repeated and parked like other deliveries.

A third function, `skipped`, is called when the reaction takes none of a stream's latest events. Its delivery has no
events, only the index after the skipped ones. So a read model knows of events that change nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent, name_of
from epochal.index.checkpoints import Checkpoint, FeedStart, read_start
from epochal.index.group_state import MAX_MEMBERS, Sharing
from epochal.layout.changes import Removal, Span
from epochal.layout.registry import layout_names
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import content_of
from epochal.model.kinds import must_be, must_be_names, must_be_whole
from epochal.model.moments import Moment
from epochal.model.plain_functions import is_async, must_be_done, must_be_plain, must_take_one
from epochal.model.stream_names import TAG_STREAMS, TIMERS
from epochal.store.context import metadata

if TYPE_CHECKING:
    from epochal.model.tags import Query, QueryItem

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", re.ASCII)

Start = Moment | datetime | str | Mapping[int, FeedStart]
"""Where a new group begins: at the first event ever (`beginning`), after the last one (`tail`), or at a moment, which
is a datetime or ISO 8601 text, with a time zone; or at a given checkpoint in each named partition, and at the beginning
of the others.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Narrows a reaction to some events: those that meet all conditions that the selector's attributes set.

    The index knows streams and tags, so other streams are not read. The conversation and the metadata are checked in
    every remaining event.

    Little is known about an event that is gone or cannot be read. It is selected unless its known fields exclude it: it
    is delivered with `gone`, or its stream is parked, and it is never skipped silently.

    Attributes:
        streams: names of streams, ids of aggregates, or tags; None for all.
        prefix: text with which names of streams must begin.
        query: query by tags and types that events must match. An event is delivered once: through the first tag of the
            first item that matches it, or through its first stream if that item has no tags. A reaction's `once`
            changes nothing about that.
        correlation_id: correlation id that events must have; or, as `Order-1@0`, the event that began a conversation,
            which is selected with all that followed from it. Empty for any.
        metadata: members, with their values, that the metadata of an event must have; empty for none.
    """

    streams: Collection[str] | None = None
    prefix: str = ""
    query: Query | None = None
    correlation_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless every condition has the right type."""
        if self.streams is not None:
            must_be_names(self.streams, "streams")
        must_be(str, self.prefix, "prefix", "text")
        # Check by attribute, so that a function whose reaction has no query need not import the module of queries.
        if self.query is not None and not isinstance(getattr(self.query, "items", None), Sequence):
            raise InvalidInput("query", f"must be a Query, not {type(self.query).__name__}")
        must_be(str, self.correlation_id, "correlation_id", "text")
        must_be(Mapping, self.metadata, "metadata", "a mapping")
        must_be_names(self.metadata, "metadata")

    def takes(self, span: Span) -> bool:
        """Return whether a span (events of one stream) may have a selected event, by its stream and types.

        A span without events is judged by its stream alone.

        Args:
            span: consecutive events of one stream, with their types.
        """
        name = span.stream.removeprefix(TAG_STREAMS)
        if not name.startswith(self.prefix) or (self.streams is not None and name not in self.streams):
            return False
        return self.query is None or any(
            _led_by(item, name)
            and (not item.types or not span.types or not item.types.isdisjoint(span.types))
            for item in self.query.items
        )

    def takes_event(self, event: FeedEvent) -> bool:
        """Return whether an event of a span that `takes` accepted is selected; True if too little is known.

        Args:
            event: event with as much as is known of it.
        """
        if self.query is not None and not self._asks_for(self.query, event):
            return False
        if _is_hidden(event):
            return True
        if self.correlation_id not in ("", event.correlation_id, name_of(event)):
            return False
        return not self.metadata or event.fault is not None or self._has_metadata(event)

    def _asks_for(self, query: Query, event: FeedEvent) -> bool:
        """Return whether an event matches the query and comes through the stream that delivers it."""
        if _is_hidden(event):
            name = event.stream.removeprefix(TAG_STREAMS)
            return any(_led_by(item, name) and _of_type(event, item.types or None) for item in query.items)
        item = next((item for item in query.items if item.matches(event.type, event.tags)), None)
        if item is None or not item.tags:
            return item is not None and event.first
        # A stream may be named like a tag: what comes through its home comes through the tag as well.
        return event.stream != event.home and _led_by(item, event.stream.removeprefix(TAG_STREAMS))

    def _has_metadata(self, event: FeedEvent) -> bool:
        """Return whether an event's metadata have the required members."""
        try:
            members = json.loads(content_of(event.meta)) if event.meta else None
        except ValueError:
            return False
        return isinstance(members, dict) and all(
            name in members and _same(members[name], value) for name, value in self.metadata.items()
        )


def _same(left: object, right: object) -> bool:
    """Return whether two values are the same JSON; unlike in Python, 1 is not `true`."""
    if isinstance(left, dict) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _led_by(item: QueryItem, name: str) -> bool:
    """Return whether events that match an item are delivered through this stream: that of its first tag."""
    return not item.tags or min(item.tags) == name


def _is_hidden(event: FeedEvent) -> bool:
    """Return whether an event is gone or unreadable, so that hardly more than its place is known.

    If the event still has its tags, everything except its bodies is known.
    """
    return (event.gone is not None or event.fault is not None) and not event.tags


def _of_type(event: FeedEvent, types: Collection[str] | None) -> bool:
    """Return whether an event has, or may have, one of these types; an unknown type may be any."""
    if types is None:
        return event.type not in TIMERS
    return event.type in types or (not event.type and _is_hidden(event))


def code_name(code: Callable[..., object]) -> str:
    """Return a function's module and qualified name, as `boards.departures`; lambdas get a line number.

    For an object that is called, it is its class.
    """
    while isinstance(code, partial):
        code = code.func
    owner = code if hasattr(code, "__qualname__") else type(code)
    line = f":{code.__code__.co_firstlineno}" if getattr(code, "__name__", "") == "<lambda>" else ""
    return f"{owner.__module__}.{owner.__qualname__}{line}"


def duplicate_name_error(name: str, one: str, other: str) -> InvalidInput:
    """Build the error that two reactions have one name, naming the code of both."""
    rule = f"must be unique, but {one} and {other} share it, so they would share a checkpoint and each miss events"
    return InvalidInput("name", f"{rule}. Rename one of the two reactions called {name!r}")


OnFailure = Literal["park", "block"]
"""What happens to a stream whose handler keeps failing: it is parked, or it blocks its partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The argument of a reaction's handler: events of one stream, notice of deleted ones, or how far skipped ones go.

    Attributes:
        group: name of the reaction.
        partition: partition of the feed.
        stream: stream of the events: its name, an aggregate's id, or a tag.
        events: events of the stream in order, at least one; each is readable or marked as gone. Empty in deliveries to
            `removed` and `skipped`.
        attempt: number of the attempt, from 1. It is 1 again if the delivery is repeated because a process died, or
            lost a race: recognize repeats by `key`.
        removal: pruning or deletion of events of the stream, delivered to the reaction's `removed`; None in other
            deliveries.
        next: index after the last event that the delivery covers, if `events` are followed by some that the reaction
            does not take; None if it ends with `events`.
    """

    group: str
    partition: int
    stream: str
    events: tuple[FeedEvent, ...]
    attempt: int = 1
    removal: Removal | None = None
    next: int | None = None

    @property
    def following(self) -> int:
        """Index after the last event that the delivery covers; 0 if it delivers a pruning or deletion."""
        end = self.events[-1].index + 1 if self.events else 0
        return end if self.next is None else max(self.next, end)

    def each(self) -> Iterator[FeedEvent]:
        """Iterate over the events; what the handler appends meanwhile records the current event as its cause."""
        for event in self.events:
            with caused_by(event):
                yield event

    def key(self, event: FeedEvent | Removal) -> str:
        """Return an idempotency key for handling an event or removal: always the same, unique to the group.

        Args:
            event: an event or the removal of this delivery.
        """
        place = f"{event.kind}@{event.end}" if isinstance(event, Removal) else f"@{event.index}"
        return f"{self.group}/{self.partition}/{self.stream}{place}"


Handler = Callable[[Delivery], object]
"""The function of a reaction, called with each delivery; an `async def` is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """A handler function, with the choice of events that it handles and settings of how it runs. Calling a reaction
    calls the handler, as tests do.

    Attributes:
        name: name of the consumer group, under which its checkpoints are stored; a new name begins anew.
        handler: function that is called with each delivery.
        categories: categories of streams, types of aggregates and groups of tags whose events are handled; None for
            all.
        types: types of the events that are handled; None for all except those of timers (`scheduling`), which must be
            named.
        only: selector with further conditions that events must meet; None for no further conditions.
        sources: names of the storage layouts whose events are handled; all by default.
        start: place in the feed where the group begins, as long as it has no checkpoint.
        max_events: largest number of events in a delivery, which also ends with the event that brings it to 16 MB.
        parallel: number of streams that a member handles at the same time.
        in_order: whether deliveries of a partition come one after another, in the order of the feed; `parallel` is then
            ignored.
        members: number of members that divide the streams of a partition among them and run side by side, as functions
            or processes.
        partition_by: regular expression with one capturing group; streams for whose names it captures the same text go
            to the same member.
        attempts: number of calls of the handler for a delivery before `on_failure` applies to its stream.
        on_failure: what happens to a stream once all attempts have failed: `park` sets it aside; `block` stops its
            partition until it is handled.
        once: True to deliver an event with several tags only through its first tag; False to deliver it once for each
            tag. Ignored if `only` has a query, with which each event is delivered once in any case.
        early: categories and types that may not have events yet, and so are not reported as misspelt.
        within: for an `async def`, an asynchronous context that is entered on its event loop before the first delivery,
            and left after the last; an `AsyncPlace`, for instance.
        removed: function that is called when events of a stream have been pruned or deleted, whatever their types were;
            an `async def` if the handler is one. None for no such calls.
        skipped: function that is called when the reaction takes none of the latest events of a stream; an `async def`
            if the handler is one. Its delivery has no events, and the index after the skipped ones as `next`. For read
            models, which pass their `skip`.
        sealed: whether error messages of the handler are never stored, since they may quote encrypted data (sealed for
            a person). If False, only messages about events with such data are not stored.
    """

    name: str
    handler: Handler
    categories: frozenset[str] | None = None
    types: frozenset[str] | None = None
    only: Selector | None = None
    sources: frozenset[str] = field(default_factory=lambda: frozenset(layout_names()))
    start: Start = "beginning"
    max_events: int = 100
    parallel: int = 8
    in_order: bool = False
    members: int = 1
    partition_by: str = ""
    attempts: int = 5
    on_failure: OnFailure = "park"
    once: bool = False
    early: frozenset[str] = frozenset()
    within: AbstractAsyncContextManager[Any] | None = None
    removed: Handler | None = None
    skipped: Handler | None = None
    sealed: bool = False
    _is_async: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless all arguments are valid, handlers and settings included."""
        object.__setattr__(self, "_is_async", is_async(self.handler))  # asked for each delivery
        if not self.asynchronous:
            must_be_plain(self.handler, "handler")
            if self.within is not None:
                raise InvalidInput("within", "must not be given unless the handler is an `async def`")
        must_take_one(self.handler, "handler", "a delivery")
        for name, function in (("removed", self.removed), ("skipped", self.skipped)):
            if function is not None:
                self._check_function(name, function)
        self._check_kinds()
        if not NAME.fullmatch(self.name):
            raise InvalidInput(
                "name", "must be 1 to 64 letters, digits and hyphens, and not begin with a hyphen"
            )
        must_be_whole(self.members, "members", 1, MAX_MEMBERS)
        _check_pattern(self.partition_by)
        check_sources(self.sources)
        if self.on_failure not in ("park", "block"):
            raise InvalidInput("on_failure", "must be park or block")
        check_start(self.start)

    def _check_function(self, name: str, function: Handler) -> None:
        """Check that a second function takes a delivery, and is an `async def` exactly if the handler is one."""
        if not is_async(function):
            must_be_plain(function, name)
        must_take_one(function, name, "a delivery")
        if is_async(function) != self.asynchronous:
            raise InvalidInput(name, "must be an `async def` if and only if the handler is one")

    def _check_kinds(self) -> None:
        """Raise `InvalidInput` for arguments of a wrong type, numbers below 1, and empty sets of names."""
        must_be(str, self.name, "name", "text")
        must_be(str, self.partition_by, "partition_by", "a regular expression")
        for field_ in ("max_events", "parallel", "attempts"):
            must_be_whole(getattr(self, field_), field_, 1)
        for field_ in ("in_order", "once", "sealed"):
            must_be(bool, getattr(self, field_), field_, "True or False")
        for field_ in ("categories", "types", "sources"):
            if field_ == "sources" or getattr(self, field_) is not None:
                must_be_names(getattr(self, field_), field_)
        # Without types, removals may still come.
        for field_ in ("categories", "sources", *(("types",) if self.removed is None else ())):
            if getattr(self, field_) is not None and not getattr(self, field_):
                raise InvalidInput(field_, "must not be empty; leave it out to select all")
        if self.only is not None:
            must_be(Selector, self.only, "only", "a Selector")

    @property
    def sharing(self) -> Sharing:
        """The rule that assigns streams to the members of the group."""
        return Sharing(self.members, self.partition_by)

    @property
    def asynchronous(self) -> bool:
        """Whether the handler is an `async def`."""
        return self._is_async

    @property
    def handler_name(self) -> str:
        """The dotted name of the handler, such as `boards.departures`."""
        return code_name(self.handler)

    def __call__(self, delivery: Delivery) -> object:
        """Call the handler, `removed` or `skipped`, if any, with a delivery; an `async def` gives a coroutine.

        Raises:
            InvalidInput: the handler is a plain function, and returned something that would have to be awaited.
        """
        if delivery.removal is not None:
            handler = self.removed
        else:
            is_skipped = not delivery.events and delivery.next is not None
            handler = self.skipped if is_skipped else self.handler
        if handler is None:
            return None
        result = handler(delivery)
        return result if self.asynchronous else must_be_done(result, "handler")

    def wants(self, span: Span) -> bool:
        """Return whether a span (events of one stream) in a wanted category may have events to deliver.

        Args:
            span: consecutive events of one stream, with their types.
        """
        if self.types is None:
            of_types = not span.types or not TIMERS.issuperset(span.types)
        else:
            of_types = not self.types.isdisjoint(span.types)
        return of_types and (self.only is None or self.only.takes(span))

    def wants_removal(self, span: Span) -> bool:
        """Return whether a stream's pruning or deletion is delivered; `span` has its name and no events.

        Args:
            span: span with the name of the stream, and no events.
        """
        return self.removed is not None and (self.only is None or self.only.takes(span))

    def wants_skipped(self, span: Span) -> bool:
        """Return whether `skipped` is called for a span (events of one stream) of which no event is taken.

        Args:
            span: consecutive events of one stream, with their types.
        """
        if self.skipped is None:
            return False
        return self.only is None or self.only.takes(Span(span.stream, span.index, ()))

    def wants_event(self, event: FeedEvent) -> bool:
        """Return whether to deliver an event of a span that `wants` accepted; True if too little is known.

        Args:
            event: event with as much as is known of it.
        """
        if not _of_type(event, self.types) or (self.only is not None and not self.only.takes_event(event)):
            return False
        by_query = self.only is not None and self.only.query is not None  # which has it once already
        return not self.once or by_query or event.first


def reaction(
    *,
    name: str,
    categories: Collection[str] | None = None,
    types: Collection[str] | None = None,
    only: Selector | None = None,
    sources: Collection[str] | None = None,
    start: Start = "beginning",
    max_events: int = 100,
    parallel: int = 8,
    in_order: bool = False,
    members: int = 1,
    partition_by: str = "",
    attempts: int = 5,
    on_failure: OnFailure = "park",
    once: bool = False,
    within: AbstractAsyncContextManager[Any] | None = None,
    removed: Handler | None = None,
    skipped: Handler | None = None,
    sealed: bool = False,
) -> Callable[[Handler], Reaction]:
    """Turn a function into a reaction (decorator); the arguments are the attributes of `Reaction`.

    Args:
        name: name of the consumer group whose checkpoints these are; another name begins anew.
        categories: categories of streams, types of aggregates and groups of tags; None for all.
        types: types of events; None for all except those of timers, which must be named.
        only: further conditions on events; None for all.
        sources: layouts whose events are handled; None for all.
        start: where a group without a checkpoint begins: `beginning`, `tail`, or a moment: a datetime or ISO 8601
            text, with a time zone.
        max_events: largest number of events in a delivery, 1 or more.
        parallel: number of streams that a member handles at the same time.
        in_order: whether deliveries of a partition come one after another, in the order of the feed.
        members: number of members that divide the streams of a partition among them.
        partition_by: regular expression with one group: streams in whose names it matches the same text have the same
            member.
        attempts: number of calls before a stream is given up.
        on_failure: `park` sets the stream aside; `block` stops its partition until the stream is handled.
        once: whether an event with several tags is delivered through its first tag only.
        within: for an `async def`, asynchronous context around all deliveries, such as an `AsyncPlace`.
        removed: function that is called if events of a stream are gone; None for a reaction to events alone.
        skipped: function that is called if the latest events of a stream are none that the reaction takes: `skip` of
            a read model.
        sealed: whether messages of the handler's errors are never kept, since they may quote what is sealed.

    Raises:
        InvalidInput: an argument that could not be kept.
    """
    return lambda handler: Reaction(
        name=name,
        handler=handler,
        categories=None if categories is None else _set("categories", categories),
        types=None if types is None else _set("types", types),
        only=only,
        sources=_set("sources", layout_names() if sources is None else sources),
        start=start,
        max_events=max_events,
        parallel=parallel,
        in_order=in_order,
        members=members,
        partition_by=partition_by,
        attempts=attempts,
        on_failure=on_failure,
        once=once,
        within=within,
        removed=removed,
        skipped=skipped,
        sealed=sealed,
    )


def check_sources(sources: Collection[str]) -> None:
    """Raise `InvalidInput` unless all sources are names of layouts."""
    if unknown := set(sources).difference(layout_names()):
        raise InvalidInput("sources", f"must be among {', '.join(layout_names())}, not {min(unknown)!r}")


def check_start(start: object) -> None:
    """Raise `InvalidInput` unless `start` is a place where a group can begin, or one for each partition."""
    if not isinstance(start, Mapping):
        if isinstance(start, Checkpoint):
            raise InvalidInput("start", f"must name the partition of a checkpoint: {{partition: {start!r}}}")
        read_start(start)
        return
    for partition, place in start.items():
        must_be_whole(partition, "start")
        read_start(place, f"start[{partition}]")


def _check_pattern(pattern: str) -> None:
    """Raise `InvalidInput` unless a pattern is empty or a regular expression with exactly one group."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise InvalidInput("partition_by", f"must be a regular expression: {error}") from error
    if pattern and groups != 1:
        raise InvalidInput(
            "partition_by", "must have exactly one group, which matches the part of the name to compare"
        )


def _set(field: str, names: Collection[str]) -> frozenset[str]:
    """Check names and return them as a set."""
    must_be_names(names, field)
    return frozenset(names)


# What a reaction appends says what caused it.


def caused_by(*events: FeedEvent) -> AbstractContextManager[None]:
    """Return a context in which appends record the events' conversation and, for one event, the cause.

    An event is named by its `id` or, in streams, by its place: `Flight-UA1545@3`. One that belongs to no conversation
    begins one. Several events have a conversation if it is the same for all, and no single cause.
    """
    if len(events) == 1:
        name = name_of(events[0])
        return metadata(correlation_id=events[0].correlation_id or name, causation_id=name)
    conversations = {event.correlation_id or name_of(event) for event in events}
    return metadata(correlation_id=conversations.pop() if len(conversations) == 1 else None)
