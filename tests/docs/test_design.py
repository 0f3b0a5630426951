"""docs/design.md: the rooms that it draws are those that import-linter holds apart."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRAWN = (ROOT / "docs" / "design.md").read_text("utf-8").partition("## 4. Rooms")[2].split("```")[1]


def rooms() -> list[str]:
    """The rooms of the library from above to below, by import-linter's contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "rooms")
    return [room for layer in layers for room in re.split(r" [|:] ", layer)]


def test_the_rooms_are_drawn_from_above_to_below() -> None:
    assert re.findall(r"^    (\w+)(?:/|\.py) ", DRAWN, re.MULTILINE) == rooms()


def test_what_is_beside_the_library_is_there() -> None:
    beside = re.findall(r"^([\w/]+)/ ", DRAWN, re.MULTILINE)
    assert {"lambdas", "stacks", "tests", "bench", "examples"} <= set(beside)
    assert [folder for folder in beside if not (ROOT / folder).is_dir()] == []
