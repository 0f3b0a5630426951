"""Two run the same process: what one of them has done meanwhile the other does not do, or say, again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.processes import Append, Output, Send
from epochal.contrib.processes.handlers import Outbox, _append_note
from epochal.contrib.processes.outputs import PERFORMED, record
from epochal.contrib.processes.process import Instance
from epochal.deciders.codecs import Stored
from tests.contrib.processes.world import CODEC, Charge, Outside, Placed, Released, World, checkout


@pytest.mark.parametrize(
    ("output", "stream", "came"),
    [
        (Send("Payment", Charge(1)), "Payment-1", "Charged"),
        (Append("Other", [Released("r")]), "Other-1", "Released"),
    ],
    ids=["a command", "events"],
)
def test_what_another_has_performed_and_noted_meanwhile_is_not_performed_or_noted_again(
    output: Output, stream: str, came: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.more = {"raised": replace(world.process, react=lambda _, __: [output])}
    world.append("Order-1", Placed(10))
    inbox, outbox = world.reactions
    world.turn(inbox)
    mine: Any = outbox.handler
    perform = mine._perform  # noqa: SLF001  between what it read and what it does

    def late(rules: Any, event: Any) -> bool:
        other = Outbox(world.process, world.streams)
        if not other._perform(rules, event):  # noqa: SLF001  likewise
            _append_note(other.instances, event.stream, 0, event.index + 1)
        done: bool = perform(rules, event)
        return done

    monkeypatch.setattr(mine, "_perform", late)
    world.turn(outbox)
    assert world.types(stream) == [came]
    assert world.types("checkout-1").count("$performed") == 1


def test_how_far_outputs_are_performed_does_not_go_back() -> None:
    instance = Instance(version=1, performed=5)
    assert checkout(Outside()).fold(instance, record(PERFORMED, {"below": 3})).performed == 5


def test_the_newest_version_says_which_instance_an_event_is_for() -> None:
    before = replace(checkout(Outside()), key=lambda _, __: "old")
    process = replace(before, version=2, before=before, key=lambda _, __: "new")
    given = CODEC.encode(Placed(1))
    found = process.instance_of(Stored(type="Placed", data=given.content, stream="Order-1"))
    assert found == "checkout-new"
