"""Columns whose cells look like more than text are named."""

from __future__ import annotations

import pytest

from epochal.codec import json
from epochal.contrib.transfer.importing.incoming import Incoming
from epochal.contrib.transfer.importing.text_columns import TextColumns
from epochal.model.events import Event


@pytest.mark.parametrize(
    ("cells", "looks"),
    [
        (["1", "2.5", "", "-3e9"], "numbers"),
        (["1", "2", "two"], None),
        (["two", "1", "2"], None),
        (["007", "1"], None),
        (["yes", "N", ""], "booleans"),
        (["yes", "1"], None),
        (["31/12/2020", "1/2/21"], "dates that are not ISO 8601"),
        (["2020-12-31"], None),
        (["", ""], None),
    ],
)
def test_a_column_looks_like_what_all_its_cells_look_like(cells: list[str], looks: str | None) -> None:
    columns = TextColumns()
    rows = [
        Incoming(at="", stream="A-1", index=None, event=Event(type="E", data=json.dumps({"cell": each})))
        for each in cells
    ]
    assert list(columns.watched(rows)) == rows
    assert columns.warnings == ({} if looks is None else {"cell": looks})
