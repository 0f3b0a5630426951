"""What each operation on tagged events takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.http import problems
from epochal.http.openapi.description import (
    IDEMPOTENCY_KEY,
    MEGABYTES,
    TAKES_JSON,
    Description,
    Perform,
    parameter,
)
from epochal.http.openapi.shapes import text, whole
from epochal.http.tagged import listing, operations
from epochal.http.tagged.schemas import ID, SORTABLE_ID, TAG
from epochal.model.dcb import MAX_TAG_BYTES
from epochal.store.tag_pages import MAX_LIMIT as MAX_TAGS

DESCRIPTIONS: Final[Mapping[Perform, Description]] = {
    operations.append_tagged: Description(
        summary="Append tagged events, unless what they were decided on has changed",
        description="One transaction: all events or none. With `failIf` it is refused if an event that matches lies "
        "beyond `after`; the answer has these events, as many as fit, and the position that has seen them. A repeat "
        "with the same ids, or the same key, is answered like the first, as long as the events are there.",
        parameters=(IDEMPOTENCY_KEY,),
        takes="AppendTagged",
        status=201,
        gives="AppendedTagged",
        fails=(*TAKES_JSON, problems.CONDITION_FAILED),
    ),
    operations.query_tagged: Description(
        summary="Read the events that match a query, and the position to append after",
        description=f"A page ends at its limit, at {MEGABYTES} MB, or after 1,000 events that were looked at, and may "
        "be empty: while `next` is not null, send the same request with it as `from`. All pages are of one moment.",
        takes="QueryTagged",
        gives="TaggedEventPage",
        fails=TAKES_JSON,
    ),
    listing.list_tagged: Description(
        summary="List events, or a tag's, that came after a sortable id",
        description=f"In order of their sortable ids. A page ends at its limit or at {MEGABYTES} MB, and never between "
        "events of one id. A tag's are strongly consistent. All events come from the stream that has them, where the "
        "stage has one (`tagged_everything`); without `tag` it is refused otherwise. Below `/dcb` all events come "
        "through an index that lags by moments; what an append that is under way brings later may sort before what was "
        "listed; and events that have expired are missing.",
        parameters=(
            parameter("query", "tag", {**TAG, "description": "Only events with this tag."}),
            parameter("query", "from", {**SORTABLE_ID, "description": "`next` of the page before."}),
            parameter("query", "limit", whole("Events at most.", 1, MAX_TAGS, default=MAX_TAGS)),
        ),
        gives="ListedEvents",
    ),
    listing.count_tagged: Description(
        summary="Count all events, or those that came after a sortable id",
        description="As the stream of all events says, where the stage has one (`tagged_everything`). Below `/dcb` by "
        "walking an index that lags by moments, which costs what it holds. Of a tag `readTag` tells the number.",
        parameters=(
            parameter("query", "from", {**SORTABLE_ID, "description": "Only events after this sortable id."}),
        ),
        gives="EventCount",
    ),
    operations.read_tagged: Description(
        summary="Read a tagged event by its id",
        description="Strongly consistent. By an id that its writer has chosen; below `/dcb` by any.",
        parameters=(parameter("path", "id", ID, required=True),),
        gives="TaggedEvent",
        fails=(problems.EVENT_NOT_FOUND,),
    ),
    listing.list_tags: Description(
        summary="List tags with their numbers of events",
        description="Those of a group, or of all, by reading through the table of streams. A page may be empty: go by "
        "`next`. Below `/dcb` an index has those of a group, in order; it lags by moments.",
        parameters=(
            parameter(
                "query", "group", text("Only tags that have this before their first `:`.", most=MAX_TAG_BYTES)
            ),
            parameter("query", "tag", {**TAG, "description": "Only this tag, whatever characters it has."}),
            parameter("query", "from", {**TAG, "description": "`next` of the page before."}),
            parameter("query", "limit", whole("Tags at most.", 1, MAX_TAGS, default=MAX_TAGS)),
        ),
        gives="TagPage",
    ),
    listing.read_tag: Description(
        summary="Read how many events a tag has, and which is the latest",
        description="Strongly consistent. A path cannot hold every tag: for one with `/` or `%` list it by `?tag=`.",
        parameters=(parameter("path", "tag", TAG, required=True),),
        gives="Tag",
        fails=(problems.TAG_NOT_FOUND,),
    ),
    listing.list_entries: Description(
        summary="List a tag's entries that came after a sortable id",
        description="Which events the tag has, without their bodies: what is counted is listed. Below `/dcb` also "
        "those that have expired, of which the entry is all that is left. None where no event has the tag.",
        parameters=(
            parameter("path", "tag", TAG, required=True),
            parameter("query", "from", {**SORTABLE_ID, "description": "`next` of the page before."}),
            parameter("query", "limit", whole("Entries at most.", 1, MAX_TAGS, default=MAX_TAGS)),
        ),
        gives="TagEntries",
    ),
}
