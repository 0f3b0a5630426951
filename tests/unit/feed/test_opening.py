"""Readers of the feed open large bodies as they come to them: megabytes of spaces are stored in a few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from epochal.codec.bodies import Encoded, decode
from epochal.feed import ordered
from epochal.feed.history import FeedItem
from epochal.model.events import Claim, Event
from epochal.store import encoding
from tests.support.api import Api

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
