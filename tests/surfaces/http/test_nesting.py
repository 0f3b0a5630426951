"""How deep a body nests is checked in steps that do not grow with its lists: a few megabytes hold millions of them."""

from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import InvalidInput
from epochal.http.bodies import json_text
from epochal.http.documents import MAX_DEPTH, document
from epochal.http.operation import Request

DENSE = {
    "lists beside one another": b"[" + b"[]," * 50_000 + b"[]]",
    "lists in lists": b"[" + b",".join([b"[" * 90 + b"]" * 90] * 500) + b"]",
    "lists in objects": b'{"a":[' + b"[[1]]," * 20_000 + b'{"b":[]}]}',
    "lists between texts with brackets": b"[" + rb'["\"[[{\\"],' * 20_000 + b"[]]",
}


class Calls:
    """Counts the calls of Python functions while it is entered."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, _: FrameType, event: str, __: Any) -> None:
        self.count += event == "call"


@pytest.mark.parametrize("dense", DENSE.values(), ids=DENSE)
def test_a_dense_body_is_shown_without_a_call_for_each_of_its_lists(dense: bytes) -> None:
    with Calls() as calls:
        assert json_text(dense) == dense.decode()
    assert calls.count < 1_000  # the collector of garbage may call some


@pytest.mark.parametrize("dense", DENSE.values(), ids=DENSE)
def test_a_dense_request_is_read_without_a_call_for_each_of_its_lists(dense: bytes) -> None:
    with Calls() as calls:
        assert document(Request(body=dense)).value == json.loads(dense)
    assert calls.count < 1_000  # the collector of garbage may call some


def test_brackets_inside_one_text_are_no_levels() -> None:
    body = b'"' + b"[" * (2 * MAX_DEPTH) + b'"'
    assert json_text(body) == body.decode()
    assert document(Request(body=body)).value == json.loads(body)


TEXTS = st.text(st.sampled_from('[]{}"\\,a')) | st.text(max_size=3)


def _wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)


def depth_of(value: Any) -> int:
    """Levels of lists and objects, as the definition says."""
    if not isinstance(value, list | dict):
        return 0
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inside), default=0)


@given(
    value=st.recursive(TEXTS | st.integers() | st.none(), _wrapped, max_leaves=20),
    around=st.integers(MAX_DEPTH - 5, MAX_DEPTH + 1),
    ascii_only=st.booleans(),
)
def test_a_body_is_shown_as_json_where_it_nests_no_deeper_than_is_allowed(
    value: Any, around: int, ascii_only: bool
) -> None:
    for level in range(around):
        value = [value, "[{"] if level % 2 else {'"]': value}
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    deep = depth_of(value) > MAX_DEPTH
    assert (json_text(body) is None) == deep
    if deep:
        with pytest.raises(InvalidInput, match="nest at most 100 levels"):
            document(Request(body=body))
    else:
        assert document(Request(body=body)).value == value
