"""`epochal index`: what it prints, and with which status it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from epochal.cli.inputs import IndexUnsound
from epochal.cli.main import main
from epochal.errors import InvalidInput
from epochal.index.checkpoints import SERIES, epoch_stream, tip_key
from epochal.layout.registry import layout_names
from epochal.layout.tables import INDEX, store_tables
from epochal.model.events import Event
from epochal.plan.ops import Delete, Put
from epochal.testing.memory import MemoryTables
from tests.support.terminal import Terminal
from tests.surfaces.care.exporting import export

FAST = ("--settle", "0")


@pytest.fixture
def terminal() -> Terminal:
    terminal = Terminal(named="tips", layouts=("tips",))
    append(terminal, "Cart-1", "added", "added")
    terminal.index()
    return terminal


def append(terminal: Terminal, stream: str, *types: str) -> None:
    terminal.streams.append(stream, [Event(type=kind) for kind in types])


def refused(result: Result, error: type[Exception]) -> str:
    assert isinstance(result.exception, error), result.output
    return str(result.exception)


def test_status_prints_each_partition_and_how_many_records_wait(terminal: Terminal) -> None:
    first, *rest = terminal.lines("index", "status")
    assert first.startswith("tips 0  tail 0@1, its epoch 1 entries, ")
    assert rest == ["tips  the index has all events of 1 stream"]
    (view,) = terminal.documents("index", "status", "--all-groups")
    assert view["partitions"][0]["tail"] == "0@1"
    assert view["poison"] == {"tips": 0, "journal": 0, "dcb": 0, "pages": 0}


def test_verify_of_an_index_that_is_right_says_so_and_succeeds(terminal: Terminal) -> None:
    assert terminal.lines("index", "verify", *FAST) == ["the index is correct"]
    assert terminal.documents("index", "verify", *FAST) == []


def test_verify_refuses_to_wait_for_centuries(terminal: Terminal) -> None:
    result = terminal.run("index", "verify", "--settle", "9" * 20)
    assert (result.exit_code, "is not a number of seconds" in result.output) == (2, True)


def test_verify_prints_what_is_wrong_and_fails(terminal: Terminal) -> None:
    append(terminal, "Cart-1", "late")
    result = terminal.run("index", "verify", *FAST)
    assert result.stdout.splitlines() == ["tips 0 Cart-1: event 2 is not indexed"]
    assert "1 × repair" in refused(result, IndexUnsound)
    printed = terminal.run("index", "verify", *FAST, "--json").stdout
    assert printed == (
        '{"kind":"missing","remedy":"repair","source":"tips","partition":0,"stream":"Cart-1","index":2,"end":3}\n'
    )


def test_verify_ends_with_status_1_where_anything_is_wrong(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("epochal.cli.main.open_store", lambda _: terminal.store)
    append(terminal, "Cart-1", "late")
    with pytest.raises(SystemExit) as ended:
        main(["index", "verify", *FAST])
    assert ended.value.code == 1
    assert "epochal index repair" in capsys.readouterr().err


def test_repair_mends_what_is_missing_and_says_so(terminal: Terminal) -> None:
    append(terminal, "Cart-1", "late")
    append(terminal, "Cart-2", "new", "newer")
    *lines, last = terminal.lines("index", "repair", *FAST)
    assert sorted(lines) == [
        "tips 0 Cart-1: event 2 is not indexed: repaired",
        "tips 0 Cart-2: events 0 to 1 are not indexed: repaired",
    ]
    assert last == "2 repaired; the index is correct"
    assert terminal.lines("index", "verify", *FAST) == ["the index is correct"]
    assert terminal.lines("index", "repair", *FAST) == ["the index is correct"]


def test_repair_of_what_cannot_be_mended_in_place_recommends_a_rebuild(terminal: Terminal) -> None:
    key = tip_key(epoch_stream(0, 0))
    terminal.tables.execute(Put(table="index", item={**key, "n": {"N": "1"}, "e": {"L": []}}))
    result = terminal.run("index", "repair", *FAST)
    assert "epochal index rebuild" in refused(result, IndexUnsound)
    assert "not repaired: rebuild" in result.stdout


def test_repair_does_not_recommend_itself_for_what_it_has_left(terminal: Terminal) -> None:
    """An event that is late is its business, but not where the epochs that it belongs to are broken."""
    key = tip_key(epoch_stream(0, 0))
    terminal.tables.execute(Put(table="index", item={**key, "n": {"N": "1"}, "e": {"L": []}}))
    append(terminal, "Cart-1", "late")
    result = terminal.run("index", "repair", *FAST)
    assert "Cart-1: events 0 to 2 are not indexed" in result.stdout
    said = refused(result, IndexUnsound)
    assert "2 × rebuild" in said
    assert "epochal index repair" not in said


def test_repair_does_not_guess_how_many_partitions_there_were(terminal: Terminal) -> None:
    terminal.tables.execute(Delete(table="index", key=tip_key(SERIES)))
    result = terminal.run("index", "repair", *FAST)
    assert "pass --partitions tips=N" in refused(result, InvalidInput)
    lines = terminal.lines("index", "repair", *FAST, "--partitions", "tips=1")
    assert lines[0] == "tips: the index has no number of partitions on record: repaired"
    assert terminal.lines("index", "verify", *FAST) == ["the index is correct"]


@pytest.mark.parametrize("told", ["tips", "carts=1", "tips=0", "tips=x", "tips=10001"])
def test_numbers_of_partitions_that_make_no_sense_are_refused(terminal: Terminal, told: str) -> None:
    refused(terminal.run("index", "verify", "--partitions", told), InvalidInput)


def poisoned(terminal: Terminal) -> Terminal:
    """A head that could not be indexed, and was set aside."""
    broken = {**tip_key("Broken-1"), "n": {"N": "1"}}
    terminal.tables.execute(Put(table="tips", item=broken))
    terminal.index()
    return terminal


def test_records_set_aside_are_listed_with_their_cause(terminal: Terminal) -> None:
    (line,) = poisoned(terminal).lines("index", "poison", "list")
    assert line.startswith("tips 0  20")
    assert (
        line.endswith(
            "Z  Broken-1 2147483647: CorruptData: Broken-1: a Tip with inconsistent n and a (waiting)"
        )
        or "(waiting)" in line
    )
    (view,) = terminal.documents("index", "poison", "list")
    assert view["key"] == {"p": "Broken-1", "i": "2147483647"}
    assert terminal.lines("index", "status")[-1] == (
        "tips  1 records set aside, see epochal index poison list"
    )


def test_a_record_is_retried_once_its_head_is_mended(terminal: Terminal) -> None:
    poisoned(terminal)
    assert terminal.run("index", "poison", "retry", "tips", "0").exception
    append_mended(terminal)
    assert terminal.lines("index", "poison", "retry", "tips", "0") == ["tips 0: 1 events indexed"]
    assert terminal.lines("index", "poison", "list") == []
    assert terminal.documents("index", "poison", "list", "--all")[0]["outcome"] == "retried"


def append_mended(terminal: Terminal) -> None:
    terminal.tables.execute(Delete(table="tips", key=tip_key("Broken-1")))
    append(terminal, "Broken-1", "mended")


def test_a_record_is_given_up(terminal: Terminal) -> None:
    poisoned(terminal)
    assert terminal.lines("index", "poison", "discard", "tips", "0") == ["tips 0: discarded"]
    assert terminal.lines("index", "poison", "list") == []


@pytest.fixture
def roomy() -> Terminal:
    """A terminal with a second table for an index."""
    tables = MemoryTables({spec.kind: spec for spec in store_tables()} | {"anew": INDEX})
    terminal = Terminal(named="tips", layouts=("tips",), tables=tables)
    append(terminal, "Cart-1", "added", "added")
    append(terminal, "Cart-2", "added")
    terminal.index()
    return terminal


def test_an_index_is_rebuilt_into_another_table(roomy: Terminal) -> None:
    assert roomy.lines("index", "rebuild", "--into", "anew") == [
        "tips  2 streams, 3 events indexed",
        "journal  0 streams, 0 events indexed",
        "dcb  0 streams, 0 events indexed",
        "pages  0 streams, 0 events indexed",
    ]
    again = roomy.documents("index", "rebuild", "--into", "anew")
    assert again[0]["tips"] == {"streams": 2, "events": 0}


def test_an_index_is_rebuilt_from_an_export_in_a_folder(roomy: Terminal, tmp_path: Path) -> None:
    place = export(tmp_path / "export", roomy.tables.items("tips"))
    lines = roomy.lines("index", "rebuild", "--into", "anew", "--from-export", f"tips={place}")
    assert lines[0] == "tips  2 streams, 3 events indexed"


def test_a_rebuild_into_the_index_in_use_is_refused(roomy: Terminal) -> None:
    refused(roomy.run("index", "rebuild", "--into", "index"), InvalidInput)


@pytest.mark.parametrize("table", [spec.kind for spec in store_tables() if spec is not INDEX])
def test_a_rebuild_into_a_table_of_the_store_is_refused_and_leaves_it_alone(
    roomy: Terminal, table: str
) -> None:
    before = list(roomy.tables.items(table))
    assert "a separate table" in refused(roomy.run("index", "rebuild", "--into", table), InvalidInput)
    assert list(roomy.tables.items(table)) == before


def test_a_rebuild_into_the_index_in_use_is_made_where_that_is_empty_as_after_a_restore(
    terminal: Terminal,
) -> None:
    for item in list(terminal.tables.items("index")):
        terminal.tables.execute(Delete(table="index", key={"p": item["p"], "i": item["i"]}))
    counts = [word for name in layout_names() for word in ("--partitions", f"{name}=1")]
    lines = terminal.lines("index", "rebuild", "--into", "index", *counts)
    assert lines[0] == "tips  1 streams, 2 events indexed"
    assert terminal.lines("index", "verify", *FAST) == ["the index is correct"]


def test_a_rebuild_keeps_to_the_numbers_of_partitions_that_were_put_on_record(roomy: Terminal) -> None:
    roomy.lines("index", "rebuild", "--into", "anew")
    refused(roomy.run("index", "rebuild", "--into", "anew", "--partitions", "tips=2"), InvalidInput)


def test_exports_of_sources_that_there_are_not_are_refused(roomy: Terminal) -> None:
    refused(roomy.run("index", "rebuild", "--into", "anew", "--from-export", "carts=x"), InvalidInput)


def test_a_rebuild_tells_what_it_could_not_read_and_fails(roomy: Terminal) -> None:
    roomy.tables.execute(Put(table="tips", item=dict(tip_key("Broken-1"))))
    result = roomy.run("index", "rebuild", "--into", "anew")
    refused(result, IndexUnsound)
    assert "Broken-1" in result.stdout
