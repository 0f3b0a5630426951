"""The seeds of a stream (`test_seeds`), and of one that loses its beginning (`test_hole_seeds`), played on pages: small
ones, so that a stream has many.
"""

from __future__ import annotations

import pytest

from epochal.model.events import Unfold
from epochal.model.tokens import Token
from epochal.pages import writes
from epochal.pages.items import Page, read_page
from tests.simulation import hole_simulation, stream_simulation
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.seeds import ranges
from tests.simulation.stream_simulation import OneStream
from tests.simulation.world import World

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
        nothing_outlives_its_use(stream_simulation.replay(seed, PAGE_ITEMS))


@ranges(SIZE, COUNT)
def test_whatever_is_pruned_a_reader_gets_what_is_there_without_holes_or_is_told_of_them(
    seeds: range,
) -> None:
    for seed in seeds:
        hole_simulation.replay(seed, PAGE_ITEMS)


def nothing_outlives_its_use(played: OneStream) -> None:
    """Once all is pruned, no page has unfolds but those of the stream: nobody may keep what was replaced."""
    world = played.world.copy()
    judge, stream = world.store("judge"), world.stream
    head = judge.head(stream)
    if head is None:
        return
    if not head.deleted:
        judge.prune(stream, head.version)
        judge.append(stream, [], unfolds=[Unfold(type="Other")])
        judge.prune(stream, head.version)
        assert [page.index for page in pages(world) if page.unfolds] == [pages(world)[-1].index], (
            f"seed {played.seed}: unfolds that were replaced are left by a prune"
        )
    judge.delete(stream)
    judge.delete(stream)
    assert not any(page.unfolds for page in pages(world)), f"seed {played.seed}: unfolds outlive the stream"


def pages(world: World) -> list[Page]:
    """In their order."""
    found = [read_page(item) for item in world.items()]
    return sorted(found, key=lambda page: page.index)
