"""docs/design.md: the packages that it draws are those that import-linter holds apart."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRAWN = (ROOT / "docs" / "design.md").read_text("utf-8").partition("## 4. Three tiers")[2].split("```")[1]


def packages() -> list[str]:
    """The packages of surfaces and the core from top to bottom, by import-linter's contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "tiers")
    return [package for layer in layers for package in layer.split(" | ") if package != "contrib"]


def test_the_packages_are_drawn_from_top_to_bottom() -> None:
    assert re.findall(r"^    (\w+)(?:/|\.py) ", DRAWN, re.MULTILINE) == packages()


def test_what_is_beside_the_library_is_there() -> None:
    beside = re.findall(r"^([\w/]+)/ ", DRAWN, re.MULTILINE)
    assert {"lambdas", "stacks", "tests", "bench", "examples"} <= set(beside)
    assert [folder for folder in beside if not (ROOT / folder).is_dir()] == []
