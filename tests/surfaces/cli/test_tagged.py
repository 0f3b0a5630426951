"""tagged append, query, event, read, tags, tag, count and import."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from epochal.cli import tagged as commands
from epochal.cli.inputs import NotThere, Unsound
from epochal.cli.main import epochal
from epochal.cli.target import OpenedStore
from epochal.errors import EpochalError, InvalidInput
from tests.support.terminal import Terminal

ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"
COURSE = '{"items": [{"tags": ["course:1"]}]}'


@pytest.fixture(params=["streams", "tips"], ids=["tagged", "dcb"])
def terminal(request: pytest.FixtureRequest) -> Terminal:
    """The commands of either group: tests ask for `tagged`."""
    return Terminal(named=request.param, everything=True)


def fails(terminal: Terminal, *arguments: str, stdin: str | None = None) -> BaseException:
    result = terminal.run("tagged", *arguments, stdin=stdin)
    assert result.exit_code != 0
    assert result.exception is not None
    return result.exception


def append(terminal: Terminal, *arguments: str) -> dict[str, Any]:
    (made,) = terminal.documents("tagged", "append", *arguments)
    found: dict[str, Any] = made
    return found


def test_an_appended_event_is_found_by_query_tag_and_id(terminal: Terminal) -> None:
    append(terminal, "Subscribed", '{"grade": 1.10}', "--tag", "course:1", "--tag", "student:7", "--id", ID)
    (event,) = terminal.documents("tagged", "event", ID)
    assert (event["data"], event["tags"]) == ({"grade": Decimal("1.10")}, ["course:1", "student:7"])
    found, end = terminal.documents("tagged", "query", "--tag", "course:1", "--tag", "student:7")
    assert found == event
    assert list(end) == ["position"]
    assert terminal.documents("tagged", "read", "student:7") == [event]
    assert terminal.documents("tagged", "read") == [event]


def test_a_condition_holds_and_a_position_lets_past_what_was_read(terminal: Terminal) -> None:
    made = append(terminal, "A", "--tag", "course:1", "--fail-if", COURSE)
    error = fails(terminal, "append", "B", "--tag", "course:1", "--fail-if", COURSE)
    assert isinstance(error, Unsound)
    assert f"--fail-if matches A {made['events'][0]['id']};" in str(error)
    again = append(terminal, "B", "--tag", "course:1", "--fail-if", COURSE, "--after", made["position"])
    assert again["position"] != made["position"]
    for _ in range(commands.NAMED):
        append(terminal, "C", "--tag", "course:1")
    error = fails(terminal, "append", "B", "--fail-if", COURSE)
    assert "and others; query again" in str(error)


def test_the_same_id_again_is_answered_like_the_first(terminal: Terminal) -> None:
    first = append(terminal, "A", "--tag", "a", "--id", ID)
    assert append(terminal, "A", "--tag", "a", "--id", ID)["events"] == first["events"]
    lines = terminal.lines("tagged", "append", "A", "--tag", "a", "--id", ID)
    assert lines == ["1 event, appended before"]


def test_several_events_are_one_append(terminal: Terminal) -> None:
    lines = '{"type": "A", "data": 1, "tags": ["a"]}\n{"type": "B", "data": 2}\n'
    assert terminal.lines("tagged", "append", "--events", "-", stdin=lines) == ["2 events"]
    assert len(terminal.documents("tagged", "read")) == 2


def test_a_query_is_read_page_by_page_up_to_a_limit(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "PAGE", 2)
    for number in range(5):
        append(terminal, "A", str(number), "--tag", "a")
    *events, end = terminal.documents("tagged", "query", "--tag", "a")
    assert [each["data"] for each in events] == list(range(5))
    assert "position" in end
    limited = terminal.documents("tagged", "query", "--tag", "a", "--limit", "3")
    assert [each["data"] for each in limited] == [0, 1, 2]
    *events, _ = terminal.documents(
        "tagged", "query", "--query", '{"items": [{"tags": ["a"], "types": ["B"]}]}'
    )
    assert events == []
    assert terminal.documents("tagged", "query", "--tag", "a", "--after", end["position"]) == [end]


def test_tags_groups_and_counts(terminal: Terminal) -> None:
    for tag in ("course:1", "course:2", "course:2", "student:7"):
        append(terminal, "A", "--tag", tag)
    assert terminal.lines("tagged", "tags", "course") == ["course:1  1", "course:2  2"]
    assert terminal.documents("tagged", "tags") == [
        {"tag": "course:1", "events": 1},
        {"tag": "course:2", "events": 2},
        {"tag": "student:7", "events": 1},
    ]
    assert terminal.lines("tagged", "tags", "--groups") == ["course  2", "student  1"]
    (tag,) = terminal.documents("tagged", "tag", "course:2")
    assert (tag["events"], tag["latest"]["type"]) == (2, "A")
    assert terminal.lines("tagged", "count") == ["4"]
    since = terminal.documents("tagged", "read")[1]["place"]
    assert terminal.documents("tagged", "count", "--since", since) == [{"events": 2}]
    assert len(terminal.documents("tagged", "read", "--since", since, "--limit", "1")) == 1


@pytest.mark.slow
def test_what_read_prints_is_what_import_takes(terminal: Terminal, tmp_path: Path) -> None:
    for number in range(120):
        append(terminal, "A", str(number), "--tag", f"t:{number % 3}")
    history = terminal.lines("tagged", "read", "--json")
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(history))
    other = Terminal(named=terminal.named, everything=True)
    renumbered = 120 if terminal.named == "streams" else 0
    assert other.documents("tagged", "import", str(file)) == [
        {"read": 120, "written": 120, "found": 0, "renumbered": renumbered}
    ]
    assert told(other) == told(terminal)
    again = other.documents("tagged", "import", "-", "--skip", "100", stdin="\n\n".join(history))
    assert again == [{"read": 120, "written": 0, "found": 20, "renumbered": 0}]


def test_bytes_and_metadata_are_read_printed_and_imported_as_they_are(
    terminal: Terminal, tmp_path: Path
) -> None:
    append(terminal, "A", "1", "--tag", "t", "--meta", '{"by": "ops"}', "--id", ID)
    for body in ({"data64": "AP8="}, {}, {"data": 1, "meta64": "AA=="}):
        append(terminal, "--events", json.dumps([{"type": "A", "tags": ["t"], **body}]))
    found = terminal.documents("tagged", "read")
    assert [each.get("data64") for each in found] == [None, "AP8=", None, None]
    assert [each.get("meta", each.get("meta64")) for each in found] == [{"by": "ops"}, None, None, "AA=="]
    assert terminal.lines("tagged", "read")[1].endswith("<2 bytes>")
    shown = terminal.lines("tagged", "event", found[0]["id"])
    assert [line.split() for line in shown[-2:]] == [["data", "1"], ["meta", '{"by":"ops"}']]
    history = terminal.lines("tagged", "read", "--json")
    (tmp_path / "history.jsonl").write_text("\n".join(history))
    other = Terminal(named=terminal.named, everything=True)
    other.documents("tagged", "import", str(tmp_path / "history.jsonl"))
    assert told(other) == told(terminal)


def told(terminal: Terminal) -> list[dict[str, Any]]:
    """All events, but for the places that pages give them anew."""
    kept = [] if terminal.named == "streams" else ["place"]
    return [
        {name: value for name, value in each.items() if name in kept or name != "place"}
        for each in terminal.documents("tagged", "read")
    ]


@pytest.mark.parametrize("limit", ["1", "3", "5", "9"])
def test_backward_the_last_events_come_newest_first_with_the_position_to_append_after(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(commands, "PAGE", 2)
    for number in range(5):
        append(terminal, "A", str(number), "--tag", "a")
    *events, end = terminal.documents("tagged", "query", "--tag", "a", "--backward", "--limit", limit)
    assert [each["data"] for each in events] == [4, 3, 2, 1, 0][: int(limit)]
    assert terminal.documents("tagged", "query", "--tag", "a")[-1] == end


def test_an_import_that_stops_says_where_to_go_on(terminal: Terminal) -> None:
    good = [{"id": f"{n:08}-0000-4000-8000-000000000000", "type": "A", "data": n} for n in range(60)]
    lines = [json.dumps({**each, "timestamp": "2020-01-01T00:00:00Z"}) for each in good]
    error = fails(terminal, "import", "-", stdin="\n".join([*lines, '{"type": "A", "data": 1}']))
    assert isinstance(error, Unsound)
    assert str(error).startswith("line 61.timestamp: is required")
    stored = int(str(error).rpartition("--skip ")[2].removesuffix(")"))
    assert 0 < stored < 60 or terminal.named == "streams"
    (done,) = terminal.documents("tagged", "import", "-", "--skip", str(stored), stdin="\n".join(lines))
    assert (done["read"], done["written"]) == (60, 60 - stored)
    assert terminal.lines("tagged", "count") == ["60"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("event", ID), NotThere),
        (("event", "1"), InvalidInput),
        (("tag", "none"), NotThere),
        (("tag", "$all"), InvalidInput),
        (("tags", "a:b"), InvalidInput),
        (("append", "A", "{"), InvalidInput),
        (("append", "A", "--tag", "$x"), InvalidInput),
        (("append", "A", "--id", "x"), InvalidInput),
        (("append", "A", "--fail-if", "{}"), InvalidInput),
        (("append", "A", "--fail-if", COURSE, "--after", "x"), InvalidInput),
        (("append", "A", "--after", "eyJzIjp7fSwiaCI6e319"), InvalidInput),
        (("query", "--query", "[]"), InvalidInput),
        (("read", "--since", "yesterday"), InvalidInput),
        (("import", "/nowhere/at/all"), InvalidInput),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    terminal: Terminal, arguments: tuple[str, ...], error: type[EpochalError]
) -> None:
    assert isinstance(fails(terminal, *arguments), error)
    assert terminal.documents("tagged", "count") == [{"events": 0}]


@pytest.mark.parametrize(
    "arguments",
    [
        ("append",),
        ("append", "A", "--events", "[]"),
        ("append", "--events", "[]", "--tag", "a"),
        ("query",),
        ("query", "--tag", "a", "--query", "{}"),
        ("tags", "course", "--groups"),
    ],
)
def test_commands_that_make_no_sense_end_with_2(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    assert terminal.run("tagged", *arguments).exit_code == 2


@pytest.mark.parametrize(("group", "table"), [("tagged", "streams"), ("dcb", "events"), ("dcb", "tags")])
def test_without_its_tables_it_says_which_option_is_missing(group: str, table: str) -> None:
    found = Terminal()
    tables = {**found.deployment.settings.tables, table: ""}
    deployment = replace(found.deployment, settings=replace(found.deployment.settings, tables=tables))
    bare: OpenedStore = replace(found.store, deployment=deployment)
    result = CliRunner().invoke(epochal, (group, "count"), obj=lambda: bare)
    assert f"--{table}-table: is needed for tagged events" in str(result.exception)


@pytest.mark.parametrize("named", ["streams", "tips"])
def test_types_alone_are_not_asked_for_where_nothing_tells_which_events_have_them(named: str) -> None:
    assert isinstance(fails(Terminal(named=named), "query", "--type", "A"), InvalidInput)
