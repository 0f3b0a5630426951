"""The seeds of a stream (`test_seeds`), and of one that loses its beginning (`test_hole_seeds`), played on pages: small
ones, so that a stream has many.
"""

from __future__ import annotations

import pytest

from epochal.layout.pages import writes
from epochal.model.versions import Token
from tests.simulation import hole_simulation, stream_simulation
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.seeds import ranges

SIZE, COUNT = 100, 16


@pytest.fixture(autouse=True, params=[1, 2, 5], ids=lambda most: f"{most} appends a page")
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any rule of when a page is full is safe, and of when unfolds are left behind."""

    def is_full(left: Token, before: Token | None = None, _joined: int = 0, **_: bool) -> bool:
        return left.appends >= request.param

    monkeypatch.setattr(writes, "is_full", is_full)
    if request.param < 5:
        monkeypatch.setattr(writes, "REFER_FROM", 1)


@ranges(SIZE, COUNT)
def test_whatever_happens_appends_are_made_once_reads_are_true_and_the_stream_is_whole(seeds: range) -> None:
    for seed in seeds:
        stream_simulation.replay(seed, PAGE_ITEMS)


@ranges(SIZE, COUNT)
def test_whatever_is_pruned_a_reader_gets_what_is_there_without_holes_or_is_told_of_them(
    seeds: range,
) -> None:
    for seed in seeds:
        hole_simulation.replay(seed, PAGE_ITEMS)
