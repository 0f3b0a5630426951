"""The feed over HTTP: partitions, pages, long polls.

representation      partitions, items and pages as JSON
reading             the operations: each parses its request, performs it and shows the outcome
schemas, described  the same for the OpenAPI document
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation

_read: Final = partial(Operation, module=f"{__name__}.reading", function="feed", scope="feed")

OPERATIONS: Final = (
    _read("GET", "/feed", "list_partitions"),
    # Each may wait for `feed_wait_seconds`: with five, these are at most 300 invocations at once, of an account's
    # usual 1,000. A page has thousands of events, so nobody needs many a second.
    _read("GET", "/feed/{partition}", "read_feed", requests_per_second=50),
)
