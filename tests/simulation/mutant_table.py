"""The table of deliberate bugs: which rule each breaks, and which step of the library it changes.

    python -m tests.simulation.mutant_table      writes MUTANTS.md anew

The name of a mutant says what it makes of a rule; its docstring says more, where it has one. What it changes is
recorded from its patch: it is put in, looked at, and taken out again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest

from tests.simulation.mutants import Mutant

HERE: Final = Path(__file__).parent
TABLE: Final = HERE / "MUTANTS.md"

_HEAD: Final = """# Deliberate bugs

Each takes one rule out of the library, and seeds or an exhaustive search must notice.
`python -m tests.simulation.mutant_table` writes this table.
"""


def mutants_of(path: Path) -> list[Mutant]:
    """Functions of a module that take a patch, and nothing else."""
    module = import_module(f"tests.simulation.{path.stem}")
    return [
        each
        for _, each in inspect.getmembers(module, inspect.isfunction)
        if each.__module__ == module.__name__ and list(inspect.signature(each).parameters) == ["patch"]
    ]


def mutants() -> list[Mutant]:
    """All of them, by module and name."""
    paths = sorted(
        set(HERE.glob("test_*.py")) - {HERE / "test_mutants_apply.py", HERE / "test_mutant_table.py"}
    )
    return [each for path in paths for each in mutants_of(path)]


class Recorder(pytest.MonkeyPatch):
    """A patch that notes what is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def setattr(self, target: Any, name: Any, *value: Any, **options: Any) -> None:
        """Replace an attribute of a module or class, and note it."""
        self.places.append(f"{_name_of(target)}.{name}")
        super().setattr(target, name, *value, **options)


def _name_of(target: Any) -> str:
    if inspect.isclass(target):
        return f"{target.__module__}.{target.__qualname__}"
    name: str = target.__name__
    return name


def places_of(mutant: Mutant) -> list[str]:
    """What a mutant replaces, each once."""
    recorder = Recorder()
    try:
        mutant(recorder)
    finally:
        recorder.undo()
    return list(dict.fromkeys(recorder.places))


def rule_of(mutant: Mutant) -> str:
    """What becomes of the rule, in words."""
    words = mutant.__name__.removesuffix("_").replace("_", " ")
    docstring = " ".join((inspect.getdoc(mutant) or "").split())
    return f"{words[0].upper()}{words[1:]}. {docstring}".strip()


def lines_of(asked: Iterable[Mutant]) -> Iterator[str]:
    """The table, with a section for each module of tests."""
    for module, members in groupby(asked, key=lambda each: each.__module__):
        yield f"\n## `{module.rpartition('.')[2]}`\n"
        yield "| Mutant | What becomes of the rule | Where it is applied |"
        yield "|---|---|---|"
        for mutant in members:
            places = ", ".join(f"`{place}`" for place in places_of(mutant))
            yield f"| `{mutant.__name__}` | {rule_of(mutant).replace('|', '&#124;')} | {places} |"


def text() -> str:
    """The whole file."""
    return _HEAD + "\n".join(lines_of(mutants())) + "\n"


def main() -> None:
    """Write it."""
    TABLE.write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
