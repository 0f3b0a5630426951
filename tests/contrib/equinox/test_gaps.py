"""A gap in a stream that is stored as a Tip and calves, some of which are broken."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import heal_tips
from epochal.errors import CorruptData
from epochal.index.ingestion import Ingested, Partition
from epochal.model.events import Event
from epochal.plan.ops import Put
from tests.core.feed.feeds import Feeds, spans_of
from tests.core.index.test_ingestion import ingest

HEAL = heal_tips("tips")


def append(feeds: Feeds, stream: str, *types: str) -> None:
    memory_tips(feeds.tables).append(stream, [Event(type=kind, data=kind.encode()) for kind in types])


def test_a_stream_that_cannot_be_healed_is_named_and_its_neighbours_go_on() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    append(feeds, "A-1", "a")
    lying = {"p": {"S": "A-1"}, "i": {"N": "2147483647"}, "n": {"N": "9"}}
    feeds.tables.execute(Put(table="tips", item=lying))
    first = {"i": {"N": "0"}, "n": {"N": "1"}, "e": {"L": [{"M": {}}]}, "c": {"L": [{"S": "a"}]}}
    feeds.tables.execute(Put(table="tips", item={**lying, **first}))
    batch = spans_of(["B-1:0:b", "A-1:0:a", "A-1:8:i", "A-1:9:j", "B-1:1:b"])
    ingested = ingest(feeds, partition, batch, HEAL)
    assert (ingested.events, ingested.healed) == (3, 0)
    assert set(ingested.unhealed) == {"A-1"}
    assert ingested.unhealed["A-1"].index == 1
    assert isinstance(ingested.unhealed["A-1"].cause, CorruptData)
    assert feeds.feed() == [("B-1", 0, "b"), ("A-1", 0, "a"), ("B-1", 1, "b")]


@pytest.mark.parametrize(
    "attributes",
    [
        {"n": {"N": "2"}, "e": {"S": "no list"}},
        {"n": {"S": "two"}},
        {"n": {"N": "2"}, "e": {"L": [{"S": "x"}, {"S": "y"}]}, "c": {"L": [{"N": "1"}, {"N": "2"}]}},
        {"n": {"N": "2"}, "etag": {"N": "7"}},
    ],
)
def test_a_source_item_of_any_shape_is_corruption_of_its_stream_alone(
    attributes: dict[str, dict[str, object]],
) -> None:
    feeds, partition = Feeds(), Partition(number=0)
    feeds.tables.execute(Put(table="tips", item={"p": {"S": "A-1"}, "i": {"N": "2147483647"}, **attributes}))
    ingested = ingest(feeds, partition, spans_of(["A-1:1:b", "B-1:0:b"]), HEAL)
    assert set(ingested.unhealed) == {"A-1"}
    assert feeds.feed() == [("B-1", 0, "b")]


def test_a_stream_is_healed_as_soon_as_its_store_is_sound_again() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    append(feeds, "A-1", "a", "b")
    (sound,) = feeds.tables.items("tips")
    feeds.tables.execute(Put(table="tips", item={**sound, "c": {"L": []}}))
    assert ingest(feeds, partition, spans_of(["A-1:1:b"]), HEAL).unhealed
    feeds.tables.execute(Put(table="tips", item=sound))
    append(feeds, "A-1", "c")
    assert ingest(feeds, partition, spans_of(["A-1:2:c"]), HEAL) == Ingested(events=3, healed=2)
