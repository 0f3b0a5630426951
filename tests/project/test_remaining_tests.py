"""Without an optional package, and those that need it, all tests pass that do not need it either.

Of other libraries' layouts, which `test_deletion` deletes too, tests of the surfaces store events without naming the
package, so that these tests cannot be told from the others.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest

from tests.support.needs import packages_needed
from tests.support.remaining import PACKAGES, ROOT, copy, needing, run

FOLDERS: Final = ("core", "surfaces", "contrib")
"""Folders whose tests are run."""

LAYOUTS: Final = {"equinox", "event_store_adapter", "sekiban"}
"""Layouts of other libraries."""

DESCRIBED: Final = (
    "http/test_openapi.py::test_the_committed_documents_are_what_the_code_says",
    "http/test_openapi.py::test_every_problem_is_documented_somewhere",
    "http/test_reference.py::test_the_examples_are_what_the_api_answers",
    "http/test_reference.py::test_the_list_of_routes_is_the_codes_and_other_layouts_have_the_same_below_another_path",
    "http/test_routes.py::test_reading_the_records_imports_nothing_heavy",
)
"""Tests of the surfaces that hold pages to the routes of all packages: without `timers`, pages say too much."""

PLUGINS: Final = (
    "_hypothesis_pytestplugin",
    "epochal.pytest_plugin",
    "pytest_timeout",
    "pytester",
    "xdist.plugin",
    "tests.support.fixtures",
)
PYTEST: Final = (
    *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--disable-plugin-autoload"),
    *(argument for plugin in PLUGINS for argument in ("-p", plugin)),
    *("--import-mode=importlib", "--hypothesis-profile", "check", "-m", "not proof"),
)


def tree_without(gone: Collection[str], root: Path) -> Path:
    """A checkout without packages and the tests that need them; what is neither library nor tests is linked."""
    for path in ROOT.iterdir():
        if path.name not in {"layers", "tests", "build", ".git"}:
            (root / path.name).symlink_to(path)
    library = root / "layers" / "epochal" / "python"
    library.mkdir(parents=True)
    copy(library, [f"contrib/{each}" for each in gone])
    (root / "layers" / "vendor").symlink_to(ROOT / "layers" / "vendor")

    def left_out(folder: str, names: list[str]) -> list[str]:
        here = Path(folder)
        return [
            name
            for name in names
            if name == "__pycache__"
            or (here == ROOT / "tests" / "contrib" and name in gone)
            or (fnmatch(name, "test_*.py") and not packages_needed(here / name).isdisjoint(gone))
        ]

    shutil.copytree(ROOT / "tests", root / "tests", ignore=left_out)
    (root / "tests" / "conftest.py").unlink()  # it starts servers
    return root


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("package", [each for each in PACKAGES if each not in LAYOUTS])
def test_without_a_package_the_tests_that_do_not_need_it_pass(package: str, tmp_path: Path) -> None:
    gone = needing(package)
    root = tree_without(gone, tmp_path)
    folders = [f"tests/{folder}" for folder in FOLDERS]
    done = run(
        root / "layers" / "epochal" / "python",
        *PYTEST,
        *folders,
        "--ignore=tests/surfaces/stacks",
        *(f"--deselect=tests/surfaces/{each}" for each in DESCRIBED if "timers" in gone),
        f"--numprocesses={os.cpu_count()}",
        within=root,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
