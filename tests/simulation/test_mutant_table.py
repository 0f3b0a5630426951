"""The table of deliberate bugs has a row for each, with the rule and the place of today."""

from __future__ import annotations

import difflib

import pytest

from tests.simulation import mutant_table, mutants
from tests.simulation.mutant_table import TABLE, places_of, rule_of, text
from tests.simulation.mutants import Patch, play_all

RENEW = "if that is meant: .venv/bin/python -m tests.simulation.mutant_table"


def one_that_plays_nothing(patch: pytest.MonkeyPatch) -> None:
    """Nor says so."""
    patch.setattr(mutants, "play_all", lambda *_: None)
    patch.setattr(mutants.Mutants, "names", lambda _: [])
    patch.setattr(mutants, "play_all", print)


def test_every_mutant_has_a_row_with_its_rule_and_where_it_is_applied() -> None:
    kept = TABLE.read_text("utf-8").splitlines()
    changed = "\n".join(difflib.unified_diff(kept, text().splitlines(), "kept", "today", n=0, lineterm=""))
    assert not changed, f"{changed}\n\n{RENEW}"


def test_every_row_says_where_its_mutant_is_applied() -> None:
    """In the library, or in what a world takes from it."""
    rows = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) > 300
    places = [row.rpartition(" | ")[2] for row in rows]
    assert [row for row in places if not row.startswith(("`epochal.", "`tests.simulation."))] == []
    assert sum(row.startswith("`epochal.") for row in places) > 300


def test_what_a_mutant_replaces_is_recorded_once_and_put_back() -> None:
    places = places_of(one_that_plays_nothing)
    assert places == ["tests.simulation.mutants.play_all", "tests.simulation.mutants.Mutants.names"]
    assert mutants.play_all is play_all


def test_a_rule_is_the_name_and_the_docstring_of_its_mutant() -> None:
    assert rule_of(one_that_plays_nothing) == "One that plays nothing. Nor says so."


def test_a_mutant_without_a_row_is_noticed(monkeypatch: Patch) -> None:
    monkeypatch.setattr(mutant_table, "mutants", lambda: [one_that_plays_nothing])
    assert "`one_that_plays_nothing`" in text()
    assert text() != TABLE.read_text("utf-8")
