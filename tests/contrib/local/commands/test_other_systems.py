"""`epochal local` and `epochal new` on systems that are no Unix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.other_systems import WINDOWS, command, run


@pytest.mark.slow
def test_a_local_deployment_says_at_once_that_it_needs_a_unix() -> None:
    done = run(f"{WINDOWS}\nfrom epochal.cli.main import main\nmain(['local', 'up'])")
    assert done.returncode == 1
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert "runs on Linux and macOS" in line
    assert "WSL" in line


@pytest.mark.slow
def test_a_project_is_made_without_the_modules_of_unix(tmp_path: Path) -> None:
    before = f"import os; os.chdir({str(tmp_path)!r})"
    done = run(f"{WINDOWS}\n{command('new', 'library', before=before)}", encoding="cp1252")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "library" / "README.md").exists()
