"""Castore: DynamoDB's full export of an event table, in DynamoDB JSON, as a folder.

An export has its items in no order. They are put in that of their streams, stream by stream, in a file that goes with
the run, so the order between streams is lost. The adapter of one table has `STORE#id` for an aggregate's id, which
becomes the stream `STORE-id`; the older one, with a table for each store, needs `--map stream=Store-{aggregateId}`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any, Final

from epochal.also import plain
from epochal.codec import json
from epochal.copying.exports import Open, export_at
from epochal.errors import InvalidInput
from epochal.importing.incoming import FieldMapping
from epochal.importing.sources import Columns, HistorySource

_MAPPING: Final = {
    "stream": "stream",
    "index": "version",
    "type": "type",
    "time": "timestamp",
    "data": "payload",
    "metadata": "metadata",
}


def events(place: str) -> Columns:
    """Every event of an export."""
    with closing(
        sqlite3.connect("")
    ) as file:  # without a name: it grows out of memory when it must, and goes
        file.execute(
            "CREATE TABLE e (id TEXT, version INTEGER, row TEXT, PRIMARY KEY (id, version)) WITHOUT ROWID"
        )
        for item in export_at(place, _buckets).items():
            row = plain(item)
            values = (row.get("aggregateId"), row.get("version"), json.dumps(row).decode())
            if not isinstance(values[0], str) or not isinstance(values[1], int):
                raise InvalidInput(
                    "PLACE", f"{place} is no table of Castore's: an item has no aggregateId or version"
                )
            file.execute("INSERT INTO e VALUES (?, ?, ?)", values)
        for aggregate, version, text in file.execute("SELECT id, version, row FROM e ORDER BY id, version"):
            yield f"{aggregate} {version}", _row(aggregate, json.loads(text))


def _row(aggregate: str, row: dict[str, Any]) -> dict[str, Any]:
    store, separator, own = aggregate.partition("#")
    return {**row, "stream": f"{store}-{own}" if separator else aggregate}


def _buckets(bucket: str) -> Open:
    raise InvalidInput(
        "PLACE", f"must be a folder: fetch the export from {bucket} with `aws s3 cp --recursive`"
    )


SOURCE: Final = HistorySource(columns=events, mapping=FieldMapping(_MAPPING, first=1))
