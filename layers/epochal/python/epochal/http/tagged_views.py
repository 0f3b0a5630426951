"""Tagged events, pages of them, and appends as JSON text.

Every event has room in an answer of its own: it is an item of at most 400 KB.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from simplejson import RawJSON

from epochal.http import bodies
from epochal.http.answer_size import Room
from epochal.model.dcb import RecordedTaggedEvent, group_of
from epochal.model.positions import write_position
from epochal.model.tagged_results import BackwardPage, TagCount, TagEntry, TaggedAppended, TaggedPage
from epochal.plan.units import Units
from epochal.store.tag_pages import DatedPage, TagPage


class Listed:
    """Events for an answer, up to a number and as many as it has room for. Called with each in turn."""

    def __init__(self, limit: int, *, positions: bool = False) -> None:
        self._limit = limit
        self._positions = positions
        self._room = Room()
        self.views: list[Any] = []

    def __call__(self, found: RecordedTaggedEvent) -> bool:
        """Take an event, if there is room for it."""
        if len(self.views) >= self._limit:
            return False
        shown = event(found)
        if self._positions and found.position is not None:
            shown["position"] = write_position(found.position)
        view = self._room.fit(shown)
        if view is not None:
            self.views.append(view)
        return view is not None


def appended(made: TaggedAppended, units: Units, *, conditional: bool) -> dict[str, Any]:
    """The answer to an append. Without a condition nothing was read, so there is no position to go on from."""
    return {
        "events": [
            {"id": each.id, "sortableId": each.sortable_id, "timestamp": each.timestamp}
            for each in made.events
        ],
        "position": write_position(made.position) if conditional else None,
        "replayed": made.replayed,
        "capacity": {"read": units.read, "write": units.write},
    }


def page(found: TaggedPage | BackwardPage, listed: Listed) -> dict[str, Any]:
    """A page of a read; the position to append after stands on its last page only, or on each that is read backward."""
    return {
        "events": listed.views,
        "position": None if found.position is None else write_position(found.position),
        "next": None if found.rest is None else found.rest.text(),
    }


def listed(found: DatedPage[RecordedTaggedEvent]) -> dict[str, Any]:
    """A page of a listing of events."""
    return {"events": [event(each) for each in found.items], "next": found.next}


def tags(found: TagPage) -> dict[str, Any]:
    """A page of tags with their numbers of events."""
    return {"tags": [_tag(each) for each in found.tags], "next": found.next}


def tag(found: TagCount, latest: TagEntry) -> dict[str, Any]:
    """A tag and its latest event."""
    return {
        **_tag(found),
        "group": group_of(found.tag),
        "latest": {
            "id": latest.event_id,
            "sortableId": latest.sortable_id,
            "type": latest.event_type,
            "timestamp": latest.created_at,
        },
    }


def event(found: RecordedTaggedEvent) -> dict[str, Any]:
    """An event."""
    return {**fields(found), **_bodies(found)}


def fields(found: RecordedTaggedEvent) -> dict[str, Any]:
    """An event without its bodies."""
    ids = {
        "causationId": found.causation_id,
        "correlationId": found.correlation_id,
        "executedUser": found.executed_user,
    }
    return {
        "id": found.id,
        "sortableId": found.sortable_id,
        "type": found.type,
        "tags": list(found.tags),
        "timestamp": found.timestamp,
        **{name: value for name, value in ids.items() if value is not None},
    }


def _tag(found: TagCount) -> dict[str, Any]:
    return {"tag": found.tag, "events": found.events}


def _bodies(found: RecordedTaggedEvent) -> dict[str, Any]:
    """Data and metadata: text to the byte as it is stored, bytes in base64, nothing as nothing.

    Text that is no JSON, which another library stored, is shown as text.
    """
    shown: dict[str, Any] = {}
    for name, body, foreign in (("data", found.data, "payload"), ("meta", found.meta, "metaText")):
        if isinstance(body, bytes):
            shown |= {f"{name}64": b64encode(body).decode()} if body else {}
        else:
            text = bodies.json_text(body.encode())
            shown |= {foreign: body} if text is None else {name: RawJSON(text)}
    return shown
