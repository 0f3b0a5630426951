"""The Python library `eventsourcing`: the table of an application's events in SQLite or PostgreSQL, in the order of its
notifications.

A stream is an aggregate, `Application-originator_id`; a type is a topic; a body is the state as the library's mapper
has it. When an event happened its state says, so states that are compressed or encrypted have no time.
"""

from __future__ import annotations

import json as plain_json
import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from epochal.importing.databases import parted, selected
from epochal.importing.incoming import FieldMapping
from epochal.importing.sources import Columns, HistorySource

_HEX: Final = re.compile(r"[0-9a-f]{32}")


def stored(place: str) -> Columns:
    """Every event. PLACE is the database's URL, and `#` with the application's name."""
    url, application = parted(place)
    number, table = "notification_id", f"{application.lower()}_events"
    if url.startswith("sqlite"):
        number, table = "rowid", "stored_events"
    columns = f"{number} AS number, originator_id, originator_version, topic, state"
    for row in selected(url, f"SELECT {columns} FROM {table} ORDER BY {number}"):  # noqa: S608  of letters and digits
        state = bytes(row["state"]) if isinstance(row["state"], bytes | memoryview) else row["state"]
        yield (
            f"notification {row['number']}",
            {
                "stream": f"{application}-{_id(row['originator_id'])}",
                "index": row["originator_version"],
                "type": row["topic"],
                "time": _time(state),
                "data": state,
            },
        )


def _id(given: object) -> str:
    """SQLite has UUIDs without hyphens, PostgreSQL with them."""
    text = str(given)
    return str(UUID(text)) if _HEX.fullmatch(text) else text


def _time(state: bytes | str) -> Any:
    """What the library's transcoder wrote as `timestamp`, if it can be read."""
    try:
        found = plain_json.loads(state)["timestamp"]
    except (ValueError, TypeError, KeyError):
        return None
    return found.get("_data_") if isinstance(found, Mapping) else found


SOURCE: Final = HistorySource(columns=stored, mapping=FieldMapping(first=1))
