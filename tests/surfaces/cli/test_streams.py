"""append, read and state."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from epochal.cli.main import epochal
from epochal.errors import EventsPruned, InvalidInput, StreamDeleted, WrongExpectedVersion
from tests.support.terminal import Terminal


@pytest.fixture(params=["streams", "tips"])
def terminal(request: pytest.FixtureRequest) -> Terminal:
    return Terminal(named=request.param)


def test_a_group_of_its_own_has_the_commands_on_streams_that_are_stored_as_tips() -> None:
    terminal = Terminal()
    assert terminal.lines("tips", "append", "Cart-1", "Opened") == ["Cart-1: 1 event, now at version 1"]
    assert terminal.streams.load("Cart-1") is None
    assert terminal.deployment.tips.load("Cart-1") is not None
    tips = epochal.commands["tips"]
    assert isinstance(tips, click.Group)
    assert set(tips.commands) == {"append", "read", "tail", "state", "prune", "delete", "stats"}


def test_an_appended_event_is_read_back(terminal: Terminal) -> None:
    (made,) = terminal.documents("append", "Cart-1", "ItemAdded", '{"sku": "A7", "count": 2}')
    assert made | {"token": "", "capacity": {}} == {
        "stream": "Cart-1",
        "first": 0,
        "version": 1,
        "token": "",
        "replayed": False,
        "capacity": {},
    }
    (event,) = terminal.documents("read", "Cart-1")
    assert event == {
        "stream": "Cart-1",
        "index": 0,
        "type": "ItemAdded",
        "timestamp": event["timestamp"],
        "data": {"sku": "A7", "count": 2},
    }


def test_people_get_a_line_each(terminal: Terminal) -> None:
    assert terminal.lines(
        "append", "Cart-1", "ItemAdded", '{"sku": "A7"}', "--at", "2013-01-01T05:17:00-05:00"
    ) == ["Cart-1: 1 event, now at version 1"]
    assert terminal.lines("read", "Cart-1") == [
        'Cart-1       0  2013-01-01T10:17:00  ItemAdded  {"sku":"A7"}'
    ]


def test_numbers_are_kept_as_they_were_written(terminal: Terminal) -> None:
    terminal.lines("append", "Cart-1", "Priced", '{"price": 1.10, "id": 123456789012345678901234567890}')
    (event,) = terminal.documents("read", "Cart-1")
    assert event["data"] == {"price": Decimal("1.10"), "id": 123456789012345678901234567890}
    assert '"price":1.10' in terminal.lines("read", "Cart-1")[0]


def test_data_comes_from_a_file_or_from_standard_input(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('{"from": "file"}')
    terminal.lines("append", "Cart-1", "A", f"@{file}")
    terminal.lines("append", "Cart-1", "B", "-", "--meta", '{"by": "me"}', stdin='{"from": "stdin"}')
    first, second = terminal.documents("read", "Cart-1")
    assert first["data"] == {"from": "file"}
    assert (second["data"], second["meta"]) == ({"from": "stdin"}, {"by": "me"})


@pytest.mark.parametrize(
    "text",
    [
        '[{"type": "A", "data": 1}, {"type": "B", "correlationId": "c"}]',
        '{"type": "A", "data": 1}\n\n{"type": "B", "correlationId": "c"}\n',
    ],
)
def test_many_events_come_as_an_array_or_as_lines_and_are_one_append(terminal: Terminal, text: str) -> None:
    (made,) = terminal.documents("append", "Cart-1", "--events", "-", stdin=text)
    assert (made["first"], made["version"]) == (0, 2)
    assert [(each["type"], each.get("correlationId")) for each in terminal.documents("read", "Cart-1")] == [
        ("A", None),
        ("B", "c"),
    ]


def test_a_batch_size_makes_several_appends_each_on_the_token_of_the_one_before(terminal: Terminal) -> None:
    text = "\n".join(f'{{"type": "T{n}"}}' for n in range(7))
    made = terminal.documents("append", "Cart-1", "--events", "-", "--batch", "3", stdin=text)
    assert [(each["first"], each["version"]) for each in made] == [(0, 3), (3, 6), (6, 7)]
    assert [each["capacity"]["read"] for each in made[1:]] == [0, 0]
    assert [each["type"] for each in terminal.documents("read", "Cart-1")] == [f"T{n}" for n in range(7)]


def test_state_is_stored_beside_events_with_the_last_batch(terminal: Terminal) -> None:
    terminal.lines(
        *("append", "Cart-1", "--events", '[{"type": "A"}, {"type": "B"}]', "--batch", "1"),
        *("--unfold", 'Total={"sum": 9}', "--unfold", "Count=2"),
    )
    (state,) = terminal.documents("state", "Cart-1")
    assert [(each["type"], each["data"], each["version"]) for each in state["unfolds"]] == [
        ("Total", {"sum": 9}, 2),
        ("Count", 2, 2),
    ]


def test_state_may_be_stored_alone(terminal: Terminal) -> None:
    terminal.lines("append", "Cart-1", "A")
    assert terminal.lines("append", "Cart-1", "--unfold", "Total=1") == ["Cart-1: unfolds, now at version 1"]


def test_state_shows_where_a_stream_stands(terminal: Terminal) -> None:
    terminal.lines("append", "Cart-1", "A", "--unfold", 'Total={"sum": 9}')
    shown = terminal.lines("state", "Cart-1")
    assert [line.split()[0] for line in shown] == ["stream", "version", "token", "events", "unfold"]
    assert shown[-1].endswith('@1 {"sum":9}')


def test_the_printed_token_makes_the_next_append_a_single_request(terminal: Terminal) -> None:
    (made,) = terminal.documents("append", "Cart-1", "A")
    (state,) = terminal.documents("state", "Cart-1")
    assert state["token"] == made["token"]
    (following,) = terminal.documents("append", "Cart-1", "B", "--expected", made["token"])
    assert following["capacity"]["read"] == 0


@pytest.mark.parametrize(
    ("expected", "said"),
    [("0", "version 0"), ("no_stream", "no_stream"), ("7", "version 7")],
)
def test_a_stream_that_is_elsewhere_is_an_error_that_says_where(
    terminal: Terminal, expected: str, said: str
) -> None:
    terminal.lines("append", "Cart-1", "A")
    result = terminal.run("append", "Cart-1", "B", "--expected", expected)
    assert isinstance(result.exception, WrongExpectedVersion)
    assert str(result.exception) == f"Cart-1: expected {said}, but the stream is at version 1"
    assert len(terminal.documents("read", "Cart-1")) == 1


def test_a_stale_token_is_refused(terminal: Terminal) -> None:
    (made,) = terminal.documents("append", "Cart-1", "A")
    terminal.lines("append", "Cart-1", "B")
    result = terminal.run("append", "Cart-1", "C", "--expected", made["token"])
    assert (
        str(result.exception)
        == "Cart-1: expected version 1 with the etag of its token, but the stream is at version 2"
    )


def test_a_deleted_stream_takes_no_events(terminal: Terminal) -> None:
    terminal.lines("append", "Cart-1", "A")
    terminal.streams.delete("Cart-1")
    assert isinstance(terminal.run("append", "Cart-1", "B").exception, StreamDeleted)
    assert "deleted        yes: it takes no more events" in terminal.lines("state", "Cart-1")


def test_an_idempotency_key_makes_a_repeated_call_one_append(terminal: Terminal) -> None:
    call = ("append", "Cart-1", "--events", '[{"type": "A"}, {"type": "B"}]', "--batch", "1", "--key", "k")
    first, again = terminal.documents(*call), terminal.documents(*call)
    assert [each["replayed"] for each in first] == [False, False]
    assert [each["replayed"] for each in again] == [True, True]
    assert len(terminal.documents("read", "Cart-1")) == 2
    assert terminal.lines(*call)[0] == "Cart-1: 1 event, appended before, now at version 1"


def test_reading_goes_either_way_from_any_index_up_to_a_limit(terminal: Terminal) -> None:
    terminal.lines(
        "append", "Cart-1", "--events", str([{"type": f"T{n}"} for n in range(9)]).replace("'", '"')
    )

    def indices(*options: str) -> list[int]:
        return [each["index"] for each in terminal.documents("read", "Cart-1", *options)]

    assert indices() == list(range(9))
    assert indices("--from", "3", "--limit", "2") == [3, 4]
    assert indices("--backward", "--limit", "2") == [8, 7]
    assert indices("--backward", "--from", "1") == [1, 0]


@pytest.mark.parametrize("command", ["read", "state"])
def test_reading_a_stream_that_is_not_there_is_an_error(terminal: Terminal, command: str) -> None:
    assert str(terminal.run(command, "Cart-1").exception) == (
        "Cart-1: there is no such stream; `epochal streams` lists all streams"
    )


@pytest.mark.parametrize("command", [("read", "Cart-1"), ("tail", "Cart-1", "--for", "0")])
def test_events_of_a_deleted_stream_are_an_error_that_says_where_it_ended(
    terminal: Terminal, command: tuple[str, ...]
) -> None:
    for kind in "ABC":
        terminal.lines("append", "Cart-1", kind)
    terminal.streams.delete("Cart-1")
    result = terminal.run(*command)
    assert isinstance(result.exception, StreamDeleted)
    assert str(result.exception) == "Cart-1: deleted at version 3, takes no more events"


def test_of_a_stream_that_was_emptied_and_left_open_nothing_is_printed(terminal: Terminal) -> None:
    terminal.lines("append", "Cart-1", "A")
    terminal.streams.delete("Cart-1", leave_open=True)
    assert terminal.lines("read", "Cart-1") == []


def test_bodies_that_are_no_json_are_shown_for_what_they_are(terminal: Terminal) -> None:
    from epochal.model.events import Event  # noqa: PLC0415

    terminal.streams.append("Cart-1", [Event(type="Raw", data=b"\xff\x00"), Event(type="None")])
    assert [each.get("data64") for each in terminal.documents("read", "Cart-1")] == ["/wA=", None]
    assert terminal.lines("read", "Cart-1")[0].endswith("Raw  <2 bytes>")


@pytest.mark.parametrize(
    ("arguments", "field", "rule"),
    [
        (("append", "Cart-1", "A", "{"), "DATA", "must be JSON"),
        (("append", "Cart-1", "A", "NaN"), "DATA", "must be JSON"),
        (("append", "Cart-1", "A", "@/no/such/file"), "DATA", "cannot be read"),
        (("append", "Cart-1", "A", "1", "--meta", "{"), "--meta", "must be JSON"),
        (("append", "Cart-1", "--events", '[{"typ": "A"}]'), "events[0].typ", "is not a known field"),
        (("append", "Cart-1", "--events", '{"type": ""}'), "--events line 1.type", "must not be empty"),
        (("append", "Cart-1", "--events", '{"type": "A"}\n[1]'), "--events line 2", "must be an object"),
        (("append", "Cart-1", "--unfold", "Total"), "--unfold", "must be Type=JSON"),
        (("append", "Cart-1", "A", "--expected", "latest"), "--expected", "any, no_stream or stream_exists"),
        (("append", "Cart-1", "A", "--at", "yesterday"), "--at", "must be an ISO 8601"),
        (("append", "$Cart-1", "A"), "stream", "reserved for the system"),
        (("read", "Cart 1"), "stream", "may hold only"),
        (("tail", "Cart-1", "--from", "-1"), "--from", "must be an index"),
        (("feed", "0", "--from", "x"), "--from", "must be a checkpoint"),
    ],
)
def test_bad_input_is_refused_by_its_name_and_nothing_is_written(
    terminal: Terminal, arguments: tuple[str, ...], field: str, rule: str
) -> None:
    error: Any = terminal.run(*arguments).exception
    assert isinstance(error, InvalidInput)
    assert error.field == field
    assert rule in error.rule
    assert not list(terminal.tables.items("tips"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("append", "Cart-1"),
        ("append", "Cart-1", "A", "--events", "[]"),
        ("append", "Cart-1", "--events", "[]", "--meta", "1"),
        ("append", "Cart-1", "A", "-", "--meta", "-"),
        ("append", "Cart-1", "A", "--batch", "0"),
        ("append", "Cart-1", "A", "--batch", "2"),
        ("read", "Cart-1", "--from", "-1"),
        ("read", "Cart-1", "--limit", "0"),
        ("tail", "Cart-1", "--data"),
        ("stats", "Cart-1", "--count"),
        ("feed", "x"),
        ("frobnicate",),
    ],
)
def test_a_command_that_makes_no_sense_ends_with_2(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    assert terminal.run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1e999999999999999999999", "9" * 5_000, '"\\ud800"', '"\ud800"']
)
@pytest.mark.parametrize("place", ["DATA", "--meta", "--unfold", "--events"])
def test_json_that_could_not_be_kept_is_refused_by_its_place(
    terminal: Terminal, place: str, text: str
) -> None:
    given = {
        "DATA": ("A", text),
        "--meta": ("A", "--meta", text),
        "--unfold": ("A", "--unfold", f"S={text}"),
        "--events": ("--events", f'[{{"type": "A", "data": {text}}}]'),
    }
    result = terminal.run("append", "Cart-1", *given[place])
    assert isinstance(result.exception, InvalidInput)
    assert result.exception.field in (place, "events[0].data")


def pruned(terminal: Terminal, before: int) -> Terminal:
    for _ in range(5):
        terminal.lines("append", "Cart-1", "ItemAdded")
    terminal.streams.prune("Cart-1", before)
    return terminal


@pytest.mark.parametrize(
    ("before", "options"),
    [(3, ()), (3, ("--limit", "1")), (3, ("--backward",)), (5, ()), (5, ("--backward",))],
)
def test_a_read_that_comes_to_a_beginning_that_is_gone_says_so(
    terminal: Terminal, before: int, options: tuple[str, ...]
) -> None:
    result = pruned(terminal, before).run("read", "Cart-1", *options)
    assert (result.exit_code, result.stderr) == (0, f"warning: Cart-1: events below {before} are gone\n")


@pytest.mark.parametrize("options", [("--from", "3"), ("--from", "9"), ("--backward", "--limit", "2")])
def test_a_read_that_does_not_come_to_it_says_nothing(terminal: Terminal, options: tuple[str, ...]) -> None:
    result = pruned(terminal, 3).run("read", "Cart-1", *options)
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_stream_that_is_whole_is_read_without_a_word(terminal: Terminal) -> None:
    for options in ((), ("--backward",), ("--from", "0")):
        assert pruned(terminal, 0).run("read", "Cart-1", *options).stderr == ""


@pytest.mark.parametrize("options", [("--from", "0"), ("--from", "2", "--backward")])
def test_to_begin_at_an_event_that_is_gone_is_an_error(terminal: Terminal, options: tuple[str, ...]) -> None:
    result = pruned(terminal, 3).run("read", "Cart-1", *options)
    assert isinstance(result.exception, EventsPruned)


def test_an_event_with_an_id_is_appended_once_and_shown_with_it() -> None:
    terminal = Terminal()
    given = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"
    told = [terminal.documents("append", "Cart-1", "Opened", "--id", given)[0] for _ in range(2)]
    assert [each["replayed"] for each in told] == [False, True]
    (event,) = terminal.documents("read", "Cart-1")
    assert (event["id"], "tags" in event) == (given, False)
