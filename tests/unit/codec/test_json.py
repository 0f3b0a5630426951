from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec.json import dumps, loads


@pytest.mark.parametrize(
    "text",
    [
        "1.10",
        "0.1",
        "-0.0",
        "12345678901234567890123",
        "1E+400",
        "[1.50,2]",
        '{"a":1.0000000000000000001}',
        '"é"',
        "null",
        "true",
        '{"b":1,"a":2}',
    ],
)
def test_what_is_read_is_written_again_to_the_letter(text: str) -> None:
    assert dumps(loads(text)) == text.encode()


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_stay_exact(value: Decimal) -> None:
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", '{"a":1,"a":2}', "", "{", "[1,]", b"\xff", "'a'"]
)
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the message is simplejson's own
        loads(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_no_form_for_is_not_written(value: float) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        dumps(value)
    with pytest.raises(TypeError):
        dumps(object())
