"""A feed in memory, and reactions that run over it, in one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from epochal.index.group_state import GroupState
from epochal.index.groups import group_stream
from epochal.plan.ops import Op, Put, Update
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.failures import OnFailed
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from tests.core.feed.feeds import Feeds
from tests.support.inline import Inline


def is_save(op: Op) -> bool:
    """Whether a request changes the group's state."""
    name = str(group_stream(0, "board"))
    return (isinstance(op, Put) and op.item["p"]["S"] == name) or (
        isinstance(op, Update) and op.key["p"]["S"] == name
    )


@dataclass
class Told:
    """A handler that writes down what it is told, and fails where it is told to."""

    handled: list[tuple[str, int]] = field(default_factory=list)
    calls: list[Delivery] = field(default_factory=list)
    fails: Callable[[Delivery], bool] = lambda _delivery: False
    during: Callable[[Delivery], object] = lambda _delivery: None

    def __call__(self, delivery: Delivery) -> None:
        self.calls.append(delivery)
        self.during(delivery)
        if self.fails(delivery):
            raise ValueError("no")
        self.handled += [(delivery.stream, event.index) for event in delivery.events]

    def of(self, stream: str) -> list[int]:
        """Indices of a stream's events, in the order they were handled."""
        return [index for name, index in self.handled if name == stream]


@dataclass
class World:
    """A feed, its indexer, and one group's reactor."""

    told: Told = field(default_factory=Told)
    feeds: Feeds = field(default_factory=Feeds)
    indexed: int = 0

    def append(self, stream: str, *types: str) -> None:
        """Append events, and index them."""
        self.feeds.append(stream, *(types or ("happened",)))
        self.index()

    def index(self) -> None:
        """Index what the source has to tell since last time."""
        indexer = self.feeds.indexer()
        indexer.register()
        records = self.feeds.records(self.indexed)
        assert not indexer.index(records).failed
        self.indexed += len(records)

    def reactor(self, on_failed: OnFailed = lambda _attempt: None, **reaction: Any) -> Reactor:
        """A process of the group `board`."""
        member = Member(
            reaction=Reaction(**{"name": "board", "handler": self.told, **reaction}),
            reader=self.feeds.reader(self.feeds.streams),
        )
        return Reactor(member=member, on_failed=on_failed, executor=Inline)

    def parking(self, **reaction: Any) -> Parking:
        return Parking(reactor=self.reactor(**reaction))

    def state(self) -> GroupState:
        """What the group has on record."""
        state = self.reactor().member.load(0).state
        assert state is not None
        return state
