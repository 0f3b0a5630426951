from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import InvalidInput
from epochal.model.stream_names import category_of, stream_name

ALLOWED = "ABCXYZabcxyz0189-_.:~@+="


@given(st.text(ALLOWED, min_size=1, max_size=512))
def test_every_name_of_allowed_characters_is_taken_as_it_is(name: str) -> None:
    assert stream_name(name) == name


@given(st.text(min_size=1, max_size=40).filter(lambda text: not set(text) <= set(ALLOWED)))
def test_any_other_character_is_refused_or_is_a_letter_or_digit(name: str) -> None:
    if all(character in ALLOWED or (character.isascii() and character.isalnum()) for character in name):
        assert stream_name(name) == name
        return
    with pytest.raises(InvalidInput) as caught:
        stream_name(name)
    assert caught.value.field == "stream"


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "empty"),
        ("$AppendsEpoch-0_0", "reserved"),
        ("x" * 513, "at most 512 bytes"),
        ("a/b", "letters, digits"),
        ("a b", "letters, digits"),
        ("a\n", "letters, digits"),
        ("é", "letters, digits"),
        ("\ud800", "letters, digits"),
        ("a%2Fb", "letters, digits"),
    ],
)
def test_a_refusal_names_the_rule(name: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        stream_name(name)


def test_a_category_ends_at_the_first_dash() -> None:
    assert [category_of(name) for name in ("Order-1-2", "Order", "-x")] == ["Order", "Order", ""]
