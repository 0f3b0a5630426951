"""The command line on a deployment: the same store as the HTTP API's, found by its stack or by its tables."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import REGION
from epochal.contrib.local.processes import free_port
from epochal.contrib.local.programs import Places
from tests.deploy.commands import epochal

pytestmark = pytest.mark.deploy

Run = Callable[..., list[Any]]


def _epochal(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, as from a shell."""
    return subprocess.run(
        [sys.executable, "-m", "epochal.cli.main", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(params=["stack", pytest.param("tables", marks=pytest.mark.proof)])
def run(deployment: LocalDeployment, request: pytest.FixtureRequest) -> Run:
    """Runs a command with `--json` on the deployment, and reads what it prints."""
    where = ["--stack", "epochal-dev-store"]
    if request.param == "tables":
        where = [
            "--streams-table",
            deployment.settings.table("streams"),
            "--index-table",
            deployment.settings.index_table,
        ]
        where += ["--bucket", deployment.settings.bucket]

    def command(*arguments: str) -> list[Any]:
        ran = epochal(*where, "--endpoint", deployment.endpoint.url, *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return command


def test_what_is_appended_is_read_and_reaches_the_feed(run: Run) -> None:
    stream = f"Cli-{uuid.uuid4().hex}"
    (made,) = run("append", stream, "Opened", '{"n": 1.10}', "--unfold", "State=1")
    assert made["version"] == 1
    assert [each["data"] for each in run("read", stream)] == [{"n": 1.1}]
    (state,) = run("state", stream)
    assert (state["token"], state["unfolds"][0]["data"]) == (made["token"], 1)
    assert _arrives(run, stream)
    (stats,) = run("stats", "--count")
    assert stats["categories"]["Cli"]["streams"] >= 1
    assert sum(table["items"] for table in stats["tables"].values()) > 0


def _arrives(run: Run, stream: str, index: int = 0) -> bool:
    """Whether an event is in the feed within a minute."""
    sought = ("tail", "--from", "0", "--category", stream.partition("-")[0], "--for", "1")
    return any(
        (stream, index) in {(each["stream"], each["index"]) for each in run(*sought)} for _ in range(30)
    )


def test_a_body_too_large_for_an_item_goes_through_the_bucket(run: Run, tmp_path: Path) -> None:
    stream, file = f"Cli-{uuid.uuid4().hex}", tmp_path / "large.json"
    content = [uuid.uuid4().hex for _ in range(20_000)]
    file.write_text(json.dumps(content))
    run("append", stream, "Large", f"@{file}")
    (event,) = run("read", stream)
    assert event["data"] == content


def test_a_stack_that_is_not_there_is_an_error_in_one_line(deployment: LocalDeployment) -> None:
    ran = _epochal("--stack", "no-such-stack", "--endpoint", deployment.endpoint.url, "stats")
    assert ran.returncode == 1
    assert ran.stderr.startswith("epochal: stack no-such-stack: ")
    assert ran.stderr.count("\n") == 1


def test_the_stack_of_the_api_is_not_the_one_that_holds_the_tables(deployment: LocalDeployment) -> None:
    ran = epochal("--stack", "epochal-dev-api", "--endpoint", deployment.endpoint.url, "stats")
    assert (ran.returncode, "name the stack of the tables" in ran.stderr) == (1, True)


def test_a_table_that_is_not_there_is_an_error_in_one_line(deployment: LocalDeployment) -> None:
    tables = ("--streams-table", "missing-streams", "--index-table", "missing-index")
    ran = epochal(*tables, "--endpoint", deployment.endpoint.url, "read", "Cart-1")
    place = f"in {REGION} ({deployment.endpoint.url})"
    advice = "deploy first, or check the settings and the region"
    assert (ran.returncode, ran.stderr) == (
        1,
        f"epochal: table missing-streams does not exist {place}: {advice}\n",
    )


@pytest.fixture
def checkout(places: Places, tmp_path: Path) -> Path:
    """A checkout of its own: what runs from it is not what a developer runs from this one."""
    for name in (".venv", "app.py", "cdk.json", "lambdas", "layers", "node_modules", "stacks"):
        (tmp_path / name).symlink_to(places.root / name)
    return tmp_path


@pytest.mark.proof
def test_a_store_is_put_on_this_machine_used_without_naming_it_and_taken_down(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def local(*arguments: str) -> Any:
        ran = _epochal(*arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    monkeypatch.chdir(checkout)
    assert local("local", "status") == {"running": False, "deployed": False}
    try:
        up = local("local", "up", "--port", str(free_port()))
        assert (up["running"], up["deployed"]) == (True, True)
        assert local("local", "status") == up
        told = subprocess.run(
            ["/bin/sh", "-c", f'eval "$({sys.executable} -m epochal.cli.main local env)" && env'],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert f"AWS_ENDPOINT_URL={up['endpoint']}" in told
        assert f"EPOCHAL_STREAMS_TABLE={up['streamsTable']}" in told
        assert local("append", "Cart-1", "Opened")["version"] == 1
        assert local("read", "Cart-1")["type"] == "Opened"
    finally:
        assert local("local", "down") == {"stopped": True, "kept": False}
    assert local("local", "down") == {"stopped": False, "kept": False}
    assert "epochal local up" in _epochal("read", "Cart-1").stderr


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_store_that_is_kept_goes_on_as_it_was_and_its_feed_misses_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def local(*arguments: str) -> list[Any]:
        ran = _epochal(*arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def append(stream: str) -> None:
        ran = _epochal("append", stream, "Opened", f"@{large}")
        assert ran.returncode == 0, ran.stderr

    monkeypatch.chdir(checkout)
    large = checkout / "large.json"
    large.write_text(json.dumps([uuid.uuid4().hex for _ in range(20_000)]))
    try:
        (first,) = local("local", "up", "--port", str(free_port()))
        for number in range(3):
            append(f"Kept-{number}")
        assert _arrives(local, "Kept-2")
        append("Kept-3")  # the indexer may have seen it, or not
        assert local("local", "down", "--keep") == [{"stopped": True, "kept": True}]
        assert local("local", "down", "--keep") == [{"stopped": False, "kept": True}]
        refused = _epochal("local", "up", "--port", str(free_port()))
        assert (refused.returncode, f"on port {first['endpoint'].rpartition(':')[2]}" in refused.stderr) == (
            1,
            True,
        )

        (again,) = local("local", "up")

        assert {**again, "pid": 0} == {**first, "pid": 0}, "its address is the same"
        assert _arrives(local, "Kept-3")
        assert [event["data"] for event in local("read", "Kept-1")] == [json.loads(large.read_text())]
        append("Kept-1")  # one change after the stop: fewer than the mapping had read before it
        assert _arrives(local, "Kept-1", 1)
        assert local("index", "verify", "--settle", "0") == []
    finally:
        _epochal("local", "down")
    assert local("local", "status") == [{"running": False, "deployed": False}]
