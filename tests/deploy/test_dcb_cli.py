"""Commands on tagged events and states on a deployment, found by its stack or by its tables."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from tests.deploy.commands import epochal

Run = Callable[..., list[Any]]


@pytest.fixture(params=["stack", pytest.param("tables", marks=pytest.mark.proof)])
def run(deployment: LocalDeployment, request: pytest.FixtureRequest) -> Run:
    """Runs a command with `--json` on the deployment, and reads what it prints."""
    where = ["--stack", "epochal-dev-store"]
    if request.param == "tables":
        told = deployment.settings
        where = [
            "--tips-table",
            told.table("tips"),
            "--index-table",
            told.index_table,
            "--bucket",
            told.bucket,
        ]
        where += ["--events-table", told.table("events"), "--tags-table", told.table("tags")]
        where += ["--write-shards", str(told.value("write_shards")), "--service", told.value("service")]
        where += ["--projection-states-table", told.table("projection-states")]
        where += ["--states-prefix", told.value("states_prefix")]

    def command(*arguments: str) -> list[Any]:
        named = [*where, "--endpoint", deployment.endpoint.url]
        ran = epochal(*named, *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return command


def test_tagged_events_are_appended_found_and_listed(run: Run) -> None:
    tag = f"cli{uuid.uuid4().hex}:1"
    condition = json.dumps({"items": [{"tags": [tag]}]})
    (made,) = run("dcb", "append", "Opened", '{"n": 1.5}', "--tag", tag, "--fail-if", condition)
    event, end = run("dcb", "query", "--tag", tag)
    assert (event["id"], event["data"]) == (made["events"][0]["id"], {"n": 1.5})
    run("dcb", "append", "Closed", "--tag", tag, "--fail-if", condition, "--after", end["position"])
    assert [each["type"] for each in run("dcb", "read", tag)] == ["Opened", "Closed"]
    assert run("dcb", "tags", tag.partition(":")[0]) == [{"tag": tag, "events": 2}]
    assert {"tag": tag, "events": 2} in run("dcb", "tags")
    assert run("dcb", "count")[0]["events"] >= 2


def test_a_large_state_goes_to_the_bucket_and_comes_back(run: Run, tmp_path: Path) -> None:
    name = f"Cli{uuid.uuid4().hex}"
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(os.urandom(8_000_000))
    run("projections", "put", name, "v1", str(sent), "--processed", "1", "--last", "0" * 30)
    run("projections", "get", name, "v1", "--output", str(back))
    assert back.read_bytes() == sent.read_bytes()
    (listed,) = run("projections", "list", name)
    assert listed["bytes"] == 8_000_000
    assert run("projections", "orphans", name) == []
    assert run("projections", "delete", name, "v1") == [{"name": name, "version": "v1"}]
    assert run("projections", "list", name) == []
