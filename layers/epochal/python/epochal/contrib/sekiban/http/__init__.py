"""Sekiban's tables over HTTP: tagged events below `/dcb`, by the operations that those in pages have, and states.

tagged          on tagged events, which have more here than elsewhere
operations      on states of projections: each declares what it takes, performs it and shows the outcome
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.deferred import DeferredModule
from epochal.http.operation import Operation
from epochal.http.routes import tagged_operations

if TYPE_CHECKING:
    from epochal.contrib.sekiban.http import operations as _operations
    from epochal.contrib.sekiban.http import tagged as _tagged
else:
    _operations = DeferredModule("epochal.contrib.sekiban.http.operations")
    _tagged = DeferredModule("epochal.contrib.sekiban.http.tagged")

_states: Final = partial(Operation, opened=_operations.opened, table="projection-states", rare=True)
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
        performers=_tagged,
    ),
    _states(
        "GET", "/projections/{name}", _operations.list_projection_states, function="replay", scope="read"
    ),
    _states("GET", _one, _operations.read_projection_state, function="replay", scope="read"),
    _states("PUT", _one, _operations.write_projection_state, function="append", scope="append"),
    _states("DELETE", _one, _operations.delete_projection_state, function="append", scope="manage"),
)
