"""Versions of a projection page by page, on AWS's own DynamoDB and in memory."""

from __future__ import annotations

import pytest

from epochal.contrib.sekiban.items import PROJECTION_STATES
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.dynamo.interpreter import interpreter
from epochal.plan.ops import Execute
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

VERSIONS = ["-", "v1", "v1!", "v10", "v2", "~", "ä"]


@pytest.fixture(params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def states(request: pytest.FixtureRequest) -> ProjectionStates:
    """An empty table."""
    name, execute = "states", MemoryTables({"states": PROJECTION_STATES}).execute
    if request.param == "ddbl":
        name, execute = _on_ddbl(request)
    return ProjectionStates(driver=Driver(execute=execute, meter=Meter()), table=name)


def _on_ddbl(request: pytest.FixtureRequest) -> tuple[str, Execute]:
    tables = request.getfixturevalue("ddbl_tables")
    return tables.create(PROJECTION_STATES), interpreter(tables.client)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_join_to_all_versions_in_order_and_to_none_of_another_projection(
    states: ProjectionStates, limit: int
) -> None:
    for name, versions in (("Totals", reversed(VERSIONS)), ("Total", ["v0"]), ("Totals2", ["v3"])):
        for version in versions:
            states.save(name, version, [b"{}"], events_processed=1, last_sortable_id="0" * 30)
    found: list[str] = []
    beyond: str | None = None
    while True:
        page, beyond = states.page("Totals", beyond=beyond, limit=limit)
        assert len(page) <= limit
        found += [each.version for each in page]
        if beyond is None:
            break
    assert found == VERSIONS
