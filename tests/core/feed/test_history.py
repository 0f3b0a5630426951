"""What a history of a layout must define, and what it has by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.feed.history import History
from epochal.feed.hydration import Hydrate
from epochal.feed.reader import FeedReader
from epochal.layout.categories import CategoriesBy
from epochal.layout.registry import base_of
from epochal.plugins import NATIVE
from epochal.store.driver import Driver
from tests.core.feed.feeds import Feeds

PAGES: Final = base_of(NATIVE)
"""A partition of the layout of these histories."""


@dataclass(frozen=True, slots=True)
class Bare(History):
    """A history that defines no more than it must."""

    name = NATIVE

    def on(self, driver: Driver) -> Bare:  # noqa: ARG002  it sends no requests
        return self

    def events(self, *, fetch: bool = True) -> Hydrate:
        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            for index in range(first, end):
                yield FeedEvent(stream=stream, index=index, type=f"fetch={fetch}")

        return hydrate

    def end_of(self, stream: str, since: int) -> int:  # noqa: ARG002  no stream has events
        return since


class Listed(Bare):
    """A history whose store knows categories."""

    @property
    def categories(self) -> CategoriesBy:
        return CategoriesBy(str.upper)


def reader(history: History) -> FeedReader:
    return FeedReader(driver=Feeds().driver, table="index", histories=(history,))


@pytest.mark.parametrize("fetch", [True, False])
def test_a_history_that_leaves_nothing_unopened_opens_all_events(fetch: bool) -> None:
    hydrate = reader(Bare()).hydrate_unopened(PAGES, fetch=fetch)
    assert [*hydrate("Cart-1", 3, 4)] == [FeedEvent(stream="Cart-1", index=3, type=f"fetch={fetch}")]


def test_a_history_without_records_of_removals_shows_none() -> None:
    assert reader(Bare()).removal_of(PAGES, "Cart-1") is None


def test_without_a_rule_of_the_history_the_categories_are_those_of_the_port() -> None:
    feed = reader(Bare())
    assert feed.declared == frozenset()
    assert feed.categories(PAGES).of("Cart-1") == "Cart"


def test_the_rule_of_a_history_comes_before_that_of_the_port() -> None:
    feed = reader(Listed())
    assert feed.declared == frozenset()
    assert feed.categories(PAGES).of("Cart-1") == "CART-1"


def test_a_reader_without_the_history_of_a_layout_refuses_to_read_its_removals() -> None:
    with pytest.raises(InvalidInput, match="needs a reader that was opened with the store of layout"):
        FeedReader(driver=Feeds().driver, table="index").removal_of(PAGES, "Cart-1")


def test_a_history_that_lacks_a_method_cannot_be_made() -> None:
    class Endless(History):
        name = NATIVE

    with pytest.raises(TypeError, match="end_of"):
        Endless()  # type: ignore[abstract]
