"""The map of each package, in its description, names every module of the package, and nothing else.

An optional package is described by its README; where it has a map as well, that is complete too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.named_modules import LIBRARY

EPOCHAL = LIBRARY / "epochal"

ENTRY = re.compile(r"^ *((?:[a-z]\w*(?:/\w+)?(?:, )?)+)(?: {2,}|$)", re.MULTILINE)
"""A line of a map: names of modules, and what they are for, which may be on the next line."""

LINK = re.compile(r"\]\((\w+)(?:\.py|/__init__\.py|/README\.md)\)")
PACKAGES = sorted(path.parent for path in EPOCHAL.rglob("__init__.py") if path.parent != EPOCHAL)


def modules_of(package: Path) -> set[str]:
    """Return the names of a package's modules, and of the packages in it."""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in package.glob("*/__init__.py")}


def entries_of(text: str) -> set[str]:
    """Return the names in a package's description that may be entries of a map."""
    return {name for match in ENTRY.finditer(text) for name in match[1].split(", ") if name}


def named_in_map(package: Path) -> set[str]:
    """Return what the map of a package names: modules, packages, and modules of these as `package/module`."""
    description = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    return entries_of(description)


def needs_map(package: Path) -> bool:
    """Whether a package must have a map: it has several modules, and is not optional."""
    return EPOCHAL / "contrib" not in (package, *package.parents) and len(modules_of(package)) > 1


def unnamed(package: Path) -> set[str]:
    """Return the modules of a package that neither its map nor that of the package around it names."""
    around = {
        name.partition("/")[2] for name in named_in_map(package.parent) if name.startswith(package.name)
    }
    named = named_in_map(package)
    return modules_of(package) - {name.partition("/")[0] for name in named} - around


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(EPOCHAL).as_posix())
def test_the_map_of_a_package_names_all_of_its_modules(package: Path) -> None:
    has_map = bool(named_in_map(package) & modules_of(package))

    assert unnamed(package) == set() or not (needs_map(package) or has_map)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(EPOCHAL).as_posix())
def test_a_map_names_only_what_is_there(package: Path) -> None:
    there = modules_of(package) | {
        f"{inner.parent.name}/{module}"
        for inner in package.glob("*/__init__.py")
        for module in modules_of(inner.parent)
    }

    assert named_in_map(package) <= there


def test_the_map_of_the_library_names_all_of_its_modules() -> None:
    named = set(LINK.findall((EPOCHAL / "README.md").read_text("utf-8")))

    assert modules_of(EPOCHAL) - {"contrib"} <= named


def test_entries_of_a_map_are_told_from_prose() -> None:
    text = "A package. Prose goes on\nhere, and ends.\n\nitems, pages  what is stored\n    reading\n  more, on it"

    assert entries_of(text) == {"items", "pages", "reading"}
