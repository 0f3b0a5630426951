"""What a reader of the feed is asked for and cannot be is refused by name, and not answered as something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import nan
from typing import Any

import pytest

from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint, FeedPosition
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore

P = 30_000

Ask = Callable[..., object]

ASKS: dict[str, Callable[[FeedReader], Ask]] = {
    "page": lambda reader: lambda **more: reader.page(P, **more),
    "spans": lambda reader: lambda **more: reader.spans(P, **more),
    "read": lambda reader: lambda **more: list(reader.read(P, **more)),
    "follow": lambda reader: lambda **more: next(reader.follow(P, **more)),
    "newest": lambda reader: reader.newest,
    "streams": lambda reader: reader.streams,
    "ordered": lambda reader: lambda **more: list(reader.ordered(**{"within": 0, **more})),
    "wait_for": lambda reader: (
        lambda **more: reader.wait_for(
            **{"stream": "Flight-1", "version": 1, **more}  # type: ignore[arg-type]
        )
    ),
    "covers": lambda _: FeedPosition({P: Checkpoint(1)}).covers,
}


def of(field: str, asks: Iterable[str], *values: object) -> list[tuple[str, str, object]]:
    return [(ask, field, value) for ask in asks for value in values]


ODD = [
    *of(
        "categories",
        ("page", "spans", "read", "follow", "newest", "streams", "ordered"),
        "Flight",
        b"Flight",
        5,
        [5],
    ),
    *of("direction", ("page", "streams"), "back", "", None, []),
    *of("seconds", ("page", "spans", "newest", "streams", "wait_for"), None, "1", True, nan, []),
    *of("wait", ("page", "spans", "follow", "ordered"), None, "1", True, nan, []),
    *of("within", ("ordered",), None, "1", True, nan, -1),
    *of("partitions", ("ordered",), 5, "x", "", b"x", ["x"], [None], [True], [1.5], [-1], [P, P]),
    *of("before", ("newest",), 5, "", "x", [], True),
    *of("prefix", ("streams",), None, 5, b"x", []),
    *of("stream", ("wait_for",), None, 5, b"x"),
    *of("source", ("wait_for",), None, [], {}),
    *of("other", ("covers",), None, 5, "", [], {P: "x"}, {P: None}),
]


@pytest.fixture(scope="module")
def feed() -> MemoryStore:
    made = MemoryStore()
    made.streams.append("Flight-1", [Event(type="Departed")])
    made.index()
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "field", "value"), ODD, ids=repr)
def test_what_is_not_of_its_kind_is_refused_by_name(
    ask: str, field: str, value: object, feed: MemoryStore
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        ASKS[ask](feed.feed)(**{field: value})
    assert refusal.value.field == field


@pytest.mark.parametrize("partitions", [[P], (P,), {P}, {P: 1}.keys()])
def test_partitions_are_named_by_any_collection(partitions: Any, feed: MemoryStore) -> None:
    pages = feed.feed.ordered(within=0, partitions=partitions)
    assert [item.stream for page in pages for item in page.items] == ["Flight-1"]


def test_before_the_beginning_no_stream_is_listed(feed: MemoryStore) -> None:
    page = feed.feed.streams(start=Checkpoint(0), direction="backward")
    assert (page.streams, page.at_end) == ((), True)
    assert feed.feed.streams(start=None, direction="backward").streams


@pytest.mark.parametrize("ask", ["newest", "streams", "ordered"])
def test_so_are_categories_where_the_index_has_no_partition_yet(ask: str) -> None:
    feed = MemoryStore()
    for each in (5, "Flight", [5]):
        more = {"categories": each} | ({"partitions": []} if ask == "ordered" else {})
        empty = {"before": {}} if ask == "newest" else {"start": {}} if ask == "streams" else {}
        with pytest.raises(InvalidInput, match="categories"):
            ASKS[ask](feed.feed)(**more, **empty)
