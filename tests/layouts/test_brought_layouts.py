"""A layout that another package brings by an entry point is loaded where the environment names it, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from epochal.errors import InvalidInput
from epochal.layout.registry import layout_names, source_of
from epochal.plugins import BASE_DISTANCE, GROUP, PLUGINS, layouts
from epochal.settings import Settings
from tests.layouts.test_strangers_streams import ENTRY

CARDS = "tests.layouts.test_strangers_streams:ENTRY"
SAME_BASE = replace(ENTRY, name="same-base", base=0)
BETWEEN = replace(ENTRY, name="between", base=7 * BASE_DISTANCE + 1)
SAME_NAME = replace(ENTRY, name="pages")
NO_LAYOUT = "cards"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that brings some."""
    metadata = tmp_path / "strangers-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
    brought = {
        "cards": CARDS,
        "same-base": f"{__name__}:SAME_BASE",
        "between": f"{__name__}:BETWEEN",
        "pages": f"{__name__}:SAME_NAME",
        "other": CARDS,
        "no-layout": f"{__name__}:NO_LAYOUT",
    }
    lines = [f"{name} = {where}" for name, where in brought.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_one_that_is_named_is_a_layout_like_those_that_ship(
    installed: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PLUGINS, "cards")
    assert layout_names() == ("tips", "journal", "dcb", "pages", "cards")
    assert source_of(ENTRY.base) == "cards"
    assert Settings.from_environment({"EPOCHAL_CARDS_TABLE": "c"}).table("cards") == "c"


def test_one_that_nobody_names_is_none(installed: Path) -> None:
    assert ENTRY not in layouts()


@pytest.mark.parametrize(
    ("named", "rule"),
    [
        ("shelves", "which 0 packages provide"),
        ("cards,", "names , which 0 packages provide"),
        ("same-base", "must be unique"),
        ("between", "must be unique"),
        ("pages", "must be unique"),
        ("cards,cards", "must be unique"),
        ("other", "is not a layout of that name"),
        ("no-layout", "is not a layout of that name"),
    ],
)
def test_what_is_named_and_is_no_layout_of_its_own_is_refused(
    named: str,
    rule: str,
    installed: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PLUGINS, named)
    with pytest.raises(InvalidInput, match=rule) as refused:
        layouts()
    assert refused.value.field == PLUGINS


SHELF = """
from epochal.layout.port import Port
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plugins import Layout, Plugin

BOOKS = TableSpec(kind="books", partition=KeyAttribute(name="book", type="S"), stream=True)
PORT = Port(
    tables=(BOOKS,), kind_of=lambda _: None, access=lambda _: {}, heads=BOOKS, source=lambda _: None
)
ENTRY = Layout(
    name="shelf",
    base=80_000,
    table="books_table",
    partitions="books_partitions",
    of=Plugin(port=lambda: PORT, open_streams=lambda *_: None, streams="shelves"),
)
"""


@pytest.mark.slow
def test_the_command_line_and_the_api_have_its_table_and_its_streams(installed: Path) -> None:
    (installed / "shelf.py").write_text(SHELF)
    entries = installed / "strangers-1.0.dist-info" / "entry_points.txt"
    entries.write_text(f"{entries.read_text()}shelf = shelf:ENTRY\n")
    paths = os.pathsep.join([str(installed), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    listed = "from epochal.http.routes import operations; print([(e.table, e.key) for e in operations()])"
    for asked, words in (
        (("-m", "epochal.cli.main", "--help"), ("--books-table", "streams that are stored as shelves.")),
        (("-c", listed), ("('books', 'GET /shelves/{stream}')",)),
    ):
        for named, has in (("shelf", True), ("", False)):
            answered = subprocess.run(
                [sys.executable, *asked],
                env={**environment, PLUGINS: named},
                capture_output=True,
                text=True,
                check=False,
            )
            assert answered.returncode == 0, answered.stderr
            assert all((each in answered.stdout) is has for each in words)
