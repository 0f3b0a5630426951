"""What the `eventsourcing` library asks of a persistence module, over streams in a table."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.pages.items import STREAMS
from tests.support.eventsourcing_cases import CASES, on_table
from tests.support.tables import Tables


def _in_the_proof(case: type) -> type:
    """The case with what it does only in order to tell how long it took left to `make proof`."""
    if not hasattr(case, "test_performance"):
        return case

    @pytest.mark.proof
    def test_performance(self: Any) -> None:
        case.test_performance(self)  # type: ignore[attr-defined]

    return type(case.__name__, (case,), {"test_performance": test_performance})


# That of applications is about what they keep in memory: 100 threads race for one aggregate, minutes on a server.
globals().update({case.__name__: _in_the_proof(case) for case in CASES if case.__name__ != "ApplicationCase"})


@pytest.fixture(autouse=True)
def _in_a_table(monkeypatch: pytest.MonkeyPatch, ddbl_tables: Tables) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", ddbl_tables.endpoint.url)
    on_table(monkeypatch, ddbl_tables.create(STREAMS))
