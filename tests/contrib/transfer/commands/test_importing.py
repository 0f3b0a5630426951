"""`epochal import`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from epochal import Event, json_codec
from epochal.cli.inputs import ImportIncomplete, NoStore
from epochal.cli.main import epochal
from epochal.contrib.subjects.sealing import sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.contrib.transfer.importing.commands import SHOWN
from epochal.errors import InvalidInput
from epochal.model.events import Recorded
from tests.support.terminal import Terminal

MAP = "stream=Order-{order},type=what,time=at,data=*"


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.csv"
    path.write_text(
        "order,what,at,total\n7,Placed,2020-01-02 03:04,1.10\n8,Placed,2020-01-02 03:05,2\n7,Paid,2020-01-03 00:00,\n"
    )
    return str(path)


def test_a_dry_run_needs_no_store_and_writes_nothing(orders: str) -> None:
    terminal = Terminal()
    lines = terminal.lines("import", orders, "--map", MAP, "--dry-run")
    assert lines == [
        "3 rows read, 3 events would be written to 2 streams",
        "2 write units, 0.0000 dollars on demand in us-east-1",
        'warning: total looks like numbers, and is stored as text: "1.10"',
        "--codec MODULE:NAME converts cells to the types of your events",
    ]
    assert terminal.streams.load("Order-7") is None

    def nowhere() -> None:
        raise NoStore("that is so")

    epochal.main(["import", orders, "--map", MAP, "--dry-run"], obj=nowhere, standalone_mode=False)
    with pytest.raises(NoStore):
        epochal.main(["import", orders, "--map", MAP], obj=nowhere, standalone_mode=False)


def test_an_import_is_run_again_and_finds_all_there(orders: str) -> None:
    terminal = Terminal()
    (first,) = terminal.documents("import", orders, "--map", MAP, "--verify")
    (second,) = terminal.documents("import", orders, "--map", MAP, "--verify")
    assert (first["written"], first["there"], first["writeUnits"], first["verified"]) == (3, 0, 2, 3)
    assert (second["written"], second["there"]) == (0, 3)
    assert first["digest"] == second["digest"]
    assert first["unlike"] == []
    assert [each.content for each in terminal.streams.read("Order-7")] == [
        b'{"total":"1.10"}',
        b'{"total":""}',
    ]


def test_what_does_not_fit_is_printed_written_to_a_file_and_ends_with_an_error(tmp_path: Path) -> None:
    path, rejected = tmp_path / "in.ndjson", tmp_path / "out.ndjson"
    fine = {"stream": "Cart-1", "type": "Paid", "time": "2020-01-02T03:04:05Z"}
    lines = [fine, {**fine, "stream": "Cart-2", "time": ""}, fine, {**fine, "stream": "Cart-2"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    terminal = Terminal()
    result = terminal.run("import", str(path), "--rejected", str(rejected))
    assert isinstance(result.exception, ImportIncomplete)
    why = "line 2: Cart-2: time: must be given: the import keeps the time of every event"
    assert str(result.exception) == f"2 rows did not fit: {why}"
    assert result.stdout.splitlines()[:3] == [
        why,
        "line 4: Cart-2: follows line 2 in its stream, which was rejected",
        "4 rows read, 2 events written to 1 stream; 2 rejected",
    ]
    kept = [json.loads(line) for line in rejected.read_text().splitlines()]
    assert [(each["at"], each["row"]) for each in kept] == [("line 2", lines[1]), ("line 4", lines[3])]
    assert len([*terminal.streams.read("Cart-1")]) == 2

    mended = tmp_path / "mended.ndjson"
    mended.write_text("\n".join(map(json.dumps, [fine, {**fine, "stream": "Cart-2"}, fine, lines[3]])))
    (done,) = terminal.documents("import", str(mended))
    assert (done["written"], done["there"], done["rejected"]) == (2, 2, 0)


def test_a_column_of_a_mapping_that_is_not_there_is_one_error_before_any_row(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,event,when\n" + "7,Paid,2020-01-02T03:04:05Z\n" * 2)
    for fields in ("stream=Old-{nope},type=event", "stream=Old-{id},type=nope"):
        result = Terminal().run("import", str(path), "--map", f"{fields},time=when", "--dry-run")
        assert (
            "column nope does not occur in the first rows from line 2 on; the columns are id, event, when"
            in str(result.exception)
        )
        assert not result.stdout


def test_streams_of_which_every_row_is_rejected_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,event,when\n7,Paid,never\n8,Paid,never\n")
    fields = "stream=Old-{id},type=event,time=when"
    result = Terminal().run("import", str(path), "--map", fields, "--dry-run")
    assert "2 rows read, 0 events would be written to 0 streams; 2 rejected" in result.stdout


def test_an_import_may_stop_at_the_first_row_that_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "in.ndjson"
    path.write_text("nonsense\n" * 3)
    result = Terminal().run("import", str(path), "--stop")
    assert isinstance(result.exception, ImportIncomplete)
    assert result.exception.rejected == 1


def test_not_more_is_printed_than_anybody_reads(tmp_path: Path) -> None:
    path = tmp_path / "in.ndjson"
    path.write_text("nonsense\n" * 50)
    result = Terminal().run("import", str(path))
    assert len(result.stdout.splitlines()) == SHOWN + 2
    assert "50 rows did not fit" in str(result.exception)


def test_a_source_with_gaps_is_numbered_anew_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "in.ndjson"
    row = {"stream": "Cart-1", "type": "Paid", "time": "2020-01-02T03:04:05Z"}
    path.write_text("\n".join(json.dumps({**row, "index": each}) for each in (4, 7, 8)))
    terminal = Terminal()
    (done,) = terminal.documents("import", str(path), "--renumber")
    assert (done["written"], done["rejected"]) == (3, 0)
    assert [each.index for each in terminal.streams.read("Cart-1")] == [0, 1, 2]


def test_a_pace_and_a_window_may_be_chosen(orders: str) -> None:
    options = ("--write-units", "1000", "--window", "1", "--at-once", "2")
    (done,) = Terminal().documents("import", orders, "--map", MAP, *options)
    assert (done["written"], done["writeUnits"]) == (3, 3)


def test_what_a_file_is_must_be_known(tmp_path: Path) -> None:
    path = tmp_path / "events.dat"
    path.write_text('{"stream":"C-1","type":"Paid","time":"2020-01-02T03:04:05Z"}')
    result = Terminal().run("import", str(path))
    assert isinstance(result.exception, InvalidInput)
    (done,) = Terminal().documents("import", str(path), "--from", "ndjson")
    assert done["written"] == 1


def test_a_file_for_rejected_rows_that_cannot_be_written_is_refused(orders: str, tmp_path: Path) -> None:
    result = Terminal().run("import", orders, "--map", MAP, "--rejected", str(tmp_path / "none" / "x"))
    assert isinstance(result.exception, InvalidInput)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "ndjson", "csv"])
def test_what_epochal_export_wrote_is_the_same_streams_again(tmp_path: Path, kind: str) -> None:
    terminal, other, folder = Terminal(partitions=2), Terminal(), tmp_path / "out"
    for number in range(12):
        for stream in ("Cart-1", f"Order-{number}"):
            event = Event(
                type="Noted",
                data=b'{"n": %d.10}' % number if number % 3 else b"\xff",
                meta=b'{"by":"ann"}' if number % 2 else b"",
                timestamp=f"2026-01-02T03:04:{number:02}.123456Z",
                tags=("a:1", "b,2") if number == 4 else (),
            )
            terminal.streams.append(stream, [event])
    terminal.streams.prune("Cart-1", 3)
    terminal.index()
    assert terminal.run("export", str(folder), "--format", kind).exit_code == 0
    (done,) = other.documents("import", str(folder), "--verify")
    assert (done["written"], done["rejected"], done["unlike"]) == (21, 0, [])
    for stream in ("Cart-1", *(f"Order-{number}" for number in range(12))):
        ours, theirs = ([*each.streams.read(stream)] for each in (terminal, other))
        assert [_told(each) for each in ours] == [_told(each) for each in theirs]
    (again,) = other.documents("import", str(folder))
    assert (again["written"], again["there"]) == (0, 21)


def _told(event: Recorded) -> tuple[object, ...]:
    return event.index, event.type, event.data, event.meta, event.timestamp, event.tags


@dataclass(frozen=True)
class Placed:
    total: Decimal
    gift: bool = False


@dataclass(frozen=True)
class Paid:
    total: Decimal | None


ORDERS = json_codec(Placed, Paid)
SEALED = sealed_codec(
    ORDERS, memory_subjects(), subject_of=lambda _: "ada", shredded=lambda _stored, _shredded: None
)
KEEPING = SEALED.keeping()


@pytest.fixture
def codec(monkeypatch: pytest.MonkeyPatch) -> str:
    """The codec of this module, as a command finds it by its name."""
    monkeypatch.setitem(sys.modules, "orders_of_a_test", sys.modules[__name__])
    return "orders_of_a_test:ORDERS"


def test_what_an_import_with_a_codec_writes_the_codec_reads(orders: str, codec: str) -> None:
    terminal = Terminal()
    arguments = ("import", orders, "--map", MAP, "--codec", codec, "--verify")
    (done,) = terminal.documents(*arguments)
    assert (done["written"], done["verified"], "unread" in done) == (3, 3, False)
    stored = [*terminal.streams.read("Order-7")]
    assert [each.content for each in stored] == [b'{"total":1.10,"gift":false}', b'{"total":null}']
    assert [ORDERS.read(each) for each in stored] == [Placed(Decimal("1.10")), Paid(None)]
    (again,) = terminal.documents(*arguments)
    assert (again["written"], again["there"], again["digest"]) == (0, 3, done["digest"])


@pytest.mark.parametrize("dry", [True, False])
def test_what_the_codec_cannot_read_is_refused_before_it_is_written(
    tmp_path: Path, codec: str, dry: bool
) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("order,what,at,total\n7,Placed,2020-01-02 03:04,a lot\n8,Paid,2020-01-02 03:05,2\n")
    terminal = Terminal()
    result = terminal.run(
        "import", str(path), "--map", MAP, "--codec", codec, *(["--dry-run"] if dry else ["--verify"])
    )
    assert isinstance(result.exception, ImportIncomplete)
    assert result.stdout.splitlines()[0] == "line 2: Order-7: Placed.total: must be a number, got 'a lot'"
    assert terminal.streams.load("Order-7") is None
    assert (terminal.streams.load("Order-8") is None) is dry


def test_an_import_of_text_that_was_stored_as_it_is_says_that_the_codec_cannot_read_it(
    orders: str, codec: str
) -> None:
    terminal = Terminal()
    terminal.lines("import", orders, "--map", MAP)
    result = terminal.run("import", orders, "--map", MAP, "--codec", codec, "--verify", "--json")
    assert isinstance(result.exception, ImportIncomplete)
    assert (
        "the codec cannot read 2 streams: Order-7: Placed (index 0): total: must be a number; Order-8: "
        in str(result.exception)
    )
    (done,) = [each for each in map(json.loads, result.stdout.splitlines()) if "rows" in each]
    assert len(done["unread"]) == 2


def test_a_codec_that_is_none_is_refused(orders: str) -> None:
    for codec in ("orders", "no_such_module:codec", "json:dumps"):
        result = Terminal().run("import", orders, "--map", MAP, "--codec", codec, "--dry-run")
        assert isinstance(result.exception, InvalidInput)
        assert "--codec" in str(result.exception)


@pytest.mark.parametrize("name", ["SEALED", "KEEPING"])
@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize("mapping", [MAP, "stream=Order-{order},type=what,time=at,data=total"])
def test_a_codec_that_seals_is_refused_before_anything_is_written(
    orders: str, codec: str, name: str, dry: bool, mapping: str
) -> None:
    terminal, rejected = Terminal(), Path(orders).with_name("rejected.ndjson")
    target = codec.replace("ORDERS", name)
    arguments = ["import", orders, "--map", mapping, "--codec", target, "--rejected", str(rejected)]
    result = terminal.run(*arguments, *(["--dry-run"] if dry else []))
    assert isinstance(result.exception, InvalidInput)
    assert str(result.exception).startswith(f"--codec: must not seal, but {target} does: ")
    assert "Seal the bodies in the source with `subjects.seal`, and import them without --codec" in str(
        result.exception
    )
    assert not rejected.exists()
    assert [terminal.streams.load(stream) for stream in ("Order-7", "Order-8")] == [None, None]


COLUMNS = "order,what,at,number,code,yes,iso,day,mixed,note\n"


@pytest.mark.parametrize("arguments", [["--dry-run"], []])
def test_a_dry_run_without_a_codec_warns_of_columns_that_look_like_more_than_text(
    tmp_path: Path, arguments: list[str]
) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(
        COLUMNS
        + "7,Placed,2020-01-02 03:04,1.10,007,true,2020-01-02,1/5/2024,1,\n"
        + "7,Placed,2020-01-02 03:04,,010,No,2020-01-03,31/12/2024,x,\n"
    )
    (view,) = Terminal().documents("import", str(path), "--map", MAP, *arguments)
    looks = {"number": "numbers", "yes": "booleans", "day": "dates that are not ISO 8601"}
    assert view.get("storedAsText") == (looks if arguments else None)
    lines = Terminal().lines("import", str(path), "--map", MAP, *arguments)[2:]
    assert lines == (
        [
            'warning: number looks like numbers, and is stored as text: "1.10"',
            'warning: yes looks like booleans, and is stored as text: "true"',
            'warning: day looks like dates that are not ISO 8601, and is stored as text: "1/5/2024"',
            "--codec MODULE:NAME converts cells to the types of your events",
        ]
        if arguments
        else []
    )


def test_nothing_is_said_of_the_text_of_json_which_has_types(tmp_path: Path) -> None:
    path = tmp_path / "orders.ndjson"
    path.write_text('{"order":"7","what":"Placed","at":"2020-01-02T03:04Z","total":"1.10"}')
    (view,) = Terminal().documents("import", str(path), "--map", MAP, "--dry-run")
    assert "storedAsText" not in view
