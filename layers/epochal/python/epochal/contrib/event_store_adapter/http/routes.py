"""The operations of the HTTP API on aggregates. A cold start reads them, so what performs them is deferred."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.deferred import DeferredModule
from epochal.http.operation import Operation

if TYPE_CHECKING:
    from epochal.contrib.event_store_adapter.http import operations
else:
    operations = DeferredModule("epochal.contrib.event_store_adapter.http.operations")

_write: Final = partial(Operation, opened=operations.opened, function="append", table="snapshot", rare=True)
_read: Final = partial(
    Operation, opened=operations.opened, function="replay", table="snapshot", scope="read", rare=True
)

OPERATIONS: Final = (
    _write("POST", "/aggregates/{type}/{id}/events", operations.append_to_aggregate, scope="append"),
    _read("GET", "/aggregates/{type}/{id}", operations.read_aggregate),
    _read("GET", "/aggregates/{type}/{id}/events", operations.read_aggregate_events),
)
