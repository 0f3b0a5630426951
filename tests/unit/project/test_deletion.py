"""Optional packages are optional: without any of them, and those that need it, everything else works as before.

Which of them need which is said in pyproject.toml, in the contract `optional` of import-linter. A line with a pattern
on its left says that the package needs the other; one with a module says that this module alone does.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.remaining import LIBRARY, ROOT, copy, offered

PACKAGES: Final = sorted(path.parent.name for path in LIBRARY.glob("epochal/contrib/*/__init__.py"))

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

LAYOUTS: Final = {"equinox": "tips", "event_store_adapter": "journal", "sekiban": "dcb"}


@cache
def table() -> list[tuple[str, str]]:
    """What imports which optional package: a package, or a module."""
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
    (contract,) = (each for each in contracts if each["id"] == "optional")
    lines = (line.split(" -> ") for line in contract["ignore_imports"])
    return [(left, right.split(".")[2]) for left, right in lines]


def needing(package: str) -> set[str]:
    """A package, and all that need it."""
    found = {left.split(".")[2] for left, right in table() if left.endswith(".**") and right == package}
    return {package}.union(*map(needing, found))


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
        for left, right in table()
        if not left.endswith(".**") and right in gone and left.split(".")[2] not in gone
    }
    assert there["layouts"] == [each for each in whole["layouts"] if each not in map(LAYOUTS.get, gone)]
    lost = {name for each in gone for name in LOSES.get(each, "").split()}
    assert there["offered"] == [each for each in whole["offered"] if each not in lost]
