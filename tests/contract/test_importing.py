"""Imports on AWS's own DynamoDB: batches as large as we reckon they may be are taken, and leave what appends leave."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random

import pytest

from epochal.contrib.sekiban import open_dcb_events
from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.stores import Place
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.store.tagged_importer import Imported, ImportedEvent
from tests.support.tables import Tables


@pytest.fixture
def layout() -> str:
    """Sekiban's tables alone: histories with ids and times of their own are brought there."""
    return "dcb"


@pytest.fixture
def store(ddbl_tables: Tables) -> DcbEvents:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    return open_dcb_events(ddbl_tables.create(EVENTS), ddbl_tables.create(TAGS), write_shards=3, place=place)


def history(count: int, *, largest: int, most_tags: int) -> Iterator[ImportedEvent]:
    """Events of any sizes and numbers of tags, the same every time."""
    chance = Random(count)
    for nth in range(count):
        tags = tuple(
            f"g{chance.randrange(4)}:{chance.randrange(9)}" for _ in range(chance.randrange(most_tags))
        )
        yield ImportedEvent(
            event=Event(
                type="A",
                data=f'"{"é" * chance.randrange(largest // 2)}"'.encode(),
                tags=tags,
                id=str(uuid.UUID(int=chance.getrandbits(128))),
            ),
            timestamp="1997-05-23T21:20:00.1234567+00:00",
            place=str(f"{630_000_000_000_000_000 + nth:019d}{0:011d}"),
        )


@pytest.mark.parametrize(
    ("count", "largest", "most_tags"),
    [
        (60, 400, 5),
        (24, 380_000, 4),
        *(
            pytest.param(*each, marks=pytest.mark.proof)
            for each in ((200, 400, 5), (40, 380_000, 4), (60, 100, 49))
        ),
    ],
    ids=["small", "large", "many small", "many large", "many tags"],
)
def test_a_history_is_imported_whole_and_read_back_as_it_was(
    store: DcbEvents, count: int, largest: int, most_tags: int
) -> None:
    events = list(history(count, largest=largest, most_tags=most_tags))

    assert DcbImporter(store=store).run(events) == Imported(read=count, written=count)

    listings = TagListings(store=store)
    stored = list(listings.all_events())
    assert [(event.id, event.data, event.place, event.timestamp) for event in stored] == [
        (each.event.id, each.event.data, each.place, each.timestamp) for each in events
    ]
    expected: dict[str, list[str]] = {}
    for each in events:
        for tag in set(each.event.tags):
            expected.setdefault(tag, []).append(str(each.event.id))
    assert {tag: [entry.event_id for entry in listings.entries(tag)] for tag in expected} == expected
    counts = {tag: len(ids) for tag, ids in expected.items()}
    assert {found.tag: found.events for found in listings.all_tags()} == counts
    for tag, ids in expected.items():
        found = store.read(Query(items=(QueryItem(tags=frozenset({tag})),)))
        assert [event.id for event in found.events] == ids


def test_an_import_that_goes_on_from_the_start_passes_by_what_is_there(store: DcbEvents) -> None:
    events = list(history(100, largest=100, most_tags=3))
    DcbImporter(store=store).run(events[:70])

    assert DcbImporter(store=store).run(events) == Imported(read=100, written=30, found=70)
    assert len(list(TagListings(store=store).all_events())) == 100
