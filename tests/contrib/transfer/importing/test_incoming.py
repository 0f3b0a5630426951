"""The row of a source is an event, or why there can be none."""

from __future__ import annotations

import pytest

from epochal.contrib.transfer.importing.field_mapping import FieldMapping
from epochal.contrib.transfer.importing.incoming import Incoming, Misfit

ROW = {"stream": "Cart-1", "type": "Added", "time": "2020-01-02T03:04:05Z", "data": "{}"}
ID = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("cells", "renamed"),
    [({}, False), ({"id": ID}, False), ({"tags": "a"}, False), ({"tags": "a", "id": ID}, True)],
)
def test_an_event_is_renamed_where_it_has_tags_and_an_id_of_its_own(
    cells: dict[str, str], renamed: bool
) -> None:
    found = FieldMapping().incoming({**ROW, **cells}, "line 2")
    assert isinstance(found, Incoming)
    assert found.renamed is renamed
    assert found.event.id == (None if renamed else cells.get("id"))


@pytest.mark.parametrize("first", [1, 5])
def test_an_index_below_that_of_the_sources_first_event_is_refused(first: int) -> None:
    mapping = FieldMapping(first=first)
    found = mapping.incoming({**ROW, "index": first}, "line 2")
    assert isinstance(found, Incoming)
    assert found.index == 0
    for index in (0, first - 1, str(first - 1), -1):
        refused = mapping.incoming({**ROW, "index": index}, "line 2")
        assert isinstance(refused, Misfit)
        assert refused.rule.startswith(f"index: must be from {first} to ")
