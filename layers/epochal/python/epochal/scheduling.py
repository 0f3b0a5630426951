"""Timers: a timer is an append in the future. At its due time its events are appended, once, unless it was cancelled.

    streams.append("Loan-17", [lent, later("reminder", [Event.json("Reminded", {})], at=after(days=14))])
    streams.append("Loan-17", [returned, cancel("reminder")])

Setting, cancelling and firing are events of the stream itself, appended with those that decide them, under one
condition and one key. Of an event with tags alone it is the query of all its tags. Bodies are JSON, and outlive the
code (FORMATS §9):

    $timer-set         {"name": "reminder", "in": 1209600, "events": [{"type": "Reminded", "data": {}}]}
                       and "copied": true, in a copy of its stream: it fires in the original
    $timer-cancelled   {"name": "reminder"}
    $timer-fired       {"name": "reminder", "set": 3}

A timer that was set at index i is pending until it is cancelled, set anew under its name, or fired as set at i. That
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
from typing import Any, Final, Protocol, overload

from epochal.codec import json
from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Body, Claim, content_of
from epochal.model.events import Event, Recorded, check_event
from epochal.model.kinds import must_be, must_be_list, must_be_names, must_be_whole
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, parse_time, read_moment, time_or_now
from epochal.model.stream_names import TIMER_CANCELLED, TIMER_FIRED, TIMER_SET, TIMERS, no_step
from epochal.model.tags import Query, QueryItem, check_tag, check_type, parse_event_id
from epochal.model.timers import Later

MAX_DAYS: Final = 5 * 366
"""Largest delay of a timer. A longer one is a slip of units more often than a plan."""

MAX_EVENTS: Final = 100

MAX_TAGS: Final = 90
"""Largest number of tags of a setting and all its events: the firing is one transaction of 100 items."""

NAME: Final = r"[A-Za-z0-9\-_.:~@+=]{1,128}"
"""The pattern of a timer's name: the characters of stream names."""

_NAME: Final = re.compile(NAME, re.ASCII)
_MAX_SECONDS: Final = MAX_DAYS * 24 * 60 * 60

At = timedelta | datetime | str
"""Due time of a timer: a delay from the moment at which it is set, or a moment with a time zone, which may be ISO 8601
text.
"""


def after(
    *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> At:
    """Return a timer's delay from when it is set: the sum of weeks, days, hours, minutes and seconds.

    `later` accepts at most 1,830 days.

    Args:
        weeks, days, hours, minutes, seconds: parts of the duration, which are added up; 0 or more in all.

    Raises:
        InvalidInput: an argument is no number, or is far too large.
    """
    try:
        return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInput("at", f"must be numbers, of 0 to {MAX_DAYS:,} days from now") from error


@overload
def later(name: str, events: Sequence[Event], *, at: At, tags: Sequence[str] = ()) -> Event: ...


@overload
def later(name: str, events: Sequence[Any], *, at: At, tags: Sequence[str] = ()) -> Later: ...


def later(name: str, events: Sequence[Any], *, at: At, tags: Sequence[str] = ()) -> Event | Later:
    """Make the event or `Later` that sets a timer: when due, it appends `events`, once, unless cancelled.

    Of `Event`s it makes the event that sets the timer, which is appended like any other, with the events that it
    follows from. Of events of the domain it makes a `Later`, which `decide`, or a process's `react`, returns among its
    events. A timer of the same name that is pending in the stream is replaced.

    The appended events have the metadata and correlation id of the setting, unless they have their own, and name the
    setting as their cause.

    Args:
        name: name of the timer in its stream, or its tags: 1 to 128 letters, digits and ``- _ . : ~ @ + =``.
        events: 1 to 100 events, with their bodies and without ids. They may set and cancel timers.
        at: when the timer is due: `after(days=14)` or a `timedelta`, a datetime with a time zone, or that in ISO 8601.
            A moment in the past is due at once.
        tags: tags of the setting, for a timer of tagged events: it is among the events of exactly these tags.

    Raises:
        InvalidInput: an argument is malformed. The append refuses events that could not be appended later.
    """
    must_be_names(tags, "tags")
    of_events: object = events
    # An event that a codec has tagged is one of the domain: the decider's codec may seal it.
    if isinstance(of_events, Sequence) and not all(
        isinstance(event, Event) and event.untagged is None for event in of_events
    ):
        return Later(name, events, at=at, tags=tuple(tags))
    must_be_list(Event, events, "events")
    record = {"name": timer_name(name), **_when(at), "events": [event_record(event) for event in events]}
    _check_events(record["events"], "events")
    return Event(type=TIMER_SET, data=_dumps(record), tags=tuple(tags))


def cancel(name: str, *, tags: Sequence[str] = ()) -> Event:
    """Make the event that cancels the timer `name` of the stream or tags that it is appended to.

    Args:
        name: name of the timer.
        tags: tags of the timer, for a timer of tagged events.

    Raises:
        InvalidInput: an argument is malformed.
    """
    must_be_names(tags, "tags")
    return Event(type=TIMER_CANCELLED, data=_dumps({"name": timer_name(name)}), tags=tuple(tags))


def name_cancelled(event: Event) -> str | None:
    """Return the name of the timer that an event of `cancel` cancels; None for other events."""
    if event.type != TIMER_CANCELLED:
        return None
    name: str = json.loads(content_of(event.data))["name"]
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer, as described by the event that set it, in a stream or under tags.

    Attributes:
        name: name of the timer in its stream, or under its tags.
        due: due time as ISO 8601 text in its stored form, in which texts sort in the order of time.
        events: events that the timer appends when it fires.
        setting: index of the event that set the timer; for a timer of tags, the id of that event.
        stream: stream in which the timer was set; empty for a timer of tags.
        tags: the exact tags under which the timer was set; empty for a timer in a stream.
        correlation_id: correlation id of the event that set the timer.
        meta: metadata of the event that set the timer.
        timestamp: timestamp of the event that set the timer.
        copied: whether the timer is in a copy of its stream, where it does not fire unless the copy takes it over.
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
        """The time at which the timer is due, in ticks of 100 nanoseconds since the year 1."""
        return parse_time(self.due)

    @property
    def cause(self) -> str:
        """The causation id of the events that the timer appends when it fires: it names the event that set the
        timer.
        """
        return f"{self.stream}@{self.setting}" if self.stream else str(self.setting)

    def anew(self) -> Event:
        """Make an event that sets the same timer again, with its due time, metadata and correlation id."""
        return replace(
            later(self.name, self.events, at=self.due, tags=() if self.stream else self.tags),
            meta=self.meta,
            correlation_id=self.correlation_id or self.cause,
            causation_id=self.cause,
        )

    @property
    def query(self) -> Query:
        """The query of all events that decide whether a timer of tags is pending.

        The firing is conditional on the same query.
        """
        return query_of(self.tags)

    def firing(self) -> tuple[Event, ...]:
        """Return the events that are appended when the timer fires: its own, and one that says it fired.

        They are appended under the condition that the timer is pending.
        """
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
    """An event as timers read it: a `Recorded` or a `FeedEvent`."""

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
    """Return the timer that a stored event sets; raise `CorruptData` if it sets none.

    Raises:
        InvalidInput: the event's body was left in the bucket.
        CorruptData: the event sets no timer.
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
    """Return the timers that events leave pending, sorted by due time.

    Args:
        events: events of a stream, or of a query of tags (`query_of`), in their order; those of no timer are ignored.

    Raises:
        InvalidInput, CorruptData: as `timer_of`.
    """
    fold = Fold()
    for event in events:
        if event.type in TIMERS:
            fold.take(event)
    return fold.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSetting:
    """A setting of a timer whose body is gone from the bucket: it replaces its timer, and cannot fire.

    Attributes:
        name: name of the timer; empty where the claim check does not have the name.
        scope: stream or tags of the timer.
        place: index or id of the setting.
        error: error of the read of the body.
    """

    name: str
    scope: str | tuple[str, ...]
    place: int | str
    error: EpochalError


class Fold:
    """The fold of timer events: pending timers and lost settings, from those before the events.

    Attributes:
        before: timers that were pending before.
        lost: settings that were lost before.
    """

    def __init__(self, before: Iterable[Timer] = (), lost: Iterable[LostSetting] = ()) -> None:
        self.found: dict[tuple[object, str], Timer] = {
            (timer.stream or timer.tags, timer.name): timer for timer in before
        }
        self.lost = {failure.place: failure for failure in lost}

    def take(self, event: Recorded) -> None:
        """Update the pending timers and lost settings with one more timer event.

        Raises:
            InvalidInput, CorruptData: as `timer_of`.
        """
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
        """Update the pending timers and lost settings with a setting whose body is gone from the bucket.

        Args:
            error: error of the read of the body.
        """
        scope, stream = _stream_of(event) or event.tags, _stream_of(event)
        name = event.data.timer if isinstance(event.data, Claim) else ""
        if name:
            self._end(scope, name)
        place = event.index if stream else event.id or ""
        self.lost[place] = LostSetting(name=name, scope=scope, place=place, error=error)

    def _end(self, scope: str | tuple[str, ...], name: str) -> None:
        """Forget the timer of a scope and name, pending or lost."""
        self.found.pop((scope, name), None)
        for timer in [*self.lost.values()]:
            if (timer.scope, timer.name) == (scope, name):
                del self.lost[timer.place]

    @property
    def pending(self) -> tuple[Timer, ...]:
        """The pending timers, sorted by due time."""
        return tuple(sorted(self.found.values(), key=lambda timer: timer.due))


def query_of(tags: Iterable[str]) -> Query:
    """Make the query of all timer events that have these tags, and perhaps others.

    A timer is only of events with exactly its tags.
    """
    must_be_names(tags, "tags")
    return Query(items=(QueryItem(types=TIMERS, tags=frozenset(tags)),))


def check_all(events: Sequence[Event], now: Ticks, *, tags: bool) -> None:
    """Raise `InvalidInput` for timer events of an append that are malformed, or that could not fire.

    Args:
        tags: whether events of the stream may have tags.
        events: events of the append to a stream.
        now: time of the append.
    """

    def inner(event: Event, field: str) -> None:
        """Raise `InvalidInput` unless an event of a timer could be appended to the stream."""
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
    """Raise `InvalidInput` if a timer event in no stream, only under tags, is malformed or cannot fire.

    Args:
        inner: function that checks an event of the timer as the store of tagged events would.
    """
    if not event.tags:
        raise InvalidInput(f"{field}.tags", f"must be given: they are what {event.type} is found by")
    _check_one(event, field, now, inner)


def _check_one(event: Event, field: str, now: Ticks, inner: Callable[[Event, str], object]) -> None:
    """Raise `InvalidInput` if an event is of a timer and is malformed, or could not fire.

    Args:
        inner: function that checks an event of the timer, with the field for error messages.
    """
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
    if "due" in record:
        read_moment(record["due"], f"{field}.data.due")
    since = now if event.timestamp is None else read_moment(event.timestamp, f"{field}.timestamp")
    if _due(record, since) - now > _MAX_SECONDS * PER_SECOND:
        raise InvalidInput(f"{field}.data.due", f"must lie within {MAX_DAYS:,} days")
    tags = set(event.tags)
    for place, event_record in enumerate(record["events"]):
        decoded = event_of(event_record)
        inner(decoded, f"{field}.data.events[{place}]")
        tags.update(decoded.tags)
    if len(tags) > MAX_TAGS:
        raise InvalidInput(
            f"{field}.data.events", f"may have {MAX_TAGS} different tags, with those of the setting"
        )


# What is written, and how it is read.


def timer_name(text: object, field: str = "name") -> str:
    """Return the name of a timer unchanged; raise `InvalidInput` if it is malformed.

    Args:
        field: name of the argument, for error messages.

    Raises:
        InvalidInput: it is not; names `field`.
    """
    must_be(str, text, field, "text")
    name = no_step(str(text), field)
    if not _NAME.fullmatch(name):
        raise InvalidInput(field, "must be 1 to 128 ASCII letters, digits and - _ . : ~ @ + =")
    return name


def _when(due: At) -> dict[str, object]:
    """Return the stored form of a due time: `in` seconds after the setting, or `due` at a moment.

    Raises:
        InvalidInput: the time has no zone, or is beyond the limits.
    """
    if not isinstance(due, timedelta):
        return {"due": format_ticks(read_moment(due, "at"))}
    if not 0 <= due.total_seconds() <= _MAX_SECONDS:
        raise InvalidInput("at", f"must be 0 to {MAX_DAYS:,} days from now")
    seconds, rest = divmod(due, timedelta(seconds=1))
    return {"in": seconds + Decimal(rest.microseconds) / 1_000_000 if rest else seconds}


def due_at(at: At, since: Ticks) -> Ticks:
    """Return the time at which a timer that is set at `since` is due.

    Raises:
        InvalidInput: as `later`.
    """
    return _due(_when(at), since)


def _due(record: Mapping[str, Any], since: Ticks) -> Ticks:
    """Return the due time of a stored setting of time `since`."""
    return Ticks(since + int(record["in"] * PER_SECOND)) if "in" in record else parse_time(record["due"])


def event_record(event: Event) -> dict[str, object]:
    """Convert an event of a timer to a JSON object, in the form of the HTTP API.

    Raises:
        InvalidInput: a body is in the bucket.
    """
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
    """Return a body's member: its JSON if that gives the same bytes, else base64; none if it is empty.

    Raises:
        InvalidInput: the body is in the bucket.
    """
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
    """Convert a JSON object in a timer's setting to the event that is appended when the timer fires."""
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
    """Return the body that a member of a timer's event stands for."""
    if name in record:
        return json.dumps(record[name])
    return b64decode(record.get(f"{name}64", ""), validate=True)


def _dumps(record: object) -> bytes:
    """Return a record as JSON; raise `InvalidInput` if it cannot be written.

    Raises:
        InvalidInput: it cannot be written.
    """
    try:
        return json.dumps(record)
    except ValueError as error:
        raise InvalidInput("events", f"must be JSON: {error}") from None


def _stream_of(event: TimerEvent) -> str:
    """Return the stream of a timer's event; empty for an event in no stream, only under tags.

    The feed has an event with tags alone in the streams of its tags.
    """
    return str(getattr(event, "home", event.stream)) if event.tags else event.stream


def _stored(event: TimerEvent) -> dict[str, Any]:
    """Return the decoded body of a stored timer event; raise `CorruptData` if it is malformed.

    Raises:
        InvalidInput: the body was left in the bucket.
        CorruptData: a writer without the rules of timers has written the record.
    """
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
    """Raise `InvalidInput` unless a record is well-formed for a timer event of type `kind`.

    Args:
        field: name of the record, for error messages.
    """
    fields = {TIMER_SET: {"copied", "name", "in", "due", "events"}, TIMER_FIRED: {"name", "set"}}.get(
        kind, {"name"}
    )
    must_be(dict, record, field, "an object")
    if not isinstance(record, dict):  # which was just refused
        return
    _check_members(record, fields, field)
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


def _check_members(record: Mapping[str, object], names: Iterable[str], field: str) -> None:
    """Raise `InvalidInput` for a member of a record that is not known."""
    for name in record.keys() - names:
        raise InvalidInput(f"{field}.{name}", "is not known")


def _check_when(record: Mapping[str, Any], field: str) -> None:
    """Raise `InvalidInput` unless a record has exactly one due time, `in` or `due`, within the limits."""
    if ("in" in record) == ("due" in record):
        raise InvalidInput(f"{field}.due", "must be given, unless `in` is given")
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
    """Raise `InvalidInput` unless a timer's record has 1 to 100 well-formed events."""
    if not isinstance(events, list) or not 0 < len(events) <= MAX_EVENTS:
        raise InvalidInput(field, f"must be a list of 1 to {MAX_EVENTS} events")
    for place, record in enumerate(events):
        inner = f"{field}[{place}]"
        must_be(dict, record, inner, "an object")
        _check_members(record, _MEMBERS, inner)
        for name in ("type", *(text for text in _TEXTS if text in record)):
            must_be(str, record.get(name), f"{inner}.{name}", "text")
        must_be_list(str, record.get("tags", []), f"{inner}.tags")
        for name in ("data64", "meta64"):
            if name in record and name.removesuffix("64") in record:
                raise InvalidInput(
                    f"{inner}.{name}", f"must not be given together with {name.removesuffix('64')}"
                )
            try:
                b64decode(record.get(name, ""), validate=True)
            except (ValueError, TypeError) as error:
                raise InvalidInput(f"{inner}.{name}", f"must be base64: {error}") from None


def _joined(own: Body, setting: Body) -> Body:
    """Return an event's metadata with the members of its setting's metadata that it lacks.

    Metadata that is no JSON object is not joined.
    """
    if not setting or isinstance(own, Claim):
        return own
    if not own:
        return setting
    members = None if isinstance(setting, Claim) else _object(setting)
    return own if members is None else json.with_members(own, members) or own


def _object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; None if the body is no JSON object."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
