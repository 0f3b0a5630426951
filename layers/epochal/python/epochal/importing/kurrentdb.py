"""KurrentDB (EventStoreDB): by its client, in the order of `$all`, or from a file of JSON lines.

A line is an event as the database's own APIs have it in JSON: the names of the clients (`streamId`, `revision`, `id`,
`type`, `data`, `metadata`, `created`) or those of the Atom API (`eventNumber`, `eventId`, `eventType`, `metaData`,
`updated`). Streams and types that begin with `$` are the system's, links too, and left out. A stream that was truncated
begins with the number that its first event has.
"""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.importing.files import objects
from epochal.importing.incoming import FieldMapping, Misfit
from epochal.importing.sources import Columns, HistorySource

_NAMES: Final = {
    "stream": ("streamId", "eventStreamId", "streamName", "stream_name", "stream"),
    "index": ("revision", "streamRevision", "eventNumber", "stream_position", "index"),
    "id": ("eventId", "id"),
    "type": ("eventType", "type"),
    "time": ("created", "recorded_at", "updated", "time"),
    "data": ("data",),
    "metadata": ("metaData", "metadata"),
}
"""What each field is called, the surest name first."""


def events(place: str) -> Columns:
    """Every event of a database, by its connection string, or of a file."""
    if place.partition("://")[0].partition("+")[0] in ("esdb", "kdb", "kurrentdb"):
        yield from of_client(_read_all(place))
        return
    for each in objects(place):
        if isinstance(each, Misfit):
            yield each
        elif (row := _row(each[1])) is not None:
            yield each[0], row


def of_client(recorded: Iterable[Any]) -> Columns:
    """Events as the client `kurrentdbclient` has them."""
    for event in recorded:
        if (row := _row(asdict(event) | {"eventId": str(event.id)})) is not None:
            yield f"position {event.commit_position}", row


def _read_all(uri: str) -> Iterator[Any]:
    try:
        client = import_module("kurrentdbclient")  # the user's: nothing of ours brings it
    except ModuleNotFoundError as error:
        raise InvalidInput("PLACE", f"needs {error.name}: pip install kurrentdbclient, or a file") from error
    failed: type[Exception] = client.exceptions.KurrentDBClientError
    try:
        yield from client.KurrentDBClient(uri=uri).read_all()
    except failed as error:
        raise InvalidInput("PLACE", f"cannot be read: {str(error) or type(error).__name__}") from error


def _row(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The fields of an event; None where it is the system's."""
    row = {
        field: next((event[name] for name in names if event.get(name) is not None), None)
        for field, names in _NAMES.items()
    }
    if any(str(row[name] or "").startswith("$") for name in ("stream", "type")):
        return None
    if row["time"] is not None:
        row["time"] = str(row["time"])
    known = _object(row["metadata"])
    return {**row, "correlation": known.get("$correlationId"), "causation": known.get("$causationId")}


def _object(metadata: Any) -> Mapping[str, Any]:
    """Metadata, where they are an object."""
    try:
        found = plain_json.loads(metadata) if isinstance(metadata, str | bytes) else metadata
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


KURRENTDB: Final = HistorySource(columns=events, mapping=FieldMapping())
