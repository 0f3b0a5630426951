"""Aggregates over HTTP.

representation      events, snapshots, locks and outcomes: JSON to value and back
operations          each parses its request, performs it and shows the outcome
schemas, described  the same for the OpenAPI document
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_write: Final = partial(
    Operation, module=f"{__name__}.operations", function="append", table="snapshot", rare=True
)
_read: Final = partial(
    Operation, module=f"{__name__}.operations", function="replay", table="snapshot", scope="read", rare=True
)

OPERATIONS: Final = (
    _write("POST", "/aggregates/{type}/{id}/events", "append_to_aggregate", scope="append"),
    _read("GET", "/aggregates/{type}/{id}", "read_aggregate"),
    _read("GET", "/aggregates/{type}/{id}/events", "read_aggregate_events"),
)
