"""Optional packages are optional: without any of them, and those that need it, everything else works as before.

`tests/surfaces/stacks/test_deletion.py` synthesises the default stage without each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.remaining import LIBRARY, PACKAGES, ROOT, copy, imports, needing, offered, run

LOSES: Final = {
    "console": "console",
    "equinox": "tips /tips",
    "event_store_adapter": "aggregate /aggregates",
    "local": "local new",
    "mcp": "mcp",
    "proving": "prove",
    "schemas": "schema",
    "sekiban": "dcb projections /dcb /projections",
    "timers": "timers /timers",
    "transfer": "copy export import sql",
}
"""The commands and paths that are gone without a package."""

LINT: Final = "from importlinter.cli import lint_imports_command; lint_imports_command()"

LAYOUTS: Final = {"equinox": "tips", "event_store_adapter": "journal", "sekiban": "dcb"}


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """What the library has, with all packages."""
    return offered(LIBRARY)


@pytest.mark.slow
def test_no_module_lacks_anything_as_long_as_all_packages_are_there(whole: dict[str, Any]) -> None:
    assert whole["missing"] == {}
    assert whole["layouts"] == [*LAYOUTS.values(), "pages"]
    assert {name for names in LOSES.values() for name in names.split()} <= {*whole["offered"]}


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_without_a_package_and_those_that_need_it_everything_else_is_there(
    package: str, whole: dict[str, Any], tmp_path: Path
) -> None:
    gone = needing(package)
    there = offered(copy(tmp_path, [f"contrib/{each}" for each in gone]))
    assert there["missing"] == {
        left: f"epochal.contrib.{right}"
        for left, right in imports()
        if not left.endswith(".**") and right in gone and left.split(".")[2] not in gone
    }
    assert there["layouts"] == [each for each in whole["layouts"] if each not in map(LAYOUTS.get, gone)]
    lost = {name for each in gone for name in LOSES.get(each, "").split()}
    assert there["offered"] == [each for each in whole["offered"] if each not in lost]


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where import-linter keeps what it has parsed: what one copy has, the next need not parse."""
    return tmp_path_factory.mktemp("parsed")


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_without_a_package_and_the_lines_that_name_it_the_contracts_of_imports_hold(
    package: str, parsed: Path, tmp_path: Path
) -> None:
    gone = needing(package)
    library = copy(tmp_path, [f"contrib/{each}" for each in gone])
    named = re.compile(rf"epochal\.contrib\.({'|'.join(gone)})\b")
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines(keepends=True)
    left = [line for line in lines if not named.search(line)]
    (library / "pyproject.toml").write_text("".join(left), "utf-8")

    done = run(library, "-c", LINT, "--no-logo", "--cache-dir", str(parsed), within=library)

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)
