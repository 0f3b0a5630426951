"""Pages keep what every layout has to, whether a stream is one page or many."""

from __future__ import annotations

import pytest

from epochal.layout import registry
from epochal.model.events import Event, Unfold
from epochal.pages import writes
from epochal.pages.items import page_key
from epochal.pages.layout import Pages
from epochal.plan.values import number, text
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.streams import Streams
from tests.support.layout_contract import LayoutContract, World, Writer


def streams(driver: Driver) -> Streams:
    return Streams(driver=driver, table="streams", layout=Pages())


class Contract(LayoutContract):
    writer = Writer(
        settings=Settings.of(streams_table="streams"),
        streams=("Cart-1", "Cart-2"),
        foreign=({"p": text("$Idempotency-1"), "i": number(0), "n": number(0), "ttl": number(1)},),
        malformed={**page_key("Cart-3", 0), "n": number(1), "r": number(1)},
        append=lambda driver, stream, types: streams(driver).append(
            stream, [Event(type=each) for each in types]
        ),
        prune=lambda driver, stream, before: streams(driver).prune(stream, before),
        end=lambda driver, stream: streams(driver).delete(stream),
        empty=lambda driver, stream: streams(driver).delete(stream, leave_open=True),
    )


class TestOnePage(Contract):
    """Streams of a single page."""

    def test_its_partitions_follow_those_of_the_others(self, world: World) -> None:
        assert registry.partitions_of(world.settings) == (30_000,)

    def test_a_write_of_unfolds_to_a_pruned_stream_tells_nothing(self, world: World) -> None:
        world.append("Cart-1", "a", "b")
        store = streams(world.driver())
        store.prune("Cart-1", 1)
        world.images()
        store.append("Cart-1", [], unfolds=[Unfold(type="Sum", data=b"1")])
        (image,) = world.images()
        assert image["l"] == number(1)
        assert world.source.appended(image) is None


class TestManyPages(Contract):
    """Every append begins a page."""

    @pytest.fixture(autouse=True)
    def full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def at_once(*_: object, **__: object) -> bool:
            return True

        monkeypatch.setattr(writes, "is_full", at_once)

    def test_an_index_that_has_all_of_a_stream_is_right_though_most_heads_end_before(
        self, world: World
    ) -> None:
        one, _ = world.writer.streams
        for kind in "abcd":
            world.append(one, kind)
        world.index()
        assert world.found_wrong() == []
