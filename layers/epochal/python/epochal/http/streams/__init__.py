"""Streams over HTTP: the operations on them, and on bodies too large for a request.

representation      events, unfolds, states and outcomes: JSON to value and back
writing, reading    the operations: each parses its request, performs it and shows the outcome
schemas, described  the same for the OpenAPI document
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_write: Final = partial(Operation, module=f"{__name__}.writing", function="append", table="tips")
_read: Final = partial(Operation, module=f"{__name__}.reading", function="replay", scope="read", table="tips")

OPERATIONS: Final = (
    _write("POST", "/streams/{stream}/events", "append_events", scope="append"),
    # Each lets its caller store `max_upload_bytes` for a day or two.
    _write("POST", "/bodies", "upload_body", scope="append", table="", requests_per_second=10),
    _write("POST", "/streams/{stream}/prune", "prune_stream", scope="manage"),
    _write("DELETE", "/streams/{stream}", "delete_stream", scope="manage"),
    _read("GET", "/streams/{stream}", "read_state"),
    _read("GET", "/streams/{stream}/events", "read_events"),
)
