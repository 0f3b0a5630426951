"""The handlers of the two reactions that run a process.

    <name>-inbox     on the categories of inputs, and on the instances' own streams: each input is one append
    <name>-outbox    on the instances' streams: performs outputs, in order, and notes in the stream how far it is

They are reactions like any other: they come again, park, are replayed, skipped and steered. What that means here:

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

from epochal.deciders.codecs import Stored
from epochal.deciders.on_streams import Deciders, transact_all
from epochal.errors import InvalidInput, StreamDeleted, UnknownType
from epochal.feed.history import FeedEvent
from epochal.layout.port import source_of
from epochal.lazy_dataclasses import replace
from epochal.model.events import Event, content_of
from epochal.model.kinds import must_be_done
from epochal.processes.outputs import (
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
from epochal.reactions.cloudevents import cloud_event, message
from epochal.reactions.reaction import Delivery
from epochal.scheduling import event_of
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.processes.process import Instance, OnPassed, Passed, Process

HOME: Final = "pages"
"""The layout of instances' streams."""


class Inbox:
    """Takes inputs."""

    def __init__(self, process: Process, streams: Streams, on_passed: OnPassed) -> None:
        self.process, self.on_passed = process, on_passed
        self.instances = process.instances(streams)

    def __call__(self, delivery: Delivery) -> None:
        """Append what each input leads to."""
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
            given = Stored(
                type=event.type,
                data=event.content,
                meta=content_of(event.meta),
                timestamp=event.timestamp,
                index=event.index,
                stream=event.stream,
            )
            stream = event.stream if own else self.process.instance_of(given)
            if stream is None:
                continue
            try:
                why = self._take(stream, f"{layout}/{event.stream}", given)
            except StreamDeleted:  # so is an instance that nobody wants any more
                why = "late"
            if why is not None:
                self.on_passed(why, event)

    def _take(self, stream: str, source: str, given: Stored) -> Passed | None:
        """Take an input of a source, once it is known which streams of its name are others."""
        apart: frozenset[str] = frozenset()
        while True:
            take = partial(self.process.take, stream, source, given, apart=apart)
            why, _ = self.instances.transact_result(stream, take)
            if why != "copy" or (found := self._apart(stream, source, given)) <= apart:
                return why
            apart = found

    def _apart(self, stream: str, source: str, given: Stored) -> frozenset[str]:
        """Sources of other layouts whose stream of this name has another event at this index.

        A copy has the type, the body and the time of its original. Of an event that was not taken the time alone is
        known: it is not after that of the next one. Where that was pruned, it is a copy.
        """
        taken: dict[str, Stored] = {}
        for event in self.instances.streams.read(stream, types={INPUT}):
            told = told_by(event)
            other, _, index = told["of"].rpartition("@")
            if other != source and other.partition("/")[2] == given.stream and int(index) >= given.index:
                taken.setdefault(other, message_in(told, given.stream, int(index)))
        return frozenset(
            other
            for other, had in taken.items()
            if (
                (had.type, had.data, had.timestamp) != (given.type, given.data, given.timestamp)
                if had.index == given.index
                else had.timestamp < given.timestamp
            )
        )


class Outbox:
    """Performs outputs."""

    def __init__(self, process: Process, streams: Streams) -> None:
        self.process, self.streams = process, streams
        self.instances = process.instances(streams)

    def __call__(self, delivery: Delivery) -> None:
        """Perform outputs, and note how far that is."""
        try:
            instance = self.instances.query(delivery.stream, lambda found: found)
        except StreamDeleted:
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
            with suppress(Exception):  # an output's failure is what is told of, not its note's
                self._noted(delivery.stream, noted, below)
            raise
        self._noted(delivery.stream, noted, below)

    def _noted(self, stream: str, noted: int, below: int) -> None:
        if below > noted:
            self.instances.transact(stream, partial(_note, below=below))

    def _perform(self, rules: Process, event: FeedEvent) -> bool:
        """Perform an output; whether it is noted with that, too."""
        told, below, key = told_by(event), event.index + 1, f"{event.stream}@{event.index}"
        if event.type == SEND:
            self._send(rules, event, told)
            return True
        if event.type == APPEND:
            try:
                self.streams.append(told["to"], [*map(event_of, told["events"])], idempotency_key=key)
            except StreamDeleted as error:
                self._gone(event, told, error)
                return True
            return False
        target, given = _target(rules, told["to"]), message_in(told, event.stream, event.index)
        if event.type == PUBLISH:
            shown = cloud_event(replace(event, type=given.type, data=given.data))
            assert shown is not None  # noqa: S101  nothing is left out without a codec
            must_be_done(target([message(event, shown, rules.name)]), told["to"])
            return False
        answer = must_be_done(target(_read(rules, given), key), told["to"])
        if answer is None:
            return False
        try:
            came = rules.codec.encode(answer)
        except InvalidInput as error:
            raise InvalidInput(told["to"], "must return None, or an event of the codec") from error
        note = partial(_note, below=below, events=[came])
        self.instances.transact(event.stream, note)
        return True

    def _send(self, rules: Process, event: FeedEvent, told: dict[str, Any]) -> None:
        """Decide on a command, and note it, in one transaction: once, whatever comes again, and whoever is late."""
        target: Target = _target(rules, told["to"].partition("-")[0])
        command = _read(rules, message_in(told, event.stream, event.index))
        below = event.index + 1

        def decide(state: Any, instance: Instance) -> tuple[Any, Any]:
            if instance.performed >= below:
                return (), ()
            try:
                return target.decider.decide(command, state), _note(instance, below=below)
            except target.refusals as error:
                return (), [_refused(told, error, below)]

        deciders = Deciders(
            streams=self.streams, decider=target.decider, codec=target.codec, access=target.access
        )
        try:
            transact_all((deciders.on(told["to"]), self.instances.on(event.stream)), decide)
        except StreamDeleted as error:
            self._gone(event, told, error)

    def _gone(self, event: FeedEvent, told: dict[str, Any], error: StreamDeleted) -> None:
        """Note that the stream was deleted, which whatever is for it meets: an answer, too."""
        below = event.index + 1
        gone = _refused(told, error, below)
        self.instances.transact(event.stream, lambda found: () if found.performed >= below else [gone])


def _target(rules: Process, name: str) -> Any:
    """What performs an output, which a later version of the program may lack."""
    if name not in rules.targets:
        raise InvalidInput("targets", f"must have {name!r}, which an output is for that waits")
    return rules.targets[name]


def _read(rules: Process, given: Stored) -> Any:
    """A message, of a type that a later version of the program may not know."""
    found = rules.codec.decode(given)
    if found is None:
        raise UnknownType(given.stream, given.index, given.type)
    return found


def _refused(told: dict[str, Any], error: Exception, below: int) -> Event:
    words = {"error": type(error).__name__, "text": str(error), "below": below}
    return record(REFUSED, {**told, **words})


def _note(instance: Instance, *, below: int, events: Sequence[Event] = ()) -> Sequence[Event]:
    """That outputs have been performed, and what came of the last; nothing where that is noted."""
    return () if instance.performed >= below else [*events, record(PERFORMED, {"below": below})]
