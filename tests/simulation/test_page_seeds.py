"""The seeds of a stream (`test_seeds`), played on pages: small ones, so that a stream has many."""

from __future__ import annotations

import pytest

from epochal.layout.pages import writes
from epochal.model.versions import Token
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.seeds import ranges
from tests.simulation.stream_simulation import replay

SIZE, COUNT = 100, 4


@pytest.fixture(autouse=True, params=[1, 2, 5], ids=lambda most: f"{most} appends a page")
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any rule of when a page is full is safe."""

    def is_full(left: Token, before: Token | None = None) -> bool:
        return left.appends >= request.param

    monkeypatch.setattr(writes, "is_full", is_full)


@ranges(SIZE, COUNT)
def test_whatever_happens_appends_are_made_once_reads_are_true_and_the_stream_is_whole(seeds: range) -> None:
    for seed in seeds:
        replay(seed, PAGE_ITEMS)
