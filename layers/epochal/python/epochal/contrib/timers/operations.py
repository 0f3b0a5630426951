"""The operations of the HTTP API on timers. A cold start reads them, so what performs them is deferred."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.deferred import DeferredModule
from epochal.http.operation import Operation

if TYPE_CHECKING:
    from epochal.contrib.timers import http
else:
    http = DeferredModule("epochal.contrib.timers.http")

_timers: Final = partial(Operation, opened=http.opened, rare=True)
_of_tags: Final = partial(_timers, table="streams", store="tagged")

OPERATIONS: Final = (
    _of_tags("POST", "/timers/query", http.read_tag_timers, function="replay", scope="read"),
    _of_tags("POST", "/timers/cancel", http.cancel_tag_timer, function="append", scope="append"),
)
"""HTTP operations on the timers of tags."""


def of_streams(streams: str, table: str) -> tuple[Operation, ...]:
    """Return the HTTP operations that read and cancel timers of the streams of one store."""
    timers = partial(_timers, table=table, store=streams)
    path = f"/{streams}/{{stream}}/timers"
    return (
        timers("GET", path, http.read_timers, function="replay", scope="read"),
        timers("DELETE", f"{path}/{{timer}}", http.cancel_timer, function="append", scope="append"),
    )
