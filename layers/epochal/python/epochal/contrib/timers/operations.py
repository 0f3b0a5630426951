"""The operations of the HTTP API on timers. A cold start reads them, so what performs them is not imported here."""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_timers: Final = partial(Operation, module="epochal.contrib.timers.http", rare=True)
_of_tags: Final = partial(_timers, table="streams", store="tagged")

OPERATIONS: Final = (
    _of_tags("POST", "/timers/query", "read_tag_timers", function="replay", scope="read"),
    _of_tags("POST", "/timers/cancel", "cancel_tag_timer", function="append", scope="append"),
)
"""HTTP operations on the timers of tags."""


def of_streams(streams: str, table: str) -> tuple[Operation, ...]:
    """Return the HTTP operations on the timers of one store of streams, whose name begins the path."""
    timers = partial(_timers, table=table, store=streams)
    path = f"/{streams}/{{stream}}/timers"
    return (
        timers("GET", path, "read_timers", function="replay", scope="read"),
        timers("DELETE", f"{path}/{{timer}}", "cancel_timer", function="append", scope="append"),
    )
