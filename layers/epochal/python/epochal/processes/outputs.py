"""What a process answers an input with, and how that is stored in its instance's stream.

    $input      an input that was taken: which event it was, which version of the process took it, a copy, and the names
                of timers that have been set and not cancelled
    $send       a command, and the stream that it is for
    $append     events, and the stream that they are for
    $publish    a message, and the target that it is for
    $call       a message, and the function that it is for
    $performed  all outputs below an index have been performed
    $refused    so they have, and the last of them was refused, a command or events: an input
    $done       the instance takes no more inputs

These names and forms are in streams, and so outlive the code. Timers are events of `model.timers`. A message is stored
as the process's codec writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.folding import UNOPTIMIZED, Access
from epochal.deciders.on_streams import Decider
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Event, content_of, stream_name
from epochal.model.kinds import must_be
from epochal.scheduling import At, call_off, event_of, event_record, later

INPUT: Final = "$input"
SEND: Final = "$send"
APPEND: Final = "$append"
PUBLISH: Final = "$publish"
CALL: Final = "$call"
PERFORMED: Final = "$performed"
REFUSED: Final = "$refused"
DONE: Final = "$done"

PERFORMS: Final = frozenset({SEND, APPEND, PUBLISH, CALL})
"""What the outbox performs."""


@dataclass(frozen=True, slots=True)
class Send:
    """A command to a decider, decided on once.

    Attributes:
        to: a stream, as `Payment-17`; or its category, for the stream whose id is the instance's key. The category is
            the name of the target.
        command: one of the process's codec.
    """

    to: str
    command: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Events to a stream, appended once.

    Attributes:
        to: a stream, or its category, as for `Send`.
        events: of the process's codec.
    """

    to: str
    events: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Publish:
    """A message to a target, which is a `Send` of `hosting.recipients`: as a CloudEvent, named by its output."""

    to: str
    message: Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a target, which is a function of the message and a key that is the same whenever it is called for this
    output. What it answers, None or an event of the process's codec, comes back as an input, once.
    """

    to: str
    message: Any


@dataclass(frozen=True, slots=True)
class After:
    """An event that becomes an input later, unless it is cancelled or set anew before it has fired.

    Attributes:
        at: when: `in_(minutes=30)`, or a moment.
        event: one of the process's codec.
        name: of the timer; that of the event's class where there is none.
    """

    at: At
    event: Any
    name: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """No timer of this name any more: a text, or the class of its event."""

    timer: str | type


@dataclass(frozen=True, slots=True)
class Done:
    """The instance takes no more inputs. Timers that are set are cancelled."""


Output = Send | Append | Publish | Call | After | Cancel | Done
"""What `react` answers with."""


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """An input: a command was refused by its decider, and changed nothing; or a stream that was to get a command or
    events was deleted.

    Attributes:
        command: as it was sent; of an `Append` the tuple of its events.
        error: the class of what the decider raised, or `StreamDeleted`.
        text: its words.
        to: the stream that it was for.
    """

    command: Any
    error: str = ""
    text: str = ""
    to: str = ""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A decider that commands are sent to.

    Attributes:
        codec: of the decider's events.
        refusals: errors of the domain by which the decider refuses. Others are failures: the command is tried again.
    """

    decider: Decider[Any, Any, Any]
    codec: EventCodec[Any]
    access: Access[Any, Any] = UNOPTIMIZED
    refusals: tuple[type[Exception], ...] = ()


def timer_of(output: After | Cancel) -> str:
    """The name of a timer."""
    if isinstance(output, After):
        return output.name or type(output.event).__name__
    must_be((str, type), output.timer, "timer", "a name, or the class of an event")
    return output.timer if isinstance(output.timer, str) else output.timer.__name__


def record(type_: str, told: Mapping[str, Any]) -> Event:
    """An event of the instance's stream."""
    return Event(type=type_, data=json.dumps(told))


def message_in(told: Mapping[str, Any], stream: str = "", index: int = 0) -> Stored:
    """The message in such an event, for its codec."""
    event = event_of(told)
    return Stored(
        type=event.type,
        data=event.content,
        meta=content_of(event.meta),
        timestamp=event.timestamp or "",
        stream=stream,
        index=index,
    )


def told_by(event: Any) -> dict[str, Any]:
    """What such an event says."""
    told: dict[str, Any] = json.loads(content_of(event.data))
    return told


def stream_for(to: str, instance: str) -> str:
    """The stream that a category stands for in an instance: that of its key.

    Raises:
        InvalidInput: no stream could have this name.
    """
    must_be(str, to, "to", "text")
    return stream_name(to if "-" in to else f"{to}-{instance.partition('-')[2]}", "to")


def stored(output: Output, instance: str, codec: EventCodec[Any], targets: Mapping[str, Any]) -> Event:
    """An output of the instance of a stream as an event.

    Raises:
        InvalidInput: it is none, for a target that there is not, or one that could never be performed.
    """
    match output:
        case Send(to=to, command=message):
            stream = stream_for(to, instance)
            _check(isinstance(targets.get(stream.partition("-")[0]), Target), to, "a decider")
            if stream == instance:
                raise InvalidInput("react", f"must not send a command to {stream}, the instance's own stream")
            return record(SEND, {"to": stream, **event_record(codec.encode(message))})
        case Append(to=to, events=events):
            must_be(Iterable, events, "events", "a list of events")
            told = [event_record(codec.encode(event)) for event in events]
            if not told:
                raise InvalidInput("react", f"must append events to {to}, not none")
            return record(APPEND, {"to": stream_for(to, instance), "events": told})
        case Publish(to=to, message=message) | Call(to=to, message=message):
            _check(callable(targets.get(to)), to, "a function")
            return record(
                PUBLISH if isinstance(output, Publish) else CALL,
                {"to": to, **event_record(codec.encode(message))},
            )
        case After(at=at, event=message):
            return later(timer_of(output), [codec.encode(message)], at=at)
        case Cancel():
            return call_off(timer_of(output))
        case Done():
            return record(DONE, {})
        case _:
            raise InvalidInput("react", f"must answer with outputs, not {type(output).__name__}")


def _check(there: bool, name: str, what: str) -> None:
    if not there:
        raise InvalidInput("targets", f"must have {what} for {name!r}, which `react` has an output for")
