"""Put, Update, Delete and their conditions mean the same on every store."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, Present, equals
from epochal.plan.effects import holds
from epochal.plan.ops import Add, Delete, Done, Extend, Put, Refusal, Set, Update
from epochal.plan.values import binary, number, text
from tests.contract.places import Place, texts


def test_a_put_replaces_the_whole_item(place: Place) -> None:
    place.put(a=number(1), b=number(2))

    item = place.put(a=number(3))

    assert place.get() == item


def test_an_update_sets_and_removes_and_leaves_the_rest(place: Place) -> None:
    place.put(kept=text("k"), changed=number(1), gone=number(2))

    reply = place.execute(
        Update(
            table=place.table,
            key=place.key(),
            sets=(Set("changed", number(9)), Set("new", binary(b"\1"))),
            removes=("gone", "never-there"),
        )
    )

    assert isinstance(reply, Done)
    assert place.get() == {**place.key(), "kept": text("k"), "changed": number(9), "new": binary(b"\1")}


def test_an_update_of_an_absent_item_creates_it(place: Place) -> None:
    place.execute(Update(table=place.table, key=place.key(), sets=(Set("a", number(1)),)))

    assert place.get() == {**place.key(), "a": number(1)}


def test_an_update_that_only_removes_is_an_update(place: Place) -> None:
    place.put(a=number(1), b=number(2))

    place.execute(Update(table=place.table, key=place.key(), sets=(), removes=("a",)))

    assert place.get() == {**place.key(), "b": number(2)}


def test_extending_appends_in_order_and_begins_a_list_where_there_is_none(place: Place) -> None:
    extend = Update(table=place.table, key=place.key(), sets=(Extend("e", texts("x", "y")),))

    place.execute(extend)
    assert place.get() == {**place.key(), "e": texts("x", "y")}

    place.execute(Update(table=place.table, key=place.key(), sets=(Extend("e", texts("z")),)))
    assert place.get() == {**place.key(), "e": texts("x", "y", "z")}


def test_adding_raises_a_number_and_begins_at_0_where_there_is_none(place: Place) -> None:
    for value in ("40", "-1.5", "1E2", "0.5"):
        place.execute(Update(table=place.table, key=place.key(), sets=(Add("n", {"N": value}),)))
    place.execute(Update(table=place.table, key=place.key(), sets=(Add("m", {"N": "-0.10"}),)))

    found = place.get()
    assert found is not None
    assert Decimal(found["n"]["N"]) == 139
    assert Decimal(found["m"]["N"]) == Decimal("-0.1")


def test_two_lists_may_be_extended_and_others_set_in_one_update(place: Place) -> None:
    place.put(e=texts("1"), c=texts("A"), n=number(1))

    place.execute(
        Update(
            table=place.table,
            key=place.key(),
            sets=(Extend("e", texts("2")), Extend("c", texts("B")), Set("n", number(2))),
        )
    )

    assert place.get() == {**place.key(), "e": texts("1", "2"), "c": texts("A", "B"), "n": number(2)}


def test_names_that_are_reserved_words_or_odd_characters_are_plain_names(place: Place) -> None:
    place.execute(
        Update(
            table=place.table,
            key=place.key(),
            sets=(Set("values", number(1)), Set("a.b-c#d:e", number(2)), Extend("list", texts("x"))),
            condition=Absent("size"),
        )
    )

    assert place.get() == {**place.key(), "values": number(1), "a.b-c#d:e": number(2), "list": texts("x")}


def test_a_delete_deletes_and_of_an_absent_item_succeeds(place: Place) -> None:
    place.put(a=number(1))

    assert isinstance(place.execute(Delete(table=place.table, key=place.key())), Done)
    assert place.get() is None
    assert isinstance(place.execute(Delete(table=place.table, key=place.key())), Done)


STORED = {"n": number(10), "s": text("mä"), "b": binary(b"\x7f\x01"), "empty": texts()}

CONDITIONS: list[tuple[str, Condition, bool]] = [
    ("absent key of a stored item", Absent("i"), False),
    ("absent attribute", Absent("other"), True),
    ("absent, but there", Absent("n"), False),
    ("present", Present("n"), True),
    ("present though an empty list", Present("empty"), True),
    ("present, but not there", Present("other"), False),
    ("equal number", equals("n", number(10)), True),
    ("equal number spelled otherwise", equals("n", {"N": "10.0"}), True),
    ("unequal number", equals("n", number(11)), False),
    ("number and text are never equal", equals("n", text("10")), False),
    ("less", Compare("n", "<", number(11)), True),
    ("not less than itself", Compare("n", "<", number(10)), False),
    ("numbers compare by size, not by text", Compare("n", "<", number(9)), False),
    ("negative numbers too", Compare("n", "<=", number(-11)), False),
    ("at most", Compare("n", "<=", number(10)), True),
    ("at least", Compare("n", ">=", number(10)), True),
    ("not at least", Compare("n", ">=", number(11)), False),
    ("not at most", Compare("n", "<=", number(9)), False),
    ("no order between types", Compare("n", "<", text("99")), False),
    ("absent attributes compare as nothing", Compare("other", "<=", number(10)), False),
    ("equal text", equals("s", text("mä")), True),
    ("text by its bytes", Compare("s", "<", text("n")), True),
    ("text beyond ASCII sorts after it", Compare("s", "<", text("mz")), False),
    ("equal bytes", equals("b", binary(b"\x7f\x01")), True),
    ("bytes compare unsigned", Compare("b", "<", binary(b"\x80")), True),
    ("a prefix sorts first", Compare("b", "<", binary(b"\x7f")), False),
    ("all hold", All((Present("n"), equals("s", text("mä")))), True),
    ("one of all fails", All((Present("n"), Absent("s"))), False),
    ("text begins with a prefix", BeginsWith("s", "m"), True),
    ("text begins with another", BeginsWith("s", "n"), False),
    ("an absent attribute begins with nothing", BeginsWith("other", "m"), False),
    ("not equal", Not(equals("n", number(9))), True),
    ("not unequal", Not(equals("n", number(10))), False),
    ("another type is not equal", Not(equals("n", text("10"))), True),
    ("an absent attribute is not equal", Not(equals("other", number(10))), True),
    ("any holds", AnyOf((Absent("n"), Present("s"))), True),
    ("none holds", AnyOf((Absent("n"), Absent("s"))), False),
    ("nested", All((AnyOf((Absent("i"), Compare("n", "<", number(11)))), Absent("z"))), True),
    ("nested, failing", All((AnyOf((Absent("i"), Compare("n", "<", number(3)))), Absent("z"))), False),
]

ON_NOTHING: list[tuple[str, Condition, bool]] = [
    ("absent key", Absent("i"), True),
    ("absent attribute", Absent("n"), True),
    ("present", Present("i"), False),
    ("equal", equals("n", number(1)), False),
    ("less", Compare("n", "<", number(1)), False),
    ("all", All((Absent("i"), Absent("n"))), True),
    ("no prefix", BeginsWith("s", "m"), False),
    ("not equal", Not(equals("n", number(1))), True),
    ("any", AnyOf((Present("i"), Absent("n"))), True),
    ("neither", AnyOf((Present("i"), equals("n", number(1)))), False),
]


def named(cases: list[tuple[str, Condition, bool]]) -> list[object]:
    return [pytest.param(condition, expected, id=name) for name, condition, expected in cases]


@pytest.mark.parametrize(("condition", "expected"), named(CONDITIONS))
def test_a_condition_on_a_stored_item(place: Place, condition: Condition, expected: bool) -> None:
    item = place.put(**STORED)
    update = Update(table=place.table, key=place.key(), sets=(Set("w", number(1)),), condition=condition)

    reply = place.execute(update)

    assert isinstance(reply, Done if expected else Refusal)
    assert holds(condition, item) == expected
    assert place.get() == ({**item, "w": number(1)} if expected else item)


@pytest.mark.parametrize(("condition", "expected"), named(ON_NOTHING))
def test_a_condition_on_an_absent_item(place: Place, condition: Condition, expected: bool) -> None:
    put = Put(table=place.table, item={**place.key(), "w": number(1)}, condition=condition)

    reply = place.execute(put)

    assert isinstance(reply, Done if expected else Refusal)
    assert holds(condition, None) == expected
    assert (place.get() is not None) == expected


@pytest.mark.parametrize("kind", ["put", "update", "delete"])
def test_a_refusal_brings_the_item_that_stood_in_the_way_and_changes_nothing(place: Place, kind: str) -> None:
    item = place.put(n=number(1), e=texts("a"), b=binary(b"\0\xff"))
    table, key, condition = place.table, place.key(), equals("n", number(2))
    write = {
        "put": Put(table=table, item=key, condition=condition),
        "update": Update(table=table, key=key, sets=(Set("n", number(3)),), condition=condition),
        "delete": Delete(table=table, key=key, condition=condition),
    }[kind]

    reply = place.execute(write)

    assert isinstance(reply, Refusal)
    assert (reply.item, reply.failed, reply.ambiguous) == (item, (True,), False)
    assert place.get() == item


@pytest.mark.parametrize("kind", ["put", "update", "delete"])
def test_a_refusal_where_there_is_no_item_brings_none(place: Place, kind: str) -> None:
    table, key, condition = place.table, place.key(), Present("i")
    write = {
        "put": Put(table=table, item=key, condition=condition),
        "update": Update(table=table, key=key, sets=(Set("n", number(3)),), condition=condition),
        "delete": Delete(table=table, key=key, condition=condition),
    }[kind]

    reply = place.execute(write)

    assert isinstance(reply, Refusal)
    assert reply.item is None
    assert place.get() is None
