"""Two reactions of one name would share a checkpoint, and each miss events: a feed in memory refuses the second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from epochal import Delivery, Event, json_codec, reaction
from epochal.cli.reactions import by_name
from epochal.contrib.processes.process import process
from epochal.errors import InvalidInput
from epochal.reactions.definition import Handler, Reaction
from epochal.testing.feeds import MemoryStore

HERE = __name__


def first(_: Delivery) -> None: ...


async def second(_: Delivery) -> None: ...


class Board:
    def __call__(self, _: Delivery) -> None: ...


NOTHING: Handler = lambda _: None  # noqa: E731  a lambda is what it is about
ONE, OTHER = Reaction(name="board", handler=first), Reaction(name="board", handler=second)


@pytest.fixture
def feed() -> MemoryStore:
    made = MemoryStore()
    made.streams.append("Cart-1", [Event(type="Opened")])
    return made


def react(feed: MemoryStore, one: Reaction) -> object:
    return feed.react(one)


def advance(feed: MemoryStore, one: Reaction) -> object:
    return feed.advance(one, seconds=1)


def park(feed: MemoryStore, one: Reaction) -> object:
    return feed.parking(one)


@pytest.mark.parametrize("door", [react, advance, park])
def test_a_second_reaction_of_a_name_is_refused_with_both_and_what_to_do(
    feed: MemoryStore, door: Callable[[MemoryStore, Reaction], object]
) -> None:
    feed.react(ONE)
    with pytest.raises(InvalidInput) as refused:
        door(feed, OTHER)
    assert str(refused.value) == (
        f"name: must be unique, but {HERE}.first and {HERE}.second share it, so they would share a checkpoint and each "
        "miss events. Rename one of the two reactions called 'board'"
    )
    feed.react(ONE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (first, Board()),
        (lambda _: None, first),
        (lambda _: None, NOTHING),
    ],
    ids=["object", "lambda", "lambdas"],
)
def test_handlers_of_any_kind_are_told_apart(feed: MemoryStore, one: Any, other: Any) -> None:
    feed.react(Reaction(name="board", handler=one))
    with pytest.raises(InvalidInput, match="two reactions called 'board'"):
        feed.react(Reaction(name="board", handler=other))


def test_a_reaction_that_is_made_again_goes_on(feed: MemoryStore) -> None:
    handled: list[str] = []

    def made(**options: Any) -> Reaction:
        @reaction(name="board", **options)
        def board(delivery: Delivery) -> None:
            handled.append(delivery.stream)

        return board

    feed.react(made())
    feed.streams.append("Cart-2", [Event(type="Opened")])
    feed.react(made(attempts=2))
    assert handled == ["Cart-1", "Cart-2"]


def test_a_name_is_free_again_once_its_group_is_deleted(feed: MemoryStore) -> None:
    feed.react(ONE)
    feed.groups.delete("board")
    feed.react(OTHER)
    with pytest.raises(InvalidInput):
        feed.react(ONE)


def test_other_names_and_other_feeds_are_no_obstacle(feed: MemoryStore) -> None:
    feed.react(ONE)
    feed.react(Reaction(name="board-2", handler=second))
    MemoryStore().react(OTHER)


@dataclass(frozen=True)
class Opened:
    pass


CODEC = json_codec(Opened)


def rules(**more: Any) -> Any:
    @process(name="checkout", categories=["Cart"], codec=CODEC, **more)
    @dataclass(frozen=True)
    class Checkout:
        def evolve(self, _: Opened) -> Checkout:
            return self

        def react(self, _: Opened) -> tuple[()]:
            return ()

    return Checkout


def test_two_processes_of_one_name_are_refused_and_versions_of_one_are_not(feed: MemoryStore) -> None:
    before = rules()
    feed.react(before)
    feed.react(rules())

    @process(name="checkout", categories=["Cart"], codec=CODEC, version=2, before=before)
    @dataclass(frozen=True)
    class Later(before):  # type: ignore[misc, valid-type]
        def react(self, _: Opened) -> tuple[()]:
            return ()

    feed.react(Later)
    feed.react(before)

    @process(name="checkout", categories=["Cart"], codec=CODEC)
    @dataclass(frozen=True)
    class Other(before):  # type: ignore[misc, valid-type]
        def react(self, _: Opened) -> tuple[()]:
            return ()

    with pytest.raises(InvalidInput, match=r"Checkout\.react and .*Other\.react share it"):
        feed.react(Other)


def test_the_console_refuses_two_reactions_of_one_name() -> None:
    assert by_name([ONE, ONE, Reaction(name="board-2", handler=second)]).keys() == {"board", "board-2"}
    with pytest.raises(InvalidInput, match=r"first and .*second"):
        by_name([ONE, OTHER])
