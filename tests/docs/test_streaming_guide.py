"""docs/guide/streaming.md: its function restores the order of changes, and its reaction posts what it says."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from epochal import Event, Recorded
from epochal.pages.frames import read_frame
from epochal.plan.values import Item
from epochal.testing.feeds import MemoryStore
from tests.vectors.pages import TABLE, World

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "streaming.md"
CODES = re.findall(r"^```python\n(.*?)^```\n", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def run(code: str) -> ModuleType:
    page = ModuleType("page")
    exec(compile(code, GUIDE.name, "exec", dont_inherit=True), vars(page))  # noqa: S102  the page is ours
    return page


def decoded(image: Item) -> Sequence[str]:
    """The types of a page's events, which are different for each event of a stream."""
    frames = [read_frame(part["B"]) for part in image.get("f", {}).get("L", ())]
    return [event.type for frame in frames for event in frame.events()]


def changes(luck: random.Random, *, pruned: bool = False) -> tuple[World, list[Item]]:
    """A store that was written to, and the images of its table's changes."""
    world, counts = World(), defaultdict[str, int](int)
    for _ in range(150):
        stream = f"Order-{luck.randrange(4)}"
        events = []
        for _ in range(luck.choice([1, 1, 3])):
            tags = ("customer:1",) if luck.random() < 0.1 else ()
            events.append(Event(type=f"T{counts[stream]}", data=luck.randbytes(400), tags=tags))
            counts[stream] += 1
        world.streams.append(stream, events)
        if pruned and luck.random() < 0.1:
            world.streams.prune(stream, luck.randrange(counts[stream]))
    return world, [*world.tables.changes(TABLE)]


def taken(images: Sequence[Item]) -> dict[str, list[tuple[int, str]]]:
    page, found = run(CODES[0]), defaultdict[str, list[tuple[int, str]]](list)
    for image in images:
        for stream, index, event in page.new_events({"dynamodb": {"NewImage": image}}, decoded):
            found[stream].append((index, event))
    return dict(found)


def stored(world: World, stream: str) -> list[Recorded]:
    return [*world.streams.read(stream)]


@pytest.mark.parametrize("seed", range(5))
def test_changes_that_come_twice_and_out_of_order_bring_each_event_once_in_order(seed: int) -> None:
    luck = random.Random(seed)
    world, images = changes(luck)
    doubled = [*images, *images]
    luck.shuffle(doubled)
    found = taken(doubled)
    assert len(found) == 4
    for stream, events in found.items():
        assert events == [(event.index, event.type) for event in stored(world, stream)]
        assert len(world.tables.changes(TABLE)) > 100


def test_what_is_pruned_is_passed_over_and_what_is_left_comes() -> None:
    world, images = changes(random.Random(7), pruned=True)
    late = images[len(images) // 2 :]  # a consumer that begins in the middle
    found = taken([*late, *world.tables.items(TABLE)])
    for stream, events in found.items():
        assert events[-1][0] == stored(world, stream)[-1].index
        indices = [index for index, _ in events]
        assert indices == sorted({*indices})
        assert {event.index for event in stored(world, stream)} <= {*indices}


def test_what_is_no_page_brings_nothing() -> None:
    page = run(CODES[0])
    for image in (
        {},
        {"p": {"S": "$Idempotency-1"}, "i": {"N": "0"}},
        {"p": {"S": "$tag-a"}, "r": {"N": "1"}},
    ):
        assert [*page.new_events({"dynamodb": {"NewImage": image} if image else {}}, decoded)] == []


def test_the_reaction_posts_the_news_of_a_stream_to_its_channel_five_at_a_time() -> None:
    page, posted, feed = run(CODES[1]), list[dict[str, Any]](), MemoryStore()
    page.__dict__["post"] = posted.append
    feed.react(page.push)
    feed.streams.append("Order-7", [Event(type=f"T{number}") for number in range(7)])
    feed.react(page.push)
    assert [message["channel"] for message in posted] == ["/orders/Order-7"] * 2
    assert [len(message["events"]) for message in posted] == [5, 2]
    assert posted[0]["events"][0] == '{"index": 0, "type": "T0"}'
