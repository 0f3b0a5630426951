"""`epochal local up --watch` and `epochal local logs`, over an embedded AWS that is only noted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from epochal.contrib.local import commands as local
from epochal.contrib.local import deploy, ministack, remembered_deployment
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.errors import CommandFailed, NotRunning
from epochal.contrib.local.function_logs import LogLine
from epochal.contrib.local.processes import Server

SERVER = Server(name="it", pid=1, born="", port=4566, directory=Path("nowhere"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(local.local, arguments)


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each deployment was asked for; the second fails."""
    (tmp_path / "cdk.json").touch()
    monkeypatch.chdir(tmp_path)
    noted: list[str] = []

    def note(*_: object, app: str | None, **__: object) -> None:
        noted.append(app or "that of cdk.json")
        if len(noted) == 2:
            raise CommandFailed("cdk synth", 1, "File app.py, line 3")

    def changes(root: Path) -> Iterator[tuple[str, ...]]:
        assert root == tmp_path
        yield ("app.py",)
        yield ("a.py", "b.py", "c.py")
        raise KeyboardInterrupt

    monkeypatch.setattr(ministack, "up", lambda *_, **__: SERVER)
    monkeypatch.setattr(deploy, "deploy", note)
    monkeypatch.setattr(ministack, "repair_is_due", lambda _: False)
    monkeypatch.setattr(local, "_print", lambda *_, **__: None)
    monkeypatch.setattr(local, "changes", changes)
    return noted


def test_each_change_is_deployed_a_failure_waits_for_the_next_and_an_interrupt_is_the_end(
    deployed: list[str],
) -> None:
    ran = run("up", "--watch", "--app", "python app.py")
    assert ran.exit_code == 0, ran.output
    assert deployed == ["python app.py"] * 3
    lines = ran.stderr.splitlines()
    assert lines[:2] == [
        "watching for changes; Ctrl-C stops watching, and the embedded AWS keeps running",
        "app.py changed",
    ]
    assert lines[2].startswith("deployment failed: `cdk synth` exited with status 1")
    assert lines[3:5] == ["File app.py, line 3", "a.py and 2 more changed"]
    assert lines[5].startswith("deployed in ")
    assert lines[6] == "no longer watching; `epochal local down` stops the embedded AWS"


def test_without_watching_it_ends_after_one_deployment(deployed: list[str]) -> None:
    assert run("up").exit_code == 0
    assert deployed == ["that of cdk.json"]


class Followed:
    """Logs, of which more comes at each look."""

    def __init__(self, *looks: list[LogLine]) -> None:
        self.looks = iter(looks)

    def more(self) -> list[LogLine]:
        return next(self.looks)


def line(text: str) -> LogLine:
    return LogLine(at=1_000, function="board", text=text)


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks; at the third the embedded AWS is not there any more."""
    (tmp_path / "cdk.json").touch()
    monkeypatch.chdir(tmp_path)
    error = json.dumps({"level": "ERROR", "message": "no", "trace": "File\n  \x1b[31mred"})
    old = [line("START RequestId: 1"), line("one"), line("two"), line("END RequestId: 1"), line(error)]
    followed = Followed(old, [line("three")])
    servers = iter([SERVER, SERVER])

    def require(_: object) -> Server:
        for each in servers:
            return each
        raise NotRunning("it is not running")

    monkeypatch.setattr(ministack, "require", require)
    monkeypatch.setattr(remembered_deployment, "remembered", lambda _: None)
    monkeypatch.setattr(local, "logs_of", lambda *_: followed)
    monkeypatch.setattr(local, "POLL_SECONDS", 0)


@pytest.mark.usefixtures("logged")
def test_the_latest_lines_are_shown_and_what_comes_until_it_is_down() -> None:
    ran = run("logs", "board", "--last", "2", "--follow")
    shown = [each.partition(" ")[2] or each for each in ran.stdout.splitlines()]
    assert shown == ["board  two", "board  ERROR no", "File", " \\x1b[31mred", "board  three"]
    assert isinstance(ran.exception, NotRunning)


@pytest.mark.usefixtures("logged")
def test_as_json_each_line_is_what_the_function_wrote() -> None:
    first, *_ = run("logs", "--json").stdout.splitlines()
    assert json.loads(first) | {"time": ""} == {"time": "", "function": "board", "line": "one"}


POINTED = {
    **Endpoint(url="http://127.0.0.1:4566").environment({}),
    "EPOCHAL_STREAMS_TABLE": "s",
    "EPOCHAL_INDEX_TABLE": "i",
    "EPOCHAL_BUCKET": "b",
    "EPOCHAL_API_URL": "http://127.0.0.1:4566/a",
    "EPOCHAL_WRITE_SHARDS": "4",
}


def test_what_points_a_shell_at_what_was_deployed_is_taken_back_and_nothing_else() -> None:
    """Where nothing is deployed any more, too."""
    own = {"EPOCHAL_STACK": "mine", "AWS_PROFILE": "trial", "EPOCHAL_CACHE": "/cache"}
    ran = CliRunner().invoke(local.local, ["env", "--unset"], env=POINTED | own)
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines() == [f"unset {name}" for name in sorted(POINTED)]


def test_a_shell_with_other_credentials_keeps_what_it_has() -> None:
    ran = CliRunner().invoke(local.local, ["env", "--unset"], env=POINTED | {"AWS_SECRET_ACCESS_KEY": "real"})
    assert (ran.exit_code, ran.stdout) == (0, "")
