"""Sekiban's tables over HTTP: tagged events below `/dcb`, by the operations that those in pages have, and states.

tagged          on tagged events, which have more here than elsewhere
operations      on states of projections: each declares what it takes, performs it and shows the outcome
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation
from epochal.http.routes import tagged_operations

_states: Final = partial(Operation, module=f"{__name__}.operations", table="projection-states", rare=True)
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
        module=f"{__name__}.tagged",
    ),
    _states("GET", "/projections/{name}", "list_projection_states", function="replay", scope="read"),
    _states("GET", _one, "read_projection_state", function="replay", scope="read"),
    _states("PUT", _one, "write_projection_state", function="append", scope="append"),
    _states("DELETE", _one, "delete_projection_state", function="append", scope="manage"),
)
