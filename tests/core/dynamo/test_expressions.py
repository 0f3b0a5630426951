"""Conditions and updates as DynamoDB's expressions: nothing but placeholders, no parenthesis too many."""

from __future__ import annotations

import pytest

from epochal.dynamo.protocol.expressions import Expressions
from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, Present
from epochal.plan.ops import Extend, Set, Update
from epochal.plan.values import number, sequence, text

N = Present("n")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Absent("i"), "attribute_not_exists(#0)"),
        (N, "attribute_exists(#0)"),
        (Compare("n", "<=", number(1)), "#0 <= :0"),
        (BeginsWith("s", "m"), "begins_with(#0, :0)"),
        (Not(Compare("n", "=", number(0))), "NOT (#0 = :0)"),
        (All((N, Absent("z"))), "(attribute_exists(#0)) AND (attribute_not_exists(#1))"),
        (AnyOf((N, N)), "(attribute_exists(#0)) OR (attribute_exists(#0))"),
        (All((N,)), "attribute_exists(#0)"),
        (All((AnyOf((All((N,)),)),)), "attribute_exists(#0)"),
        (
            All((AnyOf((N, Absent("z"))), N)),
            "((attribute_exists(#0)) OR (attribute_not_exists(#1))) AND (attribute_exists(#0))",
        ),
    ],
    ids=str,
)
def test_a_condition_as_text(condition: Condition, expected: str) -> None:
    assert Expressions().condition(condition) == expected


def test_no_name_or_value_stands_in_the_text_itself() -> None:
    expressions = Expressions()

    written = expressions.update(
        Update(
            table="t",
            key={},
            sets=(Set("size", text("x OR 1=1")), Extend("list", sequence([]))),
            removes=("values", "size"),
        )
    )

    assert written == "SET #0 = :0, #1 = list_append(if_not_exists(#1, :1), :2) REMOVE #2, #0"
    assert expressions.parameters() == {
        "ExpressionAttributeNames": {"#0": "size", "#1": "list", "#2": "values"},
        "ExpressionAttributeValues": {":0": text("x OR 1=1"), ":1": {"L": []}, ":2": {"L": []}},
    }


def test_placeholders_that_were_not_needed_are_left_out() -> None:
    assert Expressions().parameters() == {}
