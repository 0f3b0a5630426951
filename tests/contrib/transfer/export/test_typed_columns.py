"""The fields of a codec's events as columns of files, beside the body."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochal import Event, json_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.contrib.transfer.export.files import FORMATS, Format
from epochal.contrib.transfer.export.origins import begin_feed, run_feed
from epochal.contrib.transfer.export.parts import ExportScope
from epochal.contrib.transfer.export.queries import ask, records
from epochal.errors import InvalidInput
from epochal.testing.feeds import MemoryStore
from tests.support.terminal import Terminal


@dataclass(frozen=True)
class Paid:
    total: Decimal
    at: datetime
    items: tuple[str, ...]
    subject: str = "me"
    weight: float = 0.0
    gift: bool = False
    count: int = 0


codec = json_codec(Paid)
CODEC = f"{__name__}:codec"

EVENT = Paid(Decimal("1.10"), datetime(2026, 1, 2, 3, tzinfo=UTC), ("a", "b"), gift=True, count=7, weight=2.5)


@pytest.fixture
def feed() -> MemoryStore:
    made = MemoryStore()
    sealed = memory_subjects().seal("user-7", codec.encode(EVENT).content)
    made.streams.append(
        "Cart-1",
        [
            codec.encode(EVENT),
            Event(type="Other", data=b'{"total":"3"}'),
            Event(type="Paid", data=sealed),
            Event(type="Paid", data=b"\xff"),
            Event(type="Paid", data=b'{"weight":1e400,"count":99999999999999999999,"gift":"yes"}'),
        ],
    )
    made.index()
    return made


def exported(feed: MemoryStore, folder: Path, **of: Any) -> Path:
    run_feed(begin_feed(feed.feed, folder, ExportScope(source="here", **of)), lambda: feed.feed)
    return folder


@pytest.mark.parametrize("format_", FORMATS)
def test_fields_are_columns_of_their_types_in_every_format(
    tmp_path: Path, feed: MemoryStore, format_: Format
) -> None:
    folder = exported(feed, tmp_path / "out", codec=CODEC, format=format_)
    names = "data_total, data_at, data_items, data_subject, data_weight, data_gift, data_count"
    paid, *others = records(ask(f"select {names} from events order by index", folder))
    assert paid == {
        "data_total": "1.10",
        "data_at": datetime(2026, 1, 2, 3, tzinfo=UTC),
        "data_items": '["a","b"]',
        "data_subject": "me",
        "data_weight": 2.5,
        "data_gift": True,
        "data_count": 7,
    }
    assert [set(each.values()) for each in others] == [{None}] * 4


def test_parquet_has_the_types(tmp_path: Path, feed: MemoryStore) -> None:
    folder = exported(feed, tmp_path / "out", codec=CODEC)
    schema = pq.read_schema(next(folder.glob("*.parquet")))
    assert [schema.field(f"data_{name}").type for name in ("total", "count", "weight", "gift", "at")] == [
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.timestamp("us", tz="UTC"),
    ]


def test_an_export_without_rows_has_the_columns_too(tmp_path: Path) -> None:
    folder = exported(MemoryStore(), tmp_path / "out", codec=CODEC)
    assert list(records(ask("select sum(data_count) as n from events", folder))) == [{"n": None}]


def test_an_export_goes_on_with_its_codec_alone(tmp_path: Path, feed: MemoryStore) -> None:
    exported(feed, tmp_path / "out", codec=CODEC)
    exported(feed, tmp_path / "out", codec=CODEC)
    with pytest.raises(InvalidInput, match="folder: contains a different export: codec"):
        exported(feed, tmp_path / "out")


@pytest.mark.parametrize(
    "target", ["nowhere:codec", f"{__name__}:EVENT", f"{__name__}:none", "codec", ":codec"]
)
def test_what_is_no_codec_is_refused_and_no_folder_is_made(
    tmp_path: Path, feed: MemoryStore, target: str
) -> None:
    with pytest.raises(InvalidInput, match="codec"):
        exported(feed, tmp_path / "out", codec=target)
    assert not (tmp_path / "out").exists()


def test_the_command_takes_a_codec(tmp_path: Path) -> None:
    terminal = Terminal()
    terminal.streams.append("Cart-1", [codec.encode(EVENT)])
    terminal.index()
    terminal.lines("export", str(tmp_path / "out"), "--codec", CODEC)
    assert terminal.lines("sql", "select data_total from events", str(tmp_path / "out")) == [
        "data_total",
        "1.10",
    ]
    result = terminal.run("export", str(tmp_path / "other"), "--codec", "nowhere")
    assert "--codec" in str(result.exception)
