"""An app that is refused by a construct ends `epochal local up` with what the app printed of it, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochal.cli import main as command_line
from epochal.contrib.local import cdk, deploy, ministack
from epochal.contrib.local.errors import CommandFailed
from epochal.contrib.local.programs import Places
from tests.contrib.local.commands.test_local import SERVER
from tests.contrib.local.test_cdk import ENDPOINT, checkout, script

__all__ = ["checkout"]

REFUSAL = (
    "epochal: Reaction.timeout is not an argument; did you mean timeout_seconds?\n"
    '  at app.py:31, in <module>: Boards(app, "Boards")\n'
    '  at app.py:12, in __init__: Reaction(self, "Board", timeout=60)'
)


def test_the_error_is_what_the_app_printed_without_what_cdk_added(checkout: Places, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text(f"warning: old Node\n{REFUSAL}\napp.py: Subprocess exited with error 1\n")
    script(tmp_path, f"cat '{tmp_path}/lines' >&2; exit 1")
    with pytest.raises(CommandFailed) as failed:
        cdk.synthesise(checkout, ENDPOINT, work=tmp_path)
    assert str(failed.value) == f"`cdk synth` exited with status 1:\n{REFUSAL}"


def test_a_stack_trace_keeps_its_lines_on_the_terminal(
    checkout: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = 'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\nKeyError: "x"'

    def fail(*_: object, **__: object) -> None:
        raise CommandFailed("cdk synth", 1, trace)

    monkeypatch.chdir(checkout.root)
    monkeypatch.setattr(ministack, "up", lambda *_, **__: SERVER)
    monkeypatch.setattr(ministack, "repair_is_due", lambda _: False)
    monkeypatch.setattr(deploy, "deploy", fail)
    with pytest.raises(SystemExit):
        command_line.main(["local", "up"])
    assert capsys.readouterr().err.endswith(
        f"epochal: `cdk synth` exited with status 1; the end of its output:\n{trace}\n"
    )
