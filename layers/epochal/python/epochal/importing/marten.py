"""Marten: the tables `mt_events` and `mt_streams` of a PostgreSQL database, in the order of their sequence.

A stream whose id is a UUID is named by its type and that, `Stream-…` where it has no type; other ids are names as they
are. Versions count from 1. Archived events come, too; tombstones, which Marten writes where an append has failed, do
not. Which of the optional columns there are (`headers`, `correlation_id`, `causation_id`) each store chooses, so a row
is read as JSON.
"""

from __future__ import annotations

from typing import Final

from epochal.codec import json
from epochal.importing.databases import parted, selected
from epochal.importing.incoming import FieldMapping
from epochal.importing.sources import Columns, HistorySource

_QUERY: Final = """
SELECT (to_jsonb(e) - 'data')::text AS row, e.data::text AS data,
       CASE WHEN pg_typeof(e.stream_id) = 'uuid'::regtype
            THEN COALESCE(s.type, 'Stream') || '-' || e.stream_id ELSE e.stream_id::text END AS stream
FROM {schema}.mt_events e
LEFT JOIN {schema}.mt_streams s
       ON s.id = e.stream_id AND to_jsonb(s)->>'tenant_id' IS NOT DISTINCT FROM to_jsonb(e)->>'tenant_id'
WHERE e.type <> 'tombstone'
ORDER BY e.seq_id
"""

_MAPPING: Final = {
    "stream": "stream",
    "index": "version",
    "type": "type",
    "time": "timestamp",
    "id": "id",
    "correlation": "correlation_id",
    "causation": "causation_id",
    "metadata": "headers",
    "data": "data",
}


def events(place: str) -> Columns:
    """Every event. PLACE is the database's URL; the schema is `public`, unless `#name` follows."""
    url, schema = parted(place, "public")
    for row in selected(url, _QUERY.format(schema=schema)):
        columns = json.loads(row["row"])
        yield f"sequence {columns['seq_id']}", {**columns, "data": row["data"], "stream": row["stream"]}


SOURCE: Final = HistorySource(columns=events, mapping=FieldMapping(_MAPPING, first=1))
