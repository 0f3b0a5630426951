"""Streams over HTTP: the operations on them, and on bodies too large for a request.

The same operations are there for streams as pages, below `/streams`, and for those as tips, below `/tips`.

representation      events, unfolds, states and outcomes: JSON to value and back
writing, reading    the operations: each parses its request, performs it and shows the outcome
several             the append to several streams, which only pages have
schemas, described  the same for the OpenAPI document
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_write: Final = partial(Operation, module=f"{__name__}.writing", function="append")
_read: Final = partial(Operation, module=f"{__name__}.reading", function="replay", scope="read")


def _on(streams: str, *, rare: bool = False) -> tuple[Operation, ...]:
    """The operations on the streams of one store, whose path begins with its name."""
    write = partial(_write, table=streams, store=streams, rare=rare)
    read = partial(_read, table=streams, store=streams, rare=rare)
    one = f"/{streams}/{{stream}}"
    return (
        write("POST", f"{one}/events", "append_events", scope="append"),
        write("POST", f"{one}/prune", "prune_stream", scope="manage"),
        write("DELETE", one, "delete_stream", scope="manage"),
        read("GET", one, "read_state"),
        read("GET", f"{one}/events", "read_events"),
    )


OPERATIONS: Final = (
    *_on("streams"),
    Operation(
        "POST",
        "/streams",
        "append_all",
        module=f"{__name__}.several",
        function="append",
        scope="append",
        table="streams",
        store="streams",
        rare=True,
    ),
    *_on("tips", rare=True),
    # Each lets its caller store `max_upload_bytes` for a day or two.
    _write("POST", "/bodies", "upload_body", scope="append", requests_per_second=10, store="streams"),
)
