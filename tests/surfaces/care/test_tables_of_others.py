"""A store that was handed another store's table says so before its first request to it, and writes nothing there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban import memory_dcb_events, memory_projection_states
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.store import DcbEvents
from epochal.contrib.timers.protocol import Armed
from epochal.dynamo.table_kinds import distinct, kind_of, with_table_checks
from epochal.errors import InvalidInput, Refused, Unavailable, WrongTable
from epochal.layout.tables import READ_MODELS, TIMERS, every_table, store_tables
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM
from epochal.model.moments import Ticks
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Get, Items, Op, Put, Reply, Scan, Transact
from epochal.plan.values import text
from epochal.reactions.definition import Delivery, reaction
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables

ORDER = aggregate_id("order", "1")
KINDS = {spec.kind: spec for spec in (*store_tables(), READ_MODELS, TIMERS)}
ALIKE = [pair for pair in permutations(KINDS, 2) if KINDS[pair[0]].keys == KINDS[pair[1]].keys]
"""Kinds whose tables have the same keys, so that DynamoDB itself refuses nothing."""


@pytest.fixture(scope="module")
def used() -> MemoryTables:
    """Every table of a deployment in use, and one of read models."""
    feed = MemoryStore(tables=MemoryTables({spec.kind: spec for spec in every_table()}))
    feed.tips.append("Order-1", [Event(type="E")], idempotency_key="k")
    feed.streams.append("Cart-1", [Event(type="E")])
    feed.streams.append("Cart-1", [], unfolds=[Unfold(type="U", data=b"{}")], idempotency_key="k")
    feed.aggregates.append(ORDER, [AggregateEvent(type="A", data=b"{}")], snapshot=b"{}", idempotency_key="k")
    feed.dcb.append([Event(type="T", data=b"{}", tags=("course:1",))])
    states = memory_projection_states(feed.tables)
    states.save("Totals", "v1", [b"1"], events_processed=1, last_sortable_id="0" * 30)
    model = feed.read_models.open("seen", 1)

    @reaction(name="seen-1", categories=["Order"])
    def update(delivery: Delivery) -> None:
        model.apply(delivery, lambda documents, event: documents.put("all", event.index))

    feed.react(update)
    for tags in ((), ("seat:1", "flight:2")):
        armed = Armed(due=Ticks(1), layout="pages", stream="" if tags else "Cart-1", place=0, tags=tags)
        feed.tables.execute(Put(table=TIMERS.kind, item=armed.item))
    return feed.tables


def guarded(tables: MemoryTables, kinds: dict[str, str]) -> Driver:
    return Driver(execute=with_table_checks(tables.execute, kinds), meter=Meter())


USES: dict[str, Callable[[Driver, str], Any]] = {
    "tips": lambda driver, table: Streams(driver=driver, table=table, layout=Tips()).append(
        "Order-2", [Event(type="E")]
    ),
    "streams": lambda driver, table: replace(MemoryStore().streams, driver=driver, table=table).append(
        "Cart-2", [Event(type="E")]
    ),
    "index": lambda driver, table: replace(MemoryStore().feed, driver=driver, table=table).partitions(),
    "read-models": lambda driver, table: replace(MemoryStore().read_models, driver=driver, table=table).live(
        "seen"
    ),
    "projection-states": lambda driver, table: ProjectionStates(
        driver=driver, table=table, objects=memory_projection_states().objects
    ).save("Totals", "v2", [b"1"], events_processed=1, last_sortable_id="0" * 30),
    "journal": lambda driver, table: _aggregates(driver, journal=table),
    "snapshot": lambda driver, table: _aggregates(driver, snapshot=table),
    "events": lambda driver, table: _tagged(driver, events=table),
    "tags": lambda driver, table: _tagged(driver, tags=table),
}
"""The first use of a store on a table, by the kind that it must be."""


def _aggregates(driver: Driver, **tables: str) -> Any:
    store = memory_aggregates()
    mine = AggregateStore(driver=driver, site=replace(store.site, **tables))
    return mine.append(aggregate_id("order", "2"), [AggregateEvent(type="A", data=b"{}")], snapshot=b"{}")


def _tagged(driver: Driver, **tables: str) -> Any:
    store = memory_dcb_events()
    mine = DcbEvents(driver=driver, site=replace(store.site, **tables))
    return mine.append([Event(type="T", data=b"{}", tags=("course:2",))])


@pytest.mark.parametrize(("wanted", "given"), ALIKE)
def test_a_table_of_another_kind_is_refused_and_nothing_is_written(
    used: MemoryTables, wanted: str, given: str
) -> None:
    before = {kind: list(used.items(kind)) for kind in KINDS}
    with pytest.raises(WrongTable, match=f"{given} is a table of {given}, not a table of {wanted}"):
        USES[wanted](guarded(used, {given: wanted}), given)
    assert {kind: list(used.items(kind)) for kind in KINDS} == before


def test_records_of_keys_do_not_hide_that_a_table_is_one_of_streams() -> None:
    """DynamoDB scans by the hashes of keys, so any item may be the first."""
    feed = MemoryStore()
    for number in range(3):
        feed.tips.append("Cart-1", [Event(type="E")], idempotency_key=f"k{number}")
    first = feed.tables.execute(Scan(table="tips", limit=1))
    assert isinstance(first, Items)
    assert [kind_of(item) for item in first.items] == [None]
    with pytest.raises(WrongTable, match="tips is a table of tips, not a table of index"):
        USES["index"](guarded(feed.tables, {"tips": "index"}), "tips")


@pytest.mark.parametrize(("wanted", "given"), ALIKE)
def test_a_table_that_was_refused_once_is_refused_again(used: MemoryTables, wanted: str, given: str) -> None:
    driver = guarded(used, {given: wanted})
    before = {kind: list(used.items(kind)) for kind in KINDS}
    for _ in range(3):
        with pytest.raises(WrongTable):
            USES[wanted](driver, given)
    assert {kind: list(used.items(kind)) for kind in KINDS} == before


@pytest.mark.parametrize(("right", "wrong"), [("journal", "snapshot"), ("snapshot", "journal")])
def test_every_table_of_a_transaction_is_looked_at_before_it_is_sent(
    used: MemoryTables, right: str, wrong: str
) -> None:
    perform = with_table_checks(used.execute, {right: right, wrong: right})
    before = {kind: list(used.items(kind)) for kind in KINDS}
    key = {"pkey": text("new"), "skey": text("new")}
    with pytest.raises(WrongTable, match=f"{wrong} is a table of {wrong}, not a table of {right}"):
        perform(Transact(writes=(Put(table=right, item=key), Put(table=wrong, item=key))))
    assert {kind: list(used.items(kind)) for kind in KINDS} == before


@pytest.mark.parametrize("kind", KINDS)
def test_every_item_of_a_table_tells_its_kind(used: MemoryTables, kind: str) -> None:
    found = {kind_of(item) for item in used.items(kind)}
    assert found - {None} == {kind}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_the_right_kind_is_looked_at_once(used: MemoryTables, kind: str) -> None:
    asked: list[Op] = []

    def execute(op: Op) -> Reply:
        asked.append(op)
        return used.execute(op)

    perform = with_table_checks(execute, {kind: kind})
    key = {name: next(used.items(kind))[name] for name in KINDS[kind].keys}
    for _ in range(3):
        perform(Get(table=kind, key=key))
    looks = {"index": [Get], "tips": [Scan, Get], "streams": [Scan, Get]}.get(kind, [Scan])
    assert [type(op) for op in asked] == [*looks, Get, Get, Get]
    assert not any(op.consistent for op in asked[: len(looks)] if isinstance(op, Get | Scan))


def test_an_index_into_which_streams_have_strayed_is_still_none_of_streams(used: MemoryTables) -> None:
    strays = MemoryTables({"index": KINDS["index"]})
    memory = Driver(execute=strays.execute, meter=Meter())
    for number in range(300):
        Streams(driver=memory, table="index", layout=Tips()).append(f"Order-{number}", [Event(type="E")])
    for item in used.items("index"):
        strays.execute(Put(table="index", item=item))
    first = strays.execute(Scan(table="index", limit=1))
    assert isinstance(first, Items)
    assert [kind_of(item) for item in first.items] == ["tips"]
    with pytest.raises(WrongTable, match="index is a table of index, not a table of tips"):
        USES["tips"](guarded(strays, {"index": "tips"}), "index")


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_table_passes_as_any_kind(kind: str) -> None:
    empty = MemoryTables({kind: KINDS[kind]})
    assert with_table_checks(empty.execute, {kind: kind})(Scan(table=kind)).items == ()


def test_a_caller_who_may_not_look_is_not_kept_from_his_table() -> None:
    tables = MemoryTables({"tips": KINDS["tips"]})

    def execute(op: Op) -> Reply:
        if isinstance(op, Scan):
            raise Refused("Scan", "no such item for you")
        return tables.execute(op)

    driver = Driver(execute=with_table_checks(execute, {"tips": "tips"}), meter=Meter())
    Streams(driver=driver, table="tips", layout=Tips()).append("Order-1", [Event(type="E")])
    assert memory_tips(tables).load("Order-1") is not None


def test_a_look_whose_answer_is_lost_leaves_no_doubt_about_the_write_behind_it() -> None:
    def execute(op: Op) -> Reply:
        raise Lost("ReadTimeoutError")

    driver = Driver(
        execute=_checked(execute), meter=Meter(), patience=Patience(seconds=0.0), sleep=lambda _: None
    )
    with pytest.raises(Unavailable) as caught:
        Streams(driver=driver, table="tips", layout=Tips()).append(
            "Order-1", [Event(type="E")], expected=NO_STREAM
        )
    assert not caught.value.maybe_applied


def _checked(execute: Execute) -> Execute:
    return with_table_checks(execute, {"tips": "tips"})


def test_one_table_cannot_be_named_for_two_purposes() -> None:
    with pytest.raises(InvalidInput, match="index_table: must be another table than streams: both are t"):
        distinct(streams="t", index_table="t")
    distinct(streams="", index_table="")


@pytest.mark.parametrize(("wanted", "given"), ALIKE)
def test_swapped_tables_of_a_stage_are_refused_though_both_are_empty(wanted: str, given: str) -> None:
    name = f"epochal-my-stage-{given}"
    tables = MemoryTables({**KINDS, name: KINDS[given]})
    with pytest.raises(WrongTable, match=f"{name} is a table of {given}, not a table of {wanted}"):
        USES[wanted](guarded(tables, {name: wanted}), name)
    assert not list(tables.items(name))


@pytest.mark.parametrize("name", ["shop-index", "epochal-prod-index-2", "index", "epochal-x-archive"])
def test_an_empty_table_whose_name_is_no_stack_s_passes(name: str) -> None:
    tables = MemoryTables({name: KINDS["streams"]})
    USES["streams"](guarded(tables, {name: "streams"}), name)
    assert list(tables.items(name))
