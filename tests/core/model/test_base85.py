"""Base85 is found wherever it begins in a text."""

from __future__ import annotations

from base64 import a85encode, b85encode

from hypothesis import given
from hypothesis import strategies as st

from epochal.model.base85 import decode_base85


@given(
    content=st.binary(min_size=4, max_size=40).filter(lambda content: len(content) % 4 == 0),
    before=st.integers(0, 9),
)
def test_what_is_encoded_is_among_what_is_decoded_wherever_it_begins(content: bytes, before: int) -> None:
    for encode in (a85encode, b85encode):
        assert any(content in found for found in decode_base85("A" * before + encode(content).decode()))


def test_characters_of_no_base85_hide_only_their_own_group() -> None:
    text = a85encode(b"one two three four five!").decode()
    assert b"one ????three" in next(decode_base85(text[:5] + "\u00e9" + text[6:]))
