"""What a process takes, passes and answers, and what becomes of what fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from epochal import cancel, later
from epochal.contrib.processes import Append, Call, Done, Output, Publish, Send, process, process_of
from epochal.contrib.processes.process import Instance
from epochal.contrib.timers.stores import timers_of
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.deciders.codecs import Stored
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.reactions.failures import Attempt
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.scheduling import after
from epochal.testing.feeds import MemoryStore
from tests.contrib.processes.world import (
    CODEC,
    Charge,
    Charged,
    Checkout,
    GaveUp,
    Outside,
    Placed,
    Ship,
    Shipped,
    World,
    checkout,
)


def fired(world: World, key: str = "1") -> None:
    """A timer's event, in the instance's stream."""
    world.append(f"checkout-{key}", GaveUp())
    world.run()


def test_what_is_appended_to_an_instances_stream_is_an_input() -> None:
    world = World(outside=Outside(fails=lambda: True))
    world.append("Order-1", Placed(10))
    world.run()
    fired(world)
    assert world.instance().state.seen == ("Placed", "Charged", "GaveUp")


def test_a_timer_is_taken_while_an_output_keeps_failing() -> None:
    world = World(outside=Outside(fails=lambda: True))
    world.append("Order-1", Placed(10))
    world.run()
    fired(world)
    assert world.instance().done
    assert world.types("Order-1") == ["Placed"], "outputs are in order: the one that fails is before it"


def test_a_timer_brings_its_input_when_it_is_due_and_not_before() -> None:
    feed, outside = MemoryStore(), Outside(fails=lambda: True)
    process = replace(checkout(outside), react=lambda _, event: THREE.get(type(event).__name__, []))
    feed.streams.append("Order-1", [CODEC.encode(Placed(1))])
    state = process.instances(feed.streams).query
    assert feed.advance(process, minutes=29) == 0
    assert state("checkout-1", lambda found: found.state.seen) == ("Placed",)
    assert feed.advance(process, minutes=1) == 1
    assert state("checkout-1", lambda found: found.state.seen) == ("Placed", "GaveUp")
    assert feed.advance(process, minutes=100) == 1, "the third was set anew"
    feed.streams.append("Order-1", [CODEC.encode(Shipped("1"))])
    assert feed.advance(process, days=10) == 0, "who is done has no timers"
    last = list(feed.streams.read("checkout-1"))[-5:]
    assert [each.type for each in last] == ["$input", "$done", *["$timer-cancelled"] * 3]
    assert timers_of(feed.streams).pending("checkout-1") == ()


@pytest.mark.parametrize("order", [1, -1])
def test_a_timer_that_is_set_with_the_end_of_its_instance_is_called_off(order: int) -> None:
    feed = MemoryStore()
    outputs = [later("GaveUp", [GaveUp()], at=after(minutes=30)), Done()][::order]
    process = replace(checkout(Outside()), react=lambda _, __: outputs)
    feed.streams.append("Order-1", [CODEC.encode(Placed(1))])
    feed.react(process)
    assert timers_of(feed.streams).pending("checkout-1") == ()
    assert feed.advance(process, days=1) == 0


ONE: dict[str, list[Output]] = {
    "Placed": [later("GaveUp", [GaveUp()], at=after(minutes=30))],
    "Charged": [later("GaveUp", [GaveUp()], at=after(minutes=30))],
    "Shipped": [Done()],
}


def test_an_event_of_a_timers_type_from_elsewhere_leaves_the_timer_to_be_called_off() -> None:
    feed = MemoryStore()
    process = replace(checkout(Outside()), react=lambda _, event: ONE.get(type(event).__name__, []))
    feed.streams.append("Order-1", [CODEC.encode(each) for each in (Placed(1), GaveUp(), Shipped("1"))])
    feed.react(process)
    assert timers_of(feed.streams).pending("checkout-1") == ()
    assert feed.advance(process, days=1) == 0


def test_a_timer_that_is_set_anew_before_the_fired_one_is_taken_is_called_off() -> None:
    feed = MemoryStore()
    process = replace(checkout(Outside()), react=lambda _, event: ONE.get(type(event).__name__, []))
    feed.streams.append("Order-1", [CODEC.encode(Placed(1))])
    feed.advance(process)
    assert feed.advance(minutes=30) == 1, "nobody takes it yet"
    feed.streams.append("Payment-1", [CODEC.encode(Charged(1))])
    inbox, _ = process.reactions(feed.streams)
    feed.react(replace(inbox, name="ahead", categories=frozenset({"Payment"})))
    feed.react(process)  # streams have no order between them, so what follows comes on its own
    feed.streams.append("Order-1", [CODEC.encode(Shipped("1"))])
    feed.react(process)
    seen = process.instances(feed.streams).query("checkout-1", lambda found: found.state.seen)
    assert sorted(seen) == ["Charged", "GaveUp", "Placed", "Shipped"]
    assert timers_of(feed.streams).pending("checkout-1") == ()


THREE: dict[str, list[Output]] = {
    "Placed": [
        later("GaveUp", [GaveUp()], at=after(minutes=30)),
        later("other", [Charged(1)], at=after(minutes=40)),
        later("first", [Charged(2)], at=after(hours=1)),
        cancel("other"),
        later("other", [Charged(3)], at=after(days=20)),
    ],
    "Shipped": [Done()],
}


def test_an_output_that_fails_parks_its_instance_and_a_replay_performs_what_waits_in_order() -> None:
    world = World(outside=Outside(fails=lambda: True))
    for key, total in (("1", 10), ("2", 1_000)):
        world.append(f"Order-{key}", Placed(total))
    world.run()
    fired(world)
    assert world.types("Order-2") == ["Placed", "Released"], "the others go on"
    parking = Parking(reactor=Reactor(member=Member(reaction=world.reactions[1], reader=world.reader)))
    (partition,) = world.partitions
    (parked,) = parking.streams(partition)
    assert parked.cause is not None
    assert (parked.stream, parked.cause.text) == ("checkout-1", "OSError: nobody answers")
    world.outside.fails = lambda: False
    assert parking.replay(partition, "checkout-1", seconds=60).unparked
    world.run()
    assert world.outside.calls == [("carrier", "checkout-1@5")]
    assert world.types("Order-1") == ["Placed", "Released"]
    assert world.passed == [("late", "Order-2@1"), ("late", "checkout-1@11"), ("late", "Order-1@1")]


def test_an_output_that_is_skipped_is_not_performed_and_the_next_ones_are() -> None:
    world = World(outside=Outside(fails=lambda: True))
    world.append("Order-1", Placed(10))
    world.run()
    fired(world)
    parking = Parking(reactor=Reactor(member=Member(reaction=world.reactions[1], reader=world.reader)))
    (partition,) = world.partitions
    parking.skip(partition, "checkout-1")
    assert parking.replay(partition, "checkout-1", seconds=60).unparked
    assert world.outside.calls == []
    assert world.types("Order-1") == ["Placed", "Released"]


def test_an_instance_that_is_done_takes_no_more_inputs_and_tells_of_them() -> None:
    world = World()
    world.append("Order-1", Placed(1_000))
    world.run()
    before = world.types("checkout-1")
    world.append("Payment-1", Charged(10))
    world.run()
    assert world.types("checkout-1") == before
    assert ("late", "Payment-1@0") in world.passed


def test_an_instance_begins_with_what_may_begin_one_alone() -> None:
    world = World()
    world.append("Payment-7", Charged(10))
    world.run()
    assert world.types("checkout-7") == []
    assert world.passed == [("unknown", "Payment-7@0")]


def test_an_input_that_was_pruned_before_it_came_is_told_of_as_gone() -> None:
    world = World()
    world.append("Order-1", Placed(1_000), Placed(2_000))
    world.feed.streams.prune("Order-1", 1)
    world.run()
    assert world.passed[0] == ("gone", "Order-1@0")
    assert world.instance().had["pages/Order-1"] == 2


def test_without_a_beginning_any_input_begins_an_instance() -> None:
    world = World(more={"begins": None})
    world.append("Payment-7", Charged(10))
    world.run()
    assert world.instance("7").state.seen[0] == "Charged"


def test_a_key_says_which_instance_an_event_is_for() -> None:
    world = World(more={"key": lambda _, event: f"{event.total}" if isinstance(event, Placed) else None})
    world.append("Order-1", Placed(10))
    world.run()
    assert world.types("checkout-10")[0] == "$input"
    assert world.types("Payment-10") == ["Charged"], "a category stands for the stream of the key"
    assert world.instance("10").state.seen == ("Placed",), "a payment is for none"


def test_an_instance_ends_by_the_rules_that_it_began_with() -> None:
    @dataclass(frozen=True)
    class Later(Checkout):
        def react(self, event: Any) -> Iterable[Output]:
            match event:
                case Placed():
                    yield Send("Payment", Charge(1))
                case GaveUp():
                    yield Append("Order", [Placed(0)])

    world = World(outside=Outside(fails=lambda: True))
    world.append("Order-1", Placed(10))
    world.run()
    before = world.process
    asked = {each: getattr(before, each) for each in ("name", "categories", "codec", "targets", "begins")}
    world.more = {"raised": process_of(process(**asked, version=2, before=before)(Later))}
    world.append("Order-2", Placed(10))
    world.append("checkout-1", GaveUp())
    world.run()
    assert (world.instance("1").version, world.instance("2").version) == (1, 2)
    assert world.instance("1").done, "the old rules give up"
    assert [each.data for each in world.events("Payment-2")] == [b'{"amount":1}'], "the new rules charge 1"
    world.more = {"raised": process_of(process(**asked, version=3, before=before)(Later))}
    with pytest.raises(InvalidInput, match="version 2 of checkout"):
        world.instance("2")


def test_an_error_that_is_no_refusal_is_tried_again() -> None:
    tries = []

    def flaky(command: Charge, paid: int) -> list[Charged]:
        tries.append(command)
        if len(tries) < 3:
            raise OSError("the bank is closed")
        return [Charged(command.amount)]

    world = World()
    payments = world.process.targets["Payment"]
    flaky_payments = replace(payments, decider=replace(payments.decider, decide=flaky))
    world.more = {"targets": {**world.process.targets, "Payment": flaky_payments}}
    world.append("Order-1", Placed(10))
    world.run()
    assert world.types("Payment-1") == ["Charged"]
    assert len(tries) == 3


def test_a_state_whose_class_has_changed_is_folded_from_copies_of_inputs() -> None:
    world = World(outside=Outside(fails=lambda: True))
    world.append("Order-1", Placed(10))
    world.run()
    world.feed.streams.prune("Order-1", 1)

    @dataclass(frozen=True)
    class Renamed(Checkout):
        seen: dict[str, int] = None  # type: ignore[assignment]

        def evolve(self, event: Any) -> Any:
            seen = self.seen or {}
            return replace(self, seen={**seen, type(event).__name__: len(seen)})

    before = world.process
    changed = replace(before, state=Renamed, evolve=Renamed.evolve, react=lambda _, __: [])
    found = changed.instances(world.feed.streams).query("checkout-1", lambda found: found)
    assert found.state.seen == {"Placed": 0, "Charged": 1}
    assert found.had == {"pages/Order-1": 1, "pages/Payment-1": 1}


@pytest.mark.slow
def test_an_instance_is_loaded_with_one_request_however_long_its_stream_is() -> None:
    world = World(more={"begins": None})
    for amount in range(200):
        world.append("Payment-1", Charged(amount))
    world.run()
    assert len(world.types("checkout-1")) > 600
    driver, meter = world.feed.streams.driver.metered()
    streams = replace(world.feed.streams, driver=driver)
    assert len(world.process.instances(streams).query("checkout-1", lambda found: found).state.seen) > 200
    assert meter.requests == 1


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (Send("Bank", Charge(1)), "must include a decider for 'Bank'"),
        (Send("carrier", Charge(1)), "must include a decider for 'carrier'"),
        (Call("nobody", Charge(1)), "must include a function for 'nobody'"),
        (Publish("Payment", Charge(1)), "must include a function for 'Payment'"),
        ("hello", "must return outputs, not str"),
        (Append("Order", [Event(type="Raw")]), "Event is not registered with the codec"),
        (Append("Or der-1", [Charged(1)]), "to: may hold only ASCII"),
        (Append("Or der", [Charged(1)]), "to: may hold only ASCII"),
        (Append("Order", []), "must append at least one event to Order"),
        (Append("Order", Charged(1)), "events: must be a list of events, not Charged"),  # type: ignore[arg-type]
        (Append(17, [Charged(1)]), "to: must be text, not int"),  # type: ignore[arg-type]
        (
            later("late", [GaveUp(), GaveUp()], at=after(days=1)),
            "react: must set timers with exactly one event",
        ),
        (
            later("late", [GaveUp()], at=after(days=1), tags=["a:1"]),
            "react: must set timers with exactly one event",
        ),
        (Event(type="Placed"), "react: must return outputs, not Event"),
        (Send("Payment-a b", Charge(1)), "to: may hold only ASCII"),
        (Send("checkout", Charge(1)), "checkout-1, the instance's own stream"),
        (Send("checkout-1", Charge(1)), "checkout-1, the instance's own stream"),
    ],
)
def test_an_output_that_cannot_be_performed_is_refused_with_its_input(output: Any, words: str) -> None:
    rules = replace(checkout(Outside()), react=lambda _, __: [output])
    rules = replace(rules, targets={**rules.targets, "checkout": rules.targets["Payment"]})
    given = CODEC.encode(Placed(1))
    with pytest.raises(InvalidInput, match=words):
        rules.take("checkout-1", "pages/Order-1", Stored(type="Placed", data=given.content), Instance())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": "check-out"}, "letters and digits"),
        ({"categories": ["Order", "checkout"]}, "the process's own"),
        ({"version": 0}, "at least 1"),
        ({"before": checkout(Outside())}, "a lower version"),
        ({"key": "id"}, "must be a function"),
        ({"sources": "tips"}, "sources"),
        ({"codec": None}, "codec: must be a codec"),
        ({"targets": ["news"]}, "targets: must be a dict by names"),
        ({"targets": {"news": None}}, r"targets\['news'\]: must be a function, not NoneType"),
        ({"begins": Placed}, "begins: must be a list of classes"),
        ({"begins": ["Placed"]}, "begins: must be a list of classes, not str"),
        ({"begins": [int]}, "begins: must contain only classes of the codec, not int"),
        ({"begins": [Placed, Checkout]}, "begins: must contain only classes of the codec, not Checkout"),
        ({"attempts": 0}, "attempts: must be at least 1"),
        ({"attempts": "5"}, "attempts: must be a number, not str"),
        ({"members": 0}, "members: must be at least 1"),
        ({"version": 2}, "before: must be the process of the version before 2"),
        ({"version": 2, "before": Placed}, "before: must be a class decorated with @process"),
        ({"sources": ["nowhere"]}, "sources: must be among"),
        ({"start": "x"}, "start: must be beginning, tail"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_name(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        checkout(Outside(), **more)


def test_a_class_whose_states_cannot_begin_without_arguments_is_refused() -> None:
    @dataclass(frozen=True)
    class Strict:
        total: int

        def evolve(self, _: Any) -> Strict:
            return self

        def react(self, _: Any) -> Iterable[Output]:
            return ()

    with pytest.raises(InvalidInput, match="state: must be callable without arguments"):
        process(name="strict", categories=["Order"], codec=CODEC)(Strict)


def test_a_key_that_is_empty_is_refused_where_none_would_be_meant() -> None:
    rules = replace(checkout(Outside()), key=lambda _, __: "")
    given = CODEC.encode(Placed(1))
    with pytest.raises(InvalidInput, match="key: must not be empty"):
        rules.instance_of(Stored(type="Placed", data=given.content, stream="Order-1"))


@pytest.mark.parametrize("key", [5, b"k", ("a", "b"), True])
def test_a_key_that_is_not_text_is_refused(key: Any) -> None:
    rules = replace(checkout(Outside()), key=lambda _, __: key)
    given = CODEC.encode(Placed(1))
    with pytest.raises(
        InvalidInput, match=f"key: must be text, or None for no instance, not {type(key).__name__}"
    ):
        rules.instance_of(Stored(type="Placed", data=given.content, stream="Order-1"))


def test_an_input_whose_key_is_not_text_is_parked() -> None:
    world = World(more={"key": lambda _, event: event.total if isinstance(event, Placed) else None})
    world.append("Order-1", Placed(10))
    world.run()
    assert parked(world) == ["Order-1"]
    assert world.types("checkout-10") == []


def test_a_feed_in_memory_runs_a_process_to_its_rest() -> None:
    feed, outside = MemoryStore(), Outside()
    feed.streams.append("Order-1", [Event.json("Placed", {"total": 10})])
    feed.react(checkout(outside))
    assert [each.type for each in feed.streams.read("Order-1")] == ["Placed", "Confirmed"]
    assert [name for name, _ in outside.calls] == ["carrier", "news"]


def parked(world: World) -> list[str]:
    """What either half has parked."""
    reactors = [Reactor(member=Member(reaction=each, reader=world.reader)) for each in world.reactions]
    return [
        each.stream
        for reactor in reactors
        for partition in world.partitions
        for each in Parking(reactor=reactor).streams(partition)
    ]


@pytest.mark.parametrize("leave_open", [False, True])
def test_an_instance_that_was_deleted_takes_nothing_and_holds_nobody_up(leave_open: bool) -> None:
    world = World(outside=Outside(fails=lambda: True), more={"attempts": 1})
    world.append("Order-1", Placed(10))
    world.run()
    world.feed.streams.delete("checkout-1", leave_open=leave_open)
    world.outside.fails = lambda: False
    world.append("Payment-1", Charged(1))
    world.run()
    assert ("late", "Payment-1@1") in world.passed
    assert parked(world) == ["checkout-1"], "as it was when it was deleted"
    parking = Parking(reactor=Reactor(member=Member(reaction=world.reactions[1], reader=world.reader)))
    assert parking.replay(world.partitions[0], "checkout-1", seconds=60).unparked
    assert world.outside.calls == []


@pytest.mark.parametrize("leave_open", [False, True])
def test_an_instance_that_is_deleted_before_its_outputs_are_performed_performs_none(leave_open: bool) -> None:
    world = World()
    world.append("Order-1", Placed(10))
    inbox, outbox = world.reactions
    world.turn(inbox)
    world.feed.streams.delete("checkout-1", leave_open=leave_open)
    world.turn(outbox)
    assert parked(world) == []
    assert world.types("Payment-1") == []
    world.append("Order-2", Placed(10))
    world.run()
    assert world.types("Payment-2") == ["Charged"]


def test_what_is_appended_to_an_instance_after_its_stream_was_deleted_and_left_open_is_passed() -> None:
    world = World()
    world.append("Order-1", Placed(10))
    inbox, _ = world.reactions
    world.turn(inbox)
    world.feed.streams.delete("checkout-1", leave_open=True)
    world.append("checkout-1", Charged(1))
    world.append("Order-1", Placed(11))
    world.run()
    assert [why for why, _ in world.passed] == ["late", "late"]
    assert parked(world) == []
    assert world.types("checkout-1") == ["Charged"]


def test_an_instance_whose_events_alone_were_pruned_goes_on() -> None:
    world = World()
    world.append("Order-1", Placed(10))
    inbox, _ = world.reactions
    world.turn(inbox)
    world.feed.streams.prune("checkout-1", world.feed.streams.load("checkout-1").version)  # type: ignore[union-attr]
    world.append("Payment-1", Charged(1))
    world.run()
    assert ("late", "Payment-1@1") not in world.passed
    assert parked(world) == []
    assert "$input" in world.types("checkout-1")


def test_a_command_to_a_stream_that_was_deleted_is_refused_once() -> None:
    world = World()
    world.append("Payment-1", Charged(1))
    world.feed.streams.delete("Payment-1")
    world.append("Order-1", Placed(10))
    world.run()
    assert world.types("Order-1") == ["Placed", "Released"]
    assert world.types("checkout-1").count("$refused") == 1
    assert parked(world) == []


def test_where_a_note_fails_too_the_failure_of_the_output_is_what_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = [Append("Other", [Charged(1)]), Call("carrier", Ship(1))]
    world = World(outside=Outside(fails=lambda: True), more={"attempts": 1})
    world.more = {"raised": replace(world.process, react=lambda _, __: outputs)}
    world.append("Order-1", Placed(10))
    inbox, outbox = world.reactions
    world.turn(inbox)

    def unnoted(*_: object, **__: object) -> None:
        raise RuntimeError("no note")

    monkeypatch.setattr("epochal.contrib.processes.handlers._note", unnoted)
    failed: list[Attempt] = []
    world.feed.index()
    member = Member(reaction=outbox, reader=world.reader)
    Reactor(member=member, on_failed=failed.append).run(world.partitions[0], seconds=60)
    assert (failed[0].events, str(failed[0].error)) == (2, "nobody answers")
    assert world.types("Other-1") == ["Charged"]


def test_a_process_with_sources_takes_a_stream_that_is_copied_to_another_layout_once() -> None:
    feed = MemoryStore()
    answer: list[Output] = [Append("Other", [Charged(1)])]
    first = replace(checkout(Outside()), react=lambda _, __: answer, sources=frozenset({"tips"}))
    feed.tips.append("Order-1", [CODEC.encode(Placed(1))])
    feed.react(first)
    StreamCopier(source=StreamSource(feed.tips), target=feed.streams).copy("Order-1")
    feed.react(first)
    moved = replace(first, sources=frozenset({"pages"}))
    feed.react(moved)
    assert len(list(feed.streams.read("Other-1"))) == 1
    feed.streams.append("Order-1", [CODEC.encode(Placed(2))])
    feed.tips.append("Order-1", [CODEC.encode(Placed(3))])
    feed.streams.append("checkout-1", [CODEC.encode(GaveUp())])
    feed.react(moved)
    found = moved.instances(feed.streams).query("checkout-1", lambda found: found)
    own = next(each.index for each in feed.streams.read("checkout-1") if each.type == "GaveUp")
    assert found.had == {"tips/Order-1": 1, "pages/Order-1": 2, "pages/checkout-1": own + 1}


def test_an_instance_goes_on_where_events_of_its_stream_were_pruned() -> None:
    world = World(outside=Outside(fails=lambda: True))
    world.append("Order-1", Placed(10))
    world.run()
    world.feed.streams.prune("checkout-1", 4)
    fired(world)
    assert world.instance().state.seen == ("Placed", "Charged", "GaveUp")
