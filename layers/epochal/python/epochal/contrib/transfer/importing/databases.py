"""Event stores of others, read by SQL, by a client or from an export: `eventsourcing`, Message DB, Marten, Castore,
KurrentDB.
"""

from __future__ import annotations

import json as plain_json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final
from uuid import UUID

from epochal.care.table_exports import Open, export_at
from epochal.codec import json
from epochal.contrib.transfer.importing.field_mapping import FieldMapping
from epochal.contrib.transfer.importing.incoming import Misfit
from epochal.contrib.transfer.importing.sources import Columns, HistorySource, objects
from epochal.errors import InvalidInput, brought_by
from epochal.lazy_dataclasses import asdict
from epochal.store.also import plain

# Databases of other stores: one query, read row by row with a server-side cursor, so that no table is held in memory.


def parted(place: str, default: str = "") -> tuple[str, str]:
    """Split a place into the URL of a database and the name that follows `#`, or else `default`.

    Args:
        place: URL, or URL and part
        default: part where the place names none

    Raises:
        InvalidInput: there is no part, or it has other characters than letters, digits and `_`.
    """
    url, _, part = place.partition("#")
    if not (part := part or default).replace("_", "").isalnum():
        raise InvalidInput("PLACE", "must be URL#part, where part has only letters, digits and _")
    return url, part


def selected(url: str, query: str) -> Iterator[Mapping[str, Any]]:
    """Run a SQL query, and yield its rows by column name, all from one snapshot of the database.

    Raises:
        InvalidInput: the database cannot be reached, or has no such tables.
        ModuleNotFoundError: sqlalchemy is not installed; the error says what to install.
    """
    with brought_by("sql", "sources in SQL databases", "sqlalchemy"):
        from sqlalchemy import create_engine, text  # noqa: PLC0415  an extra
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  likewise
        from sqlalchemy.pool import NullPool  # noqa: PLC0415  likewise
    # psycopg 3 reads rows of PostgreSQL without holding all of them in memory.
    if url.startswith(("postgres://", "postgresql://")):
        url = f"postgresql+psycopg://{url.partition('://')[2]}"
    try:
        engine = create_engine(url, poolclass=NullPool)  # connections are closed after use
        with engine.connect() as connection:
            result = connection.execution_options(yield_per=1_000).execute(text(query))
            for row in result.mappings():
                yield dict(row)
    except SQLAlchemyError as error:
        words = str(getattr(error, "orig", None) or error).splitlines()
        raise InvalidInput("PLACE", f"cannot be read: {words[0] if words else error}") from error


# The Python library `eventsourcing`: the table of an application's events in SQLite or PostgreSQL, in the order of its
# notifications.
#
# A stream is an aggregate, `Application-originator_id`; a type is a topic; a body is the state as the library's mapper
# writes it. The time of an event is in its state, so compressed or encrypted states have none.

_HEX: Final = re.compile(r"[0-9a-f]{32}")


def stored(place: str) -> Columns:
    """Yield place and fields of every event of an application of the Python library `eventsourcing`.

    Args:
        place: URL of the database, `#` and the name of the application
    """
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
    """Return an aggregate's id with hyphens, if it is a UUID: SQLite has them without."""
    text = str(given)
    return str(UUID(text)) if _HEX.fullmatch(text) else text


def _time(state: bytes | str) -> Any:
    """Return the timestamp in a state that the library's transcoder wrote; None if it cannot be read."""
    try:
        timestamp = plain_json.loads(state)["timestamp"]
    except (ValueError, TypeError, KeyError):
        return None
    return timestamp.get("_data_") if isinstance(timestamp, Mapping) else timestamp


EVENTSOURCING: Final = HistorySource(columns=stored, mapping=FieldMapping(first=1))


# Message DB: the table `messages` of a PostgreSQL database, in the order of its global positions.
#
# Names of streams are kept, also those of commands and of consumers' positions. Times are stored without a zone, and
# are UTC. The whole of metadata is kept.

_MESSAGES: Final = """
SELECT id::text AS id, stream_name AS stream, position AS index, global_position, type, time::text AS time,
       data::text AS data, metadata::text AS metadata
FROM {schema}.messages ORDER BY global_position
"""


def messages(place: str) -> Columns:
    """Yield place and columns of every message of a Message DB schema, in the order of global positions.

    Args:
        place: URL of the database; the schema is `message_store`, unless `#name` follows
    """
    url, schema = parted(place, "message_store")
    for row in selected(url, _MESSAGES.format(schema=schema)):
        yield f"global position {row['global_position']}", row


MESSAGE_DB: Final = HistorySource(columns=messages)


# Marten: the tables `mt_events` and `mt_streams` of a PostgreSQL database, in the order of their sequence.
#
# A stream whose id is a UUID is named by its type and id, `Stream-…` if it has no type; other ids are used as names.
# Versions count from 1. Archived events are imported, too; tombstones, which Marten writes where an append has failed,
# are not. Each store chooses which optional columns it has (`headers`, `correlation_id`, `causation_id`), so a row is
# read as JSON.

_MARTEN_EVENTS: Final = """
SELECT (to_jsonb(e) - 'data')::text AS row, e.data::text AS data,
       CASE WHEN pg_typeof(e.stream_id) = 'uuid'::regtype
            THEN COALESCE(s.type, 'Stream') || '-' || e.stream_id ELSE e.stream_id::text END AS stream
FROM {schema}.mt_events e
LEFT JOIN {schema}.mt_streams s
       ON s.id = e.stream_id AND to_jsonb(s)->>'tenant_id' IS NOT DISTINCT FROM to_jsonb(e)->>'tenant_id'
WHERE e.type <> 'tombstone'
ORDER BY e.seq_id
"""

_MARTEN_FIELDS: Final = {
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


def of_marten(place: str) -> Columns:
    """Yield place and columns of every event of a Marten schema, also archived ones, but no tombstones.

    Args:
        place: URL of the database; the schema is `public`, unless `#name` follows
    """
    url, schema = parted(place, "public")
    for row in selected(url, _MARTEN_EVENTS.format(schema=schema)):
        columns = json.loads(row["row"])
        yield f"sequence {columns['seq_id']}", {**columns, "data": row["data"], "stream": row["stream"]}


MARTEN: Final = HistorySource(columns=of_marten, mapping=FieldMapping(_MARTEN_FIELDS, first=1))


# Castore: DynamoDB's full export of an event table, in DynamoDB JSON, as a folder.
#
# An export has its items in no order. They are sorted by stream and version in a temporary file, so the order between
# streams is lost. Castore's single-table adapter has aggregate ids such as `STORE#id`, which become the stream
# `STORE-id`; the older adapter, with a table for each store, needs `--map stream=Store-{aggregateId}`.

_CASTORE_FIELDS: Final = {
    "stream": "stream",
    "index": "version",
    "type": "type",
    "time": "timestamp",
    "data": "payload",
    "metadata": "metadata",
}


def of_castore(place: str) -> Columns:
    """Yield place and fields of every event in a DynamoDB export of a Castore table, stream by stream.

    Args:
        place: folder of the export

    Raises:
        InvalidInput: the place is no folder with an export, or the export is of another table.
    """
    with closing(sqlite3.connect("")) as file:  # temporary file, kept in memory while small
        file.execute(
            "CREATE TABLE e (id TEXT, version INTEGER, row TEXT, PRIMARY KEY (id, version)) WITHOUT ROWID"
        )
        for item in export_at(place, _buckets).items():
            row = plain(item)
            values = (row.get("aggregateId"), row.get("version"), json.dumps(row).decode())
            if not isinstance(values[0], str) or not isinstance(values[1], int):
                raise InvalidInput(
                    "PLACE", f"{place} is not a Castore table: an item has no aggregateId or version"
                )
            file.execute("INSERT INTO e VALUES (?, ?, ?)", values)
        for aggregate, version, text in file.execute("SELECT id, version, row FROM e ORDER BY id, version"):
            yield f"{aggregate} {version}", _row(aggregate, json.loads(text))


def _row(aggregate: str, row: dict[str, Any]) -> dict[str, Any]:
    """Add the name of the stream to a row of Castore."""
    store, separator, own = aggregate.partition("#")
    return {**row, "stream": f"{store}-{own}" if separator else aggregate}


def _buckets(bucket: str) -> Open:
    """Raise `InvalidInput`, since exports of Castore are read from folders only, not from buckets."""
    raise InvalidInput(
        "PLACE", f"must be a folder: fetch the export from {bucket} with `aws s3 cp --recursive`"
    )


CASTORE: Final = HistorySource(columns=of_castore, mapping=FieldMapping(_CASTORE_FIELDS, first=1))


# KurrentDB (EventStoreDB): by its client, in the order of `$all`, or from a file of JSON lines.
#
# A line is an event as the database's own APIs have it in JSON, with the names of the clients (`streamId`, `revision`,
# `id`, `type`, `data`, `metadata`, `created`) or those of the Atom API (`eventNumber`, `eventId`, `eventType`,
# `metaData`, `updated`). Streams and types that begin with `$` belong to the system, as links do, and are left out. A
# truncated stream begins with the number of its first event.

_NAMES: Final = {
    "stream": ("streamId", "eventStreamId", "streamName", "stream_name", "stream"),
    "index": ("revision", "streamRevision", "eventNumber", "stream_position", "index"),
    "id": ("eventId", "id"),
    "type": ("eventType", "type"),
    "time": ("created", "recorded_at", "updated", "time"),
    "data": ("data",),
    "metadata": ("metaData", "metadata"),
}
"""Names of each field in the database's APIs, the most specific first."""


def events(place: str) -> Columns:
    """Yield the events of a KurrentDB database or of a file of JSON lines, without the system's events.

    Args:
        place: connection string of the database, or path of the file
    """
    if place.partition("://")[0].partition("+")[0] in ("esdb", "kdb", "kurrentdb"):
        yield from of_client(_read_all(place))
        return
    for record in objects(place):
        if isinstance(record, Misfit):
            yield record
        elif (row := _fields_of(record[1])) is not None:
            yield record[0], row


def of_client(recorded: Iterable[Any]) -> Columns:
    """Yield the fields of events that the client `kurrentdbclient` read."""
    for event in recorded:
        if (row := _fields_of(asdict(event) | {"eventId": str(event.id)})) is not None:
            yield f"position {event.commit_position}", row


def _read_all(uri: str) -> Iterator[Any]:
    """Read all events of a KurrentDB database, by its connection string, with its Python client.

    Raises:
        InvalidInput: the client `kurrentdbclient` is not installed, or the database cannot be read.
    """
    try:
        import kurrentdbclient as client  # noqa: PLC0415  installed by the user: no extra includes it
    except ModuleNotFoundError as error:
        raise InvalidInput(
            "PLACE", f"needs {error.name}: run `pip install kurrentdbclient`, or give a file"
        ) from error
    failed: type[Exception] = client.exceptions.KurrentDBClientError
    try:
        yield from client.KurrentDBClient(uri=uri).read_all()
    except failed as error:
        raise InvalidInput("PLACE", f"cannot be read: {str(error) or type(error).__name__}") from error


def _fields_of(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Map a KurrentDB event to the fields of an import; None if its stream or type is the system's."""
    row = {
        field: next((event[name] for name in names if event.get(name) is not None), None)
        for field, names in _NAMES.items()
    }
    if any(str(row[name] or "").startswith("$") for name in ("stream", "type")):
        return None
    if row["time"] is not None:
        row["time"] = str(row["time"])
    metadata = _object(row["metadata"])
    return {**row, "correlation": metadata.get("$correlationId"), "causation": metadata.get("$causationId")}


def _object(metadata: Any) -> Mapping[str, Any]:
    """Parse metadata; an empty object where they are none."""
    try:
        value = plain_json.loads(metadata) if isinstance(metadata, str | bytes) else metadata
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


KURRENTDB: Final = HistorySource(columns=events, mapping=FieldMapping())
