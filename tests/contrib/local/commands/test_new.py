"""`epochal new` writes a project whose tests pass as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution, version
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


@pytest.fixture
def web_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (told,) = Terminal().documents("new", "shop", "--kind", "web")
    return tmp_path / told["folder"]


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


@pytest.mark.slow
def test_the_tests_of_a_web_service_pass_as_they_are(web_project: Path) -> None:
    assert "7 passed" in _run(web_project, "pytest", "-p", "epochal.pytest_plugin", "-W", "error")


def test_a_web_service_is_formatted_and_has_nothing_that_a_linter_finds(web_project: Path) -> None:
    _run(web_project, "ruff", "check", "--no-cache", ".")
    _run(web_project, "ruff", "format", "--no-cache", "--check", ".")
    assert "epochal[async,cli,console,pytest]==" in (web_project / "requirements.txt").read_text()


@pytest.mark.proof
def test_a_web_service_has_types(web_project: Path) -> None:
    modules = [path.name for path in web_project.glob("*.py")]
    _run(web_project, "mypy", "--strict", "--config-file", os.devnull, *modules)


def test_it_is_formatted_and_has_nothing_that_a_linter_finds(project: Path) -> None:
    _run(project, "ruff", "check", "--no-cache", ".")
    _run(project, "ruff", "format", "--no-cache", "--check", ".")


def test_it_has_its_name_and_the_version_that_wrote_it(project: Path) -> None:
    assert 'Service(app, "my-service")' in (project / "app.py").read_text()
    assert f"=={version('epochal')}\n" in (project / "requirements.txt").read_text()
    assert {".github", ".gitignore"} < {path.name for path in project.iterdir()}
    assert not [path for path in project.rglob("*") if path.is_file() and "{{" in path.read_text()]


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel from which the library seems to have been installed."""
    about = f"epochal-{version('epochal')}.dist-info"
    file = tmp_path / "downloads and more" / f"epochal-{version('epochal')}-py3-none-any.whl"
    file.parent.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: epochal\nVersion: {version('epochal')}\n" + "".join(
        f"Provides-Extra: {extra}\n" for extra in ("cdk", "cli", "console", "lambda", "local", "pytest")
    )
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(f"{about}/METADATA", metadata)
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr("epochal_made_up.py", "")
        packed.writestr(
            f"{about}/RECORD",
            f"{about}/METADATA,,\n{about}/WHEEL,,\nepochal_made_up.py,,\n{about}/RECORD,,\n",
        )
    _installed_from(monkeypatch, {"url": file.as_uri(), "archive_info": {}})
    return file


def _installed_from(monkeypatch: pytest.MonkeyPatch, source: object) -> None:
    """Have `epochal` seem to have been installed from a source, as pip records it (PEP 610)."""
    kept = PathDistribution.read_text

    def read_text(self: PathDistribution, name: str) -> str | None:
        return json.dumps(source) if name == "direct_url.json" else kept(self, name)

    monkeypatch.setattr(PathDistribution, "read_text", read_text)


def test_from_a_wheel_its_first_command_installs_that_wheel_anywhere(
    wheel: Path, project: Path, tmp_path: Path
) -> None:
    wheel.unlink()
    moved = project.rename(tmp_path / "checked out")
    workflow = (moved / ".github" / "workflows" / "test.yml").read_text()
    assert "pip install -r requirements.txt\n" in workflow
    install = ("pip", "install", "--no-deps", "--no-index", "--target", str(tmp_path / "target"))
    _run(moved, *install, "-r", "requirements.txt")
    assert (tmp_path / "target" / "epochal_made_up.py").exists()
    assert not [path for path in moved.rglob("*.txt") if str(tmp_path) in path.read_text()]


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        (
            {"url": "https://example.org/a.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            " @ git+https://example.org/a.git@abc\n",
        ),
        (
            {"url": "https://example.org/epochal-0.1.0.whl", "archive_info": {}},
            " @ https://example.org/epochal-0.1.0.whl\n",
        ),
    ],
)
def test_from_an_address_its_first_command_installs_from_there(
    source: object, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _installed_from(monkeypatch, source)
    Terminal().documents("new", "my-service")
    written = (tmp_path / "my-service" / "requirements.txt").read_text()
    assert f"epochal[cdk,cli,console,lambda,local,pytest]{requirement}" in written


@pytest.mark.parametrize(
    "source", [{"url": "file:///gone.whl", "archive_info": {}}, {"url": "file:///", "dir_info": {}}]
)
def test_from_what_no_project_can_take_along_it_names_the_version(
    source: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _installed_from(monkeypatch, source)
    Terminal().documents("new", "my-service")
    assert f"=={version('epochal')}\n" in (tmp_path / "my-service" / "requirements.txt").read_text()


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
    assert "my-service already exists" in str(Terminal().run("new", "my-service").exception)
    assert (project / "app.py").read_text() == "mine"
