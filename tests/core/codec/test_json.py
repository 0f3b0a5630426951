"""JSON that loses nothing."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec.json import dumps, loads

EXACT = [
    "1.10",
    "0.1",
    "-0",
    "-0.0",
    "1E+400",
    "123456789012345678901234567890",
    "0.1234567890123456789012345678901234567890",
    "-9007199254740993",
    "18446744073709551617",
]

TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("text", EXACT)
def test_a_number_is_written_as_it_was_read(text: str) -> None:
    assert dumps(loads(text)) == text.encode()
    assert dumps(loads(f'{{"n":[{text}]}}')) == f'{{"n":[{text}]}}'.encode()


@given(VALUES)
def test_every_value_survives(value: Any) -> None:
    assert same(loads(dumps(value)), value)


def same(left: Any, right: Any) -> bool:
    """Equal, and decimals to the digit."""
    match left, right:
        case Decimal(), Decimal():
            return left.as_tuple() == right.as_tuple()
        case int(), Decimal():
            return str(left) == str(right)
        case list(), list():
            return len(left) == len(right) and all(map(same, left, right))
        case dict(), dict():
            return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
        case _:
            return bool(left == right)


def test_text_is_compact_utf_8() -> None:
    assert dumps({"a": ["ü", 1], "b": None}) == '{"a":["ü",1],"b":null}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        "-Infinity",
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        "",
        "{",
        "[1,]",
        "{'a':1}",
        "01",
        "1 2",
        b"\xff",
        b'"\xc3\x28"',
    ],
)
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whichever of its kinds
        loads(text)


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], Decimal("NaN"), "\ud800"])
def test_what_json_cannot_hold_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whichever of its kinds
        dumps(value)


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object()])
def test_what_is_no_json_value_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)
