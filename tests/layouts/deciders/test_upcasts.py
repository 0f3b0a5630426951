"""Events of older versions are read as those of today; a chain of upcasts that is not whole is refused at start."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pydantic
import pytest

from epochal.codec import json
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import RecordedAggregateEvent
from epochal.deciders.codecs import Stored, json_codec
from epochal.deciders.upcasting import upcast
from epochal.errors import CorruptData, InvalidInput, UnknownType
from epochal.feed.events import FeedEvent
from epochal.model.bodies import Claim
from epochal.model.body_marks import VERSION
from epochal.model.events import Recorded


@dataclass(frozen=True)
class Boarded:
    passenger: str
    gate: int
    price: Decimal = Decimal(0)


@dataclass(frozen=True)
class Closed:
    pass


class Landed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    airport: str


@upcast("Boarded", 1, to=2)
def _named(event: dict[str, Any]) -> dict[str, Any]:
    event["passenger"] = event.pop("name")
    return event


@upcast("Boarded", 2, to=3)
def _gated(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "gate": 0}


CODEC = json_codec(Boarded, Closed, upcasts=[_gated, _named])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"name":"Ada","price":1.10}', Boarded("Ada", 0, Decimal("1.10"))),
        (b'{"$v":2,"passenger":"Ada"}', Boarded("Ada", 0)),
        (b'{"$v":3,"passenger":"Ada","gate":7}', Boarded("Ada", 7)),
    ],
)
def test_an_event_of_any_version_is_read_as_that_of_today(data: bytes, expected: Boarded) -> None:
    assert CODEC.decode(Stored(type="Boarded", data=data)) == expected


def test_an_event_is_written_with_the_version_of_today_and_one_that_never_changed_without() -> None:
    assert json.loads(CODEC.encode(Boarded("Ada", 7)).content)[VERSION] == 3
    assert CODEC.encode(Closed()).content == b"{}"


def test_a_model_that_forbids_other_members_is_read_without_the_version() -> None:
    @upcast("Landed", 1, to=2)
    def renamed(event: dict[str, Any]) -> dict[str, Any]:
        return {"airport": event["at"]}

    codec = json_codec(Landed, upcasts=[renamed])
    written = codec.encode(Landed(airport="EWR")).content
    assert codec.decode(Stored(type="Landed", data=written)) == Landed(airport="EWR")
    assert codec.decode(Stored(type="Landed", data=b'{"at":"EWR"}')) == Landed(airport="EWR")


@pytest.mark.parametrize("codec", [CODEC, json_codec(Boarded), json_codec(Boarded, skips_unknown=True)])
def test_an_event_of_a_version_that_only_newer_programs_know_is_refused_and_not_misread(codec: Any) -> None:
    with pytest.raises(CorruptData, match=r"Boarded \(index 0\): unknown version 4: this program knows 1 to"):
        codec.decode(Stored(type="Boarded", data=b'{"$v":4,"passenger":"Ada","gate":7}'))


@pytest.mark.parametrize("version", [b"0", b"-1", b'"2"', b"null", b"[]", b"2.5", b"true"])
def test_a_version_that_is_no_version_is_refused(version: bytes) -> None:
    with pytest.raises(CorruptData, match="version"):
        CODEC.decode(Stored(type="Boarded", data=b'{"$v":' + version + b',"name":"Ada"}'))


def test_an_upcast_that_fails_is_told_with_its_version_and_the_event() -> None:
    with pytest.raises(CorruptData, match=r"Boarded \(index 5\): its upcast from version 1 failed: KeyError"):
        CODEC.decode(Stored(type="Boarded", data=b"{}", index=5))


def _step(name: str, version: int, to: int) -> Any:
    return upcast(name, version, to=to)(lambda event: event)


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        ([(1, 2), (3, 4)], "no upcast starts from version 2; 4 is current"),
        ([(2, 3)], "no upcast starts from version 1; 3 is current"),
        ([(1, 3), (1, 2), (2, 3)], "two upcasts start from version 1"),
    ],
)
def test_a_chain_that_is_not_whole_is_refused_when_the_codec_is_made(
    steps: list[tuple[int, int]], rule: str
) -> None:
    with pytest.raises(TypeError, match=rule):
        json_codec(Boarded, upcasts=[_step("Boarded", *each) for each in steps])


def test_an_upcast_of_a_type_that_is_not_registered_is_refused() -> None:
    with pytest.raises(TypeError, match="the type Bordered of an upcast is not registered"):
        json_codec(Boarded, upcasts=[_step("Bordered", 1, 2)])


@pytest.mark.parametrize(("version", "to"), [(0, 1), (2, 2), (3, 2)])
def test_an_upcast_leads_from_a_version_to_a_later_one(version: int, to: int) -> None:
    with pytest.raises(TypeError, match="to a later version"):
        upcast("Boarded", version, to=to)


ADA = b'{"name":"Ada"}'


@pytest.mark.parametrize(
    "event",
    [
        Recorded(stream="Door-1", index=0, type="Boarded", data=ADA, meta=b"", timestamp=""),
        FeedEvent(stream="Door-1", index=0, type="Boarded", data=ADA),
        RecordedAggregateEvent(
            aggregate=aggregate_id("Door", "1"), seq_nr=1, type="Boarded", data=ADA, occurred_at=""
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_whatever_reader_an_event_comes_from_the_codec_reads_it(event: Any) -> None:
    assert CODEC.read(event) == Boarded("Ada", 0)


def test_an_unknown_type_is_refused_skipped_or_kept_as_the_codec_is_told() -> None:
    event = FeedEvent(stream="Door-1", index=4, type="Painted", data=b'{"red":true}')
    with pytest.raises(UnknownType, match=r"Door-1: the codec does not know type Painted \(index 4\)"):
        CODEC.read(event)
    assert json_codec(Boarded, skips_unknown=True).read(event) is None
    kept = CODEC.keeping()
    assert kept.read(event) == Stored(type="Painted", data=b'{"red":true}', index=4)
    assert kept.read(FeedEvent(stream="Door-1", index=0, type="Boarded", data=ADA)) == Boarded("Ada", 0)
    with pytest.raises(InvalidInput, match="Painted"):
        kept.encode(Stored(type="Painted", data=b""))


def test_an_event_that_is_gone_is_none_and_one_whose_body_is_in_the_bucket_is_refused() -> None:
    assert CODEC.read(FeedEvent(stream="Door-1", index=0, type="", gone="pruned")) is None
    claim = Claim(key="bodies/1", sha256="0" * 64, size=9)
    with pytest.raises(InvalidInput, match="bodies/1"):
        CODEC.read(FeedEvent(stream="Door-1", index=0, type="Boarded", data=claim))
