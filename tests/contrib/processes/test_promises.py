"""What a process stores, costs, publishes and says of itself, to the letter."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.processes import Publish
from epochal.contrib.publish.cloudevents import Message
from epochal.model.events import Event, Unfold
from epochal.reactions.definition import Reaction
from epochal.reactions.filter_coverage import unmet_filters
from epochal.reactions.group_member import Member
from epochal.scheduling import cancel
from tests.contrib.processes.world import CODEC, Charged, GaveUp, Outside, Placed, Shipped, World, checkout

STORED: list[tuple[str, Any]] = [
    (
        "$input",
        {
            "of": "pages/Order-1@0",
            "version": 1,
            "type": "Placed",
            "data": {"total": 10},
            "timestamp": "2026-01-01T00:00:00.0000000+00:00",
            "timers": ["GaveUp"],
        },
    ),
    ("$send", {"to": "Payment-1", "type": "Charge", "data": {"amount": 10}}),
    ("$timer-set", {"name": "GaveUp", "in": 1800, "events": [{"type": "GaveUp", "data": {}}]}),
    ("$performed", {"below": 2}),
]
UNFOLD = {
    "version": 1,
    "had": {"pages/Order-1": 1},
    "performed": 2,
    "done": False,
    "timers": ["GaveUp"],
    "shape": "9a8772d6a8f1",
    "state": {"total": 10, "seen": ["Placed"]},
}
"""What programs of this version have stored: later ones read it."""


def placed(key: str = "1", total: int = 10) -> Event:
    return replace(CODEC.encode(Placed(total)), timestamp="2026-01-01T00:00:00Z")


def only_begun() -> World:
    """An order that is placed, whose payment nobody hears of."""
    world = World(more={"categories": ["Order"]})
    world.feed.streams.append("Order-1", [placed()])
    world.run()
    return world


def test_what_is_stored_is_what_the_formats_say() -> None:
    streams = only_begun().feed.streams
    assert [(each.type, json.loads(each.content)) for each in streams.read("checkout-1")] == STORED
    state = streams.load("checkout-1")
    assert state is not None
    (unfold,) = state.unfolds
    assert isinstance(unfold.data, bytes)
    assert (unfold.type, json.loads(unfold.data)) == ("$process", UNFOLD)


@pytest.mark.parametrize("unfolded", [True, False], ids=["with its unfold", "without it"])
def test_an_instance_goes_on_from_what_is_stored(unfolded: bool) -> None:
    world = World()
    events = [Event.json(type_, told) for type_, told in STORED]
    unfolds = [Unfold(type="$process", data=json.dumps(UNFOLD).encode())] if unfolded else None
    world.feed.streams.append("checkout-1", events, unfolds=unfolds)
    world.feed.streams.append("Order-1", [placed()])
    world.append("Payment-1", Charged(10))
    world.run()
    assert world.instance().state.seen == ("Placed", "Charged", "Shipped")
    assert world.types("Payment-1") == ["Charged"], "what was performed is not performed again"
    assert world.passed[0] == ("again", "Order-1@0")


def costs(world: World, turn: int) -> tuple[float, float]:
    """Write and read units of streams in a turn of the inbox (0) or the outbox (1), without its group's."""
    driver, meter = world.feed.streams.driver.metered()
    reaction = world.process.reactions(replace(world.feed.streams, driver=driver))[turn]
    world.turn(reaction)
    return meter.capacity.write, meter.capacity.read


def test_an_input_is_an_append_and_a_command_two_streams_in_one_transaction() -> None:
    world = World()
    world.feed.streams.append("Order-1", [placed()])
    assert costs(world, 0) == (1.0, 1.0), "an instance that is not there is looked for twice"
    assert costs(world, 1) == (4.0, 3.0)
    assert costs(world, 0) == (1.0, 1.0)


def test_other_outputs_of_a_delivery_cost_what_they_cost_and_one_append_for_all() -> None:
    world = World(more={"categories": ["Order"]})
    world.append("Order-1", Placed(10))
    world.append("checkout-1", Shipped("p"))
    process = world.process
    world.more = {
        "raised": replace(
            process, react=lambda _, event: [Publish("news", event)] * 2 if isinstance(event, Shipped) else []
        )
    }
    costs(world, 0)
    write, _ = costs(world, 1)
    assert write == 1.0, "two messages, and one note of both"


def test_a_message_is_published_as_a_cloudevent_that_is_named_by_its_output() -> None:
    sent: list[Message] = []
    outside = Outside()
    world = World(outside=outside)
    targets = {**world.process.targets, "news": sent.extend}
    world.more = {"targets": targets}
    world.append("Order-1", Placed(10))
    world.run()
    (message,) = sent
    told = json.loads(message.text)
    assert (told["id"], told["source"], told["type"]) == ("checkout-1@10", "checkout", "Shipped")
    assert (told["subject"], told["data"]) == ("checkout-1", {"parcel": "parcel of 10"})
    assert told["causationid"] == "checkout-1@7"
    assert told["correlationid"] == "Order-1@0"


def test_what_follows_is_one_conversation_and_names_its_cause() -> None:
    world = World()
    world.append("Order-1", Placed(10))
    world.run()
    names = [f"{name}-1" for name in ("Payment", "checkout", "Order")]
    events = [each for name in names for each in world.feed.streams.read(name)]
    assert {each.correlation_id for each in events} == {"Order-1@0", None}
    (confirmed,) = (each for each in events if each.type == "Confirmed")
    (charged,) = (each for each in events if each.type == "Charged")
    assert (charged.causation_id, confirmed.causation_id) == ("checkout-1@1", "checkout-1@11")


def test_what_has_not_come_yet_is_nothing_misspelt_and_a_category_of_inputs_may_be() -> None:
    world = World(more={"categories": ["Order", "Paymnet"]})
    world.append("Order-1", Placed(10))
    world.run()

    def left(reaction: Reaction) -> tuple[Any, ...]:
        reader = replace(world.reader)
        only = replace(reaction, sources=frozenset({"pages"}))
        return unmet_filters(Member(reaction=only, reader=reader))

    inbox, outbox = world.reactions
    assert left(inbox) == (("category", "Paymnet"),)
    assert left(outbox) == ()


def test_a_timer_that_was_called_off_by_hand_is_no_input() -> None:
    world = only_begun()
    world.feed.streams.append("checkout-1", [cancel("GaveUp")])
    world.run()
    assert world.instance().state.seen == ("Placed",)
    world.append("checkout-1", GaveUp())
    world.run()
    assert world.instance().state.seen == ("Placed", "GaveUp"), "whatever is appended is one"


def test_a_copy_of_an_input_keeps_its_metadata_and_its_digits() -> None:
    world = World(more={"begins": None, "categories": ["Order"]})
    exact = b'{"total":10,"rate":1.10}'
    world.feed.streams.append("Order-1", [Event(type="Placed", data=exact, meta=b'{"user":"ada"}')])
    rules = replace(checkout(world.outside), react=lambda _, __: [])
    world.more = {"raised": replace(rules, categories=frozenset({"Order"}))}
    world.run()
    (event,) = world.feed.streams.read("checkout-1")
    assert b'"rate":1.10' in event.content
    assert json.loads(event.content)["meta"] == {"user": "ada"}
