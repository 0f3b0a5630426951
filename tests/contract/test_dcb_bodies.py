"""Bodies in Sekiban's tables: JSON text where other libraries look for it, any bytes beside it."""

from __future__ import annotations

import json

import pytest

from epochal.contrib.sekiban import memory_dcb_events
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.store import DcbEvents
from epochal.model.events import Event
from epochal.plan.ops import Get
from epochal.store.tagged_importer import imported
from tests.contract.tagged import of_tag
from tests.contract.test_tagged_bodies import BODIES


@pytest.fixture
def layout() -> str:
    """Sekiban's tables alone: they have readers besides ours."""
    return "dcb"


@pytest.mark.parametrize("data", BODIES, ids=repr)
def test_readers_of_the_original_library_find_json_in_the_payload_of_every_event(
    store: DcbEvents, data: bytes
) -> None:
    (made,) = store.append([Event(type="A", data=data)]).events
    item = store.driver.ask(Get(table=store.site.events, key=store.site.keys.event(made.id))).item

    assert item is not None
    payload = item["payload"]["S"]
    try:
        json.loads(data)
        assert payload == data.decode()
    except ValueError:
        assert payload == "null"


def test_bodies_are_imported_as_what_they_are(store: DcbEvents) -> None:
    for data in BODIES:
        store.append([Event(type="A", data=data, meta=b"m", tags=("t:1",))])
    elsewhere = memory_dcb_events()
    DcbImporter(store=elsewhere).run(map(imported, TagListings(store=store).all_events()))

    assert of_tag(elsewhere, "t:1") == of_tag(store, "t:1")
