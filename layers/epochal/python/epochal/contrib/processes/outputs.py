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

These names and forms are in streams, and so outlive the code. Timers are events of `epochal.scheduling`. A message is
stored as the process's codec writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.access import UNOPTIMIZED, Access
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.on_streams import Decider
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import content_of
from epochal.model.events import Event
from epochal.model.kinds import must_be
from epochal.model.stream_names import stream_name
from epochal.model.timers import Later
from epochal.scheduling import event_of, event_record, later, name_cancelled

INPUT: Final = "$input"
SEND: Final = "$send"
APPEND: Final = "$append"
PUBLISH: Final = "$publish"
CALL: Final = "$call"
PERFORMED: Final = "$performed"
REFUSED: Final = "$refused"
DONE: Final = "$done"

PERFORMS: Final = frozenset({SEND, APPEND, PUBLISH, CALL})
"""Types of the events that the outbox performs."""


@dataclass(frozen=True, slots=True)
class Send:
    """Output of a process: send a command to a decider, which decides on it exactly once.

    Attributes:
        to: name of a stream, such as `Payment-17`, or a category, for the stream with the instance's key as its id. The
            process's `targets` name the decider of each category.
        command: command to send, of a class that the process's codec encodes.
    """

    to: str
    command: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Output of a process: append events to a stream, once.

    Attributes:
        to: name of a stream, such as `Payment-17`, or a category, for the stream with the instance's key as its id.
        events: events to append, of classes that the process's codec encodes.
    """

    to: str
    events: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Publish:
    """Output of a process: send a message as a CloudEvent, whose id is the same whenever it is sent again.

    Attributes:
        to: name, among the process's `targets`, of a `Send` function of `epochal.contrib.publish.recipients`.
        message: message to send, of a class that the process's codec encodes.
    """

    to: str
    message: Any


@dataclass(frozen=True, slots=True)
class Call:
    """Output of a process: call a target function with a message, and take its answer as an input, once.

    The function gets the message and a key, which is the same whenever it is called for this output. It returns None,
    or an event of the process's codec.

    Attributes:
        to: name of the function among the process's `targets`.
        message: argument of the function, of a class that the process's codec encodes.
    """

    to: str
    message: Any


@dataclass(frozen=True, slots=True)
class Done:
    """Output of a process: end the instance, which takes no more inputs and whose pending timers are cancelled."""


Output = Send | Append | Publish | Call | Later | Event | Done
"""What `react` returns: `Send`, `Append`, `Publish`, `Call`, `Done`, or a timer, by `later` or `cancel`.

The event of a timer becomes an input when the timer is due: `later("overdue", [Overdue()], at=after(days=14))`.
"""


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """Input of a process: a decider refused its command, or the stream for its command or events was deleted.

    A refused command has changed nothing.

    Attributes:
        command: command that the process sent, or the tuple of events that it wanted to append.
        error: name of the class of the error by which the decider refused, or `StreamDeleted`.
        text: message of the error by which the command or events were refused.
        to: name of the stream to which the command or events were sent.
    """

    command: Any
    error: str = ""
    text: str = ""
    to: str = ""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A decider to which a process sends commands.

    Attributes:
        decider: rules of the domain that decide on the commands.
        codec: codec of the decider's events.
        access: what the decider reads and stores; see `epochal.deciders.access`.
        refusals: errors of the domain by which the decider refuses a command. After any other error, the command is
            tried again.
    """

    decider: Decider[Any, Any, Any]
    codec: EventCodec[Any]
    access: Access[Any, Any] = UNOPTIMIZED
    refusals: tuple[type[Exception], ...] = ()


def timer_of(output: Output) -> str | None:
    """Return the name of the timer that an output sets or cancels; None for other outputs."""
    if isinstance(output, Later):
        return output.name
    return name_cancelled(output) if isinstance(output, Event) else None


def record(type_: str, members: Mapping[str, Any]) -> Event:
    """Make an event of an instance's stream, with the given type and JSON data."""
    return Event(type=type_, data=json.dumps(members))


def message_in(members: Mapping[str, Any], stream: str = "", index: int = 0) -> Stored:
    """Return the message in the data of an instance's event, for the codec to decode."""
    event = event_of(members)
    return Stored(
        type=event.type,
        data=event.content,
        meta=content_of(event.meta),
        timestamp=event.timestamp or "",
        stream=stream,
        index=index,
    )


def told_by(event: Any) -> dict[str, Any]:
    """Return the data of an instance's event, parsed as JSON."""
    message: dict[str, Any] = json.loads(content_of(event.data))
    return message


def stream_for(to: str, instance: str) -> str:
    """Return the stream that an output is for: `to` itself, or the category `to` with the instance's key.

    Raises:
        InvalidInput: no stream can have this name.
    """
    must_be(str, to, "to", "text")
    return stream_name(to if "-" in to else f"{to}-{instance.partition('-')[2]}", "to")


def stored(output: Output, instance: str, codec: EventCodec[Any], targets: Mapping[str, Any]) -> Event:
    """Encode an output of an instance as an event of the instance's stream; raise if it is invalid.

    Args:
        instance: name of the instance's stream.
        targets: targets of the process by their names.

    Raises:
        InvalidInput: it is not an output, its target does not exist, or it could never be performed.
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
            records = [event_record(codec.encode(event)) for event in events]
            if not records:
                raise InvalidInput("react", f"must append at least one event to {to}")
            return record(APPEND, {"to": stream_for(to, instance), "events": records})
        case Publish(to=to, message=message) | Call(to=to, message=message):
            _check(callable(targets.get(to)), to, "a function")
            return record(
                PUBLISH if isinstance(output, Publish) else CALL,
                {"to": to, **event_record(codec.encode(message))},
            )
        case Later(name=name, events=[message], at=due, tags=()):
            return later(name, [codec.encode(message)], at=due)
        case Later():
            raise InvalidInput(
                "react", "must set timers with exactly one event, which becomes an input, and without tags"
            )
        case Event() if name_cancelled(output) is not None:
            return output
        case Done():
            return record(DONE, {})
        case _:
            raise InvalidInput("react", f"must return outputs, not {type(output).__name__}")


def _check(there: bool, name: str, what: str) -> None:
    """Raise `InvalidInput` unless the target of an output is there; `what` names its kind."""
    if not there:
        raise InvalidInput(
            "targets", f"must include {what} for {name!r}, because `react` returned an output to it"
        )
