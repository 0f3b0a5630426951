"""Plain JSON: what is written and read without a codec, and what is refused rather than misread."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal import Event, FeedEvent, Recorded, Unfold
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.contrib.event_store_adapter.model import RecordedAggregateEvent
from epochal.deciders.codecs import Stored
from epochal.deciders.upcasting import Versions, upcast
from epochal.errors import CorruptData, InvalidInput, MissingBody
from epochal.model.bodies import Claim
from epochal.model.events import RecordedUnfold

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
MADE = [Event.json, Unfold.json, AggregateEvent.json]


def recorded(data: bytes | Claim) -> Recorded:
    return Recorded(
        stream="Flight-7", index=3, type="Boarded", data=data, meta=b"", timestamp="2026-01-01T00:00:00Z"
    )


def each_kind(data: bytes) -> list[Any]:
    """One recorded event of every layout, and what else has a body of its own, with these data."""
    return [
        recorded(data),
        RecordedUnfold(version=3, type="Boarded", data=data, meta=b"", timestamp="2026-01-01T00:00:00Z"),
        tagged(data),
        RecordedAggregateEvent(
            aggregate=aggregate_id("Flight", "7"), seq_nr=3, type="Boarded", data=data, occurred_at=""
        ),
        FeedEvent(stream="Flight-7", index=3, type="Boarded", data=data),
        Stored(type="Boarded", data=data, index=3),
    ]


def tagged(data: bytes) -> Recorded:
    return Recorded(id="5", place="1", type="Boarded", data=data, tags=("flight:7",), timestamp="")


def stored(event: Any) -> bytes:
    return event.data.encode() if isinstance(event.data, str) else bytes(event.data)


@given(VALUES)
def test_every_event_of_plain_json_is_read_as_it_was_written(value: Any) -> None:
    if isinstance(value, dict) and {"$v", "$sealed"} & value.keys():
        return
    for make in MADE:
        event = make("Boarded", value)
        assert event.type == "Boarded"
        for each in each_kind(stored(event)):
            assert each.json() == value


def test_plain_json_is_compact_utf_8() -> None:
    value = {"seat": "12A", "name": "Zoë"}
    assert Event.json("Boarded", value).data == '{"seat":"12A","name":"Zoë"}'.encode()


def test_what_else_an_event_has_is_given_beside_its_value() -> None:
    about = {"meta": b"{}", "timestamp": "2026-01-01T00:00:00Z", "correlation_id": "a", "causation_id": "b"}
    assert Event.json("A", 1, **about) == Event(type="A", data=b"1", **about)  # type: ignore[arg-type]
    beside = {"meta": b"{}", "timestamp": "2026-01-01T00:00:00Z"}
    assert Unfold.json("A", 1, **beside) == Unfold(type="A", data=b"1", **beside)  # type: ignore[arg-type]
    of_tags = {**about, "tags": ("a", "b"), "id": "5"}
    assert Event.json("A", 1, **of_tags) == Event(type="A", data=b"1", **of_tags)  # type: ignore[arg-type]
    of_one = AggregateEvent(type="A", data=b"1", occurred_at="2026-01-01T00:00:00Z")
    assert AggregateEvent.json("A", 1, occurred_at="2026-01-01T00:00:00Z") == of_one


def holding_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "field", "rule"),
    [
        ({"seat": {"at": datetime(2026, 1, 1, tzinfo=UTC)}}, "value.seat.at", "a datetime is not"),
        ({"prices": [1, math.nan]}, "value.prices.1", "nan is not"),
        ([1, (math.inf,)], "value.1.0", "inf is not"),
        (b"{}", "value", "a bytes is not"),
        ({"name": "\ud83d"}, "value.name", "a lone surrogate is not"),
        ({"seats": {(1, 2): "A"}}, "value.seats", "an object whose names are not text is not"),
        (holding_itself(), "value", "must not be nested this deeply, nor contain itself"),
        ({"$v": 2}, "value.$v", "only codecs and subjects write"),
        ({"$sealed": 1}, "value.$sealed", "only codecs and subjects write"),
    ],
)
def test_what_is_not_json_is_refused_with_the_path_to_it(value: Any, field: str, rule: str) -> None:
    for make in MADE:
        with pytest.raises(InvalidInput) as refused:
            make("Boarded", value)
        assert refused.value.field == field
        assert rule in refused.value.rule


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({1: "A"}, "value"),
        ({"1": "A", 1: "B"}, "value"),
        ({"rows": [{}, {None: "A"}]}, "value.rows.1"),
        ([({True: 1},)], "value.0.0"),
        ({"rows": {1.5: 1}}, "value.rows"),
    ],
)
def test_a_name_that_would_come_back_as_text_is_refused(value: Any, field: str) -> None:
    for make in MADE:
        with pytest.raises(InvalidInput) as refused:
            make("Boarded", value)
        assert refused.value.field == field
        assert "an object whose names are not text is not" in refused.value.rule


@pytest.mark.parametrize("body", [b"1e400", b'{"prices":[1,-1e400]}', b"1" * 310 + b".5"])
def test_a_number_beyond_a_float_is_an_error_and_not_infinity(body: bytes) -> None:
    for each in each_kind(body):
        with pytest.raises(CorruptData, match=r"Boarded.*: .* is beyond a float"):
            each.json()


@pytest.mark.parametrize(
    ("body", "value"),
    [(b"-0", "-0.0"), (b'[1,-0,"-0"]', "[1, -0.0, '-0']"), (b"[-0.0,-1,0]", "[-0.0, -1, 0]")],
)
def test_a_zero_keeps_its_sign(body: bytes, value: str) -> None:
    for each in each_kind(body):
        assert repr(each.json()) == value


@pytest.mark.parametrize("body", [b"", b"Ada", b"[NaN]", b"\xff", b"[" * 100_000, b"{"])
def test_a_body_that_is_not_json_is_an_error_that_says_which_event_it_is(body: bytes) -> None:
    with pytest.raises(CorruptData, match=r"^Flight-7 \(index 3\), Boarded: its body is not JSON"):
        recorded(body).json()
    if b"\xff" not in body:
        for each in each_kind(body):
            with pytest.raises(CorruptData, match=r"Boarded.*: its body is not JSON"):
                each.json()


def test_a_byte_order_mark_is_no_part_of_a_body() -> None:
    assert recorded(b"\xef\xbb\xbf[1]").json() == [1]


def test_a_body_that_was_left_in_the_bucket_says_how_to_get_it() -> None:
    claim = Claim(key="bodies/a", sha256="0" * 64, size=9)
    events: list[Any] = [recorded(claim), FeedEvent(stream="Flight-7", index=3, type="Boarded", data=claim)]
    for each in events:
        with pytest.raises(InvalidInput, match=r"^fetch: .*Flight-7 \(index 3\), Boarded.*bodies/a"):
            each.json()


def test_what_a_codec_wrote_in_a_later_version_is_not_read_past_it() -> None:
    versions = Versions("Boarded", {1: upcast("Boarded", 1, to=2)(dict)})
    body = json.dumps(versions.mark({"seat": "12A"})).encode()
    with pytest.raises(
        InvalidInput,
        match=r"^codec: must be used to read Flight-7 \(index 3\), Boarded: it is stored as version 2$",
    ):
        recorded(body).json()
    for each in each_kind(body):
        with pytest.raises(InvalidInput, match="version 2"):
            each.json()
    assert recorded(b'{"$v":1,"seat":"12A"}').json() == {"$v": 1, "seat": "12A"}


def test_what_is_sealed_is_not_taken_for_its_seal() -> None:
    for each in each_kind(b'{"$sealed":1,"subject":"ada","nonce":"","body":""}'):
        with pytest.raises(InvalidInput, match=r"^unseal: .*Boarded.* is sealed"):
            each.json()


def test_an_event_of_the_feed_that_is_gone_or_cannot_be_read_has_no_value() -> None:
    gone = FeedEvent(stream="Flight-7", index=3, type="", gone="pruned")
    with pytest.raises(InvalidInput, match=r"^gone: .*Flight-7 \(index 3\).* is pruned"):
        gone.json()
    fault = MissingBody("bodies/a")
    with pytest.raises(MissingBody) as raised:
        FeedEvent(stream="Flight-7", index=3, type="Boarded", fault=fault).json()
    assert raised.value is fault
