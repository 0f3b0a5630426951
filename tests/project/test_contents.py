"""The table of contents in a package's docstring names modules that the package has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.named_modules import LIBRARY

ROW = re.compile(r" *([a-z_0-9]+(?:, [a-z_0-9]+)*)(?:  +\S.*)")
"""Names of modules, and after two spaces what they have."""

PACKAGES = {
    path.parent.relative_to(LIBRARY): ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    for path in sorted(LIBRARY.rglob("__init__.py"))
}


def contents_of(docstring: str) -> list[str]:
    """The modules that a docstring lists."""
    rows = map(ROW.fullmatch, docstring.splitlines())
    return [name for row in rows if row is not None for name in row[1].split(", ")]


LISTING = {
    package: contents for package, docstring in PACKAGES.items() if (contents := contents_of(docstring))
}


@pytest.mark.parametrize("package", LISTING, ids=str)
def test_every_module_that_a_package_lists_is_there(package: Path) -> None:
    folder = LIBRARY / package
    there = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert [name for name in LISTING[package] if name not in there] == []


def test_packages_of_the_core_list_their_modules() -> None:
    listed = {str(package.relative_to("epochal")) for package in LISTING if len(package.parts) == 2}
    assert listed >= {
        "model",
        "plan",
        "codec",
        "layout",
        "pages",
        "store",
        "read_models",
        "dynamo",
        "testing",
    }


def test_rows_are_read_and_prose_is_not() -> None:
    assert contents_of("Stores.\n\n    streams       by name\n    bulk, joined  many\n\nMore text.") == [
        "streams",
        "bulk",
        "joined",
    ]
