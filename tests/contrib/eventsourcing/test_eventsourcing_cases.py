"""What the `eventsourcing` library asks of a persistence module, over streams in memory."""

from __future__ import annotations

import pytest

from tests.support.eventsourcing_cases import CASES, on_table

globals().update({case.__name__: case for case in CASES})


@pytest.fixture(autouse=True)
def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    on_table(monkeypatch, ":memory:")
