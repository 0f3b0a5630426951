"""Items of any size, on memory and on each server: what a response has no room for, where a page ends, and which item
is too large.

The other random plans draw small items, and the limits of DynamoDB are limits of bytes. Sizes are drawn around them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from epochal.errors import TooLarge
from epochal.plan.conditions import Absent, Present
from epochal.plan.limits import ITEM_BYTES, PAGE_BYTES, RESPONSE_BYTES
from epochal.plan.ops import Extend, Op, Put, Reply, Set, Transact, TransactGet, Update
from epochal.plan.values import NONE, binary, item_size, number, sequence
from epochal.store.driver import Driver, Meter
from tests.contract.places import PATIENT, Place, padded

pytestmark = pytest.mark.slow

SETTINGS = settings(
    max_examples=6,
    derandomize=True,
    database=None,
    deadline=None,
    # To shrink an example of megabytes takes minutes.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
LEAST = 100
"""Bytes of the smallest item."""

MOST = ITEM_BYTES - 100
"""Bytes of the largest item that has room for another attribute."""

PER_ITEM = 4
"""Bytes that each item adds to its size in a response."""

AROUND = st.integers(-2, 2)

_partitions = count()


@pytest.fixture(
    params=[
        pytest.param("local_place", marks=pytest.mark.ddbl, id="ddbl"),
        pytest.param("embedded_place", marks=pytest.mark.embedded, id="ministack"),
    ]
)
def server(request: pytest.FixtureRequest) -> Place:
    """Each server in turn."""
    found: Place = request.getfixturevalue(request.param)
    return found


def alike(memory: Place, server: Place) -> tuple[Place, Place]:
    """The same new partition on both."""
    partition = f"Sizes-{next(_partitions)}"
    return memory.at(partition), server.at(partition)


@st.composite
def sizes(draw: st.DrawFn) -> list[int]:
    """Sizes of items, of which some have about as many bytes together as a response has room for."""
    total = draw(st.one_of(AROUND.map(lambda more: RESPONSE_BYTES + more), st.integers(2_000_000, 7_000_000)))
    items: list[int] = []
    while total > MOST:
        # No item so large that fewer bytes are left than an item has.
        items.append(draw(st.integers(150_000, min(MOST, total - LEAST - 2 * PER_ITEM))))
        total -= items[-1] + PER_ITEM
    return [*items, total - PER_ITEM]


def stored(place: Place, given: list[int]) -> None:
    for sort, size in enumerate(given):
        place.store_item(padded(place.key(sort), size))


@SETTINGS
@given(given_sizes=sizes(), data=st.data())
def test_refusals_and_reads_of_several_items_are_answered_alike(
    memory_place: Place, server: Place, given_sizes: list[int], data: st.DataObject
) -> None:
    memory, other = alike(memory_place, server)
    for place in (memory, other):
        stored(place, given_sizes)
    # Beside these, items that are not there, of which some are refused for it.
    missing = data.draw(st.lists(st.sampled_from((Absent("i"), Present("i"))), max_size=3))
    conditions = [*[Absent("i")] * len(given_sizes), *missing]
    sorts = data.draw(st.permutations(range(len(conditions))))
    refused = Transact(
        writes=tuple(
            Update(
                table=memory.table,
                key=memory.key(sort),
                sets=(Set("x", number(1)),),
                condition=conditions[sort],
            )
            for sort in sorts
        )
    )
    together = TransactGet(keys=tuple((memory.table, memory.key(sort)) for sort in sorts))

    for op in (refused, together):
        if other.store == "ddbl":
            assert without_cost(memory.execute(op)) == without_cost(other.execute(op))
            assert answered(memory, op) == answered(other, op)
        else:  # it knows no such limit, so it needs fewer requests
            assert answered(memory, op)[0] == answered(other, op)[0]


def answered(place: Place, op: Transact | TransactGet) -> tuple[Reply, int, float]:
    """The reply to a driver, the requests that it took, and what these cost where a write is refused."""
    meter = Meter()
    reply = Driver(execute=place.execute, meter=meter, patience=PATIENT).ask(op)
    return without_cost(reply), meter.requests, meter.units.write


def without_cost(reply: Reply) -> Reply:
    return replace(reply, units=NONE)


# Where pages end and which item is too large, to the byte. The embedded AWS reckons sizes by other rules.


@pytest.mark.ddbl
@SETTINGS
@given(
    more=AROUND,
    before=st.lists(st.integers(LEAST, ITEM_BYTES), min_size=1, max_size=2),
    forward=st.booleans(),
)
def test_a_page_of_a_query_ends_alike(
    memory_place: Place, local_place: Place, more: int, before: list[int], forward: bool
) -> None:
    memory, other = alike(memory_place, local_place)
    rest = PAGE_BYTES + more - sum(before)
    third = min(ITEM_BYTES, rest - 2 * LEAST)
    given_sizes = [*before, third, min(ITEM_BYTES, rest - third), LEAST, LEAST, ITEM_BYTES, ITEM_BYTES]
    for place in (memory, other):
        stored(place, given_sizes)
    pages = [memory.query(forward=forward), other.query(forward=forward)]

    while pages[0].last is not None:
        assert pages[0].items == pages[1].items
        assert pages[0].last == pages[1].last
        pages = [place.query(forward=forward, after=pages[0].last) for place in (memory, other)]
    assert pages[0].items == pages[1].items


@pytest.mark.ddbl
@settings(SETTINGS, max_examples=40)
@given(delta=st.integers(-3, 3), kind=st.sampled_from(("put", "set", "extend")), alone=st.booleans())
def test_an_item_near_400_kb_is_written_or_refused_alike(
    memory_place: Place, local_place: Place, delta: int, kind: str, alone: bool
) -> None:
    memory, other = alike(memory_place, local_place)
    op = grown(memory, kind, ITEM_BYTES + delta)
    op = op if alone else Transact(writes=(op, Put(table=memory.table, item=memory.key(1))))

    for place in (memory, other):
        place.put(0, e=sequence([]))
    assert written(memory, op) == written(other, op)
    assert memory.all() == other.all()


def grown(place: Place, kind: str, size: int) -> Put | Update:
    """A write that makes an item of this size."""
    before = {**place.key(), "e": sequence([])}
    if kind == "put":
        return Put(table=place.table, item=padded(before, size))
    if kind == "set":
        pad = padded(before, size)["pad"]
        return Update(table=place.table, key=place.key(), sets=(Set("pad", pad),))
    room = size - item_size(before) - 1
    return Update(table=place.table, key=place.key(), sets=(Extend("e", sequence([binary(b"\0" * room)])),))


def written(place: Place, op: Op) -> Reply | type[TooLarge]:
    try:
        reply = place.execute(op)
    except TooLarge:
        return TooLarge
    return without_cost(reply)
