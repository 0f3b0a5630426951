"""Texts of cells become values of the types that a schema says."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.contrib.transfer.importing.cells import LEFT_OUT, value_of
from epochal.deciders.mismatch import Mismatch

MAYBE: dict[str, Any] = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


@pytest.mark.parametrize("optional", [False, True])
def test_a_blank_is_null_where_there_may_be_null_though_the_field_has_a_default(optional: bool) -> None:
    assert value_of("", MAYBE, {}, optional=optional) is None


def test_a_blank_takes_the_default_where_there_is_no_null() -> None:
    assert value_of("", {"type": "integer"}, {}, optional=True) is LEFT_OUT
    with pytest.raises(Mismatch, match="must be an integer"):
        value_of("", {"type": "integer"}, {}, optional=False)


@pytest.mark.parametrize(
    ("text", "kind"), [("[1]", "object"), ('{"a":1}', "array"), ("1", "object"), ("null", "array")]
)
def test_json_of_another_kind_is_no_array_and_no_object(text: str, kind: str) -> None:
    with pytest.raises(Mismatch, match=f"must be a JSON {kind}"):
        value_of(text, {"type": kind}, {}, optional=False)
