"""Fields mapped to events, and files of JSON lines and of comma-separated values."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochal import Event
from epochal.contrib.transfer.importing.field_mapping import FieldMapping
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Gone, Incoming, Misfit, Row
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.contrib.transfer.importing.sources import mapped
from epochal.contrib.transfer.importing.values import body_of, time_of
from epochal.contrib.transfer.importing.writing import HistoryWriter
from epochal.contrib.transfer.rows import COLUMNS, as_json, row_of
from epochal.errors import InvalidInput
from epochal.model.tokens import MAX_VERSION
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

PLAIN = {"stream": "Cart-1", "type": "Paid", "time": "2020-01-02T03:04:05Z"}


def read(row: dict[str, Any], fields: str = "", **options: Any) -> Row:
    mapping = FieldMapping(mapped(fields, ""), **options) if fields else FieldMapping(**options)
    return mapping.incoming(row, "line 1")


def event(row: dict[str, Any], fields: str = "") -> Event:
    found = read(row, fields)
    assert isinstance(found, Incoming), found
    return found.event


def rule(row: dict[str, Any], fields: str = "", **options: Any) -> str:
    found = read(row, fields, **options)
    assert isinstance(found, Misfit), found
    return found.rule


def test_templates_constants_paths_and_the_rest_make_an_event() -> None:
    row = {
        "order": 7,
        "at": 1577934245,
        "payload": {"kind": "Placed", "by": {"name": "ann"}},
        "total": "1.10",
    }
    fields = "stream=Order-{order},type=payload.kind,time=at,data=*"
    fields += ",causation==import,correlation={payload.by.name}/{order}"
    found = read(row, fields)
    assert isinstance(found, Incoming)
    assert (found.stream, found.index, found.event.type) == ("Order-7", None, "Placed")
    assert (found.event.causation_id, found.event.correlation_id) == ("import", "ann/7")
    assert found.event.timestamp == "2020-01-02T03:04:05.0000000+00:00"
    assert found.event.data == b'{"total":"1.10"}'


def test_a_comma_in_a_text_is_written_twice() -> None:
    assert event({"a": 1}, "stream==S-1,type==Paid,,late,time==2020-01-02T03:04:05Z").type == "Paid,late"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"stream": ""}, "stream: must be given"),
        (
            {"stream": "", "tags": ["a:1"]},
            "stream: is missing: import events that have only tags with `epochal tagged import`",
        ),
        ({"stream": "Cart 1"}, "stream: may hold only ASCII"),
        ({"stream": "C" * 513}, "stream: must be at most 512 bytes"),
        ({"stream": ".."}, "stream: must not be . or .."),
        ({"stream": "$all"}, "stream: names that begin with $"),
        ({"type": ""}, "type: must be 1 to 512 bytes"),
        ({"type": "T" * 513}, "type: must be 1 to 512 bytes"),
        ({"time": None}, "time: must be given"),
        ({"time": "yesterday"}, "time: must be an ISO 8601"),
        ({"time": "20000101"}, ""),
        ({"id": "7"}, "id: must be a UUID"),
        ({"index": "x"}, "index: must be a whole number"),
        ({"index": -1}, "index: must be from 0"),
        ({"correlation": "c" * 1025}, "correlation: must be 1 to 1,024 bytes"),
        ({"tags": ["$x"]}, "tags: a tag must not begin with $"),
        ({"tags": [1]}, "tags: must be a list of strings"),
        ({"data64": "*"}, "data: cannot be read"),
        ({"fault": "it expired"}, "fault: it expired"),
    ],
)
def test_what_does_not_fit_is_said_by_field_and_rule(row: dict[str, Any], said: str) -> None:
    found = read({**PLAIN, **row})
    assert (found.rule if isinstance(found, Misfit) else "").startswith(said)


def test_a_column_that_a_mapping_names_must_be_there() -> None:
    assert rule({"a": 1}, "stream=b,type==Paid") == "stream: column b does not exist"
    assert rule({"a": ""}, "stream=S-{a},type==Paid") == "stream: column a is empty"


@pytest.mark.parametrize("fields", ["stream=a", "type=a", "stream=a,type=b,what=c", "stream=a,type=*"])
def test_a_mapping_that_is_none_is_refused(fields: str) -> None:
    with pytest.raises(InvalidInput, match="map"):
        FieldMapping(mapped(fields, ""))
    with pytest.raises(InvalidInput, match="field=column"):
        mapped("stream", "")


@pytest.mark.parametrize("name", ["data", "metadata", "stream", "type", "time"])
@pytest.mark.parametrize("where", ["payloda", "payload.totl"])
def test_a_member_that_no_line_of_json_has_is_misspelt(tmp_path: Path, name: str, where: str) -> None:
    place = tmp_path / "orders.ndjson"
    place.write_text("".join(json.dumps({**PLAIN, "payload": {"total": each}}) + "\n" for each in range(3)))
    fields = {"stream": "stream", "type": "type", "time": "time", name: where}
    with pytest.raises(
        InvalidInput, match=f"map: {name}: column {where} does not occur in .*; the columns are stream, "
    ):
        next(source_of("", str(place)).rows(str(place), fields))


def test_lines_of_json_of_which_some_have_a_body_are_events(tmp_path: Path) -> None:
    place = tmp_path / "orders.ndjson"
    place.write_text("\n".join(map(json.dumps, (PLAIN, {**PLAIN, "payload": {}, "total": None}))))
    plain = {"stream": "stream", "type": "type", "time": "time"}
    for more in ({"data": "payload", "metadata": "total"}, {"data": "*", "metadata": "={}"}, {"data": ""}):
        found = source_of("", str(place)).rows(str(place), {**plain, **more})
        assert all(isinstance(each, Incoming) for each in found)


def test_a_mapping_may_be_a_file_and_single_fields_win_over_it(tmp_path: Path) -> None:
    toml, other = tmp_path / "map.toml", tmp_path / "map.json"
    toml.write_text('stream = "Order-{id}"\ntype = "kind"\n')
    other.write_text('{"stream": 1}')
    assert mapped("type=what", str(toml)) == {"stream": "Order-{id}", "type": "what"}
    with pytest.raises(InvalidInput, match="stream must be a string, got 1"):
        mapped("", str(other))
    with pytest.raises(InvalidInput, match="cannot be read"):
        mapped("", str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (1577934245, "2020-01-02T03:04:05.0000000+00:00"),
        (1577934245.25, "2020-01-02T03:04:05.2500000+00:00"),
        (1577934245678, "2020-01-02T03:04:05.6780000+00:00"),
        ("1577934245678901", "2020-01-02T03:04:05.6789010+00:00"),
        ("1577934245678901234", "2020-01-02T03:04:05.6789012+00:00"),
        ("2020-01-02 03:04:05.1+02", "2020-01-02T01:04:05.1000000+00:00"),
        ("2020-01-02T03:04:05.1234567Z", "2020-01-02T03:04:05.1234567+00:00"),
        (0, "1970-01-01T00:00:00.0000000+00:00"),
    ],
)
def test_times_of_any_usual_kind_are_kept(value: object, time: str) -> None:
    assert time_of(value) == time
    assert event({**PLAIN, "time": value}).timestamp == time


@pytest.mark.parametrize(
    ("value", "body"),
    [
        (None, b""),
        ("", b""),
        ('{"a": 1.10}', b'{"a": 1.10}'),
        ("plain words", b'"plain words"'),
        ({"a": 1}, b'{"a":1}'),
        ([1, "x"], b'[1,"x"]'),
        (b"\x00\x01", b"\x00\x01"),
    ],
)
def test_bodies_are_json_to_the_byte_where_they_are_json(value: object, body: bytes) -> None:
    assert body_of(value) == body


def test_indices_count_from_where_the_source_does_or_not_at_all() -> None:
    mapping = FieldMapping(first=1)
    assert isinstance(found := mapping.incoming({**PLAIN, "index": "4"}, "line 1"), Incoming)
    assert found.index == 3
    assert isinstance(
        found := FieldMapping(first=1, closed=True).incoming({**PLAIN, "index": 9}, ""), Incoming
    )
    assert found.index is None
    assert isinstance(FieldMapping().incoming({**PLAIN, "index": 0, "gone": True}, ""), Gone)
    last = mapping.incoming({**PLAIN, "index": MAX_VERSION + 1}, "")
    assert isinstance(last, Incoming)
    assert last.index == MAX_VERSION
    assert isinstance(mapping.incoming({**PLAIN, "index": MAX_VERSION + 2}, ""), Misfit)


# Files.


def rows(path: Path, kind: str = "", fields: str = "") -> list[Row]:
    return [*source_of(kind, str(path)).rows(str(path), mapped(fields, ""))]


def test_lines_that_are_no_json_objects_are_said_by_their_number(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"\ufeff{json.dumps(PLAIN)}\n\n[1]\nnonsense\n{json.dumps(PLAIN)}")
    found = rows(path)
    assert [(each.at, isinstance(each, Misfit)) for each in found] == [
        ("line 1", False),
        ("line 3", True),
        ("line 4", True),
        ("line 5", False),
    ]


def test_numbers_in_json_lines_keep_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(
        '{"stream":"C-1","type":"Paid","time":"2020-01-02","data":{"total":1.10,"big":12345678901234567890}}'
    )
    path.write_text(path.read_text().replace('"2020-01-02"', '"2020-01-02T00:00:00Z"'))
    (found,) = rows(path)
    assert isinstance(found, Incoming)
    assert found.event.data == b'{"total":1.10,"big":12345678901234567890}'


def test_a_csv_file_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(
        'order;what;at;note\n7;Placed;2020-01-02 03:04;"two\nlines; one"\n8;Paid\n9;Paid;2020-01-03 00:00;\n'
    )
    found = rows(path, fields="stream=Order-{order},type=what,time=at,data=*")
    first, second, third = found
    assert isinstance(first, Incoming)
    assert (first.at, first.stream, first.event.data) == ("line 3", "Order-7", b'{"note":"two\\nlines; one"}')
    assert isinstance(second, Misfit)
    assert (second.at, second.rule) == ("line 4", "has 2 values for 4 columns")
    assert isinstance(third, Incoming)
    assert third.event.data == b'{"note":""}'


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n", 'a,b\n1,"x\n', "a,b\r1,x\r", '"a,b\n1,x\n'])
def test_a_csv_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="PLACE"):
        rows(path, fields="stream=a,type=b")


def test_the_names_of_columns_may_have_commas_and_ends_of_lines_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(f'"a;b;\nc;d;e",what,at\nx,Paid,{PLAIN["time"]}\n')
    (found,) = rows(path, fields="stream==S-1,type=what,time=at,data=*")
    assert isinstance(found, Incoming)
    assert (found.at, found.event.data) == ("line 3", b'{"a;b;\\nc;d;e":"x"}')


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("field", ["data", "index", "id", "correlation", "tags", "metadata"])
def test_a_column_that_a_mapping_of_a_table_names_must_be_there(
    tmp_path: Path, kind: str, field: str
) -> None:
    path = tmp_path / f"orders.{kind}"
    table = {"order": ["S-1"], "what": ["Paid"], "at": [PLAIN["time"]]}
    pq.write_table(pa.table(table), path)
    if kind == "csv":
        path.write_text(f"order,what,at\nS-1,Paid,{PLAIN['time']}\n")
    columns = "the columns are order, what, at"
    there = f"map: {field}: column misspelt does not occur in the first rows from .* on; {columns}"
    with pytest.raises(InvalidInput, match=there):
        rows(path, fields=f"stream=order,type=what,time=at,{field}=misspelt")
    (found,) = rows(path, fields=f"stream=order,type=what,time=at,{field}=")
    assert isinstance(found, Incoming)


def test_a_column_that_a_later_file_of_a_folder_lacks_is_one_error_before_any_of_its_rows(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("order,kind,paid\n1,Paid,2020-01-02\n2,Paid,2020-01-03\n")
    (tmp_path / "b.csv").write_text("order,kind,sum\n3,Paid,12\n4,Paid,13\n")
    fields = {"stream": "Order-{order}", "type": "kind", "time": "paid"}
    rows = source_of("", str(tmp_path)).rows(str(tmp_path), fields)
    assert [each.stream for each in islice(rows, 2)] == ["Order-1", "Order-2"]
    with pytest.raises(
        InvalidInput,
        match=r"time: column paid does not occur in the first rows from b\.csv line 2 on; the columns are order",
    ):
        next(rows)


def test_a_parquet_file_may_have_text_as_bytes_and_times_inside_of_bodies(tmp_path: Path) -> None:
    path, moment = tmp_path / "orders.parquet", datetime(2026, 1, 2, tzinfo=UTC)
    table = {
        "order": [b"7", b"\xff"],
        "what": [b"Paid", b"Paid"],
        "at": [b"2026-01-02T03:04:05Z"] * 2,
        "more": [{"when": moment, "all": [moment]}] * 2,
    }
    pq.write_table(pa.table(table), path)
    found, strange = rows(path, fields="stream=Order-{order},type=what,time=at,data=*")
    assert isinstance(found, Incoming)
    assert (found.stream, found.event.type) == ("Order-7", "Paid")
    assert found.event.timestamp == "2026-01-02T03:04:05.0000000+00:00"
    when = '"2026-01-02T00:00:00+00:00"'
    assert found.event.data == f'{{"more":{{"when":{when},"all":[{when}]}}}}'.encode()
    assert isinstance(strange, Misfit)
    assert strange.rule == "stream: must be UTF-8"


@pytest.mark.parametrize("value", [timedelta(1), b"\xff", float("nan")])
def test_what_no_json_has_is_a_misfit_in_the_rest_of_a_row_too(tmp_path: Path, value: object) -> None:
    path = tmp_path / "orders.parquet"
    pq.write_table(pa.table({"s": ["S-1"], "t": [PLAIN["time"]], "odd": [value]}), path)
    (found,) = rows(path, fields="stream=s,type==Paid,time=t,data=*")
    assert isinstance(found, Misfit)
    assert found.rule.startswith("data: cannot be read")


def test_a_parquet_file_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "orders.parquet"
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["s", "s"]), path)
    with pytest.raises(InvalidInput, match="must not have two columns of the same name"):
        rows(path, fields="stream=s,type=s")


@pytest.mark.parametrize("field", ["stream", "type", "id", "time", "correlation"])
@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_what_is_no_text_is_not_written_as_python_shows_it(field: str, value: object) -> None:
    assert rule({**PLAIN, field: value}) == f"{field}: must be text"


def test_a_file_may_be_packed_and_one_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson.gz"
    path.write_bytes(gzip.compress(json.dumps(PLAIN).encode()))
    assert len(rows(path)) == 1
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InvalidInput, match="cannot be read"):
        rows(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        rows(tmp_path / "none.csv", fields="stream=a,type=b")
    bad = tmp_path / "bad.ndjson"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="cannot be read"):
        rows(bad)


def test_a_name_that_does_not_tell_what_a_file_is_must_be_helped(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--from"):
        source_of("", "events.dat")


# What we have exported ourselves.


def written() -> Streams:
    store = memory_streams()
    identified = "00000000-0000-0000-0000-00000000000a"
    store.append(
        "Cart-1",
        [
            Event(
                type="Opened",
                data=b'{"a": 1.10}',
                meta=b'{"by":"ann"}',
                timestamp="2020-01-02T03:04:05.123456Z",
            ),
            Event(
                type="Raw", data=b"\xff\x00", meta=b"plain", timestamp="2020-01-02T03:04:06Z", id=identified
            ),
            Event(type="Empty", timestamp="2020-01-02T03:04:07Z", correlation_id="c", causation_id="k"),
            Event(type="Sealed", data=b'{"$sealed":1,"subject":"p"}', timestamp="2020-01-02T03:04:08Z"),
        ],
    )
    store.append("Cart-2", [Event(type="Tagged", tags=("b:2", "a,1"), timestamp="2020-01-02T03:04:09Z")])
    return store


@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_an_export_that_is_imported_is_the_same_streams(tmp_path: Path, kind: str) -> None:
    store, path = written(), tmp_path / f"export.{kind}"
    exported = [as_json(row_of(each)) for stream in ("Cart-1", "Cart-2") for each in store.read(stream)]
    if kind == "ndjson":
        path.write_text("".join(f"{json.dumps(each)}\n" for each in exported))
    else:
        import csv  # noqa: PLC0415  beside a module of ours of that name

        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [each.name for each in COLUMNS])
            writer.writeheader()
            for each in exported:
                writer.writerow({name: _cell(value) for name, value in each.items()})
    other = memory_streams()
    importer = StreamImporter(writer=HistoryWriter(other), verifying=True)
    assert importer.run(rows(path)).rejected == 0
    assert importer.verify().unlike == []
    for stream in ("Cart-1", "Cart-2"):
        before, after = ([_bare(each) for each in which.read(stream)] for which in (store, other))
        assert before == after


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | bool) else value


def _bare(event: Any) -> tuple[object, ...]:
    identity = "" if event.tags else event.id
    return (event.index, event.type, event.data, event.meta, event.timestamp, event.tags, event.correlation_id,
            event.causation_id, identity)  # fmt: skip


def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.ndjson", "a.ndjson", ".c.ndjson.tmp"):
        (tmp_path / name).write_text(f"{json.dumps(PLAIN)}\nnonsense")
    (tmp_path / "_export").mkdir()
    at = [each.at for each in rows(tmp_path)]
    assert at == ["a.ndjson line 1", "a.ndjson line 2", "b.ndjson line 1", "b.ndjson line 2"]


@pytest.mark.parametrize("inside", [[], ["type=Paid"], ["type=Paid", "a.ndjson"]])
def test_a_folder_without_files_or_with_folders_is_refused(tmp_path: Path, inside: list[str]) -> None:
    for name in inside:
        (tmp_path / name).write_text("") if "." in name else (tmp_path / name).mkdir()
    with pytest.raises(InvalidInput, match="must contain files, and no folders"):
        rows(tmp_path, "ndjson")


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("nonsense")
    with pytest.raises(InvalidInput, match="cannot be read"):
        rows(tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="cannot be read"):
        rows(tmp_path / "none.parquet")


@pytest.mark.parametrize("value", ["1.7E+09", Decimal("1.7E+9"), "1714555800.12a", "9" * 26])
def test_what_is_nearly_a_time_is_refused_by_its_name(value: object) -> None:
    with pytest.raises(InvalidInput, match="^time"):
        time_of(value)


@pytest.mark.parametrize(
    ("text", "kept"), [(f'{{"n":{"9" * 5000}}}', True), ("NaN", False), ("[-Infinity]", False)]
)
def test_a_body_is_json_by_its_grammar_and_not_by_what_python_can_compute(text: str, kept: bool) -> None:
    assert (body_of(text) == text.encode()) is kept


@pytest.mark.parametrize("index", [1.9, Decimal("0.5"), "1.9"])
def test_a_part_of_a_number_is_no_index(index: object) -> None:
    row = {"stream": "Cart-1", "type": "Paid", "index": index, "data": "{}"}
    refused = FieldMapping().incoming(row, "line 1")
    assert isinstance(refused, Misfit)
    assert "must be a whole number" in repr(refused)


def test_a_column_named_as_a_template_is_taken_and_the_templates_own_columns_stay() -> None:
    fields = FieldMapping(mapped("stream=O-{i},type=what,time=at,data=*", ""))
    row = {"O-{i}": "Order-1", "i": "7", "what": "x", "at": "2026-01-01T00:00Z"}
    found = fields.incoming(row, "line 1")
    assert isinstance(found, Incoming)
    assert (found.stream, found.event.data) == ("Order-1", b'{"i":"7"}')
    del row["O-{i}"]
    found = fields.incoming({**row, "n": 1}, "line 2")
    assert isinstance(found, Incoming)
    assert (found.stream, found.event.data) == ("O-7", b'{"n":1}')
