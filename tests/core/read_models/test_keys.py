"""The texts that entries of secondary keys are sorted by."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epochal.read_models.keys import document_of, entry_key
from epochal.read_models.value_texts import escaped, unescaped, written

VALUES = st.text(max_size=6) | st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=3)


@pytest.mark.slow
@given(st.tuples(VALUES, VALUES), st.tuples(VALUES, VALUES))
@example(("a", ""), ("a!", ""))
@example(("a\x00", 1), ("a", 2))
@example((-1.5, ""), (-1.55, ""))
@example((Decimal("1E+30"), ""), (99, ""))
@example((0, ""), (Decimal("-0.001"), ""))
def test_texts_of_values_are_in_the_order_of_the_values(one: Any, other: Any) -> None:
    def order(values: tuple[Any, ...]) -> list[tuple[bool, Any]]:
        return [(isinstance(each, str), each) for each in values]

    texts = written(one, "one"), written(other, "other")
    assert (texts[0].encode() < texts[1].encode()) == (order(one) < order(other))
    assert (texts[0] == texts[1]) == (order(one) == order(other))


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_prefix_of_a_text_is_one_of_what_is_stored_and_the_text_comes_back(text: str, prefix: str) -> None:
    assert escaped(text).startswith(escaped(prefix)) == text.startswith(prefix)
    assert unescaped(escaped(text)) == text


@given(st.text(min_size=1, max_size=20), st.tuples(VALUES, VALUES))
def test_an_entry_says_which_document_it_is_of(key: str, values: Any) -> None:
    place = entry_key("m@1", "by", 3, written(values, "values"), key)
    assert document_of(place["sk"]["S"]) == key
