"""The core alone stores, feeds and decides: it needs neither surfaces nor optional packages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.support.remaining import ROOT, copy, run

OTHERS: Final = ("care", "cdk", "cli", "contrib", "hosting", "http", "pytest_plugin.py")
"""Surfaces and optional packages."""

IMPORTS: Final = "from tests.support.remaining import missing_imports; print(missing_imports())"


PYTEST: Final = (
    *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--disable-plugin-autoload"),
    *("-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout", "-p", "tests.support.fixtures"),
    *("--import-mode=importlib", "--hypothesis-profile", "check", "tests/core"),
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(tmp_path_factory.mktemp("core"), OTHERS)


@pytest.mark.slow
def test_every_module_of_the_core_is_imported_without_surfaces_and_optional_packages(core: Path) -> None:
    done = run(core, "-c", IMPORTS)
    assert (done.stdout, done.returncode) == ("{}\n", 0), done.stderr


@pytest.mark.slow
def test_a_program_appends_decides_reads_and_reacts_on_the_core_alone(core: Path) -> None:
    done = run(core, "-m", "tests.support.core_program")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(core)


@pytest.fixture
def tested(core: Path) -> Path:
    """The core with its own tests, and what they import: no other tests are run, and there are no servers."""
    for folder in ("tests/core", "tests/support", "tests/simulation", "bench"):
        shutil.copytree(ROOT / folder, core / folder, dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", core)
    return core


@pytest.mark.slow
@pytest.mark.parametrize(
    "marks", ["not slow and not proof", pytest.param("slow and not proof", marks=pytest.mark.proof)]
)
def test_the_tests_of_the_core_pass_without_surfaces_and_optional_packages(tested: Path, marks: str) -> None:
    done = run(tested, *PYTEST, "-m", marks, within=tested)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
