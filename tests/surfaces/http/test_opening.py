"""Readers of the feed open large bodies as they come to them: megabytes of spaces are stored in a few bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from epochal.codec.bodies import Encoded, decode
from epochal.feed import hydration, ordered
from epochal.feed.results import FeedItem
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.store import encoding
from epochal.store.reading import Direction
from tests.support.api import Api
from tests.support.inline import Inline

ALL = 12
LARGE = b" " * 1_500_000 + b"1"
PARTITION = 30_000

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the bodies that were opened."""
    sizes: list[int] = []

    def counted(body: Encoded, limit: int) -> bytes | Claim:
        content = decode(body, limit)
        if isinstance(content, bytes) and content:
            sizes.append(len(content))
        return content

    monkeypatch.setattr(encoding, "decode", counted)
    return sizes


@pytest.fixture
def api() -> Api:
    """One entry of the feed with the events of two streams, all of them large."""
    api = Api()
    for number in range(ALL):
        api.streams.append(f"Order-{number % 2}", [Event(type="Placed", data=LARGE)])
    api.index()
    return api


def places(items: Iterator[FeedItem]) -> list[str]:
    """Places of events that come with their bodies."""
    return [
        f"{item.stream}@{item.index}" for item in items if item.event is not None and item.event.data == LARGE
    ]


EVERY = sorted(f"Order-{number % 2}@{number // 2}" for number in range(ALL))


def test_a_read_in_order_opens_what_it_returns(api: Api, opened: list[int]) -> None:
    (page,) = islice(api.deployment.feed.ordered(within=0, limit=2), 1)
    assert len(places(iter(page.items))) == 2
    assert len(opened) == 2


def test_a_page_in_order_ends_after_so_many_bytes(
    api: Api, opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered, "PAGE_BYTES", 2 * len(LARGE))
    pages = list(api.deployment.feed.ordered(within=0))
    assert [len(page.items) for page in pages if page.items] == [2] * (ALL // 2)
    assert sorted(places(item for page in pages for item in page.items)) == EVERY
    assert len(opened) == ALL


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_of_the_library_ends_with_the_entry_that_brings_it_to_so_many_bytes(
    opened: list[int], monkeypatch: pytest.MonkeyPatch, direction: Direction
) -> None:
    monkeypatch.setattr(hydration, "PAGE_BYTES", 2 * len(LARGE))
    api, start, sizes, found = Api(), None, list[int](), list[str]()
    for number in range(ALL):
        api.streams.append(f"Order-{number % 2}", [Event(type="Placed", data=LARGE)])
        api.index()
    for _ in range(ALL):
        opened.clear()
        page = api.deployment.feed.page(PARTITION, start=start, direction=direction, data=True)
        sizes.append(len(opened))
        found += places(iter(page.items))
        start = page.next
        if page.at_tail:
            break
    assert sorted(found) == EVERY
    assert found[0] == ("Order-0@0" if direction == "forward" else "Order-1@5")
    assert set(sizes) <= {0, 2}


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_newest_end_with_the_entry_that_brings_them_to_so_many_bytes(
    opened: list[int], monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setattr("epochal.feed.whole.PAGE_BYTES", 2 * len(LARGE))
    api = Api(chosen={"pages_partitions": partitions})
    before, sizes, found = None, list[int](), list[str]()
    for number in range(ALL):
        api.streams.append(f"Order-{number % 2}", [Event(type="Placed", data=LARGE)])
        api.index()
    for _ in range(ALL):
        opened.clear()
        page = api.deployment.feed.newest(1_000, before=before, data=True)
        sizes.append(len(opened))
        found += places(iter(page.items))
        before = page.next
        if page.at_beginning:
            break
    assert found == [f"Order-{number % 2}@{number // 2}" for number in reversed(range(ALL))]
    assert set(sizes) <= {0, 2}


def test_pages_that_are_read_on_repeat_and_leave_out_nothing(
    opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "PAGE_BYTES", 2 * len(LARGE))
    api, small = Api(), Event(type="Noted", data=b"1")
    for number in range(ALL):
        api.streams.append(f"Order-{number % 2}", [Event(type="Placed", data=LARGE)])
        api.streams.append("Note-1", [small])
        if number % 3 == 2:
            api.index()
    api.streams.prune("Note-1", before=2)
    api.index()
    for follow in (False, True):
        feed = api.deployment.feed
        pages = (
            islice(feed.follow(PARTITION, data=True, removals=True, wait=0.0), ALL)
            if follow
            else feed.read(PARTITION, data=True, removals=True)
        )
        items = [item for page in pages for item in page.items]
        assert sorted(places(iter(items))) == EVERY
        assert [item.index for item in items if item.stream == "Note-1" and item.removal is None] == [
            *range(ALL)
        ]
        assert [item.index for item in items if item.removal is not None] == [2]
    assert len(opened) >= 2 * ALL


def reactor(api: Api, handler: Callable[[Delivery], object], **options: Any) -> Reactor:
    reaction = Reaction(name="board", handler=handler, **options)
    return Reactor(member=Member(reaction=reaction, reader=api.deployment.feed), executor=Inline)


@pytest.mark.parametrize("most", [1, 3])
def test_a_reaction_in_order_opens_what_it_hands_over(api: Api, opened: list[int], most: int) -> None:
    handled, before = list[str](), list[int]()

    def handle(delivery: Delivery) -> None:
        handled.extend(f"{event.stream}@{event.index}" for event in delivery.events)
        before.append(len(opened) - len(handled))

    ran = reactor(api, handle, in_order=True, max_events=most).run(PARTITION, seconds=60)
    assert (ran.events, sorted(handled)) == (ALL, EVERY)
    assert set(before) == {0}


@pytest.mark.parametrize("in_order", [False, True])
def test_a_delivery_ends_with_the_event_that_brings_it_to_so_many_bytes(in_order: bool) -> None:
    api, sizes = Api(), list[list[int]]()
    for number in range(2 * ALL):
        api.streams.append("Order-0", [Event(type="Placed", data=LARGE if number % 8 else b"1")])
    api.index()

    def handle(delivery: Delivery) -> None:
        sizes.append([len(event.content) for event in delivery.events])

    ran = reactor(api, handle, in_order=in_order).run(PARTITION, seconds=60)
    assert ran.events == sum(map(len, sizes)) == 2 * ALL
    assert max(map(sum, sizes)) < 16 * 1024 * 1024 + len(LARGE)
    assert len(sizes) == 2
