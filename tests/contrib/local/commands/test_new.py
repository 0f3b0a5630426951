"""`epochal new` writes a project whose tests pass as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.terminal import Terminal


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (told,) = Terminal().documents("new", "my-service")
    folder = tmp_path / told["folder"]
    written = {str(path.relative_to(tmp_path)) for path in folder.rglob("*") if path.is_file()}
    assert written == set(told["files"])
    return folder


def _run(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_its_tests_pass_as_they_are(project: Path) -> None:
    assert "6 passed, 1 deselected" in _run(project, "pytest", "-p", "epochal.pytest_plugin", "-W", "error")


def test_it_is_formatted_and_has_nothing_that_a_linter_finds(project: Path) -> None:
    _run(project, "ruff", "check", "--no-cache", ".")
    _run(project, "ruff", "format", "--no-cache", "--check", ".")


def test_it_has_its_name_and_the_version_that_wrote_it(project: Path) -> None:
    assert 'Service(app, "my-service")' in (project / "app.py").read_text()
    assert f"=={version('epochal')}\n" in (project / "requirements.txt").read_text()
    assert {".github", ".gitignore"} < {path.name for path in project.iterdir()}
    assert not [path for path in project.rglob("*") if path.is_file() and "{{" in path.read_text()]


def test_it_says_how_its_stacks_refer_to_each_other_so_that_cdk_does_not_warn(project: Path) -> None:
    context = json.loads((project / "cdk.json").read_text())["context"]
    assert context == {"@aws-cdk/core:defaultCrossStackReferences": "strong"}


@pytest.mark.parametrize("name", ["My-Service", "a--b", "../up", "a" * 41, "1st", ""])
def test_a_name_that_no_stack_could_have_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "lower-case letters" in str(Terminal().run("new", name).exception)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_as_it_is(project: Path) -> None:
    (project / "app.py").write_text("mine")
    assert "is there already" in str(Terminal().run("new", "my-service").exception)
    assert (project / "app.py").read_text() == "mine"
