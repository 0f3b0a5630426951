"""What the tests of a folder need: nothing, CDK, simulated worlds, a browser, a server, or a deployment.

A folder of `tests` is of one kind, and its tests are marked with it: `pytest -m pure` runs what needs nothing. A test
that asks for a server in a folder that has none is an error, so that what is dear cannot hide among what is cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of tests.

    Attributes:
        name: the mark of its tests.
        about: what they need.
        folders: of `tests`, with all that is in them and is of no kind above.
        marks: of the servers that its tests may ask for.
        seconds: what all of its tests in `make test` may take together, one after another, on a core of their own.
    """

    name: str
    about: str
    folders: tuple[str, ...]
    marks: frozenset[str] = frozenset()
    seconds: int


KINDS: Final = (
    Kind(
        name="deployment",
        about="a deployment on the embedded AWS",
        folders=("deploy",),
        marks=frozenset({"ddbl", "embedded", "deploy"}),
        seconds=150,
    ),
    Kind(
        name="server",
        about="DynamoDB Local, the embedded AWS or PostgreSQL",
        folders=("contract", "bench", "faults", "interop", "local", "sql"),
        marks=frozenset({"ddbl", "embedded", "postgres"}),
        seconds=320,
    ),
    Kind(name="clients", about="connections on this machine, and Node", folders=("clients",), seconds=60),
    Kind(name="browser", about="a headless Chromium (Node)", folders=("browser",), seconds=30),
    Kind(name="simulation", about="simulated worlds", folders=("simulation",), seconds=150),
    Kind(name="synthesis", about="CDK (Node)", folders=("surfaces/stacks",), seconds=100),
    Kind(
        name="pure",
        about="nothing",
        folders=(
            "core",
            "surfaces",
            "contrib",
            "layouts",
            "public",
            "frozen",
            "project",
            "doors",
            "docs",
            "examples",
        ),
        seconds=380,
    ),
)
"""The dearest first, which is the order that tests run in: processes that share them end at about the same time."""


@cache
def kind_of(path: Path) -> Kind:
    """Return the kind of a file or folder of tests; raise `LookupError` for a folder without one.

    It is asked of thousands of tests, which are in a few hundred files.
    """
    for kind in KINDS:
        if any(path.is_relative_to(TESTS / folder) for folder in kind.folders):
            return kind
    folder = path.relative_to(TESTS).parts[0]
    raise LookupError(f"tests/{folder} is not among the folders of tests/support/kinds.py")


def mark_by_folder(item: pytest.Item) -> None:
    """Mark a test with the kind of its folder, and refuse fixtures that the folder does not have."""
    kind = kind_of(item.path)
    asked = {mark.name for mark in item.iter_markers()} & {"ddbl", "embedded", "deploy", "postgres"}
    if not asked <= kind.marks:
        raise pytest.UsageError(
            f"{item.nodeid} needs {asked - kind.marks}, and tests/{kind.folders[0]} has none"
        )
    item.add_marker(kind.name)
