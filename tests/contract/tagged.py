"""Stores of tagged events for contract tests: several over the same tables, of memory or of DynamoDB Local."""

from __future__ import annotations

from collections.abc import Callable

from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.site import TagSite
from epochal.model.dcb import Query, QueryItem, TaggedEvent
from epochal.plan.ops import Execute
from epochal.store.driver import Driver, Meter
from epochal.store.tagged import TaggedEvents
from tests.contract.places import PATIENT

Opens = Callable[..., TaggedEvents]
"""Makes a store; all that one of these makes have the same tables. Takes what `store_on` does by name."""


def store_on(
    execute: Execute,
    events: str,
    tags: str,
    *,
    type_heads: bool = False,
    wrap: Callable[[Execute], Execute] = lambda execute: execute,
    **keys: object,
) -> TaggedEvents:
    site = TagSite(events=events, tags=tags, keys=Keys(**keys), type_heads=type_heads)
    return TaggedEvents(driver=Driver(execute=wrap(execute), meter=Meter(), patience=PATIENT), site=site)


def asks(types: str, tags: str) -> QueryItem:
    return QueryItem(types=frozenset(types.split()), tags=frozenset(tags.split()))


def event(kind: str, *tags: str, data: str = "{}", id_: str | None = None) -> TaggedEvent:
    return TaggedEvent(type=kind, data=data, tags=tags, id=id_)


BOTH = Query(items=(asks("Subscribed", "course:1"), asks("Subscribed", "student:7")))
COURSE = Query(items=(asks("Subscribed", "course:1"),))
PAIR = Query(items=(asks("", "course:1 student:7"),))
SUBSCRIBED = event("Subscribed", "course:1", "student:7")
