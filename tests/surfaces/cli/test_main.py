"""The command as a whole: exit statuses, errors in one line, which store is meant; every command is documented."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from botocore.exceptions import ClientError, ProfileNotFound

from epochal.cli import main as command_line
from epochal.cli import target
from epochal.cli.inputs import NotThere
from epochal.cli.main import epochal
from epochal.cli.target import TABLES, Choice, OpenedStore, open_store, tables_of
from epochal.contrib.equinox import memory_tips
from epochal.contrib.local.deploy import LocalStore
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.stores import Place
from epochal.errors import InvalidInput, StreamDeleted, Unavailable, WrongTable
from epochal.model.events import Event
from epochal.plugins import layouts
from epochal.settings import Settings
from epochal.testing.stores import memory_tables
from tests.support.terminal import Terminal

Exits = Callable[..., tuple[int, str, str]]
ErrorLine = Callable[..., str]

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "cli.md"


def _fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(_: Choice) -> None:
        raise error

    monkeypatch.setattr(command_line, "open_store", fail)


def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "open_store", lambda _: Terminal().store)


def test_help_needs_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.main(["append", "--help"])
    assert "Append an event of TYPE" in capsys.readouterr().out


def test_help_has_the_commands_before_the_options_of_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.main(["--help"])
    shown = capsys.readouterr().out
    assert shown.index("  append ") < shown.index("--tips-table")


@pytest.mark.parametrize(
    "error",
    [
        StreamDeleted("Cart-1", 3),
        Unavailable("throttled\nfor long"),
        ProfileNotFound(profile="work"),
    ],
)
def test_an_error_is_one_line_and_status_1(
    exits: Exits, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _fails(monkeypatch, error)
    status, out, err = exits("state", "Cart-1")
    assert (status, out) == (1, "")
    assert err == f"epochal: {' '.join(str(error).split())}\n"


def test_a_stack_that_is_not_there_is_told_with_what_to_do(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoStack:
        def describe_stacks(self, **_: str) -> object:
            raise ClientError(
                {"Error": {"Code": "ValidationError", "Message": "Stack with id shop does not exist"}},
                "DescribeStacks",
            )

    monkeypatch.setattr(target, "service_client", lambda *_, **__: NoStack())
    status, _, err = exits("--stack", "shop", "streams")
    assert status == 1
    assert err == (
        "epochal: stack shop: Stack with id shop does not exist: "
        "deploy first, or check the name, --region and the account\n"
    )


def test_an_argument_is_told_by_the_name_that_it_has_here(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fails(monkeypatch, InvalidInput("idempotency_key", "was used for other contents"))
    assert (
        exits("append", "Cart-1", "Opened", "--key", "k")[2]
        == "epochal: --key: was used for other contents\n"
    )


def test_a_defect_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    _fails(monkeypatch, RuntimeError("a defect"))
    with pytest.raises(RuntimeError, match="a defect"):
        command_line.main(["state", "Cart-1"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("read", "{name}"),
        ("append", "Cart-1", "{name}"),
        ("tagged", "import", "{name}.ndjson"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_an_error_in_one_line(
    error_line: ErrorLine, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    _in_memory(monkeypatch)
    err = error_line(*(each.format(name=os.fsdecode(b"caf\xe9")) for each in arguments))
    assert err.startswith("epochal: argument ")
    assert "must be text without lone surrogates" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("append", "Cart-1", "--events", "@{name}"),
        ("tagged", "import", "{name}"),
    ],
)
def test_a_file_name_that_is_too_long_is_an_error_in_one_line(
    error_line: ErrorLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    _in_memory(monkeypatch)
    monkeypatch.chdir(tmp_path)
    err = error_line(*(each.format(name="x" * 300) for each in arguments))
    assert "File name too long" in err


def test_a_command_that_makes_no_sense_says_so_and_ends_with_2(exits: Exits) -> None:
    status, _, err = exits("read")
    assert status == 2
    assert "Missing argument 'STREAM'" in err


def test_a_value_that_is_wrong_is_an_error_in_one_line(exits: Exits, monkeypatch: pytest.MonkeyPatch) -> None:
    _fails(monkeypatch, InvalidInput("--expected", "must be a version"))
    assert exits("append", "Cart-1", "Opened", "--expected", "foo") == (
        1,
        "",
        "epochal: --expected: must be a version\n",
    )


def test_an_option_of_the_store_after_the_command_is_told_its_place(exits: Exits) -> None:
    status, _, err = exits("stats", "--stack", "epochal-prod-store")
    assert status == 2
    assert "--stack selects the store and must come before the command." in err
    assert "stands before" not in exits("stats", "--stak", "epochal-prod-store")[2]


def test_an_interrupt_ends_with_130_and_without_a_trace(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fails(monkeypatch, KeyboardInterrupt())
    status, _, err = exits("tail")
    assert status == 130
    assert "Traceback" not in err


def test_a_reader_of_the_output_who_has_had_enough_ends_the_command_without_a_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _fails(monkeypatch, BrokenPipeError())
    with (
        (tmp_path / "out").open("w") as out,
        contextlib.redirect_stdout(out),
        pytest.raises(SystemExit) as ended,
    ):
        command_line.main(["stats"])
    assert (ended.value.code, capsys.readouterr().err) == (1, "")


def test_without_a_store_the_error_says_how_to_get_one(
    exits: Exits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cdk.json").touch()
    monkeypatch.chdir(tmp_path)
    status, _, err = exits("stats")
    assert status == 1
    assert "epochal local up" in err
    assert "--stack" in err
    assert err.count("\n") == 1


def test_one_table_without_the_other_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--index-table: is also needed"):
        open_store(Choice(settings=Settings.of(tips_table="tips")))


def test_the_index_without_a_layouts_table_is_refused_with_the_options_that_name_one() -> None:
    with pytest.raises(InvalidInput, match="--tips-table.*--tags-table.*--streams-table"):
        open_store(Choice(settings=Settings.of(index_table="index")))


@pytest.mark.parametrize("table", [each.table for each in layouts()])
def test_a_store_of_one_layout_is_a_store(table: str) -> None:
    settings = Settings.of(index_table="index", **{table: "mine"})
    store = open_store(Choice(settings=settings, endpoint="http://127.0.0.1:1", region="eu-central-1"))
    assert [each.table for each in store.deployment.sources] == ["mine"]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OpenedStore]:
    """Opens the store of a stack that has these outputs, without a request but for them."""

    class Stacks:
        outputs: Mapping[str, str]

        def describe_stacks(self, StackName: str) -> object:  # noqa: N803  as boto3 has it
            assert StackName == "shop"
            told = [{"OutputKey": name, "OutputValue": value} for name, value in self.outputs.items()]
            return {"Stacks": [{"Outputs": told}]}

    def open_(stack: str, outputs: Mapping[str, str], **named: Any) -> OpenedStore:
        Stacks.outputs = outputs
        return open_store(Choice(settings=Settings.of(**named), stack=stack, region="eu-central-1"))

    monkeypatch.setattr(target, "service_client", lambda *_, **__: Stacks())
    return open_


OUTPUTS = {"IndexTable": "index", "BucketName": "bucket", "StreamsTable": "streams", "JournalShards": "8"}


def test_a_place_that_is_named_wins_over_the_stacks_and_the_stacks_own_settings_win(
    opened: Callable[..., OpenedStore],
) -> None:
    """Of a restored table the keys are made as the stack makes them, whatever the environment says."""
    settings = opened("shop", OUTPUTS, streams_table="restored", journal_shards=32).deployment.settings
    assert (settings.table("streams"), settings.index_table) == ("restored", "index")
    assert settings.value("journal_shards") == 8


def test_a_stack_on_the_command_line_wins_over_the_tables_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choices: list[Choice] = []

    def note(choice: Choice) -> OpenedStore:
        choices.append(choice)
        raise StreamDeleted("Cart-1", 1)

    monkeypatch.setattr(command_line, "open_store", note)
    monkeypatch.setenv("EPOCHAL_STREAMS_TABLE", "library-streams")
    for options in (["--stack", "shop"], ["--stack", "shop", "--streams-table", "restored"], []):
        with pytest.raises(SystemExit):
            command_line.main([*options, "state", "Cart-1"])
    monkeypatch.setenv("EPOCHAL_STACK", "shop")
    with pytest.raises(SystemExit):
        command_line.main(["state", "Cart-1"])
    tables = [choice.settings.value("streams_table") for choice in choices]
    assert tables == ["", "restored", "library-streams", "library-streams"]


def test_the_second_store_of_a_stack_is_found_by_its_name_and_never_taken_for_the_first(
    opened: Callable[..., OpenedStore],
) -> None:
    outputs = OUTPUTS | {f"AuditLog{name}": f"audit-{value}" for name, value in OUTPUTS.items()}
    outputs["AuditLogJournalShards"] = "16"
    for stack, begin, shards in (("shop", "", 8), ("shop/AuditLog", "audit-", 16)):
        settings = opened(stack, outputs).deployment.settings
        assert (settings.table("streams"), settings.index_table) == (f"{begin}streams", f"{begin}index")
        assert (settings.bucket, settings.value("journal_shards")) == (f"{begin}bucket", shards)
    with pytest.raises(NotThere, match="shop/Other: has no outputs"):
        opened("shop/Other", outputs)


def test_one_table_is_not_taken_for_two() -> None:
    settings = Settings.of(streams_table="mine", index_table="mine")
    with pytest.raises(InvalidInput, match="must be another table than --.*: both are mine"):
        open_store(Choice(settings=settings, region="eu-central-1"))


def test_a_table_that_is_named_and_of_another_kind_is_refused_before_it_is_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = memory_tables()
    memory_tips(tables).append("Cart-1", [Event(type="Opened")])
    monkeypatch.setattr(Place, "execute", lambda _: tables.execute)
    before = list(tables.items("tips"))
    settings = Settings.of(streams_table="tips", index_table="index")
    store = open_store(Choice(settings=settings, region="eu-central-1"))
    with pytest.raises(WrongTable, match="tips is a table of tips, not a table of streams"):
        store.streams.append("Cart-1", [Event(type="Opened")])
    assert list(tables.items("tips")) == before


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4566", "localhost", "http://"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="--endpoint: must be a URL"):
        open_store(
            Choice(settings=Settings.of(tips_table="t", index_table="i"), endpoint=endpoint, region="x")
        )


def test_the_region_is_found_where_aws_tools_look_for_it(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Choice] = []

    def remember(choice: Choice) -> None:
        seen.append(choice)
        raise StreamDeleted("enough", 0)

    monkeypatch.setattr(command_line, "open_store", remember)
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    exits("stats")
    exits("--region", "eu-west-1", "stats")
    assert [choice.region for choice in seen] == ["eu-west-3", "eu-west-1"]


def test_tables_are_named_by_options_or_by_the_functions_own_environment(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Choice] = []

    def remember(choice: Choice) -> None:
        seen.append(choice)
        raise StreamDeleted("enough", 0)

    monkeypatch.setattr(command_line, "open_store", remember)
    monkeypatch.setenv("EPOCHAL_TIPS_TABLE", "t")
    monkeypatch.setenv("EPOCHAL_INDEX_TABLE", "i")
    exits("--index-table", "other", "--region", "eu-central-1", "stats")
    (choice,) = seen
    assert (choice.settings.tables, choice.settings.index_table) == ({"tips": "t"}, "other")
    assert choice == Choice(settings=choice.settings, region="eu-central-1")


def test_a_shell_that_local_env_points_at_a_store_has_all_of_its_tables(
    exits: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read models and archives too: without them the console says that there are none, and what was pruned is gone."""
    seen: list[Choice] = []

    def remember(choice: Choice) -> None:
        seen.append(choice)
        raise StreamDeleted("enough", 0)

    tables = {name: f"epochal-dev-{flag[2:]}" for flag, (name, _) in TABLES.items()}
    assert {"read_models_table", "streams_archive_table", "projection_states_table"} < tables.keys()
    settings = Settings.of(**tables, bucket="b")
    store = LocalStore(name="", endpoint=Endpoint(url="http://127.0.0.1:1"), settings=settings, api_id="")
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(command_line, "open_store", remember)
    exits("stats")
    assert {name: seen[0].settings.value(name) for name in tables} == tables
    assert tables_of(seen[0].settings) == tables, "and each is in `local status` and `stats`"


def _leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += _leaves(command, (*path, name))
        else:
            found.append(((*path, name), command))
    return found


LEAVES = {id(command): (path, command) for path, command in reversed(_leaves(epochal))}.values()
"""Each command once: those on streams are in a group of their own too, for streams as tips."""


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=lambda value: str(value)[:40])
def test_every_command_has_json_output_and_is_in_the_guide(
    path: tuple[str, ...], command: click.Command
) -> None:
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert ("--json" in options) is (
        path not in {("console",), ("mcp",), ("completion",)}
    )  # one serves, one prints a script
    usage = " ".join(path)
    assert re.search(rf"`epochal {usage}[ `]", " ".join(GUIDE.read_text().split())), (
        f"docs/guide/cli.md: {usage}"
    )


def _groups(group: click.Group) -> list[click.Group]:
    inner = [command for command in group.commands.values() if isinstance(command, click.Group)]
    return [group, *(each for one in inner for each in _groups(one))]


@pytest.mark.parametrize("group", _groups(epochal), ids=lambda group: group.name)
def test_help_lists_commands_in_whole_sentences_at_80_columns(group: click.Group) -> None:
    help_ = group.get_help(click.Context(group, info_name="epochal", terminal_width=80))
    listed = help_.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert len(listed) == len(group.commands)
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize(("path", "command"), _leaves(epochal), ids=lambda value: str(value)[:40])
def test_every_option_has_help(path: tuple[str, ...], command: click.Command) -> None:
    unsaid = [each.name for each in command.params if isinstance(each, click.Option) and not each.help]
    assert not unsaid, f"{' '.join(path)} says nothing of {unsaid}"
