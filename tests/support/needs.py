"""Which optional packages a file of tests needs: those that it imports, or names in a string, and so do its helpers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"

_PACKAGE: Final = re.compile(r"epochal\.contrib\.(\w+)")
_OURS: Final = re.compile(r"(?:tests|examples|bench|stacks|lambdas)(?:\.\w+)+")


def packages_needed(file: Path) -> set[str]:
    """Return the optional packages that a file below `tests` needs, including its conftests and helpers."""
    waiting = [file, *_conftests(file)]
    read = set[Path]()
    needed = set[str]()
    while waiting:
        path = waiting.pop()
        if path in read:
            continue
        read.add(path)
        for name in _named(path):
            if (package := _PACKAGE.match(name)) is not None:
                needed.add(package[1])
            elif (module := _file_of(name)) is not None:
                waiting.append(module)
    return needed


def _conftests(file: Path) -> Iterator[Path]:
    """Yield the conftests of a file's folders, without that of all tests."""
    folders = [TESTS / folder for folder in file.relative_to(TESTS).parents]
    return (
        folder / "conftest.py" for folder in folders if folder != TESTS and (folder / "conftest.py").exists()
    )


@cache
def _named(file: Path) -> frozenset[str]:
    """Return the modules that a file imports or names in a string, with the names imported from each."""
    names = set[str]()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import(names=imported):
                names |= {each.name for each in imported}
            case ast.ImportFrom(module=str(module), names=imported):
                names |= {module, *(f"{module}.{each.name}" for each in imported)}
            case ast.Constant(value=str(text)) if _PACKAGE.match(text) or _OURS.match(text):
                names.add(text.partition(":")[0])
            case _:
                pass
    return frozenset(names)


def _file_of(name: str) -> Path | None:
    """Return the file of a module of tests, examples, benchmarks or stacks; None for other modules."""
    if _OURS.fullmatch(name) is None:
        return None
    place = ROOT.joinpath(*name.split("."))
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.exists()), None)
