"""A token is trusted where it was made: a table of the same name in another place has other streams."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from epochal import Conflict
from epochal.errors import InvalidInput, MissingTable
from epochal.model.events import Event
from epochal.model.tags import Query as Asked
from epochal.model.tags import QueryItem
from epochal.pages import writes
from epochal.pages.items import read_page
from epochal.plan.ops import Op, Query, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables, memory_tagged_events

S = "Cart-1"
E = Event(type="Added")


@pytest.fixture(autouse=True)
def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next append begins a page, on the word of the token alone where that is trusted."""
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)


def asked(streams: Streams) -> tuple[Streams, list[Op]]:
    ops: list[Op] = []

    def execute(op: Op) -> Reply:
        ops.append(op)
        return streams.driver.execute(op)

    return streams.on(replace(streams.driver, execute=execute)), ops


def test_a_token_of_another_place_begins_no_page_in_a_table_of_the_same_name() -> None:
    here, there = memory_tables(), memory_tables()
    for _ in range(2):
        token = memory_streams(here).append(S, [E]).token
    memory_streams(there).append(S, [E])

    told = memory_streams(there).try_append(S, [E], expected=token)

    assert isinstance(told, Conflict)
    assert [page.index for page in map(read_page, there.items("streams"))] == [0], (
        "a page after nothing is a hole"
    )


def test_a_position_of_another_place_begins_no_page_in_a_table_of_the_same_name() -> None:
    here, there = memory_tables(), memory_tables()
    asked = Asked(items=(QueryItem(tags=frozenset({"course:1"})),))
    event = Event(type="Added", tags=("course:1",))
    for _ in range(2):
        position = memory_tagged_events(here).append([event]).position
    memory_tagged_events(there).append([event])

    with pytest.raises(InvalidInput):
        memory_tagged_events(there).append([event], fail_if=asked, after=position)

    assert [page.index for page in map(read_page, there.items("streams"))] == [0]


@pytest.mark.parametrize(
    "again", ["the same store", "a store on the same tables", "with a deadline", "metered"]
)
def test_a_token_is_trusted_by_every_store_on_the_place_that_it_was_made_in(again: str) -> None:
    tables: MemoryTables = memory_tables()
    streams = memory_streams(tables)
    token = streams.append(S, [E]).token
    others = {
        "the same store": streams,
        "a store on the same tables": memory_streams(tables),
        "with a deadline": streams.within(5),
        "metered": streams.metered()[0],
    }
    store, ops = asked(others[again])

    assert store.append(S, [E], expected=token).version == 2
    assert not any(isinstance(op, Query) for op in ops)


def test_an_error_that_names_a_table_travels_to_another_process() -> None:
    streams = replace(memory_streams(), table="none")

    with pytest.raises(MissingTable) as raised:
        streams.load(S)

    found = pickle.loads(pickle.dumps(raised.value))  # noqa: S301  its own bytes
    assert (str(found), type(found.table)) == (str(raised.value), str)


def test_a_place_is_no_other_interpreters_not_even_of_one_that_is_gone() -> None:
    places = [Driver(execute=memory_tables().execute, meter=Meter()).place for _ in range(50)]

    assert len(set(places)) == 50
