"""Aggregates over HTTP.

operations      aggregates as JSON, and the operations: each declares what it takes, performs it and shows the outcome
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
