"""A store for the examples: in memory, so that they run anywhere; the same code runs on tables of an account."""

from __future__ import annotations

from typing import Any

from epochal.deciders.on_queries import Decisions
from epochal.model.events import Event
from epochal.testing.stores import memory_tagged_events


def memory_decisions() -> Decisions:
    """An empty store, and decisions on it."""
    return Decisions(store=memory_tagged_events())


def event(kind: str, *tags: str, **data: Any) -> Event:
    """An event with its data as JSON."""
    return Event.json(kind, data, tags=tags)
