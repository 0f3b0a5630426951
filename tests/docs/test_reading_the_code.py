"""READING.md, beside the library: every function that it names is in the file that it links to."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "layers" / "epochal" / "python" / "epochal"
PAGE = (LIBRARY / "READING.md").read_text("utf-8")
LINKS = sorted(set(re.findall(r"\[`([\w.]+)`\]\(([\w/]+\.py)\)", PAGE)))


def names_of(path: Path) -> set[str]:
    """Return the functions, classes and methods of a module, methods with their class."""
    names = set[str]()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)
            }
    return names


@pytest.mark.parametrize(("name", "file"), LINKS)
def test_what_a_walk_names_is_in_the_file_it_links_to(name: str, file: str) -> None:
    path = LIBRARY / file
    assert name in names_of(path) or name in (path.stem, f"{path.stem}.py")


def test_every_walk_has_links() -> None:
    walks = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [len(re.findall(r"\]\(\w+/", walk)) > 3 for walk in walks] == [True] * 5
