"""A store for the examples: in memory, so that they run anywhere; the same code runs on tables of an account."""

from __future__ import annotations

import json
from typing import Any

from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.reading import Site
from epochal.layout.tables import EVENTS, TAGS
from epochal.model.dcb import RecordedTaggedEvent, TaggedEvent
from epochal.store.decisions import Decisions
from epochal.store.driver import Driver, Meter
from epochal.store.tagged import TaggedEvents
from epochal.testing.memory import MemoryTables


def decisions() -> Decisions:
    """An empty store, and decisions on it."""
    tables = MemoryTables({"events": EVENTS, "tags": TAGS})
    driver = Driver(execute=tables.execute, meter=Meter())
    site = Site(events="events", tags="tags", keys=Keys())
    return Decisions(store=TaggedEvents(driver=driver, site=site))


def event(kind: str, *tags: str, **data: Any) -> TaggedEvent:
    """An event with its data as JSON."""
    return TaggedEvent(type=kind, data=json.dumps(data), tags=tags)


def data_of(recorded: RecordedTaggedEvent) -> dict[str, Any]:
    """An event's data."""
    found: dict[str, Any] = json.loads(recorded.data)
    return found
