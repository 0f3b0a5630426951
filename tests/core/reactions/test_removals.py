"""Reactions to what is gone: in the place where it went, at least once, and never instead of an event."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from epochal import Delivery, Event, Unfold, reaction
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.layout.changes import Removal
from epochal.reactions import handling, page_tasks
from epochal.reactions.definition import Reaction, Selector
from epochal.read_models.documents import Documents
from epochal.testing.feeds import MemoryStore

Seen = list[tuple[str, object]]


def fill(feed: MemoryStore, stream: str, *types: str) -> None:
    feed.streams.append(stream, [Event(type=each) for each in types])


def board(seen: Seen, fails: set[str] | None = None, **options: Any) -> Reaction:
    """A reaction that writes down what it is called with, and fails at what it is told to, once for each call."""
    failing = set() if fails is None else fails

    def handle(delivery: Delivery) -> None:
        assert delivery.removal is None
        seen.extend((delivery.stream, event.index) for event in delivery.events)

    def removed(delivery: Delivery) -> None:
        assert (delivery.events, delivery.removal is not None) == ((), True)
        assert delivery.removal is not None
        if delivery.removal.kind in failing:
            raise ValueError("no")
        seen.append((delivery.stream, delivery.removal))

    return Reaction(**{"name": "board", "handler": handle, "removed": removed, **options})


@pytest.mark.parametrize("options", [{}, {"in_order": True}, {"members": 3}, {"max_events": 1}])
def test_a_removal_is_called_where_it_was_between_the_events_of_its_stream(options: dict[str, Any]) -> None:
    feed, seen = MemoryStore(), Seen()
    fill(feed, "Cart-1", "a", "b", "c")
    feed.streams.prune("Cart-1", 1)
    fill(feed, "Cart-1", "d")
    feed.streams.delete("Cart-1", leave_open=True)
    fill(feed, "Cart-1", "e")
    feed.streams.delete("Cart-1")
    fill(feed, "Cart-2", "a")
    feed.react(board(seen, **options))
    assert [what for stream, what in seen if stream == "Cart-1"] == [
        *(0, 1, 2),
        Removal("Cart-1", 1, "pruned", next=3),
        3,
        Removal("Cart-1", 4, "emptied", next=4, first=1),
        4,
        Removal("Cart-1", 5, "deleted", next=5, first=4),
    ]
    assert ("Cart-2", 0) in seen
    again = Seen()
    feed.react(board(again, **options))
    assert again == []


def test_a_reaction_that_asks_for_events_alone_is_called_with_nothing_else() -> None:
    feed, seen = MemoryStore(), list[Delivery]()
    fill(feed, "Cart-1", "a")
    feed.streams.delete("Cart-1")
    (ran,) = [each for each in feed.react(Reaction(name="board", handler=seen.append)) if each.events]
    assert ran.at_tail
    assert [(each.removal, len(each.events)) for each in seen] == [(None, 1)]


def test_types_of_events_do_not_keep_removals_back_and_categories_and_selectors_of_streams_do() -> None:
    feed = MemoryStore()
    for stream in ("Cart-1", "Cart-2", "Order-1"):
        fill(feed, stream, "a")
        feed.streams.delete(stream)
    for number, (options, wanted) in enumerate(
        (
            ({"types": frozenset({"x"})}, {"Cart-1", "Cart-2", "Order-1"}),
            ({"categories": frozenset({"Order"})}, {"Order-1"}),
            ({"only": Selector(prefix="Cart-2")}, {"Cart-2"}),
        )
    ):
        seen = Seen()
        feed.react(board(seen, name=f"board-{number}", **options))
        assert {stream for stream, what in seen if isinstance(what, Removal)} == wanted


@pytest.mark.parametrize("in_order", [False, True])
def test_a_removal_that_fails_parks_its_stream_and_is_called_again_when_it_is_replayed(
    in_order: bool,
) -> None:
    feed, seen, fails = MemoryStore(), Seen(), {"deleted"}
    fill(feed, "Cart-1", "a", "b")
    feed.streams.delete("Cart-1")
    fill(feed, "Cart-2", "a")
    reaction_ = board(seen, fails, attempts=2, in_order=in_order)
    (failure,) = [each for ran in feed.react(reaction_) for each in ran.parked]
    assert (failure.stream, failure.index, failure.attempts) == ("Cart-1", 2, 2)
    assert {("Cart-1", 0), ("Cart-1", 1), ("Cart-2", 0)} == set(seen)
    partition = next(
        each.partition for each in feed.feed.partitions() if feed.parking(reaction_).streams(each.partition)
    )
    assert feed.parking(reaction_).replay(partition, "Cart-1", seconds=9).failure is not None
    fails.clear()
    assert feed.parking(reaction_).replay(partition, "Cart-1", seconds=9).unparked
    assert seen[-1] == ("Cart-1", Removal("Cart-1", 2, "deleted", next=2))


@pytest.mark.parametrize("in_order", [False, True])
def test_a_removal_that_blocks_holds_its_partition_up_even_as_the_last_of_a_page(in_order: bool) -> None:
    feed, seen, fails = MemoryStore(), Seen(), {"deleted"}
    fill(feed, "Cart-1", "a", "b")
    feed.streams.delete("Cart-1")
    options: dict[str, Any] = {"attempts": 2, "on_failure": "block", "in_order": in_order}
    blocked = [ran for ran in feed.react(board(seen, fails, **options)) if ran.blocked]
    assert [each.at_tail for each in blocked] == [False]
    fails.clear()
    assert all(ran.blocked is None and ran.at_tail for ran in feed.react(board(seen, fails, **options)))
    assert seen[-1] == ("Cart-1", Removal("Cart-1", 2, "deleted", next=2))
    assert seen.count(("Cart-1", 0)) == 1, "what was handled before is not handled again"


@pytest.mark.parametrize("options", [{}, {"in_order": True}, {"on_failure": "block"}])
def test_what_follows_a_removal_that_fails_waits_for_it(options: dict[str, Any]) -> None:
    feed, seen = MemoryStore(), Seen()
    fill(feed, "Cart-1", "a")
    feed.streams.delete("Cart-1", leave_open=True)
    fill(feed, "Cart-2", "x")
    fill(feed, "Cart-1", "b")
    feed.react(board(seen, {"emptied"}, attempts=2, **options))
    assert [what for stream, what in seen if stream == "Cart-1"] == [0]


def test_what_went_while_a_stream_was_parked_is_called_when_it_is_replayed() -> None:
    feed, seen, broken = MemoryStore(), Seen(), [True]
    fill(feed, "Cart-1", "a", "b")
    reaction_ = board(seen, attempts=1)

    def handle(delivery: Delivery) -> None:
        if broken:
            raise ValueError("no")
        reaction_.handler(delivery)

    failing = replace(reaction_, handler=handle)
    feed.react(failing)
    feed.streams.prune("Cart-1", 1)
    feed.react(failing)
    assert seen == []
    broken.clear()
    parking = feed.parking(failing)
    partition = next(each.partition for each in feed.feed.partitions() if parking.streams(each.partition))
    assert parking.replay(partition, "Cart-1", seconds=9).unparked
    assert seen == [
        ("Cart-1", 0),  # which is gone, and comes as that
        ("Cart-1", Removal("Cart-1", 1, "pruned", next=1)),
        ("Cart-1", 1),
    ]


def test_after_processes_have_died_removals_are_called_one_by_one_like_events() -> None:
    feed, seen = MemoryStore(), Seen()
    fill(feed, "Cart-1", "a", "b")
    feed.streams.prune("Cart-1", 1)
    fill(feed, "Cart-1", "c")
    feed.index()
    reactor = feed.parking(board(seen)).reactor
    for each in feed.feed.partitions():
        reactor.run(each.partition, seconds=9, careful=True)
    assert [what for _, what in seen] == [0, 1, Removal("Cart-1", 1, "pruned", next=2), 2]


def test_a_run_that_is_over_before_a_removal_calls_it_in_the_next() -> None:
    """The removal is the last of its page: all events before it are handled."""
    feed, seen = MemoryStore(), Seen()
    fill(feed, "Cart-1", "a")
    feed.streams.delete("Cart-1")
    feed.index()
    handle = handling.Work.handle

    def late(self: handling.Work, task: page_tasks.Task, given: Any = None) -> handling.TaskProgress:
        progress = handle(self, replace(task, removals=()), given)
        return replace(progress, left=bool(task.removals))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handling.Work, "handle", late)
        for each in feed.feed.partitions():
            reactor = feed.parking(board(seen)).reactor
            reactor.run(each.partition, seconds=0.05)
    assert seen == [("Cart-1", 0)]
    feed.react(board(seen))
    assert seen == [("Cart-1", 0), ("Cart-1", Removal("Cart-1", 1, "deleted", next=1))]


def test_a_handler_that_is_awaited_has_removals_awaited() -> None:
    feed, seen = MemoryStore(), Seen()
    fill(feed, "Cart-1", "a")
    feed.streams.delete("Cart-1")

    async def removed(delivery: Delivery) -> None:
        await asyncio.sleep(0)
        seen.append((delivery.stream, delivery.removal))

    @reaction(name="board", removed=removed)
    async def board_(delivery: Delivery) -> None:
        await asyncio.sleep(0)
        seen.extend((delivery.stream, event.index) for event in delivery.events)

    feed.react(board_)
    assert seen == [("Cart-1", 0), ("Cart-1", Removal("Cart-1", 1, "deleted", next=1))]


def test_a_plain_function_beside_one_that_is_awaited_is_refused() -> None:
    async def handle(_: Delivery) -> None: ...

    with pytest.raises(InvalidInput, match="removed"):
        Reaction(name="board", handler=handle, removed=lambda _: None)
    with pytest.raises(InvalidInput, match="removed"):
        Reaction(name="board", handler=lambda _: None, removed=handle)


def test_a_key_is_of_the_removal_alone() -> None:
    removal = Removal("Cart-1", 2, "pruned", next=3)
    delivery = Delivery(group="board", partition=0, stream="Cart-1", events=(), removal=removal)
    event = FeedEvent(stream="Cart-1", index=2, type="a")
    keys = {delivery.key(each) for each in (removal, removal._replace(kind="deleted"), event)}
    assert len(keys) == 3


# ---------------------------------------------------------------------------------------------------------- read models


def test_a_read_model_drops_the_document_of_a_stream_that_was_deleted_once() -> None:
    feed = MemoryStore()
    model = feed.read_models.open("carts", 1)
    dropped: list[str] = []

    def fold(documents: Documents, event: FeedEvent) -> None:
        documents.put(event.stream, documents.get(event.stream, 0) + 1)

    def forget(documents: Documents, removal: Removal) -> None:
        dropped.append(removal.kind)
        if removal.kind != "pruned":
            documents.delete(removal.stream)

    def update(delivery: Delivery) -> None:
        if delivery.removal is None:
            model.apply(delivery, fold)
        else:
            assert model.remove(delivery, forget)
            assert not model.remove(delivery, forget), "it comes again, and is folded once"

    carts = reaction(name="carts-1", removed=update)(update)
    fill(feed, "Cart-1", "a", "b")
    fill(feed, "Cart-2", "a", "b")
    feed.streams.prune("Cart-2", 1)
    feed.react(carts)
    assert (model.get("Cart-1"), model.get("Cart-2")) == (2, 2)
    feed.streams.delete("Cart-1", leave_open=True)
    fill(feed, "Cart-1", "c")
    feed.streams.delete("Cart-2")
    feed.react(carts)
    assert (model.get("Cart-1"), model.get("Cart-2")) == (1, None)
    assert dropped == ["pruned", "emptied", "deleted"]


def test_a_removal_that_comes_after_a_later_one_is_not_folded() -> None:
    model = MemoryStore().read_models.open("carts", 1)

    def folded(removal: Removal) -> bool:
        delivery = Delivery(group="g", partition=0, stream="Cart-1", events=(), removal=removal)
        return model.remove(delivery, lambda documents, _: documents.put("Cart-1", removal.kind))

    assert folded(Removal("Cart-1", 3, "emptied", next=3))
    assert not folded(Removal("Cart-1", 2, "pruned", next=3))
    assert folded(Removal("Cart-1", 3, "deleted", next=3))
    assert model.get("Cart-1") == "deleted"


def test_a_delivery_of_events_is_no_removal() -> None:
    model = MemoryStore().read_models.open("carts", 1)
    event = FeedEvent(stream="Cart-1", index=0, type="a")
    delivery = Delivery(group="g", partition=0, stream="Cart-1", events=(event,))
    with pytest.raises(InvalidInput, match="delivery"):
        model.remove(delivery, lambda *_: None)


def test_a_prune_that_keeps_the_state_is_no_deletion() -> None:
    feed, seen = MemoryStore(), Seen()
    feed.streams.append("Cart-1", [Event(type="a")], unfolds=[Unfold(type="state", data=b"{}")])
    feed.streams.prune("Cart-1", 1)
    feed.react(board(seen))
    assert seen[-1] == ("Cart-1", Removal("Cart-1", 1, "pruned", next=1))
