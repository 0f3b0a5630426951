"""A reaction that could never run as it says is refused where it is declared, not in its first run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from epochal import Delivery, reaction
from epochal.errors import InvalidInput
from epochal.index.checkpoints import BEGINNING, parse_checkpoint


def handle(_: Delivery) -> None: ...


async def wait(_: Delivery) -> None: ...


def yields(_: Delivery) -> Iterator[None]:
    yield


def test_removals_are_handled_by_a_plain_function() -> None:
    wrong: dict[Any, str] = {
        "x": "removed: must be a function, not str",
        5: "removed: must be a function, not int",
        yields: "removed: must be a plain function, not a generator",
    }
    for removed, message in wrong.items():
        with pytest.raises(InvalidInput, match=message):
            reaction(name="board", removed=removed)(handle)
    with pytest.raises(InvalidInput, match="removed: must be a function, not str"):
        reaction(name="board", removed="x")(wait)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match="removed: must be an `async def` if and only if the handler is one"
    ):
        reaction(name="board", removed=wait)(handle)
    assert reaction(name="board", removed=wait)(wait).asynchronous


@pytest.mark.parametrize(
    "start",
    [{30_000: "x"}, {30_000: 5}, {30_000: None}, {"30000": BEGINNING}, {-1: BEGINNING}, {True: "tail"}],
)
def test_a_place_in_a_partition_is_one(start: Any) -> None:
    with pytest.raises(InvalidInput, match="start"):
        reaction(name="board", start=start)(handle)


def test_the_error_names_the_partition_and_what_may_be_there() -> None:
    with pytest.raises(
        InvalidInput, match=r"start\[30000\]: must be beginning, tail, a Checkpoint .*; got 'x'"
    ):
        reaction(name="board", start={30_000: "x"})(handle)


def test_places_that_there_are_may_be_named() -> None:
    start = {0: BEGINNING, 1: parse_checkpoint("0@2"), 2: datetime(2026, 1, 1, tzinfo=UTC)}
    for places in (start, {0: "tail", 1: "beginning"}, {}):
        assert reaction(name="board", start=places)(handle).start == places  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [[], (), frozenset()])
def test_a_reaction_to_no_category_or_source_is_refused(names: Any) -> None:
    with pytest.raises(InvalidInput, match="categories: must not be empty; leave it out to select all"):
        reaction(name="board", categories=names)(handle)
    with pytest.raises(InvalidInput, match="sources: must not be empty; leave it out to select all"):
        reaction(name="board", sources=names)(handle)


def test_a_reaction_to_no_type_is_refused_unless_it_handles_removals() -> None:
    with pytest.raises(InvalidInput, match="types: must not be empty; leave it out to select all"):
        reaction(name="board", types=[])(handle)
    assert reaction(name="board", types=[], removed=handle)(handle).types == frozenset()
