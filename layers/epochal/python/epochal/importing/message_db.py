"""Message DB: the table `messages` of a PostgreSQL database, in the order of its global positions.

Names of streams are kept, also those of commands and of consumers' positions. Times are stored without a zone, and are
UTC. The whole of metadata is kept.
"""

from __future__ import annotations

from typing import Final

from epochal.importing.databases import parted, selected
from epochal.importing.incoming import FieldMapping
from epochal.importing.sources import Columns, HistorySource

_QUERY: Final = """
SELECT id::text AS id, stream_name AS stream, position AS index, global_position, type, time::text AS time,
       data::text AS data, metadata::text AS metadata
FROM {schema}.messages ORDER BY global_position
"""


def messages(place: str) -> Columns:
    """Every message. PLACE is the database's URL; the schema is `message_store`, unless `#name` follows."""
    url, schema = parted(place, "message_store")
    for row in selected(url, _QUERY.format(schema=schema)):
        yield f"global position {row['global_position']}", row


SOURCE: Final = HistorySource(columns=messages, mapping=FieldMapping())
