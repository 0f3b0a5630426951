from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import InvalidInput
from epochal.model.expected_version import AtVersion
from epochal.model.tokens import MAX_VERSION, Token, parse_token

SIZES = st.integers(0, 9_999_999)


TOKENS = st.builds(
    Token,
    version=st.integers(0, MAX_VERSION),
    etag=st.binary(min_size=16, max_size=16).map(bytes.hex),
    size=SIZES,
    carried=SIZES,
    unfolds=SIZES,
    events=SIZES,
    appends=SIZES,
    low_water=st.integers(0, MAX_VERSION),
    seal=st.one_of(st.just(""), st.binary(min_size=16, max_size=16).map(bytes.hex)),
)


@given(TOKENS)
def test_a_token_survives_its_text(token: Token) -> None:
    found = parse_token(token.text())
    assert (found, found.low_water, found.seal) == (token, token.low_water, token.seal)
    assert len(token.text()) <= 127


def test_a_version_alone_is_a_token() -> None:
    assert parse_token("7") == Token(version=7)
    assert Token(version=7).text() == "7"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "07",
        "7.",
        "7 ",
        "x",
        "٧",
        "7.abc",
        "2147483647",
        "7." + "0" * 32,
        "7." + "0" * 32 + ".1.1.1.1",
        "7." + "0" * 32 + ".1.1.1.1.1.1.1",
        "7." + "0" * 32 + ".1.1.1.1.1.01",
        "7." + "0" * 32 + ".1.1.1.1.1.1." + "0" * 31,
        "7." + "0" * 32 + ".1.1.1.1.1.." + "0" * 32,
        "7." + "G" * 32 + ".1.1.1.1.1",
    ],
)
def test_malformed_tokens_are_refused_by_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_token(text, "If-Match")
    assert caught.value.field == "If-Match"


@pytest.mark.parametrize("version", [-1, MAX_VERSION + 1])
def test_versions_have_bounds(version: int) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        AtVersion(version=version)
