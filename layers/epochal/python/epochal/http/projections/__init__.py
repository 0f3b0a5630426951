"""States of projections over HTTP. Like tagged events, they are not part of a cold start.

representation      states: JSON to value and back
operations          each parses its request, performs it and shows the outcome
schemas, described  the same for the OpenAPI document
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_read: Final = partial(Operation, module=f"{__name__}.operations", function="replay", scope="read", rare=True)
_write: Final = partial(Operation, module=f"{__name__}.operations", function="append", rare=True)

OPERATIONS: Final = (
    _read("GET", "/projections/{name}", "list_projection_states"),
    _read("GET", "/projections/{name}/{version}", "read_projection_state"),
    _write("PUT", "/projections/{name}/{version}", "write_projection_state", scope="append"),
    _write("DELETE", "/projections/{name}/{version}", "delete_projection_state", scope="manage"),
)
