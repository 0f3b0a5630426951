"""What is written once can be read for ever, and what others wrote is read as far as can be."""

from __future__ import annotations

import pytest

from epochal.contrib.event_store_adapter.serializers import MAX_DEPTH, unwrap, wrap
from epochal.errors import CorruptData, InvalidInput


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def beneath(frames: int, payload: bytes) -> tuple[str, bytes]:
    """Read it with so much on the stack already."""
    return beneath(frames - 1, payload) if frames else unwrap(payload)


@pytest.mark.parametrize(
    "data",
    [
        b"1.10",
        b'{"a":[1,2]}',
        b'"\\ud83d\\ude00"',
        b'"\xf0\x9f\x98\x80"',
        nested(MAX_DEPTH),
        b"[[],[]]" + b" " * 9,
    ],
)
def test_what_is_wrapped_is_read_from_any_depth_of_the_stack(data: bytes) -> None:
    kind, found = beneath(200, wrap("Renamed", data))
    assert kind == "Renamed"
    assert unwrap(wrap("Renamed", found)) == (kind, found)


def test_many_lists_side_by_side_are_not_deep() -> None:
    wide = b"[" + b",".join([b"[]"] * 2 * MAX_DEPTH) + b"]"
    assert unwrap(wrap("Renamed", wide)) == ("Renamed", wide)


def test_nesting_that_a_reader_might_have_no_stack_for_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must not nest more than 500"):
        wrap("Renamed", nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("data", [b'"\\ud800"', b'{"\\udfff":1}', b'["a",{"b":"\\uD83D"}]'])
def test_half_of_a_surrogate_pair_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="without lone surrogates"):
        wrap("Renamed", data)


def test_half_of_a_surrogate_pair_that_another_library_wrote_stays_as_it_is() -> None:
    assert unwrap(b'{"type":"Renamed","data":{"name":"\\ud83d","of":"\\u00e9"}}') == (
        "Renamed",
        '{"name":"\\ud83d","of":"\u00e9"}'.encode(),
    )


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b'{"type":"x"}', b'{"type":"x","data":' + nested(100_000) + b"}"]
)
def test_what_is_no_payload_is_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptData, match="not JSON of the form"):
        unwrap(payload)
