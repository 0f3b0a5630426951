"""The operations of the HTTP API on Sekiban's tables. A cold start reads them, so what performs them is deferred."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.deferred import DeferredModule
from epochal.http.operation import Operation
from epochal.http.routes import tagged_operations

if TYPE_CHECKING:
    from epochal.contrib.sekiban.http import operations, tagged
else:
    operations = DeferredModule("epochal.contrib.sekiban.http.operations")
    tagged = DeferredModule("epochal.contrib.sekiban.http.tagged")

_states: Final = partial(Operation, opened=operations.opened, table="projection-states", rare=True)
_one: Final = "/projections/{name}/{version}"

OPERATIONS: Final = (
    *tagged_operations(
        "dcb",
        "tags",
        events="/dcb/events",
        query="/dcb/query",
        count="/dcb/count",
        tags="/dcb/tags",
        # Walks an index of all events.
        counts=2,
        performers=tagged,
    ),
    _states("GET", "/projections/{name}", operations.list_projection_states, function="replay", scope="read"),
    _states("GET", _one, operations.read_projection_state, function="replay", scope="read"),
    _states("PUT", _one, operations.write_projection_state, function="append", scope="append"),
    _states("DELETE", _one, operations.delete_projection_state, function="append", scope="manage"),
)
