"""The library gets no larger, and an operation passes no more files: each figure has a bound that is only lowered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.figures.__main__ import bounds, lowered, table
from tests.unit.figures.measures import measured, source_of

FORWARDING = [
    "return inner(first)",
    "return self.store.load(first, limit=limit)",
    "yield from inner(first)",
    "inner(first, self.table)",
    "'''Says so.'''\n    return self.close()",
]
DOING = [
    "return inner(first + 1)",
    "return inner(first, 1)",
    "found = inner(first)\n    return found",
    "return first",
    "return inner(other)",
]


def test_no_figure_is_above_its_bound() -> None:
    figures = measured()
    sys.stdout.write(f"{table(figures)}\n")
    kept = bounds()
    assert set(figures) == set(kept)
    assert {name: value for name, value in figures.items() if value > kept[name]["most"]} == {}


def test_a_bound_is_lowered_and_never_raised() -> None:
    kept = {"modules": {"most": 10, "aim": 5}, "words": {"most": 10_000}}
    assert lowered(kept, {"modules": 9, "words": 20_000}) == {
        "modules": {"most": 9, "aim": 5},
        "words": {"most": 10_000},
    }


@pytest.mark.parametrize(("bodies", "forwards"), [(FORWARDING, True), (DOING, False)])
def test_a_function_forwards_that_does_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bodies: list[str], forwards: bool
) -> None:
    monkeypatch.setattr("tests.unit.figures.measures.LIBRARY", tmp_path)
    for body in bodies:
        path = tmp_path / "some.py"
        path.write_text(f"def outer(self, first, *, limit):\n    {body}\n")
        assert bool(source_of(path).forwarding) is forwards, body


def test_lines_of_code_are_those_that_are_no_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.unit.figures.measures.LIBRARY", tmp_path)
    path = tmp_path / "some.py"
    path.write_text(
        '"""A module.\n\nOf words.\n"""\n\nimport os\n\nSIZE = 3\n"""What it is."""\n\n\n'
        "# A comment.\ndef f() -> None:\n    '''Says so.'''\n    import sys\n\n    print(os, sys)  # here\n"
    )
    found = source_of(path)
    assert (found.lines, found.inner_imports) == (5, 1)
