"""SQL over files of rows: every format answers alike, and nothing but the rows can be read."""

from __future__ import annotations

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochal import Event
from epochal.contrib.transfer.export.files import FORMATS, Format
from epochal.contrib.transfer.export.origins import begin_feed, run_feed
from epochal.contrib.transfer.export.parts import ExportScope
from epochal.contrib.transfer.export.queries import ask, engine, records
from epochal.errors import InvalidInput
from epochal.testing.feeds import MemoryStore
from tests.support.terminal import Terminal

BIG = 123_456_789_012_345_678_901_234_567_890


@pytest.fixture
def feed() -> MemoryStore:
    made = MemoryStore()
    for number in range(5):
        data = f'{{"total":{number}.10,"many":{BIG},"said":"a \\"quoted\\", \\n line"}}'.encode()
        made.streams.append(
            f"Cart-{number}",
            [Event(type="Paid", data=data, timestamp=f"2026-01-0{number + 1}T00:00:00.123456Z")],
        )
    made.streams.append("Order-1", [Event(type="Sent", data=b"\xff\x00", tags=("course:1", 'a"b'))])
    made.tagged.append([Event(type="Alone", data=b"{}", tags=("course:2",))])
    made.index()
    return made


def export(feed: MemoryStore, folder: Path, format_: Format = "parquet") -> Path:
    run_feed(begin_feed(feed.feed, folder, ExportScope(source="here", format=format_)), lambda: feed.feed)
    return folder


def answered(statement: str, place: Path) -> list[dict[str, Any]]:
    return list(records(ask(statement, place)))


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_answers_alike_and_exactly(tmp_path: Path, feed: MemoryStore, format_: Format) -> None:
    folder = export(feed, tmp_path / "it's here", format_)
    assert answered("select count(*) as n, sum(index) as s from events", folder) == [
        {"n": 7, "s": Decimal(0)}
    ]
    (row,) = answered("select data, time, tags from events where stream = 'Cart-3'", folder)
    assert json.loads(row["data"]) == {"total": 3.10, "many": BIG, "said": 'a "quoted", \n line'}
    assert row["data"].startswith('{"total":3.10,')
    assert f"{row['time']:%Y-%m-%dT%H:%M:%S.%f%z}" == "2026-01-04T00:00:00.123456+0000"
    (sent,) = answered(
        "select tags, from_base64(data64) as bytes, data from events where type = 'Sent'", folder
    )
    assert sent == {"tags": ['a"b', "course:1"], "bytes": b"\xff\x00", "data": None}
    assert answered("select type from events where stream is null and not gone", folder) == [
        {"type": "Alone"}
    ]
    many = answered("select sum(cast(data->>'many' as hugeint)) as s from events where type = 'Paid'", folder)
    assert many == [{"s": Decimal(5 * BIG)}]


@pytest.mark.slow
def test_the_table_has_the_columns_of_rows_in_each_format(tmp_path: Path, feed: MemoryStore) -> None:
    described = [answered("describe events", export(feed, tmp_path / each, each)) for each in FORMATS]
    kinds = [[(row["column_name"], row["column_type"]) for row in each] for each in described]
    assert kinds[0] == kinds[1] == kinds[2]
    assert ("time", "TIMESTAMP WITH TIME ZONE") in kinds[0]


def test_one_file_is_asked_as_well(tmp_path: Path, feed: MemoryStore) -> None:
    folder = export(feed, tmp_path / "out")
    (file,) = folder.glob("*.parquet")
    assert answered("select count(*) as n from events", file)[0]["n"] == 7


def test_an_export_without_rows_is_asked_too(tmp_path: Path) -> None:
    folder = export(MemoryStore(), tmp_path / "out")
    assert answered("select count(*) as n from events", folder) == [{"n": 0}]


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "copy events to '{folder}/out.csv'",
        "copy (select 1) to '{file}'",
        "create table mine as select 1",
        "attach '{folder}/other.db'",
        "install httpfs",
        "set memory_limit = '9GB'",
        "pragma enable_profiling",  # one that reads is a SELECT to DuckDB 1
        "select 1; select 2",
        "select 1; drop view events",
        "",
        "select",
        "selekt 1",
        "select nothing from events",
        "select * from read_text('{folder}/secret.txt')",
        "select * from read_parquet('{folder}/../other.parquet')",
        "select * from glob('{folder}/*')",
        "select * from '{folder}/secret.txt'",
        "select * from read_csv('http://127.0.0.1:9/x.csv')",
        "select * from feed",
        "select * from SECRET",
        "select cast(data as integer) from events where type = 'Paid'",
        "with gone as (delete from events) select * from gone",
        "select timestamp 'infinity'",
        "select date '9999-12-31' + 1",
    ],
)
def test_what_is_no_question_about_the_events_is_refused_and_changes_nothing(
    tmp_path: Path, feed: MemoryStore, statement: str
) -> None:
    folder = export(feed, tmp_path / "out")
    (folder / "secret.txt").write_text("secret")
    (tmp_path / "other.parquet").write_bytes(next(folder.glob("*.parquet")).read_bytes())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    file = next(folder.glob("*.parquet"))
    with pytest.raises(InvalidInput) as refused:
        answered(statement.format(folder=folder, file=file), folder)
    assert refused.value.field == "statement"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_columns_of_one_name_keep_their_own_values(tmp_path: Path, feed: MemoryStore) -> None:
    folder = export(feed, tmp_path / "out")
    joined = "from events x join events y on y.stream = 'Cart-2' where x.stream = 'Cart-1'"
    assert answered(f"select x.stream, y.stream {joined}", folder) == [
        {"stream": "Cart-1", "stream_1": "Cart-2"}
    ]


def test_variables_of_the_program_are_no_tables(
    tmp_path: Path, feed: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = export(feed, tmp_path / "out")
    monkeypatch.setattr(
        "epochal.contrib.transfer.export.commands.SECRET", pa.table({"a": [1]}), raising=False
    )
    with pytest.raises(InvalidInput, match="SECRET"):
        answered("select * from SECRET", folder)


def test_a_place_without_rows_or_of_a_half_export_is_refused(tmp_path: Path, feed: MemoryStore) -> None:
    begin_feed(feed.feed, tmp_path / "half", ExportScope(source="here"))
    (tmp_path / "none").mkdir()
    (tmp_path / "a.txt").write_text("a")
    folder = export(feed, tmp_path / "two")
    (folder / "more.csv").write_text("a")
    for place, why in (
        ("half", "contains an unfinished export"),
        ("none", "contains no files"),
        ("a.txt", "must be a folder"),
        ("nowhere", "/nowhere does not exist"),
        ("two", "a single format"),
    ):
        with pytest.raises(InvalidInput, match=f"place: .*{why}"):
            ask("select 1", tmp_path / place)


@pytest.fixture
def terminal() -> Terminal:
    made = Terminal()
    for number in range(3):
        made.streams.append(
            f"Cart-{number}", [Event(type="Opened"), Event(type="Paid", data=b'{"total":1.10}')]
        )
    made.streams.append("Order-1", [Event(type="Sent")])
    made.index()
    return made


def test_a_store_is_exported_and_asked_in_two_commands(terminal: Terminal, tmp_path: Path) -> None:
    folder = str(tmp_path / "out")
    assert terminal.lines("export", folder) == [f"7 events in 1 file of {folder}"]
    assert terminal.lines("export", folder) == [f"7 events in 1 file of {folder}"]
    statement = "select type, count(*) as n from events group by all order by type"
    assert terminal.lines("sql", statement, folder) == ["type    n", "Opened  3", "Paid    3", "Sent    1"]
    assert terminal.lines("sql", statement, folder, "--csv") == ["type,n", "Opened,3", "Paid,3", "Sent,1"]
    assert terminal.documents("sql", statement, folder)[1] == {"type": "Paid", "n": 3}


def test_a_store_is_asked_in_one(terminal: Terminal) -> None:
    statement = "select data->>'total' as total, time, tags from events where type = 'Paid' limit 1"
    (row,) = terminal.documents("sql", statement, "--category", "Cart")
    assert (row["total"], row["tags"], row["time"][-1]) == ("1.1", [], "Z")
    assert terminal.lines("sql", "select count(*) as n from events", "--category", "Order")[1:] == ["1"]
    assert terminal.lines("sql", "select count(*) as n from events", "--since", "2999-01-01T00:00Z")[1:] == [
        "0"
    ]


def test_an_export_of_a_category_and_a_time_says_what_it_has(terminal: Terminal, tmp_path: Path) -> None:
    terminal.streams.prune("Cart-1", 1)
    terminal.index()
    (view,) = terminal.documents("export", str(tmp_path / "a"), "--format", "csv", "--category", "Cart")
    assert view == {
        "folder": str(tmp_path / "a"),
        "format": "csv",
        "files": 1,
        "rows": 6,
        "gone": 1,
        "unreadable": 0,
    }
    (line,) = terminal.lines("export", str(tmp_path / "b"), "--category", "Cart")
    assert line.endswith(", 1 of them gone")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("export", "{}", "--since", "yesterday"), "--since: must be an ISO 8601"),
        (("export", "{}", "--from", "nowhere"), "--from"),
        (("export", "{}", "--since", "2026-01-02T00:00Z", "--until", "2026-01-01T00:00Z"), "until"),
        (("export", "{}", "--workers", "2"), "--workers"),
        (("sql", "select 1", "{}", "--category", "Cart"), "--category"),
        (("sql", "select 1", "{}", "--csv", "--json"), "--csv or --json"),
        (("sql", "drop view events"), "must be a single SELECT statement"),
    ],
)
def test_what_makes_no_sense_is_refused_and_no_folder_is_made(
    terminal: Terminal, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    result = terminal.run(*(each.format(tmp_path / "out") for each in arguments))
    assert result.exit_code != 0
    assert why in result.output + str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", FORMATS)
def test_the_name_of_a_folder_is_no_column(tmp_path: Path, feed: MemoryStore, format_: Format) -> None:
    folder = export(feed, tmp_path / "type=Other" / "index=7", format_)
    (row,) = answered("select type, index from events where stream = 'Cart-3'", folder)
    assert row == {"type": "Paid", "index": 0}


def test_a_large_body_is_exported_to_csv_and_counted(tmp_path: Path) -> None:
    feed = MemoryStore()
    feed.streams.append("Cart-1", [Event(type="Paid", data=b'"' + b"x" * 200_000 + b'"')])
    feed.index()
    csv.field_size_limit(131_072)
    assert answered("select length(data) as n from events", export(feed, tmp_path / "e", "csv")) == [
        {"n": 200_002}
    ]


def test_without_its_extra_sql_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"SQL statements.*pip install 'epochal\[export\]'"):
        engine()
