"""The guides to tagged events: their code runs, in the order it is written, and options are those there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.store import DcbEvents

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guide"
GUIDE = GUIDES / "dcb-tables.md"


@pytest.mark.parametrize(("page", "least"), [("tagged-events.md", 8), ("dcb-tables.md", 4)])
def test_the_guides_to_tagged_events_run_from_top_to_bottom(page: str, least: int) -> None:
    text = (GUIDES / page).read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= least
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        exec(compile("\n" * first + block[1], page, "exec", dont_inherit=True), names)  # noqa: S102


def test_every_method_that_the_guide_names_for_those_who_come_from_sekiban_exists() -> None:
    homes = {"TagListings": TagListings, "DcbEvents": DcbEvents, "ProjectionStates": ProjectionStates}
    named = re.findall(r"`(TagListings|DcbEvents|ProjectionStates)\.(\w+)`", GUIDE.read_text())
    assert len(named) >= 15
    assert [name for home, name in named if not callable(getattr(homes[home], name, None))] == []
