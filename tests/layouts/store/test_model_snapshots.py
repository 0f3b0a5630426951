"""Snapshots of decision models save reading, and change no decision, whatever is in their place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import pytest

from epochal.contrib.event_store_adapter import json_state
from epochal.deciders.model_snapshots import ModelSnapshots
from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from epochal.errors import EpochalError, TooLarge, Unavailable
from epochal.model.events import Event, Recorded, Unfold
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables, memory_tagged_events
from tests.support.examples import seeds


@dataclass(frozen=True)
class Taken:
    count: int


def taken(course: str) -> Projection[int]:
    return projection(tags=[course], initial=0, on={"Subscribed": lambda count, _: count + 1})


def names(student: str) -> Projection[list[str]]:
    def add(found: list[str], event: Recorded) -> list[str]:
        return [*found, event.id]

    return projection(tags=[student], initial=[], on={"Subscribed": add, "Left": add})


def snapshots(tables: MemoryTables, *, every: int = 1, version: str = "1") -> ModelSnapshots:
    def dump(states: Mapping[str, Any]) -> bytes:
        return json.dumps(dict(states)).encode()

    return ModelSnapshots(
        streams=memory_streams(tables), name="Taken", version=version, dump=dump, load=json.loads, every=every
    )


def subscribed(*tags: str, data: str = "{}") -> Event:
    return Event(type="Subscribed", data=data.encode(), tags=tags)


MODEL = {"taken": taken("c:1"), "names": names("s:1")}


@pytest.mark.parametrize("error", [Unavailable("throttled"), TooLarge("unfold", 5, 4)])
def test_a_snapshot_that_cannot_be_kept_keeps_no_decision_from_being_made(error: EpochalError) -> None:
    class Full:
        def load(self, _: str, *, events: bool) -> None: ...

        def try_append(self, *_: object, **__: object) -> None:
            raise error

    tables = memory_tables()
    store = memory_tagged_events(tables)
    store.append([subscribed("c:1")])
    kept = replace(snapshots(tables), streams=cast("Streams", Full()))
    made = Decisions(store=store, snapshots=kept).handle(
        {"taken": taken("c:1")}, lambda _: [subscribed("c:1")]
    )
    assert (made.model.states, len(made.events)) == ({"taken": 1}, 1)


def test_a_snapshot_is_kept_after_as_many_events_as_were_asked_for_and_not_before() -> None:
    tables = memory_tables()
    store = memory_tagged_events(tables)
    for number in range(1, 4):
        store.append([subscribed("c:1")])
        Decisions(store=store, snapshots=snapshots(tables, every=3)).model({"taken": taken("c:1")})
        assert (snapshots(tables).find(taken("c:1").query, ["taken"]) is None) == (number < 3)


def test_models_of_the_same_names_have_a_snapshot_for_each_query() -> None:
    tables = memory_tables()
    store, kept = memory_tagged_events(tables), snapshots(tables)
    for number in (1, 2, 2):
        store.append([subscribed(f"c:{number}")])
    for number in (1, 2):
        Decisions(store=store, snapshots=kept).model({"taken": taken(f"c:{number}")})
    found = [kept.find(taken(f"c:{number}").query, ["taken"]) for number in (1, 2, 3)]
    assert [None if each is None else each[0] for each in found] == [{"taken": 1}, {"taken": 2}, None]


def test_a_snapshot_of_another_version_is_not_gone_on_from() -> None:
    tables = memory_tables()
    store = memory_tagged_events(tables)
    store.append([subscribed("c:1")])

    def by(step: int, version: str) -> int:
        counted = projection(tags=["c:1"], initial=0, on={"Subscribed": lambda count, _: count + step})
        found = Decisions(store=store, snapshots=snapshots(tables, version=version)).model({"taken": counted})
        taken: int = found.states["taken"]
        return taken

    assert [by(1, "1"), by(10, "1"), by(10, "2"), by(1, "2")] == [1, 1, 10, 10]


@pytest.mark.slow
@seeds(30, 8)
def test_a_model_of_a_snapshot_is_that_of_all_events(seed: int) -> None:
    """Writers, readers with and without snapshots, old snapshots put back, versions that come and go."""
    luck, tables = Random(seed), memory_tables()
    store = memory_tagged_events(tables)
    kept: list[list[Unfold]] = []
    for _ in range(40):
        match luck.choice(("append", "append", "model", "decide", "old", "broken")):
            case "append":
                tags = luck.sample(("c:1", "s:1", "s:2"), luck.randint(1, 3))
                store.append([subscribed(*tags, data=f'"{luck.randbytes(300).hex()}"')])
            case "old" | "broken" as how if kept:
                unfolds = luck.choice(kept)
                if how == "broken":
                    broken = luck.choice(
                        ({"data": b"{"}, {"meta": b"{}"}, {"meta": b""}, {"data": b'{"taken":9}'})
                    )
                    unfolds = [replace(each, **broken) for each in unfolds]
                put(tables, unfolds)
            case "decide":
                found = snapshots(tables, every=luck.randint(1, 4))
                before = Decisions(store=store).model(MODEL).states
                done = Decisions(store=store, snapshots=found).handle(
                    MODEL, lambda _: [subscribed("c:1", "s:1")]
                )
                assert done.model.states == before
            case _:
                found = snapshots(tables, every=luck.randint(1, 4), version=luck.choice("112"))
                decisions = Decisions(store=store, snapshots=found)
                whole, quick = Decisions(store=store).model(MODEL), decisions.model(MODEL)
                assert (quick.states, quick.position) == (whole.states, whole.position)
                kept += [unfolds] if (unfolds := stored(tables)) else []


def stored(tables: MemoryTables) -> list[Unfold]:
    name = stream(tables)
    found = None if name is None else memory_streams(tables).load(name)
    return (
        []
        if found is None
        else [Unfold(type=each.type, data=each.data, meta=each.meta) for each in found.unfolds]
    )


def put(tables: MemoryTables, unfolds: list[Unfold]) -> None:
    name = stream(tables)
    assert name is not None
    memory_streams(tables).append(name, [], unfolds=unfolds)


def stream(tables: MemoryTables) -> str | None:
    found = {item["p"]["S"] for item in tables.items("streams") if item["p"]["S"].startswith("Taken-")}
    return min(found, default=None)


def full() -> tuple[MemoryTables, TaggedEvents]:
    tables = memory_tables()
    store = memory_tagged_events(tables)
    for number in range(500):
        store.append([subscribed("c:1", data=f'"{Random(number).randbytes(150).hex()}"')])
    return tables, store


@pytest.mark.slow
def test_a_decision_on_500_events_reads_a_page_instead_of_them_all() -> None:
    tables, store = full()
    model = {"taken": taken("c:1")}

    def cost(decisions: Decisions) -> float:
        streams = [decisions.snapshots.streams] if decisions.snapshots else []
        meters = [store.driver.meter, *(each.driver.meter for each in streams)]
        before = sum(meter.units.read for meter in meters)
        assert decisions.model(model).states == {"taken": 500}
        return sum(meter.units.read for meter in meters) - before

    keeping = Decisions(store=store, snapshots=snapshots(tables, every=100))
    plain, first, second = cost(Decisions(store=store)), cost(keeping), cost(keeping)
    assert plain > 25
    assert first <= plain + 2
    assert second <= 4


@pytest.mark.parametrize(
    "load",
    [
        lambda _: [1],
        lambda _: None,
        lambda _: "taken",
        lambda data: dict(json.loads(data)[0].items()),
        lambda data: {"taken": json.loads(data)[1]},
        lambda data: {"taken": json_state(Taken).decode(data)},
    ],
    ids=["a list", "nothing", "text", "an error of its attributes", "an error of its items", "corrupt data"],
)
def test_a_snapshot_that_is_loaded_as_no_mapping_is_passed_over(load: Callable[[bytes], Any]) -> None:
    tables = memory_tables()
    store = memory_tagged_events(tables)
    store.append([subscribed("c:1")])
    kept = replace(snapshots(tables), dump=lambda _: b"[1]")
    for found in (kept, replace(kept, load=load)):
        assert Decisions(store=store, snapshots=found).model({"taken": taken("c:1")}).states == {"taken": 1}


@pytest.mark.slow
def test_a_snapshot_of_a_table_that_was_restored_is_passed_over() -> None:
    tables, store = full()
    found = snapshots(tables)
    Decisions(store=store, snapshots=found).model({"taken": taken("c:1")})
    elsewhere = memory_tagged_events()
    elsewhere.append([subscribed("c:1")])
    assert Decisions(store=elsewhere, snapshots=found).model({"taken": taken("c:1")}).states == {"taken": 1}


def test_a_snapshot_that_is_too_large_or_cannot_be_kept_fails_no_decision() -> None:
    tables, store = memory_tables(), memory_tagged_events()
    store.append([subscribed("c:1")])
    found = snapshots(tables)
    streams = replace(found.streams, codec=replace(found.streams.codec, bodies=None))
    large = replace(found, streams=streams, dump=lambda _: Random(1).randbytes(500_000))
    decided = Decisions(store=store, snapshots=large).handle({"taken": taken("c:1")}, lambda _: [])
    assert decided.model.states == {"taken": 1}
