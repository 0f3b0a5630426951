"""An output that can never be performed: it comes back as an input where nothing would help, and else parks its
instance alone, by name, until it is mended or skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.processes import Append, Call, CommandRefused, Output, Process, Publish, Send
from epochal.deciders.codecs import EventCodec
from epochal.model.events import Event
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from tests.contrib.processes.world import (
    Charge,
    Charged,
    Outside,
    Placed,
    Released,
    Ship,
    Shipped,
    World,
    checkout,
)


def rules(world: World, *outputs: Output, told: list[Any] | None = None) -> Process:
    """A process that answers an order with these outputs, and tells which inputs it got."""

    def react(_: object, event: object) -> Iterable[Output]:
        if told is not None:
            told.append(event)
        return outputs if isinstance(event, Placed) else ()

    return replace(checkout(world.outside), react=react, attempts=2)


def played(outputs: tuple[Output, ...], *keys: str, world: World | None = None) -> World:
    """Orders, whose outputs wait."""
    world = world or World()
    world.more = {"raised": rules(world, *outputs)}
    for key in keys or ("1",):
        world.append(f"Order-{key}", Placed(10))
    inbox, _ = world.reactions
    world.turn(inbox)
    return world


def parking(world: World) -> Parking:
    return Parking(reactor=Reactor(member=Member(reaction=world.reactions[1], reader=world.reader)))


def test_events_for_a_stream_that_was_deleted_come_back_as_an_input_and_later_outputs_are_performed() -> None:
    appended = Append("Other", [Charged(1), Released("late")])
    world = played((Append("Order", [Released("first")]), appended, Call("carrier", Ship(1))))
    world.append("Other-1", Charged(1))
    world.feed.streams.delete("Other-1")
    inputs: list[Any] = []
    world.more = {"raised": rules(world, *(), told=inputs)}
    world.run()
    (refused,) = (each for each in inputs if isinstance(each, CommandRefused))
    assert refused.command == (Charged(1), Released("late"))
    assert (refused.error, refused.to) == ("StreamDeleted", "Other-1")
    assert world.types("Order-1") == ["Placed", "Released"]
    assert world.outside.calls == [("carrier", "checkout-1@3")]
    assert not list(parking(world).streams(world.partitions[0]))


def deleted(world: World) -> World:
    world.append("Other-1", Charged(1))
    world.feed.streams.delete("Other-1")
    outputs = (Append("Other", [Charged(1)]), Call("carrier", Ship(1)))
    world.more = {"raised": rules(world, *outputs)}
    world.append("Order-1", Placed(10))
    world.run()
    return world


@pytest.mark.slow
@pytest.mark.parametrize("arrives", [False, True])
def test_killed_at_any_request_the_refusal_of_events_is_one_input(arrives: bool) -> None:
    whole = deleted(World())
    story = sorted(each for each in whole.types("checkout-1") if each != "$performed")
    assert story.count("$refused") == 1
    for death in range(whole.requests):
        world = deleted(World(dies=lambda number, death=death: arrives if number == death else None))  # type: ignore[misc]
        assert sorted(each for each in world.types("checkout-1") if each != "$performed") == story
        assert world.outside.once == whole.outside.once


def without(process: Process, name: str) -> Process:
    targets = {each: target for each, target in process.targets.items() if each != name}
    return replace(process, targets=targets)


def forgotten(process: Process, name: str) -> Process:
    """The process, whose codec knows a type no more."""
    codec = process.codec
    read = EventCodec[Any](
        encode=codec.encode, decode=lambda stored: None if stored.type == name else codec.decode(stored)
    )
    return replace(process, codec=read)


def sent_when_awaited(_: object) -> Any:
    """What nobody awaits, and looks like a plain function."""

    async def send() -> None: ...

    return send()


NEVER = [
    pytest.param(
        Send("Payment", Charge(1)),
        lambda process: without(process, "Payment"),
        "InvalidInput: targets: must include 'Payment': a waiting output is addressed to it",
        id="a command whose target is gone",
    ),
    pytest.param(
        Call("carrier", Ship(1)),
        lambda process: without(process, "carrier"),
        "InvalidInput: targets: must include 'carrier': a waiting output is addressed to it",
        id="a call whose target is gone",
    ),
    pytest.param(
        Send("Payment", Charge(1)),
        lambda process: forgotten(process, "Charge"),
        "UnknownType: checkout-1: the codec does not know type Charge (index 1)",
        id="a command whose type is gone",
    ),
    pytest.param(
        Call("carrier", Ship(1)),
        lambda process: forgotten(process, "Ship"),
        "UnknownType: checkout-1: the codec does not know type Ship (index 1)",
        id="a call whose type is gone",
    ),
    pytest.param(
        Publish("news", Shipped("p")),
        lambda process: replace(process, targets={**process.targets, "news": sent_when_awaited}),
        "InvalidInput: news: ",
        id="a message that nothing awaits",
    ),
    pytest.param(
        Call("carrier", Ship(1)),
        lambda process: replace(
            process, targets={**process.targets, "carrier": lambda _, __: {"sent": True}}
        ),
        "InvalidInput: carrier: must return None, or an event of the codec",
        id="a call whose answer is no event",
    ),
]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize(("output", "changed", "cause"), NEVER)
def test_an_output_that_nothing_performs_parks_its_instance_by_name_and_is_performed_once_mended(
    output: Output, changed: Any, cause: str
) -> None:
    world = played((output, Append("Order", [Released("then")])))
    sound = world.process
    world.more = {"raised": changed(sound)}
    world.run()
    (parked,) = parking(world).streams(world.partitions[0])
    assert parked.stream == "checkout-1"
    assert parked.cause is not None
    assert parked.cause.text.startswith(cause)
    assert world.types("Order-1") == ["Placed"], "what comes after it waits"
    assert (world.types("Payment-1"), world.outside.calls) == ([], [])
    world.more = {"raised": sound}
    assert parking(world).replay(world.partitions[0], "checkout-1", seconds=60).unparked
    assert world.types("Order-1") == ["Placed", "Released"]
    assert len(world.types("Payment-1")) + len(world.outside.calls) == 1


def test_what_was_performed_before_an_output_that_fails_is_not_performed_again() -> None:
    called: list[str] = []
    world = World(outside=Outside(fails=lambda: True))
    sound = rules(world, Call("door", Ship(1)), Call("door", Ship(2)), Call("carrier", Ship(3)))
    world.more = {
        "raised": replace(sound, targets={**sound.targets, "door": lambda _, key: called.append(key)})
    }
    world.append("Order-1", Placed(10))
    world.run()
    assert [each.stream for each in parking(world).streams(world.partitions[0])] == ["checkout-1"]
    assert called == ["checkout-1@1", "checkout-1@2"]


def test_an_output_that_nothing_performs_can_be_skipped_alone_and_holds_no_other_instance_back() -> None:
    outputs = (Call("carrier", Ship(1)), Append("Order", [Released("then")]))
    world = played(outputs, "1", "2", world=World(outside=Outside(fails=lambda: True)))
    world.run()
    assert len(list(parking(world).streams(world.partitions[0]))) == 2
    parking(world).skip(world.partitions[0], "checkout-1")
    assert parking(world).replay(world.partitions[0], "checkout-1", seconds=60).unparked
    assert (world.types("Order-1"), world.types("Order-2")) == (["Placed", "Released"], ["Placed"])
    (left,) = parking(world).streams(world.partitions[0])
    assert left.stream == "checkout-2"
    world.append("Order-3", Placed(1))
    world.outside.fails = lambda: False
    world.run()
    assert world.types("Order-3") == ["Placed", "Released"]
    assert world.types("Order-2") == ["Placed"]


def test_an_output_that_was_pruned_is_passed_and_the_later_ones_are_performed() -> None:
    world = played((Call("carrier", Ship(1)), Append("Order", [Released("then")])))
    world.feed.streams.append("checkout-1", [Event(type="$note")])
    world.feed.streams.prune("checkout-1", 2)
    world.run()
    assert not list(parking(world).streams(world.partitions[0]))
    assert world.outside.calls == []
