"""Tagged events over HTTP.

    representation      events, queries, tags and outcomes: JSON to value and back
    operations          each parses its request, performs it and shows the outcome
    schemas, described  the same for the OpenAPI document

They come with two dozen modules of their own, some 6 % of a cold start: a store without tagged events does not pay it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_write: Final = partial(
    Operation, module=f"{__name__}.operations", function="append", table="tags", rare=True
)
_read: Final = partial(
    Operation, module=f"{__name__}.operations", function="replay", table="tags", scope="read", rare=True
)

OPERATIONS: Final = (
    _write("POST", "/dcb/events", "append_tagged", scope="append"),
    _read("POST", "/dcb/query", "query_tagged"),
    _read("GET", "/dcb/events/{id}", "read_tagged"),
    _read("GET", "/dcb/events", "list_tagged"),
    # Walks an index of all events.
    _read("GET", "/dcb/count", "count_tagged", requests_per_second=2),
    # Reads through a megabyte of a table or more, whatever comes of it.
    _read("GET", "/dcb/tags", "list_tags", requests_per_second=10),
    _read("GET", "/dcb/tags/{tag}", "read_tag"),
)
