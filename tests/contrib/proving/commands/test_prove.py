"""`prove`: what is asked first, which checks are tried, the report that is kept, and the exit status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from epochal.cli.inputs import Unsound
from epochal.cli.target import OpenedStore
from epochal.codec import json
from epochal.contrib.proving import commands as command
from epochal.contrib.proving.deployed_stacks import DeployedStack
from epochal.named_objects import is_installed
from epochal.plan.ops import Op, Put, Reply
from tests.support.terminal import Terminal


@dataclass
class Formation:
    """CloudFormation with no stacks at all, and Lambda with no functions."""

    url: str = "https://cloudformation.eu-west-1.amazonaws.com"

    @property
    def meta(self) -> Any:
        return SimpleNamespace(region_name="eu-west-1", endpoint_url=self.url)

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"Stacks": [], "Functions": []}]


class Account(Terminal):
    """A store in memory whose account is known to have nothing else."""

    @property
    def store(self) -> OpenedStore:
        return replace(super().store, client=lambda _: Formation())


LIBRARY = ("--only", "appends: pages by the library")


PROVEN = ("lake", "publish", "sql")
"""Optional packages of which each adds a check."""

COSTS: dict[tuple[str, ...], str] = {
    ("lake", "publish", "sql"): "26 checks on index: at most ten minutes and 4.4",
    ("publish", "sql"): "25 checks on index: at most ten minutes and 4.2",
    ("lake", "sql"): "25 checks on index: at most ten minutes and 4.3",
    ("lake", "publish"): "25 checks on index: at most ten minutes and 4.4",
    ("sql",): "24 checks on index: at most ten minutes and 4.1",
}
"""What is asked, by which of these packages are installed: no other set is, whichever one package is deleted."""


def _is_installed(package: str) -> bool:
    return is_installed(f"epochal.contrib.{package}")


def test_what_it_costs_is_said_and_nothing_is_written_without_a_yes() -> None:
    account = Account()
    asked = account.run("prove")
    assert asked.exit_code != 0
    assert f"{COSTS[tuple(filter(_is_installed, PROVEN))]} cents; " in asked.output
    assert "the alarm feed-set-aside will go off. Go on?" in asked.output
    assert not any(account.tables.changes(table) for table in ("streams", "tips", "tags"))


def test_what_was_seen_is_printed_check_by_check() -> None:
    result = Account().run("prove", "--yes", *LIBRARY)
    assert "1 check on index: at most ten minutes and 0.1 cents" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "passed      appends: pages by the library  8 events, 3 races of 4"
    assert lines[1].startswith("left        EpochalProof-")
    assert lines[2].startswith("metered cost: ")


def test_the_report_is_kept_as_json_and_as_a_page(tmp_path: Path) -> None:
    kept = tmp_path / "proof"
    (printed,) = Account().documents("prove", "--yes", *LIBRARY, "--report", str(kept))
    assert json.loads(kept.with_suffix(".json").read_text()) == printed
    assert kept.with_suffix(".md").read_text().startswith("# Proof of index\n")
    assert [each["verdict"] for each in printed["checks"]] == ["passed"]
    refused = Account().run("prove", "--yes", *LIBRARY, "--report", str(tmp_path / "none" / "proof"))
    assert "--report" in str(refused.exception)


def test_a_promise_that_is_broken_is_an_error_that_names_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account()
    execute = account.tables.execute

    def losing(op: Op) -> Reply:
        if isinstance(op, Put) and op.table == "streams":
            return execute(replace(op, table="tips", item={**op.item, "p": {"S": "elsewhere"}}))
        return execute(op)

    monkeypatch.setattr(account.tables, "execute", losing)
    failed = account.run("prove", "--yes", *LIBRARY)
    assert isinstance(failed.exception, Unsound)
    assert str(failed.exception) == "some checks did not pass: appends: pages by the library"
    assert failed.stdout.startswith("failed      appends")


def test_what_is_not_proven_fails_where_that_is_asked_for() -> None:
    account = Account()
    asked = ("prove", "--yes", "--only", "over HTTP", "--skip", "feed", "--skip", "tags", "--skip", "tips")
    assert account.run(*asked).exit_code == 0
    strict = account.run(*asked, "--strict")
    assert isinstance(strict.exception, Unsound)
    assert "not proven" in strict.stdout


def test_to_choose_no_check_is_refused_with_those_that_there_are() -> None:
    refused = Account().run("prove", "--yes", "--only", "nothing")
    assert "the checks are appends: tips by the library" in str(refused.exception)


@pytest.mark.parametrize(
    ("outputs", "api", "asked", "base", "service"),
    [
        ({"ApiUrl": "https://a/"}, "", ("GET", "/health"), "https://a", "execute-api"),
        ({"ApiUrl": "https://a"}, "https://b", ("GET", "/health"), "https://b", "execute-api"),
        ({}, "https://b/", ("POST", "/bodies"), "https://b", "execute-api"),
        (
            {"AppendUrl": "https://w/", "ReplayUrl": "https://r/", "FeedUrl": "https://f/"},
            "",
            ("GET", "/streams/A-1/events?from=1"),
            "https://r",
            "lambda",
        ),
        (
            {"AppendUrl": "https://w/", "ReplayUrl": "https://r/", "FeedUrl": "https://f/"},
            "",
            ("GET", "/feed/0?from=1"),
            "https://f",
            "lambda",
        ),
    ],
)
def test_the_api_is_what_is_named_or_what_the_stacks_tell(
    outputs: dict[str, str], api: str, asked: tuple[str, str], base: str, service: str
) -> None:
    found = command._http(Account().store, [DeployedStack(name="a", outputs=outputs)], api, "")  # noqa: SLF001
    assert found is not None
    assert (found.base(*asked), found.service, found.region) == (base, service, "eu-west-1")


def test_what_the_stacks_of_a_stand_in_tell_is_not_asked_of_aws() -> None:
    store = replace(Account().store, client=lambda _: Formation(url="http://127.0.0.1:4566"))
    stacks = [DeployedStack(name="a", outputs={"ApiUrl": "https://a1.execute-api.us-east-1.amazonaws.com"})]
    assert command._http(store, stacks, "", "") is None  # noqa: SLF001
    named = command._http(store, stacks, "http://127.0.0.1:4566/api", "")  # noqa: SLF001
    assert named is not None
    assert named.base("GET", "/health") == "http://127.0.0.1:4566/api"


def test_a_stage_without_an_api_has_none() -> None:
    site = DeployedStack(name="a", outputs={"SiteUrl": "https://s"})
    assert command._http(Account().store, [site], "", "") is None  # noqa: SLF001
