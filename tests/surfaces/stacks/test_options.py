"""Whatever a store of the library can be given, a stage sets, or `WITHHELD` says why none does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, Final

import pytest

from epochal.cdk.stages import RULES
from epochal.contrib.equinox import open_tips
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter import open_aggregates
from epochal.contrib.event_store_adapter.items import KeyResolver
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban import open_dcb_events, open_projection_states
from epochal.contrib.sekiban.items import TagSite
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo import stores
from epochal.feed.reader import FeedReader
from epochal.store.driver import Patience
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams

FACTORIES: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: each
        for name, each in vars(stores).items()
        if name.startswith("open_") and each.__module__ == stores.__name__
    },
    "open_aggregates": open_aggregates,
    "open_tips": open_tips,
    "open_dcb_events": open_dcb_events,
    "open_projection_states": open_projection_states,
}
STORES: Final = (Streams, AggregateStore, DcbEvents, ProjectionStates, FeedReader)
GIVEN: Final = (BodyCodec, Retention, Patience, KeyResolver, TagSite, Tips)
"""What stores are made with, besides."""

SETTINGS: Final = {
    "service": "service",
    "type_heads": "type_heads",
    "write_shards": "write_shards",
    "shards": "journal_shards",
    "keys": "journal_keys",
    "hash": "journal_keys",
    "serializer": "journal_serializer",
    "types": "aggregate_types",
    "everything": "tagged_everything",
    "archive": "archive",
    "calving": "calving",
    "tombstones": "equinox",
    "retention": "snapshot_copies",
    "keep": "snapshot_copies",
    "ttl_seconds": "snapshot_ttl_days",
    "inline_bytes": "state_inline_bytes",
    "consistent": "consistent_reads",
    "retries": "retries",
}
"""Options, and the settings that they are."""

PLACES: Final = {
    *("table", "index_table", "journal", "snapshot", "events", "tags", "bucket", "bodies", "objects"),
    *("driver", "site", "layout", "codec", "histories", "stores"),
}
"""Where things are, and what is made of other options: every function is told by its stage."""


A_REQUEST: Final = "a request ends within 25 seconds; only `retries` can end it sooner"
WITHHELD: Final = {
    "fetch": "the API answers with a link to a body in the bucket, which may exceed a function's memory",
    "compress": "bodies are always compressed where that gains",
    "compress_from": "follows from the layout",
    "via": "events of aggregates are read from their table, consistently; their index is for other libraries",
    "number_of": "is code. The functions know the names of event-store-adapter's libraries",
    "prefix": "functions may use the bucket below `projections/` alone",
    "cache_bytes": "functions open states of up to 3 MB; callers get larger ones from the bucket",
    "reads_at_once": "follows from `write_shards`: with several, `replay` reads four in parallel",
    **dict.fromkeys(("patience", "seconds", "first", "longest"), A_REQUEST),
    "place": "functions use the tables of their own region",
    **dict.fromkeys(("now", "fresh"), "are time and chance, which only tests set"),
}
"""Options that no stage sets, with the reason."""


def options() -> Iterator[str]:
    for factory in FACTORIES.values():
        yield from inspect.signature(factory).parameters
    for store in (*STORES, *GIVEN):
        yield from (field.name for field in fields(store) if field.init and not field.name.startswith("_"))


def is_set(option: str) -> bool:
    """Whether a stage sets it. A stage's `prefix` is of names, another thing than that of keys in the bucket."""
    return option != "prefix" and SETTINGS.get(option, option) in RULES


def test_every_factory_is_looked_at() -> None:
    assert len(FACTORIES) == 8


@pytest.mark.parametrize("option", sorted(set(options()) - PLACES))
def test_an_option_is_set_by_the_stage_or_it_is_said_why_not(option: str) -> None:
    assert is_set(option) or WITHHELD.get(option)


def test_what_is_withheld_there_is_and_no_stage_sets_it() -> None:
    assert set(WITHHELD) <= set(options())
    assert not {option for option in WITHHELD if is_set(option)}


def test_the_settings_that_options_are_there_are() -> None:
    assert set(SETTINGS.values()) <= set(RULES)
    assert set(SETTINGS) <= set(options())
