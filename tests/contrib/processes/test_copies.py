"""A process without `sources`, where streams are copied from one layout to another: no input is taken again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from epochal.contrib.processes import Append, Done, Output, Process
from epochal.contrib.processes.process import Instance
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore
from tests.contrib.processes.world import CODEC, Charged, Outside, Placed, Released, checkout


def told(_: object, event: object) -> Iterable[Output]:
    """Each order that is placed is told of; one that is released is done."""
    if isinstance(event, Placed):
        yield Append("Other", [Charged(event.total)])
    if isinstance(event, Released):
        yield Done()


@dataclass
class Moved:
    """A feed whose tips are copied, and a process over all of its layouts."""

    feed: MemoryStore = field(default_factory=MemoryStore)
    process: Process = field(default_factory=lambda: replace(checkout(Outside()), react=told))

    def tips(self, *events: object, at: str | None = None) -> None:
        self._append(self.feed.tips, events, at)

    def pages(self, *events: object, at: str | None = None) -> None:
        self._append(self.feed.streams, events, at)

    @staticmethod
    def _append(store: Any, events: Iterable[object], at: str | None) -> None:
        store.append("Order-1", [replace(CODEC.encode(each), timestamp=at) for each in events])

    def copy(self) -> None:
        StreamCopier(source=StreamSource(self.feed.tips), target=self.feed.streams).copy("Order-1")

    def run(self) -> None:
        self.feed.react(self.process)

    @property
    def totals(self) -> list[int]:
        return [json.loads(each.content)["amount"] for each in self.feed.streams.read("Other-1")]

    @property
    def instance(self) -> Instance:
        return self.process.instances(self.feed.streams).query("checkout-1", lambda found: found)


def test_a_copied_event_is_not_taken_again_and_what_follows_its_copy_is() -> None:
    world = Moved()
    world.tips(Placed(1), at="2026-01-01T00:00:00Z")
    world.tips(Placed(2), at="2026-01-02T00:00:00Z")
    world.run()
    world.copy()
    world.run()
    assert world.totals == [1, 2]
    world.pages(Placed(3))
    world.run()
    assert world.totals == [1, 2, 3]
    assert world.instance.had == {"tips/Order-1": 2, "pages/Order-1": 3}


def test_an_original_is_not_taken_after_its_copy() -> None:
    world = Moved(process=replace(checkout(Outside()), react=told, sources=frozenset({"pages"})))
    world.tips(Placed(1))
    world.copy()
    world.run()
    world.process = replace(world.process, sources=frozenset({"tips", "pages"}))
    world.tips(Placed(2))
    world.run()
    assert world.totals == [1, 2]


def test_a_copied_event_keeps_its_type_its_body_and_its_time() -> None:
    world = Moved()
    world.feed.tips.append(
        "Order-1",
        [
            Event(
                type="Placed",
                data=b'{ "total":1, "rate":1.10 }',
                timestamp="2026-01-01T01:00:00.1234567+01:00",
            )
        ],
    )
    world.run()
    world.copy()
    world.run()
    assert world.totals == [1]


@pytest.mark.parametrize("same", ["time", "body"])
def test_streams_of_one_name_that_are_no_copies_are_both_taken(same: str) -> None:
    world = Moved()
    world.tips(Placed(1), Placed(5), at="2026-01-01T00:00:00Z")
    world.run()
    world.pages(
        Placed(2 if same == "time" else 1), at="2026-01-0{}T00:00:00Z".format(1 if same == "time" else 2)
    )
    world.run()
    assert world.totals == [1, 5, 2 if same == "time" else 1]


def test_the_copy_of_an_event_that_was_passed_is_passed() -> None:
    """One that came before the instance began, which would end it now."""
    world = Moved()
    world.tips(Released("early"), at="2026-01-01T00:00:00Z")
    world.tips(Placed(1), at="2026-01-02T00:00:00Z")
    world.run()
    world.copy()
    world.run()
    assert not world.instance.done
    world.tips(Placed(2))
    world.run()
    assert world.totals == [1, 2]


def test_where_the_originals_input_was_pruned_an_event_is_a_copy() -> None:
    world = Moved()
    world.tips(Placed(1))
    world.run()
    end = world.feed.streams.load("checkout-1")
    assert end is not None
    world.feed.streams.prune("checkout-1", end.version)
    world.copy()
    world.run()
    assert world.totals == [1]


def test_an_event_of_another_stream_of_the_name_is_taken_where_an_earlier_one_was_passed() -> None:
    world = Moved()
    world.tips(Released("early"), at="2026-01-01T00:00:00Z")
    world.tips(Placed(1), at="2026-01-02T00:00:00Z")
    world.run()
    world.pages(Placed(2), at="2026-01-03T00:00:00Z")
    world.run()
    assert world.totals == [1, 2]


def test_an_input_that_comes_again_does_not_read_the_instances_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Moved()
    world.pages(Placed(1))
    world.run()
    monkeypatch.setattr(type(world.feed.streams), "read", None)
    passed: list[str] = []
    inbox, _ = world.process.reactions(world.feed.streams, lambda why, _: passed.append(why))
    world.feed.react(replace(inbox, name="anew"))
    assert passed == ["again"]
