"""A store for the examples: in memory, so that they run anywhere; the same code runs on tables of an account."""

from __future__ import annotations

import json
from typing import Any

from epochal.model.dcb import RecordedTaggedEvent, TaggedEvent
from epochal.store.decisions import Decisions
from epochal.testing.stores import memory_tagged_events


def decisions() -> Decisions:
    """An empty store, and decisions on it."""
    return Decisions(store=memory_tagged_events())


def event(kind: str, *tags: str, **data: Any) -> TaggedEvent:
    """An event with its data as JSON."""
    return TaggedEvent(type=kind, data=json.dumps(data), tags=tags)


def data_of(recorded: RecordedTaggedEvent) -> dict[str, Any]:
    """An event's data."""
    found: dict[str, Any] = json.loads(recorded.data)
    return found
