"""The core alone stores, feeds and decides: it needs neither surfaces nor optional packages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.remaining import copy, run

OTHERS: Final = ("care", "cdk", "cli", "contrib", "hosting", "http", "pytest_plugin.py")
"""Surfaces and optional packages."""

IMPORTS: Final = "from tests.support.remaining import missing_imports; print(missing_imports())"


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
