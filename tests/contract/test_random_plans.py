"""Random plans, one after another, on memory and on DynamoDB Local: every reply and every item alike.

What the written contract tests do not think of, this finds. Examples are derandomized, so that CI repeats itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochal.plan.conditions import Absent, All, AnyOf, Compare, Condition, Present
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Extend,
    Get,
    Items,
    Op,
    Put,
    Query,
    Reply,
    Set,
    Transact,
    Update,
)
from epochal.plan.units import NONE
from epochal.plan.values import AttributeValue, Item, Key, binary, mapping, number, sequence, text
from tests.contract.places import Place
from tests.support.examples import examples

pytestmark = pytest.mark.ddbl

SORTS = st.integers(0, 4)
SCALARS = ("n", "s", "b", "m")
LISTS = ("e", "c")

# Numbers as DynamoDB gives them back: it normalises others, and nothing of ours writes others.
NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(10**37), 10**37)).map(number)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4).map(text)
BINARIES = st.binary(max_size=4).map(binary)
SCALAR = st.one_of(NUMBERS, TEXTS, BINARIES)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(sequence),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=2).map(mapping),
    ),
    max_leaves=4,
)
LIST = st.lists(SCALAR, min_size=1, max_size=3).map(sequence)

CONDITION: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(Absent, st.sampled_from(("i", *SCALARS, *LISTS))),
        st.builds(Present, st.sampled_from(("i", *SCALARS, *LISTS))),
        st.builds(Compare, st.sampled_from(SCALARS), st.sampled_from(("=", "<", "<=", ">=")), SCALAR),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(tuple).map(All),
        st.lists(inner, min_size=1, max_size=3).map(tuple).map(AnyOf),
    ),
    max_leaves=4,
)
MAYBE = st.none() | CONDITION
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(SCALARS, VALUE), **dict.fromkeys(LISTS, LIST)}
)


def key(partition: str, sort: int) -> Key:
    return {"p": text(partition), "i": number(sort)}


@st.composite
def updates(draw: st.DrawFn, table: str, where: Key) -> Update:
    sets = [Set(name, draw(VALUE)) for name in draw(st.sets(st.sampled_from(SCALARS), max_size=2))]
    sets += [
        draw(st.sampled_from((Set, Extend)))(name, draw(LIST))
        for name in draw(st.sets(st.sampled_from(LISTS), max_size=2))
    ]
    taken = {change.name for change in sets}
    left = [name for name in (*SCALARS, *LISTS) if name not in taken]
    removes = draw(st.sets(st.sampled_from(left), min_size=0 if sets else 1, max_size=2))
    return Update(
        table=table, key=where, sets=tuple(sets), removes=tuple(sorted(removes)), condition=draw(MAYBE)
    )


@st.composite
def writes(draw: st.DrawFn, table: str, partition: str, sort: int) -> Put | Update | Delete:
    where = key(partition, sort)
    kind = draw(st.sampled_from(("put", "update", "update", "delete")))
    if kind == "put":
        return Put(table=table, item={**where, **draw(ATTRIBUTES)}, condition=draw(MAYBE))
    if kind == "delete":
        return Delete(table=table, key=where, condition=draw(MAYBE))
    return draw(updates(table, where))


@st.composite
def transactions(draw: st.DrawFn, table: str, partition: str) -> Transact:
    sorts = draw(st.lists(SORTS, min_size=1, max_size=4, unique=True))
    return Transact(
        writes=tuple(
            Check(table=table, key=key(partition, sort), condition=draw(CONDITION))
            if draw(st.booleans()) and len(sorts) > 1
            else draw(writes(table, partition, sort))
            for sort in sorts
        )
    )


@st.composite
def queries(draw: st.DrawFn, table: str, partition: str) -> Query:
    low, high = sorted((draw(SORTS), draw(SORTS)))
    forward = draw(st.booleans())
    sort = draw(st.sampled_from((None, ("i", number(low), number(high)))))
    # DynamoDB Local takes no key to go on after outside the bounds, nor the bound where the query ends.
    allowed = range(5) if sort is None else range(low, high) if forward else range(low + 1, high + 1)
    return Query(
        table=table,
        partition=("p", text(partition)),
        sort=sort,
        forward=forward,
        limit=draw(st.none() | st.integers(1, 4)),
        after=draw(st.sampled_from([None, *(key(partition, at) for at in allowed)])),
    )


@st.composite
def plans(draw: st.DrawFn, table: str, partition: str) -> Op:
    kind = draw(st.sampled_from(("write", "write", "write", "transact", "query", "get", "batch")))
    match kind:
        case "write":
            return draw(writes(table, partition, draw(SORTS)))
        case "transact":
            return draw(transactions(table, partition))
        case "query":
            return draw(queries(table, partition))
        case "get":
            return Get(table=table, key=key(partition, draw(SORTS)), consistent=draw(st.booleans()))
        case _:
            sorts = draw(st.lists(SORTS, min_size=1, unique=True))
            return BatchGet(table=table, keys=tuple(key(partition, sort) for sort in sorts))


_partitions = count()


@settings(examples(80), derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_memory_and_dynamodb_local_answer_any_sequence_of_plans_alike(
    memory_place: Place, local_place: Place, data: st.DataObject
) -> None:
    partition = f"Random-{next(_partitions)}"
    memory, local = memory_place.at(partition), local_place.at(partition)

    for _ in range(data.draw(st.integers(1, 15))):
        op = data.draw(plans(memory.table, partition))
        assert comparable(op, memory.execute(op)) == comparable(op, local.execute(op)), op

    assert memory.all() == local.all()


def comparable(op: Op, reply: Reply) -> object:
    """A reply without what DynamoDB leaves open: the order of a batch, and whether a page that ends at the very
    bound of a query names a key to go on after. And without the costs that DynamoDB Local gets wrong: of
    transactions, and of reads that find nothing, for which AWS charges the least there is.
    """
    match op, reply:
        case BatchGet(keys=keys), Items(items=items, units=units):
            return sorted(items, key=sort_of), units if len(items) == len(keys) else None
        case Query(), Items(items=items, last=last, units=units):
            ended = last is not None and op.sort is not None and last["i"] == op.sort[2 if op.forward else 1]
            return items, None if ended else last, units if items else None
        case Transact(), _:
            return replace(reply, units=NONE)
        case _:
            return reply


def sort_of(item: Item) -> int:
    found: AttributeValue = item["i"]
    return int(found["N"])
