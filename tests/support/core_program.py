"""A small program on the core alone, all of it in memory: `tests/project/test_core.py` runs it.

There it runs in a process that has neither surfaces nor optional packages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import epochal
from epochal import (
    NO_STREAM,
    Appended,
    Conflict,
    Decider,
    Deciders,
    Delivery,
    Event,
    FeedEvent,
    Query,
    QueryItem,
    json_codec,
    reaction,
)
from epochal.deciders.access import snapshot
from epochal.read_models.documents import Documents
from epochal.testing.feeds import MemoryStore


@dataclass(frozen=True)
class Deposited:
    """Money was deposited."""

    amount: int


@dataclass(frozen=True)
class Balance:
    """The state of an account, which is its own snapshot."""

    total: int = 0


def evolve(state: Balance, event: Deposited | Balance) -> Balance:
    """Return the state after one more event."""
    return event if isinstance(event, Balance) else Balance(state.total + event.amount)


def decide(amount: int, _state: Balance) -> Sequence[Deposited | Balance]:
    """Accept every deposit."""
    return [Deposited(amount)]


feed = MemoryStore()
accounts = Deciders(
    streams=feed.streams,
    decider=Decider[int, Balance, Deposited | Balance](initial=Balance, evolve=evolve, decide=decide),
    codec=json_codec(Deposited, Balance),
    access=snapshot(lambda event: isinstance(event, Balance), lambda state: state),
)
totals = feed.read_models.open("totals", 1)


def add(documents: Documents, event: FeedEvent) -> None:
    """Count the events of each type."""
    documents.put(event.type, documents.get(event.type, 0) + 1)


@reaction(name="totals-1", categories=["Account", "Cart"])
def totalling(delivery: Delivery) -> None:
    """Update the read model."""
    totals.apply(delivery, add)


opened = Event.json("Opened", {})
assert isinstance(feed.streams.try_append("Cart-1", [opened], expected=NO_STREAM), Appended)
assert isinstance(feed.streams.try_append("Cart-1", [opened], expected=NO_STREAM), Conflict)
assert [event.type for event in feed.streams.read("Cart-1")] == ["Opened"]

accounts.handle("Account-1", 2)
assert accounts.handle("Account-1", 3).state == Balance(5)
account = feed.streams.load("Account-1")
assert account is not None
assert [unfold.type for unfold in account.unfolds] == ["Balance"]

claim = Event.json("Claimed", {}, tags=("name:ann",))
claimed = Query(items=(QueryItem(types=["Claimed"], tags=["name:ann"]),))
assert isinstance(feed.tagged.try_append([claim], fail_if=claimed), Appended)
assert isinstance(feed.tagged.try_append([claim], fail_if=claimed), Conflict)
assert [event.tags for event in feed.tagged.read(claimed).events] == [("name:ann",)]

feed.react(totalling)
assert (totals.get("Opened"), totals.get("Deposited")) == (1, 2)

sys.stdout.write(epochal.__file__)
