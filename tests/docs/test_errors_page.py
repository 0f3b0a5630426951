"""The page of errors has a heading for each error of the library and each problem of the API, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from epochal.contrib.event_store_adapter.http.operations import NOT_FOUND
from epochal.contrib.sekiban.http.operations import BEHIND
from epochal.contrib.sekiban.http.operations import NOT_FOUND as STATE_NOT_FOUND
from epochal.errors import EpochalError
from epochal.http.problems import KINDS
from epochal.layout.queries import IdTaken

PROBLEMS = (*KINDS, NOT_FOUND, STATE_NOT_FOUND, BEHIND)

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md").read_text("utf-8")


def headings(section: str) -> dict[str, str]:
    """What stands below each heading of a section."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^### (\S+)\n\n(.*?)(?=\n+###|\Z)", text, re.MULTILINE | re.DOTALL))


def family(kind: type[EpochalError], depth: int = 0) -> Iterator[tuple[int, type[EpochalError]]]:
    yield depth, kind
    for each in kind.__subclasses__():
        if each.__module__ == EpochalError.__module__ or each is IdTaken:
            yield from family(each, depth + 1)


def test_every_error_of_the_library_has_a_heading() -> None:
    assert headings("In the library").keys() == {kind.__name__ for _, kind in family(EpochalError)}


def test_the_tree_shows_who_is_below_whom_and_what_else_one_is() -> None:
    drawn = re.findall(r"^([│ ]*)([├└]── )?(\w+)(?: \((\w+)\))?$", PAGE, re.MULTILINE)
    tree = {name: (len(bars) // 4 + bool(branch), builtin) for bars, branch, name, builtin in drawn}
    for depth, kind in family(EpochalError):
        others = [base.__name__ for base in kind.__bases__ if not issubclass(base, EpochalError)]
        assert tree.pop(kind.__name__) == (depth, "".join(others) if kind is not EpochalError else "")
    assert not tree


def test_every_problem_has_a_heading_that_begins_with_its_status() -> None:
    told = headings("Over HTTP")
    assert told.keys() == {kind.name for kind in PROBLEMS}
    for kind in PROBLEMS:
        assert told[kind.name].startswith(f"Status {kind.status}. ")
