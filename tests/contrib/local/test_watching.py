"""A project is watched by its files' times and sizes: what is no source is passed over, a change comes as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochal.contrib.local import file_changes as watching
from epochal.contrib.local.errors import TooManyFiles


class Day:
    """What happens at each look, one after the other; a test that looks more often than it should ends."""

    def __init__(self, *happen: Callable[[], object]) -> None:
        self.happen = iter(happen)

    def __call__(self, _seconds: float) -> None:
        next(self.happen)()


def nothing() -> None: ...


def write(path: Path, text: str = "x") -> Callable[[], object]:
    def do() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return do


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    for name in ("app.py", "reactions/board/board.py"):
        write(tmp_path / name)()
    return tmp_path


def test_files_that_change_come_or_go_are_told_once_all_is_quiet(project: Path) -> None:
    board, new, app = project / "reactions/board/board.py", project / "new/one.py", project / "app.py"
    day = Day(nothing, write(board, "changed"), write(new), app.unlink, nothing)
    changed = next(watching.changes(project, sleep=day))
    assert changed == ("app.py", "new/one.py", "reactions/board/board.py")


def test_a_file_that_is_written_anew_with_as_many_bytes_has_changed(project: Path) -> None:
    app = project / "app.py"

    def touch() -> None:
        os.utime(app, ns=(0, 1))

    assert next(watching.changes(project, sleep=Day(touch, nothing))) == ("app.py",)


def test_what_changes_while_somebody_works_on_the_last_change_comes_next(project: Path) -> None:
    changes = watching.changes(project, sleep=Day(write(project / "app.py", "2"), *[nothing] * 9))
    write(project / "between.py")()  # since the call, and before anybody asks
    assert next(changes) == ("app.py", "between.py")
    write(project / "reactions/board/board.py", "while it is deployed")()
    assert next(changes) == ("reactions/board/board.py",)


@pytest.mark.parametrize(
    "name",
    [
        ".git/index",
        ".epochal/log",
        ".venv/lib/x.py",
        "env/pyvenv.cfg",
        "env/lib/x.py",
        "node_modules/x.js",
        "cdk.out/manifest.json",
        "reactions/board/__pycache__/board.pyc",
    ],
)
def test_what_is_no_source_is_passed_over(project: Path, name: str) -> None:
    write(project / "env/pyvenv.cfg")()
    day = Day(write(project / name, "made"), write(project / "app.py", "meant"), nothing)
    assert next(watching.changes(project, sleep=day)) == ("app.py",)


def test_what_is_put_back_before_all_is_quiet_is_no_change(project: Path) -> None:
    new = project / "new.py"
    day = Day(write(new), new.unlink, nothing, write(project / "app.py", "meant"), nothing)
    assert next(watching.changes(project, sleep=day)) == ("app.py",)


def test_a_folder_that_is_no_project_is_refused_at_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_FILES", 1)
    with pytest.raises(
        TooManyFiles, match="has more than 1 files, too many to watch: run this in the folder of a project"
    ):
        watching.changes(project)
