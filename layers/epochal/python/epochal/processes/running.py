"""The two reactions that run a process, on the stores of a deployment.

    <name>-inbox     on the categories of inputs, and on the instances' own streams: each input is one append
    <name>-outbox    on the instances' streams: performs outputs, in order, and notes in the stream how far it is

They are reactions like any other: they come again, park, are replayed, skipped and steered. What that means here:

    an input comes again            the instance has had it, and passes it
    an output comes again           it is below what has been performed, and passed
     └ its note was lost            it is performed again, under the key that it had
    a command comes again           never decided on twice: its events, or its refusal, are one transaction with the note
    an output keeps failing         it parks its instance, whose later outputs wait; inputs and timers are still taken
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from epochal.feed.results import FeedEvent
from epochal.layout.registry import source_of
from epochal.model.events import Event, content_of
from epochal.model.kinds import must_be_done
from epochal.processes.outputs import (
    PERFORMED,
    PERFORMS,
    REFUSED,
    Target,
    message_in,
    record,
    told_by,
    unpacked,
)
from epochal.processes.process import Instance, Passed, Process
from epochal.reactions.cloudevents import cloud_event, message
from epochal.reactions.reaction import Delivery, Reaction
from epochal.store.codecs import Stored
from epochal.store.deciders import Deciders, transact_all
from epochal.store.streams import Streams

HOME = "pages"
"""The layout of instances' streams."""

OnPassed = Callable[[Passed, FeedEvent], object]
"""Called with each input that is passed, and why."""


def reactions(
    process: Process, streams: Streams, on_passed: OnPassed = lambda _why, _event: None
) -> tuple[Reaction, Reaction]:
    """A process's inbox and outbox.

    Args:
        streams: where instances are, and what outputs are appended to.
        on_passed: called with each input that is passed, and why.
    """
    known = [rules.codec.types for rules in process.versions.values()]
    types = frozenset({REFUSED}.union(*known)) if all(known) else None
    categories = process.categories.union(*(rules.categories for rules in process.versions.values()))
    shared = {"members": process.members, "attempts": process.attempts}
    inbox = Reaction(
        name=f"{process.name}-inbox",
        handler=_Inbox(process, streams, on_passed),
        categories=categories | {process.name},
        types=types,
        early=(types or frozenset()) | {process.name},
        start=process.start,
        once=True,
        **shared,
    )
    outbox = Reaction(
        name=f"{process.name}-outbox",
        handler=_Outbox(process, streams),
        categories=frozenset({process.name}),
        types=PERFORMS,
        early=PERFORMS | {process.name},
        **shared,
    )
    return inbox, outbox


class _Inbox:
    """Takes inputs."""

    def __init__(self, process: Process, streams: Streams, on_passed: OnPassed) -> None:
        self.process, self.on_passed = process, on_passed
        self.instances = process.instances(streams)

    def __call__(self, delivery: Delivery) -> None:
        layout = source_of(delivery.partition)
        own = layout == HOME and delivery.stream.startswith(f"{self.process.name}-")
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
            take = partial(self.process.take, stream, f"{layout}/{event.stream}", given)
            why, _ = self.instances.transact_result(stream, take)
            if why is not None:
                self.on_passed(why, event)


class _Outbox:
    """Performs outputs."""

    def __init__(self, process: Process, streams: Streams) -> None:
        self.process, self.streams = process, streams
        self.instances = process.instances(streams)

    def __call__(self, delivery: Delivery) -> None:
        instance = self.instances.query(delivery.stream, lambda found: found)
        rules = self.process.of(instance.version)
        noted = below = instance.performed
        try:
            for event in delivery.each():
                if event.index >= noted:
                    if self._perform(rules, event, delivery):
                        noted = event.index + 1
                    below = event.index + 1
        finally:
            if below > noted:
                self.instances.transact(delivery.stream, partial(_note, below=below))

    def _perform(self, rules: Process, event: FeedEvent, delivery: Delivery) -> bool:
        """Perform an output; whether it is noted with that, too."""
        told, key = told_by(event), f"{event.stream}@{event.index}"
        match event.type:
            case "$send":
                self._send(rules, event, told)
                return True
            case "$append":
                events = [unpacked(each) for each in told["events"]]
                self.streams.append(told["to"], events, idempotency_key=key)
            case "$publish":
                shown = replace(event, type=told["type"], data=message_in(told).data)
                sent = cloud_event(shown)
                assert sent is not None  # noqa: S101  nothing is left out without a codec
                rules.targets[told["to"]]([message(shown, sent, rules.name)])
            case "$call":
                answer = rules.targets[told["to"]](rules.codec.decode(message_in(told)), key)
                if must_be_done(answer, told["to"]) is not None:
                    answered = [rules.codec.encode(answer)]
                    self.instances.transact(
                        event.stream, partial(_note, below=event.index + 1, events=answered)
                    )
                    return True
        return False

    def _send(self, rules: Process, event: FeedEvent, told: dict[str, Any]) -> None:
        """Decide on a command, and note it, in one transaction: once, whatever comes again, and whoever is late."""
        target: Target = rules.targets[told["to"].partition("-")[0]]
        command = rules.codec.decode(message_in(told))
        below = event.index + 1

        def decide(state: Any, instance: Instance) -> tuple[Any, Any]:
            if instance.performed >= below:
                return (), ()
            try:
                return target.decider.decide(command, state), _note(instance, below=below)
            except target.refusals as error:
                words = {"error": type(error).__name__, "text": str(error), "below": below}
                return (), [record(REFUSED, {**told, **words})]

        deciders = Deciders(
            streams=self.streams, decider=target.decider, codec=target.codec, access=target.access
        )
        transact_all((deciders.on(told["to"]), self.instances.on(event.stream)), decide)


def _note(instance: Instance, *, below: int, events: Sequence[Event] = ()) -> Sequence[Event]:
    """That outputs have been performed, and what came of the last; nothing where that is noted."""
    return () if instance.performed >= below else [*events, record(PERFORMED, {"below": below})]
