"""Filters of the mappings, held against what the library writes: every append of a head gets through, little else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from epochal.cdk.parts.head_filters import heads_of
from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import appended as appended_to_stream
from epochal.contrib.equinox.port import tips_source
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import HEAD, JournalEvent, JournalSite, KeyResolver, write_copy
from epochal.contrib.event_store_adapter.model import Lock
from epochal.contrib.event_store_adapter.port import appended as appended_to_aggregate
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.event_store_adapter.transaction import AggregateBatch, Base, transaction
from epochal.contrib.sekiban.items import Keys, TagSite, write_entry, write_head
from epochal.contrib.sekiban.port import appended as appended_to_tag
from epochal.contrib.sekiban.port import dcb_source
from epochal.errors import CorruptData
from epochal.index.checkpoints import TIP
from epochal.layout.changes import Touched
from epochal.layout.source import Source
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.positions import Reached
from epochal.model.tags import EVERYTHING, make_place, type_tag
from epochal.pages.port import pages_source
from epochal.plan.conditions import Present
from epochal.plan.ops import Put, Update
from epochal.plan.values import Item, binary, number, text
from epochal.testing.stores import memory_tables
from tests.support.layout_contract import wakes

ORDER = aggregate_id("order", "1")
KEYS = KeyResolver()
SITE = JournalSite(journal="journal", snapshot="snapshot", keys=KEYS)
STREAMS = tips_source("tips")
AGGREGATES = journal_source(SITE)
PAID = Recorded(
    id="6f1c2f0e-4a43-4a5e-9f0f-0d8a5f6f1c2f",
    place=make_place(1, 1),
    type="Paid",
    data=b"{}",
    tags=("order:1",),
    timestamp="2026-11-21T08:00:00.0000000+00:00",
)


def tags_of(service: str = "") -> Source:
    return dcb_source(TagSite(events="events", tags="tags", keys=Keys(service=service)))


def change(image: Item, name: str = "MODIFY") -> dict[str, Any]:
    """A stream record as a filter sees it."""
    return {"eventName": name, "dynamodb": {"NewImage": image}}


def numbers(**image: int) -> Item:
    return {name: number(value) for name, value in image.items()}


def aggregate_head(*, first: bool) -> Item:
    """The head after an append by the library."""
    event = JournalEvent(seq_nr=0, payload=b"{}", occurred_at="", event_type="Paid")
    batch = AggregateBatch(aggregate=ORDER, events=(event,), payload=b"{}", append_id=bytes(16), now=0)
    before = Base() if first else Base(lock=Lock(version=1, seq_nr=1))
    head = transaction(SITE, batch, before).writes[0]
    if isinstance(head, Put):
        return head.item
    assert isinstance(head, Update)
    written = {each.name: each.value for each in head.sets}
    return {**aggregate_head(first=True), **head.key, **written}


def foreign_head() -> Item:
    """A head that another library wrote: nothing in it is ours."""
    item = {**KEYS.key(ORDER, HEAD), "aid": text(str(ORDER)), "payload": text("{}")}
    return item | numbers(seq_nr=0, version=3, ttl=0)


def tag_head(tag: str, service: str = "") -> Item:
    return write_head(Keys(service=service), tag, Reached(), [PAID])


@pytest.mark.parametrize(
    "record",
    [
        change(numbers(i=TIP, n=3, a=3), "INSERT"),
        change(numbers(i=TIP, n=1_000, a=10)),
    ],
    ids=["a new stream", "an append"],
)
def test_an_append_to_a_stream_gets_through(record: dict[str, Any]) -> None:
    assert passes(record, heads_of(STREAMS))


def test_a_prune_and_a_deletion_of_a_stream_get_through_and_writes_of_unfolds_do_not() -> None:
    streams = memory_tips(tables := memory_tables())
    streams.append("Cart-1", [Event(type="a"), Event(type="b")], unfolds=[Unfold(type="s")])
    streams.append("Cart-1", [], unfolds=[Unfold(type="s")])
    streams.prune("Cart-1", 1)
    streams.append("Cart-1", [], unfolds=[Unfold(type="s")])
    streams.delete("Cart-1", leave_open=True)
    streams.append("Cart-1", [Event(type="c")])
    streams.delete("Cart-1")
    found = [passes(change(dict(image)), heads_of(STREAMS)) for image in tables.changes("tips")]
    assert found == [True, False, True, False, True, True, True]


@pytest.mark.parametrize(
    "record",
    [
        change(numbers(i=0, n=10), "INSERT"),
        change(numbers(i=TIP, n=3, a=0)),
        change(numbers(i=TIP, n=3, a=0, z=1)),
        change(numbers(i=0, n=3, ttl=1), "INSERT"),
        {"eventName": "REMOVE", "dynamodb": {"OldImage": numbers(i=TIP, a=1)}},
    ],
    ids=["a calf", "unfolds or a prune", "a tombstone", "an idempotency record", "a deletion"],
)
def test_no_other_change_of_a_stream_does(record: dict[str, Any]) -> None:
    assert not passes(record, heads_of(STREAMS))


@pytest.mark.parametrize("name", ["INSERT", "MODIFY"])
@pytest.mark.parametrize(
    "head", [aggregate_head(first=True), aggregate_head(first=False)], ids=["a first append", "an append"]
)
def test_an_append_to_an_aggregate_gets_through(head: Item, name: str) -> None:
    assert appended_to_aggregate(head) is not None
    assert passes(change(head, name), heads_of(AGGREGATES))


def test_so_does_a_head_that_another_library_wrote() -> None:
    assert appended_to_aggregate(foreign_head()) == Touched(stream="order-1")
    assert passes(change(foreign_head()), heads_of(AGGREGATES))


def test_kept_copies_of_snapshots_do_not_nor_deletions() -> None:
    copy = write_copy(KEYS, ORDER, Lock(version=2, seq_nr=2), binary(b"{}"), 0)
    pattern = heads_of(AGGREGATES)
    assert not passes(change(copy, "INSERT"), pattern)
    assert not passes(change({**copy, "ttl": number(1)}), pattern)
    assert not passes({"eventName": "REMOVE", "dynamodb": {"OldImage": foreign_head()}}, pattern)


@pytest.mark.parametrize("service", ["", "shop"])
@pytest.mark.parametrize("tag", ["order:1", "plain", ""], ids=["grouped", "plain", "untagged"])
def test_a_move_of_a_tags_head_gets_through(service: str, tag: str) -> None:
    head = tag_head(tag, service)
    assert appended_to_tag(head, service) is not None
    assert passes(change(head), heads_of(tags_of(service)))
    assert passes(change(head, "INSERT"), heads_of(tags_of(service)))


@pytest.mark.parametrize("tag", [EVERYTHING, type_tag("Paid")])
def test_so_does_a_move_of_a_type_head_which_the_library_passes_over(tag: str) -> None:
    assert appended_to_tag(tag_head(tag)) is None
    assert passes(change(tag_head(tag)), heads_of(tags_of()))


@pytest.mark.parametrize(
    "malformed",
    [numbers(n=3), {**numbers(n=3), "a": text("1")}, numbers(n=3, a=-1), numbers(a=1)],
    ids=["no count", "a count that is text", "a negative count", "no next index"],
)
def test_a_malformed_tip_gets_through_to_be_set_aside(malformed: Item) -> None:
    tip = {"p": text("Cart-1"), **numbers(i=TIP), **malformed}
    with pytest.raises((CorruptData, KeyError)):  # what `Source.appended` is set aside for
        appended_to_stream(tip)
    assert passes(change(tip), heads_of(STREAMS))


def test_a_malformed_head_gets_through_to_be_set_aside() -> None:
    malformed = {name: value for name, value in tag_head("order:1").items() if name in ("pk", "sk")}
    assert passes(change(malformed), heads_of(tags_of()))
    malformed = numbers(seq_nr=0, last_seq_nr=-1)
    assert passes(change(malformed), heads_of(AGGREGATES))


def test_entries_of_tags_do_not_nor_deletions() -> None:
    pattern = heads_of(tags_of())
    assert not passes(change(write_entry(Keys(), "order:1", 0, PAID), "INSERT"), pattern)
    assert not passes({"eventName": "REMOVE", "dynamodb": {"OldImage": tag_head("order:1")}}, pattern)


@pytest.mark.parametrize(("mine", "other"), [("", "shop"), ("shop", ""), ("shop", "shop-2"), ("b", "a-b")])
def test_heads_of_other_tenants_do_not(mine: str, other: str) -> None:
    head = tag_head("order:1", other)
    assert appended_to_tag(head, mine) is None
    assert not passes(change(head), heads_of(tags_of(mine)))


IMAGES: list[Item] = [
    numbers(i=TIP, n=3, a=3),
    numbers(i=TIP, n=3, a=0),
    numbers(i=TIP, n=3),
    {**numbers(i=TIP, n=3), "a": text("0")},
    numbers(i=0, a=1),
    {**numbers(i=TIP, n=3, a=0, l=3), "etag": text("dead" + 28 * "0")},
    {**numbers(i=0, n=3, l=3), "etag": text("dead" + 28 * "0")},
    aggregate_head(first=True),
    foreign_head(),
    write_copy(KEYS, ORDER, Lock(version=2, seq_nr=2), binary(b"{}"), 0),
    tag_head("order:1"),
    tag_head("order:1", "shop"),
    tag_head(EVERYTHING),
    write_entry(Keys(), "order:1", 0, PAID),
]


@pytest.mark.parametrize("source", [STREAMS, AGGREGATES, tags_of(), tags_of("shop")])
def test_a_filter_says_what_the_layouts_condition_says(source: Source) -> None:
    found = [passes(change(image), heads_of(source)) for image in IMAGES]
    assert found == [wakes(source, image) for image in IMAGES]
    assert any(found)
    assert not all(found)


def test_of_pages_whatever_has_a_revision_gets_through() -> None:
    (pattern,) = heads_of(pages_source("streams"))
    assert json.loads(pattern)["dynamodb"]["NewImage"] == {"r": {"N": [{"exists": True}]}}


def test_what_a_filter_cannot_say_is_no_filter() -> None:
    with pytest.raises(ValueError, match="no filter"):
        heads_of(replace(STREAMS, where=Present("i")))


def passes(record: dict[str, Any], patterns: list[str]) -> bool:
    return any(matches(record, json.loads(pattern)) for pattern in patterns)


def matches(value: Any, pattern: Any) -> bool:
    """Lambda's filter rules, as far as they are used: objects of lists of values, `prefix`, `anything-but`, `exists`.

    A field that is not there matches `exists` alone, also where nothing is of what it would stand in.
    """
    if isinstance(pattern, dict):
        fields = value if isinstance(value, dict) else {}
        return all(matches(fields.get(key), each) for key, each in pattern.items())
    return any(_is(value, choice) for choice in pattern)


def _is(value: str | None, choice: Any) -> bool:
    match choice:
        case {"exists": there}:
            return (value is not None) is there
        case {"anything-but": others}:
            return value is not None and value not in others
        case {"prefix": start}:
            return value is not None and value.startswith(start)
        case _:
            return bool(value == choice)
