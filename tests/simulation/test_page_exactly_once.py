"""G2 on pages, enumerated as in `test_exactly_once`; a page is full after one append or two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.model.outcomes import Conflict
from epochal.model.tokens import Token
from epochal.pages import writes
from epochal.testing.stores import memory_streams
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.test_exactly_once import ALL, Append, endured, once_and_twice
from tests.simulation.world import EQUAL, STREAM

CASES = {
    name: replace(append, kind=PAGE_ITEMS) for name, append in ALL.items() if not name.endswith("at once")
}


@once_and_twice
@pytest.mark.parametrize(
    "most", [pytest.param(1, marks=pytest.mark.proof), 2], ids=lambda most: f"{most} appends a page"
)
@pytest.mark.parametrize("append", CASES.values(), ids=CASES)
def test_an_append_is_made_once_or_not_at_all_and_says_which(
    append: Append, most: int, twice: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(left: Token, before: Token | None = None, _joined: int = 0, **_: bool) -> bool:
        return left.appends >= most

    monkeypatch.setattr(writes, "is_full", is_full)
    endured(append, twice=twice)


@pytest.mark.parametrize("etag", ["of another kind", "", "0" * 32, "f" * 32])
def test_a_token_that_is_of_no_page_is_a_conflict(etag: str) -> None:
    streams = memory_streams()
    streams.append(STREAM, [EQUAL])
    assert isinstance(streams.try_append(STREAM, [EQUAL], expected=Token(version=1, etag=etag)), Conflict)
