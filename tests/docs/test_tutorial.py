"""The tutorial quotes what is in the project. tests/local/test_first_hour.py follows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guide" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n# (in|to) (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Terminal().documents("new", "shop")
    return tmp_path / "shop"


def test_what_it_shows_of_the_project_is_in_the_project(shop: Path) -> None:
    shown = [(file, code) for kind, file, code in BLOCKS if kind == "in"]
    assert len(shown) == 4
    for file, code in shown:
        assert code in (shop / file).read_text(), f"{file} has not\n{code}"


def test_it_installs_what_its_commands_need_as_other_pages_and_the_project_do(shop: Path) -> None:
    pages = ["README.md", "docs/guide/local.md", "docs/guide/tutorial.md"]
    places = [*(ROOT / page for page in pages), shop / "requirements.txt"]
    lists = {extras for place in places for extras in re.findall(r"\[(cdk,.*pytest)\]", place.read_text())}
    assert lists == {"cdk,cli,console,lambda,local,pytest"}
    assert "`epochal console`" in TEXT
