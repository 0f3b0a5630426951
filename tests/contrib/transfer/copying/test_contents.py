"""What of an event is compared, and which events are appended together."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from epochal.codec.bodies import encode
from epochal.codec.bucket_bodies import claim_for
from epochal.contrib.transfer.copying import batches
from epochal.contrib.transfer.copying.batches import batches as batched
from epochal.contrib.transfer.copying.digests import Digest, said_by
from epochal.contrib.transfer.rows import time_of
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.model.moments import parse_time
from epochal.store.encoding import BodyCodec
from epochal.testing.stores import MemoryBodies

EVENT = FeedEvent(stream="Cart-1", index=0, type="Opened", data=b"data", timestamp="2020-01-01T00:00:00Z")


def events(*sizes: int) -> list[FeedEvent]:
    return [replace(EVENT, index=index, data=bytes(size)) for index, size in enumerate(sizes)]


def indices(found: list[tuple[FeedEvent, ...]]) -> list[list[int]]:
    return [[event.index for event in batch] for batch in found]


def digest(*of: FeedEvent) -> str:
    found = Digest(said_by(BodyCodec()))
    for event in of:
        found.add(event)
    return found.hex()


@pytest.mark.parametrize(
    ("timestamp", "same"),
    [
        ("1577836800000", "2020-01-01T00:00:00Z"),
        ("1577836800000000000", "2020-01-01T00:00:00Z"),
        ("2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00.0000000+00:00"),
    ],
)
def test_times_are_the_same_whatever_form_they_were_stored_in(timestamp: str, same: str) -> None:
    assert time_of(timestamp) == parse_time(same)
    assert digest(replace(EVENT, timestamp=timestamp)) == digest(replace(EVENT, timestamp=same))


@pytest.mark.parametrize("timestamp", ["", "yesterday", "-1"])
def test_what_is_no_time_is_refused(timestamp: str) -> None:
    with pytest.raises(InvalidInput):
        time_of(timestamp)


@pytest.mark.parametrize(
    "other",
    [
        {"index": 1},
        {"type": "opened"},
        {"data": b"date"},
        {"data": b"", "meta": b"data"},
        {"timestamp": "2020-01-01T00:00:00.0000001Z"},
        {"correlation_id": ""},
        {"causation_id": "x"},
        {"correlation_id": "x"},
    ],
    ids=str,
)
def test_a_digest_tells_any_difference(other: dict[str, object]) -> None:
    assert digest(EVENT) != digest(replace(EVENT, **other))  # type: ignore[arg-type]


def test_a_digest_tells_the_order() -> None:
    second = replace(EVENT, index=1, type="Paid")
    assert digest(EVENT, second) != digest(second, EVENT)


@pytest.mark.parametrize("compress", [True, False])
def test_a_body_says_the_same_in_the_bucket_and_in_the_item(*, compress: bool) -> None:
    bodies, body = MemoryBodies(), b"the same " * 100
    packed = encode(body, compress=compress)
    bodies.put(claim := claim_for(packed), packed.data)
    assert said_by(BodyCodec(bodies=bodies))(claim) == hashlib.sha256(body).digest()


def test_events_are_appended_together_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "EVENTS", 3)
    assert indices(list(batched(events(*[1] * 7)))) == [[0, 1, 2], [3, 4, 5], [6]]


def test_events_are_appended_together_as_far_as_an_item_holds_their_bodies() -> None:
    large, third = batches.BYTES + 1, batches.BYTES // 3
    assert indices(list(batched(events(large, large, 1, third, third, third, 1)))) == [
        [0],
        [1],
        [2, 3, 4],
        [5, 6],
    ]


@pytest.mark.parametrize("cut", [1, 3])
def test_an_append_ends_at_the_version_of_the_unfolds(cut: int) -> None:
    found = indices(list(batched(events(*[1] * 4), cut)))
    assert found == [list(range(cut)), list(range(cut, 4))]


@pytest.mark.parametrize("cut", [None, 0, 4, 9])
def test_a_cut_elsewhere_cuts_nothing(cut: int | None) -> None:
    assert indices(list(batched(events(*[1] * 4), cut))) == [[0, 1, 2, 3]]


def test_nothing_is_nothing() -> None:
    assert list(batched([])) == []
