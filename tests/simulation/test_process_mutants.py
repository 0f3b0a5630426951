"""The simulation of processes is worth its time: take any one rule out, and a seed finds out."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from epochal.contrib.processes import handlers
from epochal.contrib.processes.handlers import Inbox, Outbox
from epochal.contrib.processes.outputs import PERFORMED, message_in, record
from epochal.contrib.processes.process import Instance, Process
from epochal.deciders.codecs import Stored
from epochal.deciders.on_streams import Deciders
from epochal.feed.events import FeedEvent
from epochal.model.events import Event
from epochal.store.streams import Streams
from tests.simulation.mutants import Mutants, Patch, play_all
from tests.simulation.process_world import run

SEEDS = 150

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant("taken again|out of order|effects|was done")
def an_input_that_was_had_is_taken(patch: Patch) -> None:
    take = Process.take

    def again(self: Process, stream: str, source: str, given: Stored, instance: Instance, **_: Any) -> Any:
        return take(self, stream, source, given, replace(instance, had={}))

    patch.setattr(Process, "take", again)


@mutant("was done")
def who_is_done_takes_inputs(patch: Patch) -> None:
    take = Process.take

    def late(self: Process, stream: str, source: str, given: Stored, instance: Instance, **_: Any) -> Any:
        return take(self, stream, source, given, replace(instance, done=False))

    patch.setattr(Process, "take", late)


@mutant("effects")
def a_command_is_decided_on_though_it_was(patch: Patch) -> None:
    fold = Process.fold

    def forgetful(self: Process, instance: Instance, event: Any) -> Instance:
        return replace(fold(self, instance, event), performed=0)

    patch.setattr(Process, "fold", forgetful)


@mutant("effects")
def a_command_is_sent_without_its_note(patch: Patch) -> None:
    def apart(self: Outbox, rules: Process, event: FeedEvent, told: dict[str, Any]) -> None:
        target = rules.targets[told["to"].partition("-")[0]]
        command = rules.codec.decode(message_in(told))
        deciders = Deciders(streams=self.streams, decider=target.decider, codec=target.codec)
        refused = []
        try:
            deciders.handle(told["to"], command)
        except target.refusals as error:
            words = {"error": type(error).__name__, "text": str(error), "below": event.index + 1}
            refused = [record("$refused", {**told, **words})]
        note = partial(handlers._note, below=event.index + 1, events=refused)
        self.instances.handle(event.stream, decide=note)

    patch.setattr(Outbox, "_send", apart)


@mutant("effects|not performed")
def an_append_has_no_key(patch: Patch) -> None:
    append = Streams.append

    def keyless(self: Streams, stream: str, events: Any, **options: Any) -> Any:
        if "checkout" in str(options.get("idempotency_key")):
            options["idempotency_key"] = None
        return append(self, stream, events, **options)

    patch.setattr(Streams, "append", keyless)


@mutant("not performed|does not end|out of order")
def outputs_are_noted_before_they_are_performed(patch: Patch) -> None:
    perform = Outbox._perform

    def early(self: Outbox, rules: Process, event: FeedEvent) -> bool:
        self.instances.handle(event.stream, decide=partial(handlers._note, below=event.index + 1))
        return perform(self, rules, event)

    patch.setattr(Outbox, "_perform", early)


@mutant("twice|effects|taken|was done", dear=True)
def an_answer_is_appended_whatever_came_before(patch: Patch) -> None:
    def blind(instance: Instance, *, below: int, events: Any = ()) -> Any:
        return [*events, record(PERFORMED, {"below": below})]

    patch.setattr(handlers, "_note", blind)


@mutant("was done")
def timers_are_left_to_who_is_done(patch: Patch) -> None:
    patch.setattr(
        import_module("epochal.contrib.processes.process"),
        "cancel",
        lambda _name: Event(type="$nothing", data=b"{}"),
    )


@mutant("does not end|not taken")
def how_far_an_instance_is_counts_for_all_streams(patch: Patch) -> None:
    take = Process.take

    def anywhere(self: Process, stream: str, source: str, given: Stored, instance: Instance, **_: Any) -> Any:
        had = dict.fromkeys([source], max(instance.had.values(), default=0))
        return take(self, stream, source, given, replace(instance, had=had))

    patch.setattr(Process, "take", anywhere)


@mutant("not performed|does not end|not taken")
def a_failure_of_the_outside_is_passed_over(patch: Patch) -> None:
    perform = Outbox._perform

    def deaf(self: Outbox, rules: Process, event: FeedEvent) -> bool:
        try:
            return perform(self, rules, event)
        except OSError:
            return False

    patch.setattr(Outbox, "_perform", deaf)


@mutant("not taken|does not end")
def an_inbox_hears_nothing_of_its_own_streams(patch: Patch) -> None:
    call = Inbox.__call__

    def deaf(self: Inbox, delivery: Any) -> None:
        if not delivery.stream.startswith("checkout-"):
            call(self, delivery)

    patch.setattr(Inbox, "__call__", deaf)


@mutant("and its inputs make")
def a_state_is_kept_without_its_last_input(patch: Patch) -> None:
    encode = Process._encode

    def stale(self: Process, event: Any) -> Event:
        if isinstance(event, Instance) and event.state.seen:
            event = replace(event, state=replace(event.state, seen=event.state.seen[:-1]))
        return encode(self, event)

    patch.setattr(Process, "_encode", stale)


@mutant("not performed|out of order")
def outputs_are_performed_from_the_last_to_the_first(patch: Patch) -> None:
    call = Outbox.__call__

    def backwards(self: Outbox, delivery: Any) -> None:
        call(self, replace(delivery, events=delivery.events[::-1]))

    patch.setattr(Outbox, "__call__", backwards)


def test_the_seeds_pass_without_mutants() -> None:
    play_all(run, 3)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_the_mutant_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS.find_out(name, monkeypatch, run, SEEDS)
