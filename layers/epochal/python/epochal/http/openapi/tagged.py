"""What each operation on tagged events takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.http import problems
from epochal.http.openapi.operation import MEGABYTES, TAKES_JSON, Operation, parameter
from epochal.http.openapi.tagged_schemas import ID

TAGGED_OPERATIONS: Final[Mapping[str, Operation]] = {
    "appendTagged": Operation(
        summary="Append tagged events, unless what they were decided on has changed",
        description="One transaction: all events or none. With `failIf` it is refused if an event that matches lies "
        "beyond `after`; the answer has these events, as many as fit, and the position that has seen them. A repeat "
        "with the same ids is answered like the first.",
        takes="AppendTagged",
        status=201,
        gives="AppendedTagged",
        fails=(*TAKES_JSON, problems.CONDITION_FAILED),
    ),
    "queryTagged": Operation(
        summary="Read the events that match a query, and the position to append after",
        description=f"A page ends at its limit, at {MEGABYTES} MB, or after 1,000 events that were looked at, and may "
        "be empty: while `next` is not null, send the same request with it as `from`. All pages are of one moment.",
        takes="QueryTagged",
        gives="TaggedEventPage",
        fails=TAKES_JSON,
    ),
    "readTagged": Operation(
        summary="Read a tagged event by its id",
        description="Strongly consistent.",
        parameters=(parameter("path", "id", ID, required=True),),
        gives="TaggedEvent",
        fails=(problems.EVENT_NOT_FOUND,),
    ),
}
