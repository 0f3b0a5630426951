"""What DynamoDB refuses as malformed, memory refuses too, and takes what is just within a rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from epochal.dynamo.interpreter import carrier_interpreter
from epochal.errors import InvalidRequest, WrongTable
from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, equals
from epochal.plan.ops import (
    Add,
    BatchGet,
    Change,
    Check,
    Delete,
    Execute,
    Extend,
    Get,
    Op,
    Put,
    Query,
    Scan,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec
from epochal.plan.values import AttributeValue, Item, Key, binary, mapping, number, sequence, text
from epochal.testing.memory import MemoryTables
from tests.support.tables import Tables, light

SORTED = TableSpec(
    kind="sorted",
    partition=KeyAttribute(name="p", type="S"),
    sort=KeyAttribute(name="i", type="N"),
    indexes=(
        IndexSpec(
            name="grouped",
            partition=KeyAttribute(name="g", type="S"),
            sort=KeyAttribute(name="h", type="B"),
        ),
    ),
)
BARE = TableSpec(kind="bare", partition=KeyAttribute(name="k", type="B"))

LONG = "x" * 65_536
X: AttributeValue = text("x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Two tables that have one item: with a text and a list."""

    execute: Execute
    sorted: str
    bare: str


@pytest.fixture(scope="module", params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def tables(request: pytest.FixtureRequest) -> Iterator[Stored]:
    if request.param == "memory":
        memory = MemoryTables({"sorted": SORTED, "bare": BARE})
        yield Stored(execute=memory.execute, sorted="sorted", bare="bare")
        return
    endpoint = request.getfixturevalue("ddbl")
    carrier = light(endpoint)
    with Tables(endpoint) as made:
        yield Stored(execute=carrier_interpreter(carrier), sorted=made.create(SORTED), bare=made.create(BARE))
    carrier.close()


@pytest.fixture
def stored(tables: Stored) -> Stored:
    tables.execute(Put(table=tables.sorted, item={**key(), "text": X, "list": sequence([X])}))
    return tables


def key(sort: int = 0, partition: str = "a") -> Key:
    return {"p": text(partition), "i": number(sort)}


def lists(levels: int) -> AttributeValue:
    value = X
    for _ in range(levels):
        value = sequence([value])
    return value


def maps(levels: int) -> AttributeValue:
    value = X
    for _ in range(levels):
        value = mapping({"x": value})
    return value


def any_of(clauses: int) -> Condition:
    return AnyOf((Absent("nn"),) * clauses)


VALUES: dict[str, AttributeValue] = {
    "a number without digits": {"N": ""},
    "a number of letters": {"N": "one"},
    "a number with a space": {"N": " 1"},
    "a number with an underscore": {"N": "1_0"},
    "no number": {"N": "NaN"},
    "infinity": {"N": "Infinity"},
    "39 digits": {"N": "1" * 39},
    "39 digits behind the point": {"N": "0." + "1" * 39},
    "a number too large": {"N": "1e126"},
    "a number too small": {"N": "1e-131"},
    "an empty set of texts": {"SS": []},
    "an empty set of numbers": {"NS": []},
    "an empty set of bytes": {"BS": []},
    "a text twice in a set": {"SS": ["a", "a"]},
    "a number twice in a set": {"NS": ["1", "1.0"]},
    "bytes twice in a set": {"BS": [b"a", b"a"]},
    "a set of what are no numbers": {"NS": ["x"]},
    "a null that is false": {"NULL": False},
    "lists of 32 levels": lists(32),
    "maps of 32 levels": maps(32),
    "a map with an empty name": mapping({"": X}),
    "an empty set in a list": sequence([{"SS": []}]),
}

SOUND: dict[str, AttributeValue] = {
    "38 digits": {"N": "1" * 38},
    "38 digits and zeros": {"N": "1" * 38 + "0" * 20},
    "38 digits behind the point": {"N": "0." + "1" * 38},
    "the largest": {"N": "9." + "9" * 37 + "e125"},
    "the smallest": {"N": "-1e-130"},
    "zero": {"N": "-0"},
    "an empty text": text(""),
    "empty bytes": binary(b""),
    "an empty list": sequence([]),
    "an empty map": mapping({}),
    "a set of an empty text": {"SS": [""]},
    "a set of empty bytes": {"BS": [b""]},
    "a null": {"NULL": True},
    "lists of 31 levels": lists(31),
    "maps of 31 levels": maps(31),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_that_no_item_can_have_is_refused_wherever_it_stands(
    stored: Stored, value: AttributeValue
) -> None:
    put = Put(table=stored.sorted, item={**key(), "x": value})
    update = Update(table=stored.sorted, key=key(), sets=(Set("x", value),))
    for op in (
        put,
        update,
        Update(table=stored.sorted, key=key(), sets=(Extend("list", sequence([value])),)),
        Transact(writes=(put,)),
        Transact(writes=(update,)),
    ):
        with pytest.raises(InvalidRequest):
            stored.execute(op)


@pytest.mark.parametrize("value", SOUND.values(), ids=SOUND)
def test_a_value_just_within_the_rules_is_taken(stored: Stored, value: AttributeValue) -> None:
    stored.execute(Put(table=stored.sorted, item={**key(1), "x": value}))
    stored.execute(Update(table=stored.sorted, key=key(1), sets=(Set("y", value),)))
    stored.execute(Put(table=stored.sorted, item=key(1), condition=Not(equals("z", value))))


KEYS: dict[str, Key] = {
    "an empty text": key(partition=""),
    "a text too long": key(partition="x" * 2049),
    "39 digits": {"p": text("a"), "i": {"N": "1" * 39}},
}
OTHER_KEYS: dict[str, Key] = {
    "one attribute": {"p": text("a")},
    "three attributes": {**key(), "x": X},
    "another name": {"p": text("a"), "x": number(1)},
    "another type": {"p": text("a"), "i": text("1")},
}


def keyed(table: str, wanted: Key) -> list[Op]:
    """Operations on a key."""
    update = Update(table=table, key=wanted, sets=(Set("y", X),))
    delete = Delete(table=table, key=wanted)
    check = Check(table=table, key=wanted, condition=Absent("nn"))
    other = Put(table=table, item=key(9))
    return [
        Get(table=table, key=wanted),
        BatchGet(table=table, keys=(wanted,)),
        update,
        delete,
        *(Transact(writes=(write, other)) for write in (update, delete, check)),
    ]


@pytest.mark.parametrize("wanted", KEYS.values(), ids=KEYS)
def test_a_key_that_no_item_can_have_is_refused(stored: Stored, wanted: Key) -> None:
    put = Put(table=stored.sorted, item=wanted)
    get = TransactGet(keys=((stored.sorted, wanted),))
    for op in (*keyed(stored.sorted, wanted), put, Transact(writes=(put,)), get):
        with pytest.raises(InvalidRequest):
            stored.execute(op)


@pytest.mark.parametrize("wanted", OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_a_key_of_another_table_is_refused_as_such(stored: Stored, wanted: Key) -> None:
    for op in keyed(stored.sorted, wanted):
        with pytest.raises(WrongTable):
            stored.execute(op)


def test_the_longest_key_is_taken(stored: Stored) -> None:
    longest = key(partition="x" * 2048)
    stored.execute(Put(table=stored.sorted, item=longest))
    assert stored.execute(Get(table=stored.sorted, key=longest)).item == longest


ITEMS: dict[str, Item] = {
    "a key of an index of another type": {"g": number(1)},
    "an empty key of an index": {"g": text("")},
    "an empty sort key of an index": {"h": binary(b"")},
    "a long key of an index": {"g": text("x" * 2049)},
    "a long sort key of an index": {"h": binary(b"x" * 1025)},
    "an empty name": {"": X},
    "a long name": {LONG: X},
}


@pytest.mark.parametrize("attributes", ITEMS.values(), ids=ITEMS)
def test_an_item_that_no_table_takes_is_refused(stored: Stored, attributes: Item) -> None:
    put = Put(table=stored.sorted, item={**key(), **attributes})
    for op in (put, Transact(writes=(put,))):
        with pytest.raises(InvalidRequest):
            stored.execute(op)


CONDITIONS: dict[str, Condition] = {
    "nothing, all of it": All(()),
    "nothing, any of it": AnyOf(()),
    "nothing, beside something": All((Absent("nn"), AnyOf(()))),
    "an empty name": Absent(""),
    "a long name": BeginsWith(LONG, "x"),
    "a malformed number": equals("x", {"N": "1" * 39}),
    "an empty set": Not(equals("x", {"SS": []})),
    "lists of 33 levels": equals("x", lists(33)),
    "more than an expression holds": any_of(140),
    **{
        f"{kind} by size": Compare("x", "<=", {kind: value})
        for kind, value in {"L": [], "M": {}, "BOOL": True, "NULL": True, "SS": ["a"], "NS": ["1"]}.items()
    },
}


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_a_malformed_condition_is_refused_wherever_it_stands(stored: Stored, condition: Condition) -> None:
    check = Check(table=stored.sorted, key=key(), condition=condition)
    for op in (
        Put(table=stored.sorted, item=key(), condition=condition),
        Update(table=stored.sorted, key=key(), sets=(Set("x", X),), condition=condition),
        Delete(table=stored.sorted, key=key(), condition=condition),
        Transact(writes=(check, Put(table=stored.sorted, item=key(1)))),
        Scan(table=stored.sorted, where=condition),
    ):
        with pytest.raises(InvalidRequest):
            stored.execute(op)


@pytest.mark.parametrize(
    "condition",
    [any_of(100), equals("nn", lists(32)), BeginsWith("nn", ""), Compare("nn", "<", binary(b""))],
    ids=["many clauses", "lists of 32 levels", "an empty prefix", "empty bytes"],
)
def test_a_condition_just_within_the_rules_is_taken(stored: Stored, condition: Condition) -> None:
    stored.execute(Put(table=stored.sorted, item=key(1), condition=AnyOf((Absent("nn"), condition))))


UPDATES: dict[str, tuple[tuple[Change, ...], tuple[str, ...]]] = {
    "nothing": ((), ()),
    "an attribute twice": ((Set("x", X), Set("x", X)), ()),
    "set and extended": ((Set("list", sequence([])), Extend("list", sequence([X]))), ()),
    "set and removed": ((Set("x", X),), ("x",)),
    "removed twice": ((), ("x", "x")),
    "a key": ((Set("i", number(1)),), ()),
    "a key removed": ((), ("p",)),
    "a list extended by a text": ((Extend("list", X),), ()),
    "a text extended": ((Extend("text", sequence([X])),), ()),
    "a number raised by a text": ((Add("nn", X),), ()),
    "a text raised": ((Add("text", number(1)),), ()),
    "set and raised": ((Set("nn", number(1)), Add("nn", number(1))), ()),
    "an empty name": ((Set("", X),), ()),
    "an empty name removed": ((), ("",)),
    "an empty key of an index": ((Set("g", text("")),), ()),
    "more than an expression holds": (tuple(Set(f"x{n}", X) for n in range(350)), ()),
}


@pytest.mark.parametrize("change", UPDATES.values(), ids=UPDATES)
def test_an_update_that_means_nothing_is_refused(
    stored: Stored, change: tuple[tuple[Change, ...], tuple[str, ...]]
) -> None:
    update = Update(table=stored.sorted, key=key(), sets=change[0], removes=change[1])
    for op in (update, Transact(writes=(update,))):
        with pytest.raises(InvalidRequest):
            stored.execute(op)


def test_a_condition_that_fails_is_answered_before_a_text_that_is_extended(stored: Stored) -> None:
    sets = (Extend("text", sequence([X])),)
    update = Update(table=stored.sorted, key=key(), sets=sets, condition=Absent("text"))
    assert stored.execute(update).failed == (True,)


PART = ("p", text("a"))
QUERIES: dict[str, dict[str, object]] = {
    "bounds the wrong way round": {"sort": ("i", number(2), number(1))},
    "bounds of another type": {"sort": ("i", text("1"), text("2"))},
    "bounds of two types": {"sort": ("i", number(1), text("2"))},
    "a partition of another type": {"partition": ("p", number(1))},
    "an empty partition": {"partition": ("p", text(""))},
    "a limit of 0": {"limit": 0},
    "a limit below 0": {"limit": -1},
    "an index, consistently": {"index": "grouped", "partition": ("g", X)},
    "an empty partition of an index": {"index": "grouped", "partition": ("g", text("")), "consistent": False},
    "after a part of a key": {"after": {"p": text("a")}},
    "after more than a key": {"after": {**key(), "x": X}},
    "after a key of another type": {"after": {"p": text("a"), "i": text("1")}},
    "after another partition": {"after": key(partition="b")},
    "after what is below": {"after": key(1), "sort": ("i", number(2), number(4))},
    "after what is above": {"after": key(5), "sort": ("i", number(2), number(4))},
    "after what is above, backward": {
        "after": key(5),
        "sort": ("i", number(2), number(4)),
        "forward": False,
    },
    "after a key of the table, in an index": {
        "index": "grouped",
        "partition": ("g", X),
        "consistent": False,
        "after": key(),
    },
    "after a key of an index of another type": {
        "index": "grouped",
        "partition": ("g", X),
        "consistent": False,
        "after": {**key(), "g": X, "h": text("h")},
    },
    "after another partition of an index": {
        "index": "grouped",
        "partition": ("g", X),
        "consistent": False,
        "after": {**key(), "g": text("y"), "h": binary(b"h")},
    },
}


@pytest.mark.parametrize("options", QUERIES.values(), ids=QUERIES)
def test_a_query_that_can_have_no_answer_is_refused(stored: Stored, options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        stored.execute(Query(**{"table": stored.sorted, "partition": PART, **options}))


@pytest.mark.parametrize("forward", [True, False])
def test_a_query_goes_on_after_the_bound_that_it_begins_at(stored: Stored, *, forward: bool) -> None:
    keys = [key(each, "bounds") for each in (2, 3, 4)]
    for each in keys:
        stored.execute(Put(table=stored.sorted, item=each))
    query = Query(
        table=stored.sorted,
        partition=("p", text("bounds")),
        sort=("i", number(2), number(4)),
        forward=forward,
        limit=1,
    )
    found = [stored.execute(query)]
    while found[-1].last is not None and len(found) < 3:
        found.append(stored.execute(replace(query, after=found[-1].last)))
    assert [item for page in found for item in page.items] == (keys if forward else keys[::-1])


def test_bounds_of_a_table_without_a_sort_key_are_refused(stored: Stored) -> None:
    query = Query(table=stored.bare, partition=("k", binary(b"k")), sort=("i", number(1), number(2)))
    with pytest.raises(InvalidRequest):
        stored.execute(query)


@pytest.mark.parametrize(
    "options",
    [
        {"partition": ("x", X)},
        {"partition": ("i", number(1))},
        {"sort": ("x", number(1), number(2))},
        {"index": "none", "consistent": False},
    ],
    ids=["partition", "sort key", "bounds", "index"],
)
def test_a_query_of_keys_that_the_table_lacks_says_that_it_is_of_another(
    stored: Stored, options: dict[str, object]
) -> None:
    with pytest.raises(WrongTable):
        stored.execute(Query(**{"table": stored.sorted, "partition": PART, **options}))


SCANS: dict[str, dict[str, object]] = {
    "a segment beyond the last": {"segment": (1, 1)},
    "a segment below the first": {"segment": (-1, 1)},
    "no segments": {"segment": (0, 0)},
    "too many segments": {"segment": (0, 1_000_001)},
    "a limit of 0": {"limit": 0},
    "an index, consistently": {"index": "grouped"},
    "after a part of a key": {"after": {"p": text("a")}},
    "after a key of another type": {"after": {"p": text("a"), "i": text("1")}},
    "after a key of the table, in an index": {"index": "grouped", "consistent": False, "after": key()},
}


@pytest.mark.parametrize("options", SCANS.values(), ids=SCANS)
def test_a_scan_that_can_have_no_answer_is_refused(stored: Stored, options: dict[str, object]) -> None:
    with pytest.raises((InvalidRequest, WrongTable)):
        stored.execute(Scan(table=stored.sorted, **options))


def test_a_scan_goes_on_within_its_segment_alone(stored: Stored) -> None:
    taken = 0
    for segment in range(4):
        scan = Scan(table=stored.sorted, segment=(segment, 4), after=key(99, "there"))
        try:
            stored.execute(scan)
        except InvalidRequest:
            continue
        taken += 1
    assert taken == 1


@pytest.mark.parametrize("wanted", [(), (key(), key())], ids=["nothing", "an item twice"])
def test_several_are_some_and_each_is_another(stored: Stored, wanted: tuple[Key, ...]) -> None:
    table = stored.sorted
    for op in (
        BatchGet(table=table, keys=wanted),
        TransactGet(keys=tuple((table, each) for each in wanted)),
        Transact(writes=tuple(Delete(table=table, key=each) for each in wanted)),
    ):
        with pytest.raises(InvalidRequest):
            stored.execute(op)


def test_a_token_is_of_36_characters_at_most(stored: Stored) -> None:
    put = Put(table=stored.sorted, item=key(1))
    with pytest.raises(InvalidRequest):
        stored.execute(Transact(writes=(put,), token="x" * 37))


def test_a_check_stands_in_a_transaction_alone(stored: Stored) -> None:
    with pytest.raises(TypeError):
        stored.execute(Check(table=stored.sorted, key=key(), condition=Absent("x")))


def test_what_dynamodb_local_lets_pass_memory_refuses_as_aws_does() -> None:
    """AWS documents these; DynamoDB Local takes them, or says it in other words."""
    tables = MemoryTables({"sorted": SORTED, "bare": BARE})
    change = Update(table="sorted", key=key(), sets=(Set("g", number(1)),))
    for op in (
        change,
        Transact(writes=(change,)),
        Update(table="sorted", key=key(), sets=(Set("g", text("x" * 2049)),)),
        Query(table="sorted", partition=("p", text("x" * 2049))),
        Transact(writes=(Put(table="sorted", item=key()),), token=""),
    ):
        with pytest.raises(InvalidRequest):
            tables.execute(op)
    with pytest.raises(WrongTable):
        tables.execute(TransactGet(keys=(("sorted", {"p": text("a")}),)))
