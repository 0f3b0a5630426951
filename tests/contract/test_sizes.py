"""Item sizes, to the byte, by DynamoDB Local's own reckoning.

It charges a write by the KB, so an item padded to exactly a KB by our arithmetic costs one unit less than the same item
with one byte more, and only if the arithmetic is right.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochal.plan.ops import Delete, Put
from epochal.plan.values import AttributeValue, binary, item_size, mapping, number, sequence, text
from tests.contract.places import Place, padded

pytestmark = pytest.mark.ddbl

NUMBERS = [
    "0", "-0", "0.0", "1", "9", "10", "12", "100", "120", "123", "1000", "1001", "1200", "1230", "1234", "12300",
    "99999", "100100", "1001000", "2147483647", "-1", "-9", "-10", "-12", "-99", "-100", "-123", "-1234",
    "0.1", "0.01", "0.001", "0.12", "0.012", "-0.012", "1.5", "1.10", "10.01", "15.5", "15.55", "100.001",
    "00012", "1e1", "1e10", "1e11", "12e10", "12e11", "1e125", "-1e125", "1e-130", "1e-129", "12e-129", "5.5e-7",
    "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999",
    "99999999999999999999999999999999999999e1", "-99999999999999999999999999999999999999e1",
    "-9999999999999999999999999999999999999e1", "-99999999999999999999999999999999999999e2",
    "12345678901234567890123456789012345678e-20", "1234567890123456789012345678901234567e-20",
]  # fmt: skip

VALUES: dict[str, AttributeValue] = {
    "empty text": text(""),
    "ascii": text("plain"),
    "two bytes a character": text("äöü"),
    "three bytes a character": text("世界"),
    "four bytes a character": text("🜁🜂"),
    "empty binary": binary(b""),
    "binary": binary(bytes(range(256))),
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
    "empty list": sequence([]),
    "empty map": mapping({}),
    "list": sequence([text("a"), number(1), binary(b"xyz")]),
    "map": mapping({"a": text("a"), "ü": number(10), "long name": binary(b"xyz")}),
    "list of lists": sequence([sequence([]), sequence([sequence([number(-5)])])]),
    "map of maps": mapping({"m": mapping({"m": mapping({})})}),
    "event": sequence(
        [mapping({"t": text("2026-01-01T00:00:00.0000000+00:00"), "d": binary(b"{}"), "D": number(2)})] * 3
    ),
    "set of texts": {"SS": ["a", "bc", "ü"]},
    "set of numbers": {"NS": ["1", "20", "-300"]},
    "set of binaries": {"BS": [b"a", b"bc"]},
}

DECIMALS = st.builds(
    lambda sign, digits, exponent: {"N": f"{sign}{digits}e{exponent}"},
    st.sampled_from(("", "-")),
    st.one_of(st.integers(0, 999), st.integers(1, 10**38 - 1)),
    st.integers(-90, 80),
)
SCALARS = st.one_of(
    DECIMALS,
    st.text(st.characters(codec="utf-8"), max_size=20).map(text),
    st.binary(max_size=20).map(binary),
    st.booleans().map(lambda value: {"BOOL": value}),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map(sequence),
        st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), inner, max_size=5).map(
            mapping
        ),
    ),
    max_leaves=12,
)


def holds_to_the_byte(place: Place, value: AttributeValue) -> None:
    item = {**place.key(), "v": value}
    whole = -(-(item_size(item) + len("pad")) // 1024)
    assert written(place, padded(item, whole * 1024)) == whole
    assert written(place, padded(item, whole * 1024 + 1)) == whole + 1


def written(place: Place, item: dict[str, AttributeValue]) -> float:
    place.execute(Delete(table=place.table, key=place.key()))
    return float(place.execute(Put(table=place.table, item=item)).units.write)


@pytest.mark.parametrize("digits", NUMBERS)
def test_a_number_takes_as_many_bytes_as_dynamodb_local_says(on_ddbl: Place, digits: str) -> None:
    holds_to_the_byte(on_ddbl, {"N": digits})


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_takes_as_many_bytes_as_dynamodb_local_says(on_ddbl: Place, value: AttributeValue) -> None:
    holds_to_the_byte(on_ddbl, value)


@settings(
    max_examples=100,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(value=TREES)
def test_any_tree_of_values_takes_as_many_bytes_as_dynamodb_local_says(
    on_ddbl: Place, value: AttributeValue
) -> None:
    holds_to_the_byte(on_ddbl, value)
