"""docs/guide/web.md: what it shows of the project is in the project, and its table has the status of each error."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guide" / "web.md").read_text("utf-8")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Terminal().documents("new", "shop", "--kind", "web")
    return tmp_path / "shop"


def test_what_it_shows_of_the_project_is_in_the_project(shop: Path) -> None:
    shown = re.findall(r"^```python\n# in (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(shown) >= 10
    assert TEXT.count("```python") == len(shown)
    for file, code in shown:
        assert code in (shop / file).read_text("utf-8"), f"{file} has not\n{code}"


def test_its_table_has_the_status_of_each_error(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shop))
    status = import_module("status").STATUS
    for name in ("status", "carts"):
        del sys.modules[name]
    table = re.findall(r"^\| `(\w+)`[^|]* \| (\d{3}) \|", TEXT, re.MULTILINE)
    assert table == [(kind.__name__, str(code)) for kind, code in status.items()]


def test_it_installs_what_the_project_requires(shop: Path) -> None:
    (extras,) = re.findall(r"pip install 'epochal\[(.*)\]'", TEXT)
    assert f"[{extras}]" in (shop / "requirements.txt").read_text("utf-8")
