"""What a process answers an input with, how that is stored in its instance's stream, and the two reactions that do it.

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
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.codec import json
from epochal.contrib.processes.sealed_state import seal, subjects_in
from epochal.contrib.publish.cloudevents import cloud_event
from epochal.contrib.publish.cloudevents import message as message_of
from epochal.deciders.access import UNOPTIMIZED, Access
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted, UnknownType
from epochal.feed.events import FeedEvent
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import content_of
from epochal.model.events import Event
from epochal.model.kinds import must_be, must_be_done
from epochal.model.stream_names import stream_name
from epochal.model.timers import Later
from epochal.reactions.definition import Delivery
from epochal.scheduling import event_of, event_record, later, name_cancelled
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.contrib.processes.process import Instance, Passed, Process
    from epochal.reactions.composite import OnPassed


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
    """Output: send a command to a decider, which decides on it exactly once.

    Attributes:
        to: name of a stream, such as `Payment-17`, or its category, for the stream with the instance's key as its id.
            The category is the name of the target.
        command: command that the process's codec encodes.
    """

    to: str
    command: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Output: append events to a stream, once.

    Attributes:
        to: name of a stream, or its category, as for `Send`.
        events: events that the process's codec encodes.
    """

    to: str
    events: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Publish:
    """Output: send a message as a CloudEvent, with an id that names this output.

    Attributes:
        to: name of the target, a `Send` function of `epochal.contrib.publish.recipients`.
        message: message that the process's codec encodes.
    """

    to: str
    message: Any


@dataclass(frozen=True, slots=True)
class Call:
    """Output: call a target function with a message, and take its answer as an input, once.

    The function gets the message and a key, which is the same whenever it is called for this output. It returns None,
    or an event of the process's codec.

    Attributes:
        to: name of the target.
        message: message that the process's codec encodes.
    """

    to: str
    message: Any


@dataclass(frozen=True, slots=True)
class Done:
    """Output: end the instance, which takes no more inputs. Its pending timers are cancelled."""


Output = Send | Append | Publish | Call | Later | Event | Done
"""An output that `react` returns: one of these classes, or a timer that it sets by `later` or cancels by `cancel`.

The event of a timer becomes an input when the timer is due: `later("overdue", [Overdue()], at=after(days=14))`.
"""


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """Input: a decider refused a command, or the stream for a command or events was deleted.

    A refused command has changed nothing.

    Attributes:
        command: command that was sent; the tuple of events of an `Append`.
        error: name of the class of the decider's error, or `StreamDeleted`.
        text: message of the error.
        to: name of the stream that the output was for.
    """

    command: Any
    error: str = ""
    text: str = ""
    to: str = ""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A decider to which commands are sent.

    Attributes:
        decider: the decider.
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


def record(type_: str, told: Mapping[str, Any]) -> Event:
    """Make an event of an instance's stream, with the given type and JSON data."""
    return Event(type=type_, data=json.dumps(told))


def message_in(told: Mapping[str, Any], stream: str = "", index: int = 0) -> Stored:
    """Return the message in the data of an instance's event, for the codec to decode."""
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
    """Encode an output of an instance as an event of the instance's stream.

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
                raise InvalidInput("react", f"must append events to {to}, not none")
            return record(APPEND, {"to": stream_for(to, instance), "events": records})
        case Publish(to=to, message=message) | Call(to=to, message=message):
            _check(callable(targets.get(to)), to, "a function")
            return record(
                PUBLISH if isinstance(output, Publish) else CALL,
                {"to": to, **event_record(codec.encode(message))},
            )
        case Later(name=name, events=[message], at=at, tags=()):
            return later(name, [codec.encode(message)], at=at)
        case Later():
            raise InvalidInput(
                "react", "must set timers of one event, which becomes an input, and without tags"
            )
        case Event() if name_cancelled(output) is not None:
            return output
        case Done():
            return record(DONE, {})
        case _:
            raise InvalidInput("react", f"must answer with outputs, not {type(output).__name__}")


def _check(there: bool, name: str, what: str) -> None:
    """Raise `InvalidInput` unless the target of an output is there; `what` names its kind."""
    if not there:
        raise InvalidInput("targets", f"must have {what} for {name!r}, which `react` has an output for")


# The handlers of the two reactions that run a process.
#
#     <name>-inbox     on the categories of inputs, and on the instances' own streams: each input is one append
#     <name>-outbox    on the instances' streams: performs outputs, in order, and notes in the stream how far it is
#
# They are retried, parked, replayed, skipped and steered like any other reaction. What that means here:
#
#     an input comes again            the instance has had it, and passes it
#     an output comes again           it is below what has been performed, and passed
#      └ its note was lost            it is performed again, under the key that it had
#     a command comes again           it is never decided on twice: what came of it and the note are one transaction
#     an output keeps failing         it parks its instance, whose later outputs wait; inputs and timers are still taken

HOME: Final = "pages"
"""Layout of the instances' streams."""


class Inbox:
    """Handler of the reaction that takes inputs: appends what they lead to.

    Attributes:
        process: the process.
        on_passed: called with each input that is skipped, and the reason.
        instances: the process's instances in the store.
    """

    def __init__(self, process: Process, streams: Streams, on_passed: OnPassed) -> None:
        self.process, self.on_passed = process, on_passed
        self.instances = process.instances(streams)

    def __call__(self, delivery: Delivery) -> None:
        """Take each event of a delivery as an input: append the outputs that it leads to.

        Events of other streams and of the instances' own records are ignored. Skipped inputs are reported to
        `on_passed`.
        """
        layout = source_of(delivery.partition)
        own = layout == HOME and delivery.stream.startswith(f"{self.process.name}-")
        if not own and layout not in self.process.sources:
            return
        for event in delivery.each():
            if own and event.type.startswith("$") and event.type != REFUSED:
                continue
            if event.gone is not None:
                self.on_passed("gone", event)
                continue
            stored_input = Stored(
                type=event.type,
                data=event.content,
                meta=content_of(event.meta),
                timestamp=event.timestamp,
                index=event.index,
                stream=event.stream,
            )
            stream = event.stream if own else self.process.instance_of(stored_input)
            if stream is None:
                continue
            try:
                why = self._take(stream, f"{layout}/{event.stream}", stored_input)
            except StreamDeleted:  # the user deleted the instance
                why = "late"
            except EventsPruned as error:
                if not _was_emptied(self.instances.streams, stream, error):
                    raise
                why = "late"
            if why is not None:
                self.on_passed(why, event)

    def _take(self, stream: str, source: str, given: Stored) -> Passed | None:
        """Append what an input leads to in an instance's stream; return why it was skipped, or None.

        If the input seems to be a copy of one from another layout, the sources that prove to be other streams are
        looked up, and the input is tried again.
        """
        apart: frozenset[str] = frozenset()
        while True:
            take = partial(self.process.take, stream, source, given, apart=apart)
            why, _ = self.instances.handle(stream, decide=take, with_result=True)
            if why != "copy" or (found := self._apart(stream, source, given)) <= apart:
                return why
            apart = found

    def _apart(self, stream: str, source: str, given: Stored) -> frozenset[str]:
        """Return sources in other layouts whose stream of the same name is a different stream, not a copy.

        A copy has the type, the body and the timestamp of its original. Of an event that was not taken, only the
        timestamp can be compared: it is not after that of the next event that was taken. If the record of that event
        was pruned, the stream counts as a copy.
        """
        stored_by_source: dict[str, Stored] = {}
        for event in self.instances.streams.read(stream, types={INPUT}):
            message = told_by(event)
            other, _, index = message["of"].rpartition("@")
            if other != source and other.partition("/")[2] == given.stream and int(index) >= given.index:
                stored_by_source.setdefault(other, message_in(message, given.stream, int(index)))
        return frozenset(
            other
            for other, had in stored_by_source.items()
            if (
                (had.type, had.data, had.timestamp) != (given.type, given.data, given.timestamp)
                if had.index == given.index
                else had.timestamp < given.timestamp
            )
        )


def _was_emptied(streams: Streams, stream: str, error: EventsPruned) -> bool:
    """Return whether an instance's stream was deleted and left open: its state is gone with its events.

    Pruning alone leaves the state, so an instance that lacks it was deleted, whatever was appended to it since.
    """
    if error.stream != stream:
        return False
    state = streams.load(stream)
    return state is not None and not state.unfolds


class Outbox:
    """Handler of the reaction that performs outputs.

    Attributes:
        process: the process.
        streams: the store of streams that outputs are appended to.
        instances: the process's instances in the store.
    """

    def __init__(self, process: Process, streams: Streams) -> None:
        self.process, self.streams = process, streams
        self.instances = process.instances(streams)

    def __call__(self, delivery: Delivery) -> None:
        """Perform the delivered outputs that are not yet performed, and note in the stream how far it got.

        If an output fails, those before it are noted first.
        """
        try:
            instance = self.instances.query(delivery.stream, lambda found: found)
        except StreamDeleted:
            return
        except EventsPruned as error:
            if not _was_emptied(self.streams, delivery.stream, error):
                raise
            return
        rules = self.process.of(instance.version)
        noted = below = instance.performed
        try:
            for event in delivery.each():
                if event.index >= noted and event.gone is None:
                    if self._perform(rules, event):
                        noted = event.index + 1
                    below = event.index + 1
        except Exception:
            with suppress(Exception):  # the failure of the output is raised, not that of the note
                self._noted(delivery.stream, noted, below)
            raise
        self._noted(delivery.stream, noted, below)

    def _noted(self, stream: str, noted: int, below: int) -> None:
        """Append a note that outputs below an index have been performed, unless there is one already."""
        if below > noted:
            self.instances.handle(stream, decide=partial(_note, below=below))

    def _perform(self, rules: Process, event: FeedEvent) -> bool:
        """Perform one output; return whether a note of this was appended with it."""
        request, below, key = told_by(event), event.index + 1, f"{event.stream}@{event.index}"
        if event.type == SEND:
            return self._send(rules, event, request)
        if event.type == APPEND:
            try:
                self.streams.append(request["to"], [*map(event_of, request["events"])], idempotency_key=key)
            except StreamDeleted as error:
                self._gone(event, request, error)
                return True
            return False
        target, given = _target(rules, request["to"]), message_in(request, event.stream, event.index)
        if event.type == PUBLISH:
            shown = cloud_event(replace(event, type=given.type, data=given.data))
            assert shown is not None  # noqa: S101  nothing is left out without a codec
            must_be_done(target([message_of(event, shown, rules.name)]), request["to"])
            return False
        message = _read(rules, given)
        if message is None:
            return False
        answer = must_be_done(target(message, key), request["to"])
        if answer is None:
            return False
        try:
            encoded = rules.codec.encode(answer)
        except InvalidInput as error:
            raise InvalidInput(request["to"], "must return None, or an event of the codec") from error
        note = partial(_note, below=below, events=[encoded])
        self.instances.handle(event.stream, decide=note)
        return True

    def _send(self, rules: Process, event: FeedEvent, told: dict[str, Any]) -> bool:
        """Decide on a command, append the events and the note in one transaction; return whether it did.

        So the command is decided on exactly once, even if the output is delivered again or concurrently. False means
        that the command cannot be read any more, so there is nothing to decide and no note.
        """
        target: Target = _target(rules, told["to"].partition("-")[0])
        command = _read(rules, message_in(told, event.stream, event.index))
        if command is None:
            return False
        below = event.index + 1

        def decide(state: Any, instance: Instance) -> tuple[Any, Any]:
            """Return new events for the decider's stream and the instance's; none if performed already."""
            if instance.performed >= below:
                return (), ()
            try:
                return target.decider.decide(command, state), _note(instance, below=below)
            except target.refusals as error:
                return (), [_refused(told, error, below, _words(rules, instance, told, error))]

        deciders = Deciders(
            streams=self.streams, decider=target.decider, codec=target.codec, access=target.access
        )
        try:
            handle_all((deciders.on(told["to"]), self.instances.on(event.stream)), decide)
        except StreamDeleted as error:
            self._gone(event, told, error)
        return True

    def _gone(self, event: FeedEvent, told: dict[str, Any], error: StreamDeleted) -> None:
        """Append a refusal which says that the stream an output is for was deleted, unless one is noted.

        A call's answer can meet this as well.
        """
        below = event.index + 1
        refusal = _refused(told, error, below, str(error))
        self.instances.handle(
            event.stream, decide=lambda found: () if found.performed >= below else [refusal]
        )


def _target(rules: Process, name: str) -> Any:
    """Return the target of an output by its name.

    Raises:
        InvalidInput: this version of the program has no such target.
    """
    if name not in rules.targets:
        raise InvalidInput("targets", f"must have {name!r}, which an output is for that waits")
    return rules.targets[name]


def _read(rules: Process, given: Stored) -> Any:
    """Decode the message of an output.

    Returns None if the message is sealed for a person who is forgotten, and the codec has no substitute: then there is
    nothing to perform.

    Raises:
        UnknownType: this version of the program does not know the message's type.
    """
    message = rules.codec.decode(given)
    if message is None:
        sealing = rules.codec.sealing
        if sealing is not None and sealing.unseal(given.data) is None:
            return None
        raise UnknownType(given.stream, given.index, given.type)
    return message


def _refused(told: dict[str, Any], error: Exception, below: int, text: Any) -> Event:
    """Make the event which records that the output just below index `below` was refused.

    It says as well that all outputs below the index are performed.
    """
    return record(REFUSED, {**told, "error": type(error).__name__, "text": text, "below": below})


def _words(rules: Process, instance: Instance, told: dict[str, Any], error: Exception) -> Any:
    """Return the message of a refusal, sealed if the command or an input is sealed: it may quote a person."""
    sealing = rules.codec.sealing
    subjects = instance.subjects | subjects_in(told)
    if sealing is None or not subjects:
        return str(error)
    return seal(sealing, subjects, {"text": str(error)})


def _note(instance: Instance, *, below: int, events: Sequence[Event] = ()) -> Sequence[Event]:
    """Return the events which note that outputs below an index are performed; none if noted already.

    Args:
        below: index below which all outputs are performed.
        events: events that came of the last output, which become inputs.
    """
    return () if instance.performed >= below else [*events, record(PERFORMED, {"below": below})]
