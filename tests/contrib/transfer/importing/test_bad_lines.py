"""A file with lines that do not even tell their stream: whatever they were, the mended file completes every stream."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochal import Event
from epochal.contrib.transfer.importing import sources
from epochal.contrib.transfer.importing.field_mapping import FieldMapping
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Gone, Incoming, Misfit
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.contrib.transfer.importing.sources import mapped
from epochal.contrib.transfer.importing.writing import HistoryWriter, make_dry_run_writer
from epochal.errors import InvalidInput
from epochal.plan.ops import Op, Put, Reply, Transact, Update
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, memory_tables
from tests.support.terminal import Terminal

TIME = "2024-01-02T03:04:05Z"


def imported(
    store: Streams, path: Path, **options: Any
) -> tuple[StreamImporter, list[tuple[str, str, bool]]]:
    rejected = list[Misfit]()
    importer = StreamImporter(
        writer=HistoryWriter(store), rejects=rejected.append, verifying=True, window=7, **options
    )
    importer.run(source_of("", str(path)).rows(str(path), {}))
    assert importer.verify().unlike == []
    return importer, [(each.at, each.rule, each.waits) for each in rejected]


def bodies(store: Streams, names: int = 5) -> dict[str, list[tuple[int, bytes]]]:
    return {
        f"S-{name}": [(event.index, event.content) for event in store.read(f"S-{name}")]
        for name in range(names)
    }


def history(luck: random.Random, *, counted: bool) -> list[str]:
    """Lines of five streams, one of which begins with a later event, where they are counted."""
    indices, lines = Counter({"S-4": 3 if counted else 0}), list[str]()
    for number in range(luck.randrange(8, 40)):
        stream = f"S-{luck.randrange(5)}"
        row = {"stream": stream, "type": "Noted", "time": TIME, "data": {"n": number}}
        lines.append(json.dumps(row | ({"index": indices[stream]} if counted else {})))
        indices[stream] += 1
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("histories", [10, pytest.param(40, marks=pytest.mark.proof)])
def test_whatever_lines_are_bad_the_mended_file_leaves_no_hole_and_no_other_order(
    tmp_path: Path, histories: int, counted: bool
) -> None:
    held = 0
    for seed in range(histories):
        luck = random.Random(seed)
        lines, path = history(luck, counted=counted), tmp_path / "events.ndjson"
        path.write_text("\n".join(lines))
        whole = memory_streams()
        imported(whole, path)
        store, left = memory_streams(), {*luck.sample(range(len(lines)), luck.randrange(1, 4))}
        while left:
            path.write_text("\n".join(line[:-4] if at in left else line for at, line in enumerate(lines)))
            importer, rejected = imported(store, path)
            assert {at for at, _, waits in rejected if not waits} >= {f"line {at + 1}" for at in left}
            held += importer.done.waiting
            left.discard(max(left))
        path.write_text("\n".join(lines))
        _, rejected = imported(store, path)
        assert rejected == []
        assert bodies(store) == bodies(whole), f"seed {seed}"
    assert held > histories // 2


def test_what_the_source_counts_goes_on_behind_such_a_line_where_its_stream_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    rows = [("S-0", 0), ("S-1", 0), None, ("S-0", 1), ("S-1", 2), ("S-2", 0), ("S-3", 1)]
    path.write_text(
        "\n".join(
            "nonsense"
            if row is None
            else json.dumps({"stream": row[0], "index": row[1], "type": "A", "time": TIME})
            for row in rows
        )
    )
    store = memory_streams()
    _, rejected = imported(store, path)
    assert [at for at, _, _ in rejected] == ["line 3", "line 5", "line 7"]
    assert rejected[1][1].startswith("index: is 2, expected 1")
    assert rejected[2][1:] == ("may follow line 3, whose stream is unknown", True)
    assert [len(each) for each in bodies(store).values()] == [2, 1, 1, 0, 0]


def test_such_lines_may_be_left_out_for_good(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    line = json.dumps({"stream": "S-0", "type": "A", "time": TIME})
    path.write_text(f"{line}\nnonsense\n{line}")
    terminal = Terminal()
    held, done = (
        json.loads(terminal.run("import", str(path), option, "--json").stdout.splitlines()[-1])
        for option in ("--dry-run", "--skip-bad-lines")
    )
    assert (held["written"], held["rejected"], held["waiting"]) == (1, 2, 1)
    assert (done["written"], done["rejected"], done["waiting"]) == (2, 1, 0)


def test_an_event_of_no_stream_keeps_none_waiting(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    alone = {"stream": "", "tags": ["a:1"], "type": "A", "time": TIME}
    path.write_text("\n".join(map(json.dumps, [alone, {"stream": "S-0", "type": "A", "time": TIME}])))
    importer, rejected = imported(memory_streams(), path)
    assert (importer.done.written, [at for at, _, _ in rejected]) == (1, ["line 1"])


def test_a_name_that_is_none_may_be_any_streams(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    rows = [{"stream": name, "type": "A", "time": TIME} for name in ("S-0", "S-0 ", "S-0")]
    path.write_text("\n".join(map(json.dumps, rows)))
    importer, _ = imported(memory_streams(), path)
    assert (importer.done.written, importer.done.waiting) == (1, 1)


# Files that are odd.


def test_text_of_another_encoding_is_said_by_its_line(tmp_path: Path) -> None:
    csv, lines = tmp_path / "events.csv", tmp_path / "events.ndjson"
    csv.write_bytes(f"stream,type,time,data\nS-0,A,{TIME},1\nS-0,A,{TIME},caf\xe9\n".encode("latin-1"))
    lines.write_bytes(b'{"stream":"S-0","type":"\xe9"}\n')
    csv.write_bytes(csv.read_bytes() + f"S-0,A,{TIME},1\n".encode())
    assert [each[:2] for each in imported(memory_streams(), csv)[1]] == [
        ("line 3", "must be UTF-8"),
        ("line 4", "may follow line 3, whose stream is unknown"),
    ]
    assert [each[:2] for each in imported(memory_streams(), lines)[1]] == [("line 1", "must be UTF-8")]
    for encoding in ("utf-16-le", "utf-16-be"):
        csv.write_bytes("\ufeffstream,type\n".encode(encoding))
        with pytest.raises(InvalidInput, match="must be UTF-8, but is UTF-16"):
            imported(memory_streams(), csv)


def test_a_mark_of_byte_order_is_no_part_of_a_files_first_column(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(f"\ufeffstream,type,time\r\nS-0,A,{TIME}\r\n".encode())
    assert imported(memory_streams(), path)[0].done.written == 1


def test_a_line_without_an_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST", 1_000)
    path = tmp_path / "events.ndjson"
    line = json.dumps({"stream": "S-0", "type": "A", "time": TIME, "data": "x" * 900})
    path.write_text(f"{line}\n{line * 3}\n")
    with pytest.raises(InvalidInput, match="line 2 is longer than"):
        imported(memory_streams(), path)


# Values that are odd.


def read(row: dict[str, Any], text: str = "") -> Incoming | Gone | Misfit:
    mapping = FieldMapping(mapped(text, "")) if text else FieldMapping()
    return mapping.incoming({"stream": "S-0", "type": "A", "time": TIME, **row}, "line 1")


@pytest.mark.parametrize(
    ("row", "data"),
    [
        ({"kind": "P", "payload": {"at": TIME, "total": 5}, "x": 1}, {"payload": {"total": 5}, "x": 1}),
        ({"kind": "P", "payload": {"at": TIME}, "x": 1}, {"x": 1}),
        ({"kind": "P", "payload.at": TIME, "payload": 7}, {"payload": 7}),
        ({"kind": "P", "payload": {"at": TIME, "empty": {}}}, {"payload": {"empty": {}}}),
    ],
)
def test_what_a_mapping_takes_out_of_an_object_leaves_what_is_beside_it(
    row: dict[str, Any], data: dict[str, Any]
) -> None:
    found = FieldMapping(mapped("stream==S-0,type=kind,time=payload.at,data=*", "")).incoming(row, "line 1")
    assert isinstance(found, Incoming)
    assert isinstance(found.event.data, bytes)
    assert json.loads(found.event.data) == data


def test_an_object_that_is_empty_in_its_source_stays() -> None:
    row = {"kind": "P", "payload": {}, "x": 1, "at": TIME}
    fields = "stream==S-0,type=kind,time=at,id=payload.id,data=*"
    found = FieldMapping(mapped(fields, "")).incoming(row, "line 1")
    assert isinstance(found, Incoming)
    assert found.event.data == b'{"payload":{},"x":1}'


@pytest.mark.parametrize(
    "index", ["１", "1_0", " 1", "+1", True, float("inf"), float("nan"), 2**63, "9" * 30]
)
def test_what_is_nearly_an_index_is_refused(index: object) -> None:
    found = read({"index": index})
    assert isinstance(found, Misfit)
    assert found.rule.startswith("index: must be")


@pytest.mark.parametrize(("said", "gone"), [("True", True), ("true", True), (True, True), ("False", False)])
def test_what_is_gone_is_said_as_pandas_and_json_say_it(said: object, gone: bool) -> None:
    assert isinstance(read({"gone": said, "index": 0}), Gone if gone else Incoming)
    assert isinstance(read({"gone": "yes"}), Misfit)


@pytest.mark.parametrize(
    ("data", "body"),
    [
        ({"n": 2**63, "m": -(2**70)}, b'{"n":9223372036854775808,"m":-1180591620717411303424}'),
        ({"a": "\ud800"}, b'{"a":"\\ud800"}'),
        ("\ud800", b'"\\ud800"'),
        ("NaN", b'"NaN"'),
        ('{"a":NaN}', b'"{\\"a\\":NaN}"'),
    ],
)
def test_numbers_of_any_size_and_halves_of_surrogates_stay(data: object, body: bytes) -> None:
    found = read({"data": data})
    assert isinstance(found, Incoming)
    assert found.event.data == body


def test_a_value_that_no_json_has_is_a_misfit() -> None:
    for value in (float("nan"), object(), {"a": {1, 2}}):
        assert isinstance(read({"data": value}), Misfit)


@pytest.mark.parametrize(
    ("time", "kept"),
    [
        ("2024-01-02T03:04:05.1234567899Z", "2024-01-02T03:04:05.1234567+00:00"),
        ("2024-01-02 03:04:05", "2024-01-02T03:04:05.0000000+00:00"),
        ("2024-01-02T03:04:05.5+05:30", "2024-01-01T21:34:05.5000000+00:00"),
        ("2024-01-02T03:04:05-00:00", "2024-01-02T03:04:05.0000000+00:00"),
    ],
)
def test_times_are_of_any_zone_and_keep_what_streams_keep(time: str, kept: str) -> None:
    found = read({"time": time})
    assert isinstance(found, Incoming)
    assert found.event.timestamp == kept
    assert isinstance(read({"time": "2024-02-30T00:00:00Z"}), Misfit)
    assert isinstance(read({"time": "2024-01-02T24:04:05Z"}), Misfit)


def test_every_character_of_a_name_is_kept_or_refused() -> None:
    taken = [chr(code) for code in range(0x250) if isinstance(read({"stream": f"S-{chr(code)}"}), Incoming)]
    assert sorted(taken) == sorted("0123456789-_.:~@+=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


# What is not carried is said.


def test_ids_of_events_with_tags_are_new_ones_and_counted(tmp_path: Path) -> None:
    path, given = tmp_path / "events.ndjson", "00000000-0000-0000-0000-00000000000a"
    rows = [{"stream": "S-0", "type": "A", "time": TIME, "id": given, "tags": tags} for tags in ([], ["a:1"])]
    path.write_text("\n".join(map(json.dumps, rows)))
    terminal = Terminal()
    assert "1 event with tags got new ids" in terminal.lines("import", str(path), "--dry-run")
    (done,) = terminal.documents("import", str(path))
    assert done["renamed"] == 1
    assert [event.id == given for event in terminal.streams.read("S-0")] == [True, False]


def test_streams_of_which_nothing_is_left_are_deleted_where_that_is_asked_for(tmp_path: Path) -> None:
    terminal, kept, other, folder = Terminal(), Terminal(), Terminal(), tmp_path / "out"
    for stream in ("Cart-1", "Cart-2"):
        terminal.streams.append(stream, [Event(type="A"), Event(type="B")])
    terminal.streams.delete("Cart-1")
    terminal.index()
    assert terminal.run("export", str(folder), "--format", "ndjson").exit_code == 0
    said = "1 stream created empty, since all events are gone; perhaps deleted at the source"
    assert said in kept.lines("import", str(folder))
    head = kept.streams.head("Cart-1")
    assert head is not None
    assert (head.version, head.deleted) == (2, False)
    (told,) = other.documents("import", str(folder), "--delete-emptied", "--dry-run")
    (done,) = other.documents("import", str(folder), "--delete-emptied", "--verify")
    (again,) = other.documents("import", str(folder), "--delete-emptied")
    head = other.streams.head("Cart-1")
    assert head is not None
    assert (head.version, head.deleted) == (2, True)
    assert (told["deleted"], done["deleted"], again["deleted"], again["rejected"]) == (1, 1, 1, 0)
    assert told["writeUnits"] == done["writeUnits"]
    assert (again["written"], again["writeUnits"]) == (0, 0)


def test_a_stream_that_has_events_here_is_not_deleted() -> None:
    store = memory_streams()
    store.append("Cart-1", [Event(type="Ours"), Event(type="Ours")])
    store.append("Cart-2", [Event(type="Ours")])
    rejected = list[Misfit]()
    rows = [Gone(at="", stream=f"Cart-{1 + at // 2}", index=at % 2) for at in range(4)]
    done = StreamImporter(writer=HistoryWriter(store), rejects=rejected.append, deleting=True).run(rows)
    assert (done.deleted, [(each.at, each.stream) for each in rejected]) == (0, [("its end", "Cart-2")])
    assert rejected[0].rule == "is at version 1 in the store, but the source continues with event 2"
    assert len([*store.read("Cart-1")]) == 2


def test_verifying_finds_a_body_that_has_changed_since_it_was_imported(tmp_path: Path) -> None:
    path, store = tmp_path / "events.ndjson", memory_streams()
    lines = [json.dumps({"stream": "S-0", "type": "A", "time": TIME, "data": at}) for at in range(3)]
    path.write_text("\n".join(lines))
    before = imported(store, path)[0].done.digest
    path.write_text("\n".join([lines[0], lines[2], lines[2]]))
    rejected = list[Misfit]()
    importer = StreamImporter(writer=HistoryWriter(store), rejects=rejected.append, verifying=True)
    importer.run(source_of("", str(path)).rows(str(path), {}))
    assert importer.verify().unlike == ["S-0"]
    assert importer.done.digest == before  # of what is there
    assert [each.at for each in rejected] == ["line 2", "line 3"]


def test_a_dry_run_says_the_same_lines_as_the_import(tmp_path: Path) -> None:
    luck = random.Random(3)
    path, said = tmp_path / "events.ndjson", list[list[Misfit]]()
    lines = history(luck, counted=False)
    path.write_text("\n".join([*lines[:5], "nonsense", *lines[5:]]))
    for writer in (make_dry_run_writer(), HistoryWriter(memory_streams())):
        said.append([])
        rows = source_of("", str(path)).rows(str(path), {})
        StreamImporter(writer=writer, rejects=said[-1].append).run(rows)
    assert said[0] == said[1] != []


@pytest.mark.parametrize("appends", [1, 2])
def test_a_stream_that_is_appended_to_before_it_is_deleted_keeps_its_events_and_the_import_goes_on(
    appends: int,
) -> None:
    tables = memory_tables()
    store, writes = memory_streams(tables), list[Op]()

    def execute(op: Op) -> Reply:
        if isinstance(op, Put | Update | Transact) and "Cart-1" in repr(op):
            writes.append(op)
            if 2 <= len(writes) < 2 + appends:  # the first begins the stream
                store.append("Cart-1", [Event(type="Ours")])
        return tables.execute(op)

    overtaken = replace(store, driver=Driver(execute=execute, meter=Meter(), sleep=lambda _: None))
    rows = [Gone(at="", stream=f"Cart-{name}", index=0) for name in (1, 2)]
    done = StreamImporter(writer=HistoryWriter(overtaken), deleting=True, at_once=1).run(rows)
    assert (done.emptied, done.deleted, done.rejected) == (2, 1, 0)
    assert {event.type for event in store.read("Cart-1")} == {"Ours"}
    kept, deleted = store.head("Cart-1"), store.head("Cart-2")
    assert kept is not None
    assert deleted is not None
    assert (kept.deleted, deleted.deleted) == (False, True)
