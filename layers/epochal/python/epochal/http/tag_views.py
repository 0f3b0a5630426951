"""Tags and their entries as answers show them."""

from __future__ import annotations

from typing import Any, Final

from epochal.http import schemas
from epochal.http.components import Members, Shown
from epochal.http.event_fields import TAG
from epochal.http.tagged_requests import GOES_ON, PLACE
from epochal.http.tagged_views import STAMP
from epochal.model.tag_answers import TagCount, TagEntry
from epochal.model.tags import group_of

_COUNTED: Final[Members] = {
    "tag": (TAG, "tag"),
    "events": (schemas.whole("Number of events with the tag, including expired ones."), "events"),
}
_ENTRY: Final[Members] = {
    "id": (schemas.words("Id of the event."), "event_id"),
    "place": (PLACE, "place"),
    "type": (schemas.words("Type of the event."), "event_type"),
    "timestamp": (STAMP, "created_at"),
}
_INDEX: Final = {
    "type": ["integer", "null"],
    "description": "Index among the events of the tag, from 0. Null if another library wrote the event.",
}

TAG_COUNT: Final = Shown("", _COUNTED)
_LATEST: Final = Shown("", _ENTRY, description="Latest event of the tag.")
ENTRY: Final = Shown("", {**_ENTRY, "index": (_INDEX, "index")})

TAG_PAGE: Final = Shown(
    "TagPage",
    {
        "tags": schemas.array(TAG_COUNT.schema, "Tags with their numbers of events."),
        "next": (schemas.or_null(schemas.text(""), GOES_ON), "next"),
    },
)
TAG_SHOWN: Final = Shown(
    "Tag", {**_COUNTED, "group": schemas.words("Text before the first `:`."), "latest": _LATEST.schema}
)
ENTRIES: Final = Shown(
    "TagEntries",
    {
        "entries": schemas.array(ENTRY.schema, "Events in the order of their places."),
        "next": (schemas.or_null(PLACE, GOES_ON), "next"),
    },
)


def build_tag_view(count: TagCount, latest: TagEntry) -> dict[str, Any]:
    """Show a tag with its number of events, its group and its latest event."""
    return TAG_SHOWN(count, group=group_of(count.tag), latest=_LATEST(latest))
