"""Timers: a timer is an append in the future. At its due time its events are appended, once, unless it was called off.

    streams.append("Loan-17", [lent, later("reminder", [Event.json("Reminded", {})], at=in_(days=14))])
    streams.append("Loan-17", [returned, call_off("reminder")])

Setting, calling off and firing are events of the stream itself, appended with those that decide them, under one
condition and one key. Of an event with tags alone it is the query of all its tags. Bodies are JSON, and outlive the
code (FORMATS §9):

    $timer-set         {"name": "reminder", "in": 1209600, "events": [{"type": "Reminded", "data": {}}]}
                       and "copied": true, in a copy of its stream: it fires in the original
    $timer-cancelled   {"name": "reminder"}
    $timer-fired       {"name": "reminder", "set": 3}

A timer that was set at index i is pending until it is called off, set anew under its name, or fired as set at i. That
is a fold of these events (`pending`), and nothing else is believed. `in` counts seconds from the setting's own time, so
that a call that is repeated under a key is the same call, and nothing here needs a clock.

What cannot fire is refused when it is set: nobody waits for the answer of a firing.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

from epochal.codec import json
from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import (
    PER_SECOND,
    TIMER_CANCELLED,
    TIMER_FIRED,
    TIMER_SET,
    TIMERS,
    Body,
    Claim,
    Event,
    Recorded,
    Ticks,
    check_event,
    content_of,
    format_ticks,
    no_step,
    parse_time,
    read_moment,
    time_or_now,
)
from epochal.model.kinds import must_be, must_be_list, must_be_names, must_be_whole
from epochal.model.tags import Query, QueryItem, check_tag, check_type, parse_event_id

MAX_DAYS: Final = 5 * 366
"""What lies farther off is a slip of units more often than a plan."""

MAX_EVENTS: Final = 100

MAX_TAGS: Final = 90
"""Of a setting and all its events: the firing is one transaction of 100 items."""

NAME: Final = r"[A-Za-z0-9\-_.:~@+=]{1,128}"
"""The pattern of a timer's name: of what stream names are made."""

_NAME: Final = re.compile(NAME, re.ASCII)
_ZONE: Final = re.compile(r"[tT ].*(?:[zZ]|[+-]\d\d(?::?\d\d)?)$", re.ASCII)
_MAX_SECONDS: Final = MAX_DAYS * 24 * 60 * 60

At = timedelta | datetime | str
"""When a timer is due: so long after its setting, or at a moment with a time zone, which may be ISO 8601 text."""


def in_(*, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> At:
    """So long after the append that sets the timer, or after the time that its setting is given: at most 1,830 days."""
    try:
        return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInput("at", f"must be numbers, of 0 to {MAX_DAYS:,} days from now") from error


def later(name: str, events: Sequence[Event], *, at: At, tags: Sequence[str] = ()) -> Event:
    """The event that sets a timer: `events` are appended to its stream when it is due, once. To be appended like any
    other, with what it follows from; a timer of the same name that is pending in the stream is replaced.

    What it appends has the metadata and the conversation of the setting, unless the events have their own, and names
    the setting as its cause.

    Args:
        name: within its stream, or within its tags: 1 to 128 letters, digits and ``- _ . : ~ @ + =``.
        events: 1 to 100, whose bodies are here, and which have no ids. They may set and call off timers.
        at: `in_(days=14)`, a moment with a time zone, or that in ISO 8601. A moment that is past is due at once.
        tags: of the setting, for a timer of tagged events: it is among the events of exactly these tags.

    Raises:
        InvalidInput: what is malformed; the append refuses what could not be appended later.
    """
    must_be_list(Event, events, "events")
    must_be_names(tags, "tags")
    record = {"name": timer_name(name), **_when(at), "events": [event_record(event) for event in events]}
    _check_events(record["events"], "events")
    return Event(type=TIMER_SET, data=_dumps(record), tags=tuple(tags))


def call_off(name: str, *, tags: Sequence[str] = ()) -> Event:
    """The event that calls a timer off, if it is pending: to be appended like any other."""
    must_be_names(tags, "tags")
    return Event(type=TIMER_CANCELLED, data=_dumps({"name": timer_name(name)}), tags=tuple(tags))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer as it was set.

    Attributes:
        name: within its stream, or its tags.
        due: ISO 8601, in the form in which times are stored: their texts are in the order of time.
        events: what it appends.
        setting: index of the event that set it; of a timer of tags, that event's id.
        stream, tags: where it was set. One of no stream is of exactly these tags.
        timestamp, meta, correlation_id: of the setting.
        copied: it is in a copy of its stream, and fires in the original alone, unless it is taken over.
    """

    name: str
    due: str
    events: tuple[Event, ...]
    setting: int | str
    stream: str = ""
    tags: tuple[str, ...] = ()
    timestamp: str = ""
    meta: Body = b""
    correlation_id: str | None = None
    copied: bool = False

    @property
    def ticks(self) -> Ticks:
        """When it is due."""
        return parse_time(self.due)

    @property
    def cause(self) -> str:
        """The text by which what it appends names the setting."""
        return f"{self.stream}@{self.setting}" if self.stream else str(self.setting)

    def anew(self) -> Event:
        """What sets it anew, when it is due, with what its events have of its setting."""
        return replace(
            later(self.name, self.events, at=self.due, tags=() if self.stream else self.tags),
            meta=self.meta,
            correlation_id=self.correlation_id or self.cause,
            causation_id=self.cause,
        )

    @property
    def query(self) -> Query:
        """Of a timer of tags: what it is pending by, and what its firing is conditional on."""
        return query_of(self.tags)

    def firing(self) -> tuple[Event, ...]:
        """What is appended when it fires, on the condition that it is pending: its events, and that it has fired."""
        fired = _dumps({"name": self.name, "set": self.setting})
        events = (*self.events, Event(type=TIMER_FIRED, data=fired, tags=() if self.stream else self.tags))
        return tuple(
            replace(
                event,
                meta=_joined(event.meta, self.meta),
                correlation_id=event.correlation_id or self.correlation_id or self.cause,
                causation_id=event.causation_id or self.cause,
            )
            for event in events
        )


class TimerEvent(Protocol):
    """A `Recorded` or a `FeedEvent`."""

    @property
    def type(self) -> str: ...  # noqa: D102  as theirs
    @property
    def data(self) -> Body: ...  # noqa: D102
    @property
    def meta(self) -> Body: ...  # noqa: D102
    @property
    def timestamp(self) -> str: ...  # noqa: D102
    @property
    def correlation_id(self) -> str | None: ...  # noqa: D102
    @property
    def tags(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def id(self) -> str | None: ...  # noqa: D102
    @property
    def stream(self) -> str: ...  # noqa: D102
    @property
    def index(self) -> int: ...  # noqa: D102


def timer_of(event: TimerEvent) -> Timer:
    """The timer that a stored event sets.

    Raises:
        InvalidInput: its body was left in the bucket.
        CorruptData: it sets none.
    """
    stream = _stream_of(event)
    record = _stored(event)
    if event.type != TIMER_SET:
        raise CorruptData(f"{stream} (index {event.index}) sets no timer: it is of type {event.type}")
    return Timer(
        name=record["name"],
        due=format_ticks(_due(record, parse_time(event.timestamp))),
        events=tuple(map(event_of, record["events"])),
        setting=event.index if stream else event.id or "",
        stream=stream,
        tags=event.tags,
        timestamp=event.timestamp,
        meta=event.meta,
        correlation_id=event.correlation_id,
        copied="copied" in record,
    )


def pending(events: Iterable[Recorded]) -> tuple[Timer, ...]:
    """The timers that these events leave pending, by their due times: events of a stream, or of a query of tags
    (`query_of`), in their order. Others than those of timers are passed over.

    Raises:
        InvalidInput, CorruptData: as of `timer_of`.
    """
    found = Fold()
    for event in events:
        if event.type in TIMERS:
            found.take(event)
    return found.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSetting:
    """A setting whose body is gone from the bucket. It replaces what its name had, and cannot fire.

    Attributes:
        name: of the timer; empty where its claim check does not have it.
        scope: its stream, or its tags.
        place: its index, or its id.
    """

    name: str
    scope: str | tuple[str, ...]
    place: int | str
    error: EpochalError


class Fold:
    """What is pending after some events, beginning with what was pending before them; and what is lost, likewise."""

    def __init__(self, before: Iterable[Timer] = (), lost: Iterable[LostSetting] = ()) -> None:
        self.found: dict[tuple[object, str], Timer] = {
            (each.stream or each.tags, each.name): each for each in before
        }
        self.lost = {each.place: each for each in lost}

    def take(self, event: Recorded) -> None:
        """One more event of a timer."""
        record = _stored(event)
        scope, name = _stream_of(event) or event.tags, record["name"]
        if event.type == TIMER_FIRED:
            self.lost.pop(record["set"], None)
            if (scope, name) in self.found and self.found[scope, name].setting == record["set"]:
                del self.found[scope, name]
            return
        self._end(scope, name)
        if event.type == TIMER_SET:
            self.found[scope, name] = timer_of(event)

    def lose(self, event: Recorded, error: EpochalError) -> None:
        """One more setting, whose body is gone."""
        scope, stream = _stream_of(event) or event.tags, _stream_of(event)
        name = event.data.timer if isinstance(event.data, Claim) else ""
        if name:
            self._end(scope, name)
        place = event.index if stream else event.id or ""
        self.lost[place] = LostSetting(name=name, scope=scope, place=place, error=error)

    def _end(self, scope: str | tuple[str, ...], name: str) -> None:
        self.found.pop((scope, name), None)
        for each in [*self.lost.values()]:
            if (each.scope, each.name) == (scope, name):
                del self.lost[each.place]

    @property
    def pending(self) -> tuple[Timer, ...]:
        """By due times."""
        return tuple(sorted(self.found.values(), key=lambda timer: timer.due))


def query_of(tags: Iterable[str]) -> Query:
    """All events of timers that have these tags, and perhaps others: a timer is of exactly its own."""
    must_be_names(tags, "tags")
    return Query(items=(QueryItem(types=TIMERS, tags=frozenset(tags)),))


def check_all(events: Sequence[Event], now: Ticks, *, tags: bool) -> None:
    """Raise `InvalidInput` for events of timers that are malformed, or could not fire, in an append to a stream.

    Args:
        tags: events of the stream may have some.
    """

    def inner(event: Event, field: str) -> None:
        check_event(event, field, tags=tags)
        if event.tags:
            check_type(event.type, f"{field}.type")
        for tag in event.tags:
            no_step(check_tag(tag, f"{field}.tags"), f"{field}.tags")
        time_or_now(event.timestamp, "", f"{field}.timestamp")
        _check_one(event, field, now, inner)

    for place, event in enumerate(events):
        _check_one(event, f"events[{place}]", now, inner)


def check_tagged(event: Event, field: str, now: Ticks, inner: Callable[[Event, str], object]) -> None:
    """The same of an event with tags alone; `inner` checks one that the store takes."""
    if not event.tags:
        raise InvalidInput(f"{field}.tags", f"must be given: they are what {event.type} is found by")
    _check_one(event, field, now, inner)


def _check_one(event: Event, field: str, now: Ticks, inner: Callable[[Event, str], object]) -> None:
    if event.type not in TIMERS:
        return
    if isinstance(event.data, Claim):
        raise InvalidInput(
            f"{field}.claim", f"must be here as `data`: {event.type} is read when it is appended"
        )
    try:
        record = json.loads(event.data)
    except ValueError as error:
        raise InvalidInput(f"{field}.data", f"of {event.type} must be JSON: {error}") from None
    _check(event.type, record, f"{field}.data")
    if event.type != TIMER_SET:
        return
    since = now if event.timestamp is None else parse_time(event.timestamp, f"{field}.timestamp")
    if _due(record, since) - now > _MAX_SECONDS * PER_SECOND:
        raise InvalidInput(f"{field}.data.due", f"must lie within {MAX_DAYS:,} days")
    tags = set(event.tags)
    for place, each in enumerate(record["events"]):
        made = event_of(each)
        inner(made, f"{field}.data.events[{place}]")
        tags.update(made.tags)
    if len(tags) > MAX_TAGS:
        raise InvalidInput(
            f"{field}.data.events", f"may have {MAX_TAGS} different tags, with those of the setting"
        )


# What is written, and how it is read.


def timer_name(text: object, field: str = "name") -> str:
    """Parse the name of a timer; raises `InvalidInput` naming `field`."""
    must_be(str, text, field, "text")
    name = no_step(str(text), field)
    if not _NAME.fullmatch(name):
        raise InvalidInput(field, "must be 1 to 128 ASCII letters, digits and - _ . : ~ @ + =")
    return name


def _when(at: At) -> dict[str, object]:
    if not isinstance(at, timedelta):
        if isinstance(at, str) and not _ZONE.search(at):
            raise InvalidInput("at", "must have a time zone: 2026-06-01T09:00:00Z, or +02:00 at its end")
        try:
            return {"due": format_ticks(read_moment(at, "at"))}
        except OverflowError as error:
            raise InvalidInput("at", "must lie in the years 1 to 9999 UTC") from error
    if not 0 <= at.total_seconds() <= _MAX_SECONDS:
        raise InvalidInput("at", f"must be 0 to {MAX_DAYS:,} days from now")
    whole, rest = divmod(at, timedelta(seconds=1))
    return {"in": whole + Decimal(rest.microseconds) / 1_000_000 if rest else whole}


def due_at(at: At, since: Ticks) -> Ticks:
    """When a timer is due that is set at `since`. Raises `InvalidInput` as `later` does."""
    return _due(_when(at), since)


def _due(record: Mapping[str, Any], since: Ticks) -> Ticks:
    """When a timer is due that was set at `since`."""
    return Ticks(since + int(record["in"] * PER_SECOND)) if "in" in record else parse_time(record["due"])


def event_record(event: Event) -> dict[str, object]:
    """An event inside of another: in JSON as HTTP has it."""
    texts = {
        "timestamp": event.timestamp,
        "correlationId": event.correlation_id,
        "causationId": event.causation_id,
        "id": event.id,
    }
    return {
        "type": event.type,
        **_body("data", event.data),
        **_body("meta", event.meta),
        **{name: text for name, text in texts.items() if text is not None},
        **({"tags": list(event.tags)} if event.tags else {}),
    }


def _body(name: str, body: Body) -> dict[str, object]:
    """As JSON where that brings back the same bytes."""
    if isinstance(body, Claim):
        raise InvalidInput(f"events.{name}", "must be here: what is in the bucket is no part of a timer")
    if not body:
        return {}
    try:
        value = json.loads(body)
        if json.dumps(value) == body:
            return {name: value}
    except ValueError:
        pass
    return {f"{name}64": b64encode(body).decode()}


_TEXTS: Final = ("timestamp", "correlationId", "causationId")
_MEMBERS: Final = {"type", "data", "data64", "meta", "meta64", "tags", *_TEXTS}


def event_of(record: Mapping[str, Any]) -> Event:
    """That event."""
    return Event(
        type=record["type"],
        data=_bytes(record, "data"),
        meta=_bytes(record, "meta"),
        timestamp=record.get("timestamp"),
        correlation_id=record.get("correlationId"),
        causation_id=record.get("causationId"),
        tags=tuple(record.get("tags", ())),
        id=record.get("id"),
    )


def _bytes(record: Mapping[str, Any], name: str) -> bytes:
    if name in record:
        return json.dumps(record[name])
    return b64decode(record.get(f"{name}64", ""), validate=True)


def _dumps(record: object) -> bytes:
    try:
        return json.dumps(record)
    except ValueError as error:
        raise InvalidInput("events", f"must be JSON: {error}") from None


def _stream_of(event: TimerEvent) -> str:
    """Its stream; none of an event with tags alone, which the feed has in the streams of its tags."""
    return str(getattr(event, "home", event.stream)) if event.tags else event.stream


def _stored(event: TimerEvent) -> dict[str, Any]:
    """What is stored of a timer. Raises `CorruptData` where a writer without these rules has written it."""
    where = f"{event.type} at {event.stream or event.id}" + (f"@{event.index}" if event.stream else "")
    try:
        record: dict[str, Any] = json.loads(content_of(event.data))
        _check(event.type, record, "data")
    except InvalidInput as error:
        if error.field == "fetch":
            raise
        raise CorruptData(f"{where}: {error}") from error
    except ValueError as error:
        raise CorruptData(f"{where}: {error}") from error
    return record


def _check(kind: str, record: object, field: str) -> None:
    """Raise `InvalidInput` unless this is what is stored of a timer in an event of the type."""
    known = {TIMER_SET: {"copied", "name", "in", "due", "events"}, TIMER_FIRED: {"name", "set"}}.get(
        kind, {"name"}
    )
    must_be(dict, record, field, "an object")
    if not isinstance(record, dict):  # which was just refused
        return
    _check_members(record, known, field)
    timer_name(record.get("name"), f"{field}.name")
    if kind == TIMER_FIRED:
        if isinstance(record.get("set"), str):
            parse_event_id(record["set"], f"{field}.set")
        else:
            must_be_whole(record.get("set"), f"{field}.set")
    elif kind == TIMER_SET:
        if record.get("copied", True) is not True:
            raise InvalidInput(f"{field}.copied", "must be true, or left out")
        _check_when(record, field)
        _check_events(record.get("events"), f"{field}.events")


def _check_members(record: Mapping[str, object], known: Iterable[str], field: str) -> None:
    for name in record.keys() - known:
        raise InvalidInput(f"{field}.{name}", "is not known")


def _check_when(record: Mapping[str, Any], field: str) -> None:
    if ("in" in record) == ("due" in record):
        raise InvalidInput(f"{field}.due", "must be given, or else `in`")
    if "due" in record:
        parse_time(record["due"], f"{field}.due")
        return
    seconds = record["in"]
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | Decimal)
        or not 0 <= seconds <= _MAX_SECONDS
    ):
        raise InvalidInput(f"{field}.in", f"must be seconds, at most those of {MAX_DAYS:,} days")


def _check_events(events: object, field: str) -> None:
    if not isinstance(events, list) or not 0 < len(events) <= MAX_EVENTS:
        raise InvalidInput(field, f"must be a list of 1 to {MAX_EVENTS} events")
    for place, record in enumerate(events):
        inner = f"{field}[{place}]"
        must_be(dict, record, inner, "an object")
        _check_members(record, _MEMBERS, inner)
        for name in ("type", *(each for each in _TEXTS if each in record)):
            must_be(str, record.get(name), f"{inner}.{name}", "text")
        must_be_list(str, record.get("tags", []), f"{inner}.tags")
        for name in ("data64", "meta64"):
            if name in record and name.removesuffix("64") in record:
                raise InvalidInput(f"{inner}.{name}", f"must not be given beside {name.removesuffix('64')}")
            try:
                b64decode(record.get(name, ""), validate=True)
            except (ValueError, TypeError) as error:
                raise InvalidInput(f"{inner}.{name}", f"must be base64: {error}") from None


def _joined(own: Body, setting: Body) -> Body:
    """Metadata of an event, with those members of its setting's that it lacks. What is no object is not joined."""
    if not setting or isinstance(own, Claim):
        return own
    if not own:
        return setting
    members = None if isinstance(setting, Claim) else _object(setting)
    return own if members is None else json.with_members(own, members) or own


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
