"""The handlers of the two reactions that run a process.

    <name>-inbox     on the categories of inputs, and on the instances' own streams: each input is one append
    <name>-outbox    on the instances' streams: performs outputs, in order, and notes in the stream how far it is

They are retried, parked, replayed, skipped and steered like any other reaction. What that means here:

    an input comes again            the instance has had it, and passes it
    an output comes again           it is below what has been performed, and passed
     └ its note was lost            it is performed again, under the key that it had
    a command comes again           it is never decided on twice: what came of it and the note are one transaction
    an output keeps failing         it parks its instance, whose later outputs wait; inputs and timers are still taken
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.contrib.processes.sealed_state import seal, subjects_in
from epochal.contrib.publish.cloudevents import cloud_event
from epochal.contrib.publish.cloudevents import message as message_of
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import Stored
from epochal.deciders.loading import AllowStale
from epochal.deciders.on_streams import Deciders, handle_all
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted, UnknownType
from epochal.feed.events import FeedEvent
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import replace
from epochal.model.bodies import content_of
from epochal.model.events import Event
from epochal.model.plain_functions import must_be_done
from epochal.reactions.definition import Delivery
from epochal.scheduling import event_of
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.contrib.processes.process import Instance, Passed, Process
    from epochal.reactions.composite import OnPassed
from epochal.contrib.processes.outputs import (
    APPEND,
    INPUT,
    PERFORMED,
    PUBLISH,
    REFUSED,
    SEND,
    Target,
    message_in,
    record,
    told_by,
)

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
        """Take each event of a delivery as an input: append its outputs, or report why it was skipped.

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
            if why != "copy" or (index := self._apart(stream, source, given)) <= apart:
                return why
            apart = index

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
    """Return whether an instance's stream was deleted and left open, so that its state is gone.

    Pruning alone leaves the state, so an instance that lacks it was deleted, whatever was appended to it since.
    """
    if error.stream != stream:
        return False
    state = streams.load(stream, events=False)
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
        # For this delivery alone: what is noted at its end is decided on the state that it began with, without another
        # read, and on the latest one if that has changed.
        instances = replace(self.instances, cache=Cache(entries=1))
        try:
            instance = instances.query(delivery.stream, lambda state: state)
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
                _append_note(instances, delivery.stream, noted, below)
            raise
        _append_note(instances, delivery.stream, noted, below)

    def _perform(self, rules: Process, event: FeedEvent) -> bool:
        """Perform one output; return whether a note of this was appended with it."""
        request, below, key = told_by(event), event.index + 1, f"{event.stream}@{event.index}"
        if event.type == SEND:
            return self._send(rules, event, request)
        if event.type == APPEND:
            try:
                self.streams.append(request["to"], [*map(event_of, request["events"])], idempotency_key=key)
            except StreamDeleted as error:
                self._append_refusal(event, request, error)
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

    def _send(self, rules: Process, event: FeedEvent, record: dict[str, Any]) -> bool:
        """Decide on a command, append events and note in one transaction; False if its person is forgotten.

        So the command is decided on exactly once, even if the output is delivered again or concurrently. False means
        that the command cannot be read any more, so there is nothing to decide and no note.
        """
        target: Target = _target(rules, record["to"].partition("-")[0])
        command = _read(rules, message_in(record, event.stream, event.index))
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
                return (), [_refused(record, error, below, _words(rules, instance, record, error))]

        deciders = Deciders(
            streams=self.streams, decider=target.decider, codec=target.codec, access=target.access
        )
        try:
            handle_all((deciders.on(record["to"]), self.instances.on(event.stream)), decide)
        except StreamDeleted as error:
            self._append_refusal(event, record, error)
        return True

    def _append_refusal(self, event: FeedEvent, record: dict[str, Any], error: StreamDeleted) -> None:
        """Append a refusal which says that the stream an output is for was deleted, unless one is noted.

        A call's answer can meet this as well.
        """
        below = event.index + 1
        refusal = _refused(record, error, below, str(error))
        self.instances.handle(
            event.stream, decide=lambda state: () if state.performed >= below else [refusal]
        )


def _append_note(instances: Deciders[Any, Instance, Any], stream: str, noted: int, below: int) -> None:
    """Append a note that outputs below an index have been performed, unless there is one already."""
    if below > noted:
        instances.handle(stream, decide=partial(_note, below=below), load=AllowStale())


def _target(rules: Process, name: str) -> Any:
    """Return the target of an output by its name; raise `InvalidInput` if the process has none.

    Raises:
        InvalidInput: this version of the program has no such target.
    """
    if name not in rules.targets:
        raise InvalidInput("targets", f"must include {name!r}: a waiting output is addressed to it")
    return rules.targets[name]


def _read(rules: Process, given: Stored) -> Any:
    """Decode the message of an output; None if its person is forgotten, raise if its type is unknown.

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


def _refused(members: dict[str, Any], error: Exception, below: int, text: Any) -> Event:
    """Make the event which records that the output just below index `below` was refused.

    It says as well that all outputs below the index are performed.
    """
    return record(REFUSED, {**members, "error": type(error).__name__, "text": text, "below": below})


def _words(rules: Process, instance: Instance, record: dict[str, Any], error: Exception) -> Any:
    """Return the message of a refusal, sealed if the command or an input is sealed: it may quote a person."""
    sealing = rules.codec.sealing
    subjects = instance.subjects | subjects_in(record)
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
