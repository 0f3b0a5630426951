"""Stores of tagged events for contract tests, of either layout: several over the same tables, of memory or of DynamoDB
Local.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from epochal.contrib.sekiban.items import EVENTS, TAGS, Keys, TagSite
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.interpreter import interpreter
from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Event, Recorded
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import UNTAGGED, Query, QueryItem
from epochal.pages.items import STREAMS, read_page
from epochal.pages.layout import Pages
from epochal.pages.tags.entries import entries_of, recorded_all, reserved_tags
from epochal.plan.conditions import All, BeginsWith, Present
from epochal.plan.ops import Execute, Scan
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from tests.contract.places import PATIENT
from tests.support.tables import Tables

Opens = Callable[..., TaggedStore]
"""Makes a store; all that one of these makes have the same tables. Takes `type_heads` and `wrap` by name."""

OpensDcb = Callable[..., DcbEvents]
"""Likewise, of Sekiban's tables. Takes what `store_on` does by name."""

TYPES = ("Opened", "Closed", *(f"type{number}" for number in range(10)))
"""Of events that tests ask for by type."""


def store_on(
    execute: Execute,
    events: str,
    tags: str,
    *,
    type_heads: bool = False,
    wrap: Callable[[Execute], Execute] = lambda execute: execute,
    **keys: object,
) -> DcbEvents:
    site = TagSite(events=events, tags=tags, keys=Keys(**keys), type_heads=type_heads)
    return DcbEvents(driver=Driver(execute=wrap(execute), meter=Meter(), patience=PATIENT), site=site)


def pages_on(
    execute: Execute,
    table: str,
    *,
    type_heads: bool = False,
    wrap: Callable[[Execute], Execute] = lambda execute: execute,
) -> TaggedEvents:
    heads = reserved_tags(TYPES, everything=True) if type_heads else frozenset[str]()
    driver = Driver(execute=wrap(execute), meter=Meter(), patience=PATIENT)
    named = Streams(driver=driver, table=table, layout=Pages())
    return TaggedEvents(driver=driver, site=TagStreams(table=table, type_heads=heads), named=named)


def opens(layout: str, local: Tables | None) -> Opens:
    """Makes stores over fresh tables of DynamoDB Local, or of memory."""
    specs = (EVENTS, TAGS) if layout == "dcb" else (STREAMS,)
    on = store_on if layout == "dcb" else pages_on
    if local is None:
        memory = MemoryTables({spec.kind: spec for spec in specs})
        return partial(on, memory.execute, *(spec.kind for spec in specs))
    return partial(on, interpreter(local.client), *map(local.create, specs))


def every_event(store: TaggedStore) -> list[Recorded]:
    """All events, in order."""
    if isinstance(store, DcbEvents):
        return list(TagListings(store=store).all_events())
    assert isinstance(store, TaggedEvents)
    where = All((BeginsWith("p", TAG_STREAMS), Present("r")))
    found = list[Recorded]()
    for reply in store.driver.pages(Scan(table=store.site.table, where=where)):
        entries = [entry for item in reply.items for entry in entries_of(read_page(item).span)]
        firsts = [entry for entry in entries if entry.tag == (entry.tags[0] if entry.tags else UNTAGGED)]
        found += store.driver.run(recorded_all(store.site, firsts))
    return sorted(found, key=lambda event: event.key)


def of_tag(store: TaggedStore, tag: str) -> tuple[Recorded, ...]:
    """A tag's events."""
    return store.read(Query(items=(QueryItem(tags=frozenset({tag})),))).events


def asks(types: str, tags: str) -> QueryItem:
    return QueryItem(types=frozenset(types.split()), tags=frozenset(tags.split()))


def event(kind: str, *tags: str, data: str = "{}", id_: str | None = None) -> Event:
    return Event(type=kind, data=data.encode(), tags=tags, id=id_)


BOTH = Query(items=(asks("Subscribed", "course:1"), asks("Subscribed", "student:7")))
COURSE = Query(items=(asks("Subscribed", "course:1"),))
PAIR = Query(items=(asks("", "course:1 student:7"),))
SUBSCRIBED = event("Subscribed", "course:1", "student:7")
