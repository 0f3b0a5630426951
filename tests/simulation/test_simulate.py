"""The command that plays histories by the thousand: it counts them, and tells how to see one that fails again."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox import append
from tests.simulation import simulate


@pytest.mark.proof
def test_histories_are_shared_among_all_worlds_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["--seeds", "100"]) == 0

    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert [*rows] == ["world", *(kind.name for kind in simulate.KINDS), "all"]
    assert rows["streams"].split()[1] == "40"
    assert all("no violation" in rows[kind.name] for kind in simulate.KINDS)
    assert sum(kind.share for kind in simulate.KINDS) == 100


def test_of_histories_that_break_a_promise_the_shortest_is_told_with_the_command_that_replays_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "accepts", lambda _expected, tip: tip is None or not tip.deleted)
    monkeypatch.setattr(simulate, "LOOK", 30)

    assert simulate.main(["--seeds", "500", "--world", "streams"]) == 1

    told = capsys.readouterr().out
    (again,) = [line for line in told.splitlines() if "to see it again" in line]
    command = again.rpartition("make simulate ")[2].replace("WORLD=", "--world ").replace("SEED=", "--seed ")
    story = [line for line in told.splitlines() if line.startswith("  process ")]
    assert any("Flight-1/Tip" in line for line in story)
    assert simulate.main(command.split()) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("  process ")] == story
    monkeypatch.undo()
    assert simulate.main(command.split()) == 0
    assert "every promise holds" in capsys.readouterr().out
