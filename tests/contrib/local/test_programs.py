"""What is missing is said before anything is installed, with how to get it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import epochal
from epochal.contrib.local import programs
from epochal.contrib.local.errors import ProgramMissing
from tests.support import needed

LIBRARY = Path(epochal.__file__).parent.parent
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def install(path: Path, name: str, prints: str, status: int = 0) -> None:
    program = path / name
    program.write_text(
        f"#!/bin/sh\ncase $1 in --version|-version) ;; *) exit 9;; esac\necho '{prints}' >&2\nexit {status}\n"
    )
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ("v20.20.2", 20),
        ("11.19.1", 11),
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_422"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx512m\nopenjdk version "21.0.1" 2023-10-17', 21),
        ("no number here", 0),
    ],
)
def test_the_major_version_is_read_from_what_programs_print(printed: str, major: int) -> None:
    assert programs.major_version(printed) == major


def test_a_program_that_is_new_enough_is_found(path: Path) -> None:
    install(path, "java", 'openjdk version "17.0.15"')
    assert programs.find(needed.JAVA) == str(path / "java")


def test_a_program_that_is_not_there_is_reported_with_how_to_get_it(path: Path) -> None:
    with pytest.raises(ProgramMissing, match="java: not on PATH.*apt-get install default-jre-headless"):
        programs.find(needed.JAVA)


def test_a_program_that_is_too_old_is_reported_with_both_versions(path: Path) -> None:
    install(path, "node", "v16.1.0")
    with pytest.raises(
        ProgramMissing, match="is version 16, but 18 or newer is needed.*apt-get install nodejs"
    ):
        programs.find(programs.NODE)


def test_a_program_that_does_not_run_is_reported_as_that(path: Path) -> None:
    install(path, "npm", "cannot find module", status=1)
    with pytest.raises(ProgramMissing, match="npm: .* does not run"):
        programs.find(programs.NPM)


def test_everything_missing_is_listed_at_once_on_the_standard_library_alone(tmp_path: Path) -> None:
    install(tmp_path, "npm", "10.1.0")
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.fspath(LIBRARY)}
    # -S leaves out site-packages: so it is before anything is installed.
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "tests.support.needed"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert [line.split(":")[1].strip() for line in ran.stderr.splitlines()] == ["node", "java"]


def test_only_what_is_named_is_looked_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(path, "npm", "10.1.0")
    assert needed.main(["npm"]) == 0
    assert needed.main(["npm", "node"]) == 1
    assert [line.split(":")[1].strip() for line in capsys.readouterr().err.splitlines()] == ["node"]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", f"PYTHON={sys.executable}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("target", "needed"),
    [("demo", "node npm"), ("setup", "node npm"), ("load", "node npm"), ("test", "node npm java")],
)
def test_who_wants_the_demo_needs_no_java(tmp_path: Path, target: str, needed: str) -> None:
    asked = re.findall(
        r"-m tests\.support\.needed (.*)$", make("-n", f"VENV={tmp_path}", target).stdout, re.MULTILINE
    )
    assert asked
    assert set(asked) == {needed}


@pytest.mark.slow
@pytest.mark.parametrize("python", ["exit 1", "exec /no/such/program"])
def test_an_environment_that_is_there_and_too_old_is_not_touched_and_told(
    tmp_path: Path, python: str
) -> None:
    (tmp_path / "bin").mkdir()
    install(tmp_path / "bin", "python", "")
    (tmp_path / "bin" / "python").write_text(f"#!/bin/sh\n{python}\n")
    refused = make(f"VENV={tmp_path}", "prerequisites")
    assert refused.returncode != 0
    assert f"in the way: {tmp_path} is there" in refused.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["bin"]
