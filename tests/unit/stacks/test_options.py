"""Whatever a store of the library can be given, a stage sets, or docs/deploy.md says why none does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, Final

import pytest

from epochal.cdk.fields import RULES
from epochal.dynamo import stores
from epochal.feed.reader import FeedReader
from epochal.layout.dcb.site import TagSite
from epochal.layout.journal.keys import KeyResolver
from epochal.layout.journal.retention import Retention
from epochal.layout.tips.streams import Tips
from epochal.store.aggregates import AggregateStore
from epochal.store.bodies import BodyCodec
from epochal.store.dcb_events import DcbEvents
from epochal.store.driver import Patience
from epochal.store.projections import ProjectionStates
from epochal.store.streams import Streams
from tests.unit.stacks.templates import ROOT

FACTORIES: Final[dict[str, Callable[..., Any]]] = {
    name: each for name, each in vars(stores).items() if name.startswith("open_")
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
    *("driver", "site", "layout", "codec", "histories", "streams", "tips", "aggregates", "tagged", "dcb"),
}
"""Where things are, and what is made of other options: every function is told by its stage."""


def options() -> Iterator[str]:
    for factory in FACTORIES.values():
        yield from inspect.signature(factory).parameters
    for store in (*STORES, *GIVEN):
        yield from (field.name for field in fields(store) if field.init and not field.name.startswith("_"))


def is_set(option: str) -> bool:
    """Whether a stage sets it. A stage's `prefix` is of names, another thing than that of keys in the bucket."""
    return option != "prefix" and SETTINGS.get(option, option) in RULES


def withheld() -> dict[str, str]:
    """Options that no stage sets, as the guide has them, with the reason."""
    guide = (ROOT / "docs" / "deploy.md").read_text()
    _, _, table = guide.partition("| option of the library | why no stage sets it |")
    rows = [row.split("|")[1:3] for row in table.partition("\n\n")[0].splitlines()[2:]]
    return {name: why.strip() for cell, why in rows for name in re.findall(r"`(\w+)`", cell)}


def test_every_factory_is_looked_at() -> None:
    assert len(FACTORIES) == 8


@pytest.mark.parametrize("option", sorted(set(options()) - PLACES))
def test_an_option_is_set_by_the_stage_or_the_guide_says_why_not(option: str) -> None:
    assert is_set(option) or withheld().get(option)


def test_what_the_guide_withholds_there_is_and_no_stage_sets_it() -> None:
    assert set(withheld()) <= set(options())
    assert not {option for option in withheld() if is_set(option)}


def test_the_settings_that_options_are_there_are() -> None:
    assert set(SETTINGS.values()) <= set(RULES)
    assert set(SETTINGS) <= set(options())
