"""Rows: every layout's events, bodies byte for byte, and what is gone in its place."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path

import pytest

from epochal import Event, FeedEvent, Recorded
from epochal.contrib.subjects.testing import memory_subjects
from epochal.contrib.transfer.rows import COLUMNS, Row, as_json, row_of, time_text
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.results import FeedItem
from epochal.model.bodies import Claim
from epochal.testing.stores import memory_streams
from tests.layouts.stores import ALICE, Layouts

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "rows.md"


def recorded(data: bytes = b"{}", **more: object) -> Recorded:
    given = {"stream": "Cart-1", "index": 3, "type": "Paid", "timestamp": "2026-01-02T03:04:05.1234567+00:00"}
    return Recorded(**given | {"data": data} | more)


def test_a_row_has_the_columns_and_each_value_is_of_its_kind() -> None:
    kinds = {"text": str, "int": int, "time": int, "texts": tuple, "json": str, "base64": str, "bool": bool}
    assert Row._fields == tuple(column.name for column in COLUMNS)
    for row in (
        row_of(recorded(b"{}", meta=b"\xff", correlation_id="c", causation_id="d", id="e", tags=("t",))),
        row_of(recorded(b"\xff"), partition=0, position=1),
        row_of(FeedEvent(stream="Cart-1", index=0, type="", gone="pruned")),
    ):
        for column, value in zip(COLUMNS, row, strict=True):
            assert column.null if value is None else isinstance(value, kinds[column.kind])


def test_the_page_has_the_columns_and_its_code_runs() -> None:
    text = PAGE.read_text("utf-8")
    shown = [
        f"- `{each.name}` ({each.kind}{', null' if each.null else ''}): {each.meaning}" for each in COLUMNS
    ]
    assert re.findall(r"^- `\w+` \(.*$", text, re.MULTILINE) == shown
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, str(PAGE), "exec", dont_inherit=True), {"__name__": __name__})  # noqa: S102


@pytest.mark.parametrize(
    "body",
    [
        b'{"total":1.10,"many":123456789012345678901234567890}',
        b' { "a" : [1e400, -0.0] } ',
        b'{"a":1,"a":2}',
        b'"\\ud800"',
        "\u00e4\U0001f600".encode().join((b'"', b'"')),
        b"null",
        b"1" * 5_000,
    ],
)
def test_what_is_json_is_text_byte_for_byte(body: bytes) -> None:
    row = row_of(recorded(body, meta=body))
    assert (row.data or "").encode() == body == (row.metadata or "").encode()
    assert (row.data64, row.metadata64) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf{}",
        b"NaN",
        b'{"a":Infinity}',
        b"{",
        b"\xff\xfe",
        b"\x00",
        b'"\n"',
        b"[" * 100_000 + b"]" * 100_000,
        '"\u00e4"'.encode("latin-1"),
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_what_is_no_json_is_base64_byte_for_byte(body: bytes) -> None:
    row = row_of(recorded(body, meta=body))
    assert b64decode(row.data64 or "") == body == b64decode(row.metadata64 or "")
    assert (row.data, row.metadata, row.sealed, row.version) == (None, None, False, None)


def test_an_empty_body_is_in_neither_column() -> None:
    row = row_of(recorded(b""))
    assert (row.data, row.data64, row.metadata, row.metadata64) == (None, None, None, None)


def test_a_body_that_lies_in_the_bucket_is_no_row() -> None:
    with pytest.raises(InvalidInput, match="fetch"):
        row_of(recorded(Claim(key="a", sha256="0" * 64, size=3)))


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("3", 3),
        ("1", 1),
        ('"3"', None),
        ("3.0", None),
        ("true", None),
        ("null", None),
        (f"{2**63 - 1}", None),
        ("9" * 30, None),
    ],
)
def test_the_version_of_a_schema_is_what_a_codec_has_written(said: str, version: int | None) -> None:
    assert row_of(recorded(f'{{"$v":{said}}}'.encode())).version == version


def test_a_version_below_the_top_of_a_body_is_the_users_own() -> None:
    assert row_of(recorded(b'{"a":{"$v":2,"$sealed":1}}'))[6:7] == (None,)
    assert not row_of(recorded(b'{"a":{"$v":2,"$sealed":1}}')).sealed


def test_what_is_sealed_stays_sealed_in_data_and_in_metadata() -> None:
    sealed = memory_subjects().seal("user-7", b'{"name":"Ada"}')
    for row in (row_of(recorded(sealed)), row_of(recorded(b"{}", meta=sealed))):
        assert row.sealed
        assert "Ada" not in json.dumps(as_json(row))
    assert not row_of(recorded(b"{}")).sealed


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [
        ("2026-01-02T03:04:05.1234567+00:00", "2026-01-02T03:04:05.123456Z"),
        ("1969-12-31T23:59:59.9999999+00:00", "1969-12-31T23:59:59.999999Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000000Z"),
        ("0001-01-01T00:00:00.0000001+00:00", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.9999999+00:00", "9999-12-31T23:59:59.999999Z"),
        ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.9999999+00:00", "2026-01-02T03:04:05.999999Z"),
        ("2026-01-02T03:04:05,1234567+00:00", "2026-01-02T03:04:05.123456Z"),
        ("481", "1970-01-01T00:00:00.481000Z"),
        ("1767322145123456789", "2026-01-02T02:49:05.123456Z"),
    ],
)
def test_a_time_is_cut_to_the_microsecond(timestamp: str, shown: str) -> None:
    row = row_of(recorded(timestamp=timestamp))
    assert row.time is not None
    assert (time_text(row.time), as_json(row)["time"]) == (shown, shown)


@pytest.mark.parametrize(
    "timestamp",
    ["yesterday", "", "2026-13-02T03:04:05.1234567+00:00", "2026-01-02T03:04:05. 234567+00:00", "9" * 40],
)
def test_what_another_library_wrote_for_a_time_and_is_none_is_no_time(timestamp: str) -> None:
    assert row_of(recorded(timestamp=timestamp)).time is None
    assert as_json(row_of(recorded(timestamp="yesterday")))["time"] is None


def test_what_is_gone_keeps_its_place_and_what_the_feed_knows_of_it() -> None:
    row = row_of(FeedEvent(stream="Cart-1", index=7, type="", gone="pruned"), position=5, type="Paid")
    assert (row.stream, row.index, row.position, row.type, row.gone) == ("Cart-1", 7, 5, "Paid", True)
    assert (row.data, row.time, row.fault, row.sealed) == (None, None, None, False)


def test_what_cannot_be_read_says_why() -> None:
    row = row_of(FeedEvent(stream="Cart-1", index=7, type="Paid", data=b"{}", fault=CorruptData("torn")))
    assert (row.fault, row.gone, row.data) == ("torn", False, None)


def test_an_event_with_tags_alone_has_no_stream_and_its_first_tags_category() -> None:
    tags = ("course:1", "student:2")
    of_store = row_of(recorded(stream="", index=0, tags=tags, id="i"))
    of_feed = row_of(FeedEvent(stream="$tag-course:1", index=4, type="Paid", data=b"{}", tags=tags, id="i"))
    assert (of_store.stream, of_store.index, of_store.category) == (None, None, "$tag-course")
    assert (of_feed.stream, of_feed.index, of_feed.category) == (None, 4, "$tag-course")
    assert of_feed.tags == tags


def test_an_event_of_a_stream_with_tags_is_that_streams_wherever_it_is_met() -> None:
    event = FeedEvent(stream="Cart-1", index=2, type="Paid", data=b"{}", tags=("a:1",), home="Cart-1")
    met = FeedEvent(stream="$tag-a:1", index=9, type="Paid", data=b"{}", tags=("a:1",), home="Cart-1")
    assert (row_of(event).stream, row_of(event).index) == ("Cart-1", 2)
    assert (row_of(met).stream, row_of(met).index, row_of(met).category) == ("Cart-1", None, "Cart")


def test_the_layouts_of_others_have_rows_too() -> None:
    layouts = Layouts()
    layouts.append("Cart-1", "Opened", "Paid")
    layouts.persist(ALICE, "Renamed")
    layouts.tag("Joined", "course:1", "student:2")
    layouts.index()

    def rows(source: str) -> list[Row]:
        return [shown(item) for item in layouts.items(source, data=True, once=True)]

    def shown(item: FeedItem) -> Row:
        assert item.event is not None
        return row_of(item.event)

    assert [(row.stream, row.index, row.data64) for row in rows("tips")] == [
        ("Cart-1", 0, "T3BlbmVk"),
        ("Cart-1", 1, "UGFpZA=="),
    ]
    assert [(row.stream, row.index, row.data) for row in rows("journal")] == [(str(ALICE), 0, '"Renamed"')]
    (joined,) = rows("dcb")
    assert (joined.stream, joined.tags, joined.data) == (None, ("course:1", "student:2"), '"Joined"')
    assert all(row.time is not None for source in ("tips", "journal", "dcb") for row in rows(source))


def test_a_row_of_a_store_and_of_its_json_say_the_same() -> None:
    streams = memory_streams()
    event = Event(type="Paid", data=b'{"a":1.10}', meta=b'{"u":1}', correlation_id="c", causation_id="d")
    streams.append("Cart-1", [event])
    row = row_of(next(streams.read("Cart-1")))
    assert as_json(row) == row._asdict() | {"tags": [], "time": time_text(row.time or 0)}
    assert (row.metadata, row.correlation, row.causation) == ('{"u":1}', "c", "d")
    assert json.dumps(as_json(row))
