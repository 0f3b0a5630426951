"""Random plans, one after another, on memory and on DynamoDB Local: every reply, every refusal and every item alike.

What the written contract tests do not think of, this finds. Some plans are malformed, in values, names, keys, bounds or
expressions: memory takes none that DynamoDB refuses. Examples are derandomized, so that CI repeats itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochal.errors import InvalidRequest, WrongTable
from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, Present
from epochal.plan.ops import (
    Add,
    BatchGet,
    Check,
    Delete,
    Extend,
    Get,
    Items,
    Op,
    Put,
    Query,
    Refusal,
    Reply,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import NONE, AttributeValue, Item, Key, binary, mapping, number, sequence, text
from tests.contract.places import Place
from tests.support.examples import examples

pytestmark = pytest.mark.ddbl

T = TypeVar("T")

SORTS = st.integers(0, 4)
SCALARS = ("n", "s", "b", "m")
LISTS = ("e", "c")


def now_and_then(odd: st.SearchStrategy[T], sound: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """Mostly what is sound: a sequence of plans of which each is refused shows little."""
    return st.integers(0, 9).flatmap(lambda drawn: odd if drawn == 9 else sound)


# Numbers as DynamoDB gives them back: it normalises others, and nothing of ours writes others.
NUMBERS = now_and_then(
    st.sampled_from(("", "x", "1" * 39, f"0.{'1' * 39}", "1e126", "-1e126", "1e-131", "NaN", " 1")).map(
        lambda digits: {"N": digits}
    ),
    st.one_of(st.integers(-3, 3), st.integers(-(10**37), 10**37)).map(number),
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4).map(text)
BINARIES = st.binary(max_size=4).map(binary)
SETS = st.one_of(
    st.lists(st.sampled_from(("", "a", "b")), max_size=2).map(lambda members: {"SS": members}),
    st.lists(st.sampled_from(("1", "2")), max_size=2).map(lambda members: {"NS": members}),
    st.lists(st.sampled_from((b"", b"a")), max_size=2).map(lambda members: {"BS": members}),
)
OTHERS = st.sampled_from(({"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"NULL": False}))
SCALAR = st.one_of(NUMBERS, TEXTS, BINARIES)
NAMES = now_and_then(st.sampled_from(("", "x" * 65_536)), st.sampled_from("xyz"))
VALUE = st.recursive(
    now_and_then(SETS | OTHERS, SCALAR),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(sequence),
        st.dictionaries(NAMES, inner, max_size=2).map(mapping),
    ),
    max_leaves=4,
)


def nested(levels: int) -> AttributeValue:
    value = text("x")
    for level in range(levels):
        value = sequence([value]) if level % 2 else mapping({"x": value})
    return value


STORED = now_and_then(st.integers(30, 33).map(nested), VALUE)
COMPARED = now_and_then(st.integers(30, 33).map(nested), now_and_then(SETS | OTHERS, SCALAR))
LIST = now_and_then(SCALAR, st.lists(SCALAR, min_size=1, max_size=3).map(sequence))

ATTRIBUTE = now_and_then(NAMES, st.sampled_from(("i", *SCALARS, *LISTS)))
COMPARE = st.builds(Compare, ATTRIBUTE, st.sampled_from(("=", "=", "<", "<=", ">=")), COMPARED)
CONDITION: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(Absent, ATTRIBUTE),
        st.builds(Present, ATTRIBUTE),
        st.builds(BeginsWith, ATTRIBUTE, st.sampled_from(("", "a", "0"))),
        COMPARE,
        st.builds(Not, COMPARE),
    ),
    lambda inner: st.one_of(
        now_and_then(st.just(()), st.lists(inner, min_size=1, max_size=3).map(tuple)).map(All),
        now_and_then(st.just(()), st.lists(inner, min_size=1, max_size=3).map(tuple)).map(AnyOf),
        # As many as there is room for in an expression, or one more.
        now_and_then(st.sampled_from((127, 128, 129, 130)), st.just(1)).map(
            lambda copies: AnyOf((Absent("nn"),) * copies)
        ),
    ),
    max_leaves=4,
)
MAYBE = st.none() | CONDITION
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(SCALARS, STORED), **dict.fromkeys(LISTS, LIST), "": st.just(text("x"))}
)
SOUND = st.fixed_dictionaries({}, optional={**dict.fromkeys(SCALARS, STORED), **dict.fromkeys(LISTS, LIST)})


def key(partition: str, sort: int) -> Key:
    return {"p": text(partition), "i": number(sort)}


@st.composite
def keys(draw: st.DrawFn, partition: str) -> Key:
    """A key of the partition, or one that no item has."""
    sound = key(partition, draw(SORTS))
    odd = (
        key("", 0),
        key("x" * 2049, 0),
        {"p": text(partition)},
        {**sound, "x": text("x")},
        {**sound, "i": text("1")},
        {**sound, "i": {"N": "1" * 39}},
    )
    return draw(now_and_then(st.sampled_from(odd), st.just(sound)))


@st.composite
def updates(draw: st.DrawFn, table: str, where: Key) -> Update:
    names = now_and_then(st.sampled_from(("", "p", *LISTS)), st.sampled_from(SCALARS))
    sets = [Set(name, draw(STORED)) for name in draw(st.lists(names, max_size=2, unique=True))]
    sets += [
        draw(st.sampled_from((Set, Extend)))(name, draw(LIST))
        for name in draw(now_and_then(st.sets(st.sampled_from(SCALARS)), st.sets(st.sampled_from(LISTS))))
    ]
    numbers = st.sampled_from(SCALARS).filter(lambda name: name not in {each.name for each in sets})
    if len(sets) < len(SCALARS) and draw(st.booleans()):
        sets.append(Add(draw(numbers), draw(SCALAR)))
    taken = {change.name for change in sets}
    left = [name for name in (*SCALARS, *LISTS) if name not in taken]
    some = st.sets(st.sampled_from(left), min_size=0 if sets else 1, max_size=2)
    odd = st.sampled_from([(), ("p",), ("n", "n"), ("",), tuple(sorted(taken))])
    removes = draw(now_and_then(odd, some.map(lambda names: tuple(sorted(names)))))
    return Update(table=table, key=where, sets=tuple(sets), removes=removes, condition=draw(MAYBE))


@st.composite
def writes(draw: st.DrawFn, table: str, where: Key) -> Put | Update | Delete:
    kind = draw(st.sampled_from(("put", "update", "update", "delete")))
    if kind == "put":
        attributes = draw(now_and_then(ATTRIBUTES, SOUND))
        return Put(table=table, item={**where, **attributes}, condition=draw(MAYBE))
    if kind == "delete":
        return Delete(table=table, key=where, condition=draw(MAYBE))
    return draw(updates(table, where))


@st.composite
def transactions(draw: st.DrawFn, table: str, partition: str) -> Transact:
    # No item twice: DynamoDB Local looks at conditions first, and finds what the writes before have left.
    size = draw(now_and_then(st.just(0), st.integers(1, 4)))
    sorts = draw(st.lists(SORTS, min_size=size, max_size=size, unique=True))
    token = draw(now_and_then(st.just("x" * 37), st.none()))
    return Transact(
        writes=tuple(
            Check(table=table, key=key(partition, sort), condition=draw(CONDITION))
            if draw(st.booleans()) and len(sorts) > 1
            else draw(writes(table, key(partition, sort)))
            for sort in sorts
        ),
        token=token,
    )


@st.composite
def queries(draw: st.DrawFn, table: str, partition: str) -> Query:
    bounds = draw(SORTS), draw(SORTS)
    low, high = bounds if draw(st.integers(0, 3)) == 0 else sorted(bounds)
    forward = draw(st.booleans())
    sound = st.sampled_from((None, ("i", number(low), number(high))))
    odd = (("i", text("1"), text("2")), ("i", number(1), text("2")), ("x", number(1), number(2)))
    sort = draw(now_and_then(st.sampled_from(odd), sound))
    # Of the bound where the query ends DynamoDB Local alone takes no key to go on after.
    end = None if sort is None else high if forward else low
    after = st.sampled_from([None, *(key(partition, at) for at in range(5) if at != end)])
    malformed = (key("Another", low), {"p": text(partition)}, {**key(partition, low), "i": text("1")})
    return Query(
        table=table,
        partition=draw(now_and_then(st.just(("p", text(""))), st.just(("p", text(partition))))),
        sort=sort,
        forward=forward,
        limit=draw(now_and_then(st.sampled_from((0, -1)), st.none() | st.integers(1, 4))),
        after=draw(now_and_then(st.sampled_from(malformed), after)),
        index=draw(now_and_then(st.just("none-such"), st.none())),
    )


@st.composite
def plans(draw: st.DrawFn, table: str, partition: str) -> Op:
    kind = draw(st.sampled_from(("write", "write", "write", "transact", "query", "get", "batch", "together")))
    match kind:
        case "write":
            return draw(writes(table, draw(keys(partition))))
        case "transact":
            return draw(transactions(table, partition))
        case "query":
            return draw(queries(table, partition))
        case "get":
            return Get(table=table, key=draw(keys(partition)), consistent=draw(st.booleans()))
        case _:
            sound = st.lists(SORTS, min_size=1, unique=True)
            sorts = draw(now_and_then(st.sampled_from(([], [1, 1])), sound))
            wanted = tuple(key(partition, sort) for sort in sorts)
            if kind == "together":
                return TransactGet(keys=tuple((table, each) for each in wanted))
            return BatchGet(table=table, keys=wanted)


MALFORMED = "malformed"

_partitions = count()


@settings(examples(60), derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_memory_and_dynamodb_local_answer_any_sequence_of_plans_alike(
    memory_place: Place, local_place: Place, data: st.DataObject
) -> None:
    partition = f"Random-{next(_partitions)}"
    memory, local = memory_place.at(partition), local_place.at(partition)

    for _ in range(data.draw(st.integers(6, 14))):
        op = data.draw(plans(memory.table, partition))
        found, wanted = answered(memory, op), answered(local, op)
        if found == MALFORMED:
            # Some of it DynamoDB Local sees after the conditions.
            assert wanted == MALFORMED or isinstance(wanted, Refusal), op
        else:
            assert found == wanted, op

    assert memory.all() == local.all()


def answered(place: Place, op: Op) -> object:
    """A reply, as far as it can be compared, or that the plan is malformed: in which of its ways is left open."""
    try:
        return comparable(op, place.execute(op))
    except (InvalidRequest, WrongTable):
        return MALFORMED


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
        case Transact() | TransactGet(), _:
            return replace(reply, units=NONE)
        case _:
            return reply


def sort_of(item: Item) -> int:
    found: AttributeValue = item["i"]
    return int(found["N"])
