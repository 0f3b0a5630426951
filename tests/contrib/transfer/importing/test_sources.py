"""Other stores' histories, from files and SQLite: KurrentDB's, and those of `eventsourcing` as it wrote them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate

from epochal.contrib.transfer.importing.databases import of_client
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Incoming, Misfit
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.contrib.transfer.importing.writing import HistoryWriter
from epochal.errors import InvalidInput
from epochal.testing.stores import memory_streams

ID = "00000000-0000-0000-0000-00000000000a"


def read(kind: str, place: str, **fields: str) -> list[Incoming | Misfit]:
    return [
        each for each in source_of(kind, place).rows(place, fields) if isinstance(each, Incoming | Misfit)
    ]


CLIENT = {
    "streamId": "order-1",
    "revision": 0,
    "id": ID,
    "type": "Placed",
    "data": {"total": 1},
    "metadata": {"$correlationId": "c-1", "$causationId": "k-1", "by": "ann"},
    "created": "2024-01-02T03:04:05.1234567Z",
}
"""As clients show it."""

ATOM = {
    "streamId": "order-1",
    "eventNumber": 0,
    "eventId": ID,
    "id": "http://localhost:2113/streams/order-1/0",
    "eventType": "Placed",
    "data": '{"total":1}',
    "metaData": '{"$correlationId":"c-1","$causationId":"k-1","by":"ann"}',
    "updated": "2024-01-02T03:04:05.1234567Z",
}
"""As the Atom API has it."""


@pytest.mark.parametrize("line", [CLIENT, ATOM])
def test_kurrentdbs_lines_of_json_are_events(tmp_path: Path, line: dict[str, Any]) -> None:
    path = tmp_path / "all.jsonl"
    system = [{**line, "streamId": "$settings"}, {**line, "eventType": "$>", "type": "$>"}]
    path.write_text("\n".join([*map(json.dumps, [line, *system]), "nonsense"]))
    found, misfit = read("kurrentdb", str(path))
    assert isinstance(found, Incoming)
    assert (found.stream, found.index, found.event.id, found.event.type) == ("order-1", 0, ID, "Placed")
    assert (found.event.correlation_id, found.event.causation_id) == ("c-1", "k-1")
    assert (found.event.data, json.loads(found.event.meta)["by"]) == (b'{"total":1}', "ann")  # type: ignore[arg-type]
    assert found.event.timestamp == "2024-01-02T03:04:05.1234567+00:00"
    assert (misfit.at, isinstance(misfit, Misfit)) == ("line 4", True)


@dataclass(frozen=True)
class RecordedEvent:
    """What the client `kurrentdbclient` answers, by its fields."""

    type: str
    data: bytes
    metadata: bytes
    content_type: str
    id: UUID
    stream_name: str
    stream_position: int
    commit_position: int
    prepare_position: int
    recorded_at: datetime | None = None


def test_what_kurrentdbs_client_reads_is_events_to_the_byte() -> None:
    event = RecordedEvent(
        type="Placed",
        data=b"\x00\xff",
        metadata=b"\xff",
        content_type="application/octet-stream",
        id=UUID(ID),
        stream_name="order-1",
        stream_position=4,
        commit_position=9,
        prepare_position=9,
        recorded_at=datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
    )
    (at, row), *rest = of_client([event])  # type: ignore[misc]
    assert rest == []
    found = source_of("kurrentdb", "").mapping.incoming(row, at)
    assert isinstance(found, Incoming)
    assert (found.at, found.index, found.event.id) == ("position 9", 4, ID)
    assert (found.event.data, found.event.meta) == (b"\x00\xff", b"\xff")
    assert found.event.timestamp == "2024-01-02T03:04:05.0000060+00:00"


def test_kurrentdbs_client_is_asked_for_where_it_is_not_there() -> None:
    with pytest.raises(InvalidInput, match="pip install kurrentdbclient"):
        read("kurrentdb", "kurrentdb://localhost:2113?tls=false")


class Dog(Aggregate):
    """Of the library's own examples."""

    def __init__(self, name: str) -> None:
        self.name = name


class Dogs(Application[UUID]):
    """Saves dogs."""


@pytest.mark.parametrize("compressed", [False, True])
def test_what_eventsourcing_wrote_to_sqlite_is_brought_in(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "dogs.db"
    env = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    application = Dogs(env=env | ({"COMPRESSOR_TOPIC": "zlib"} if compressed else {}))
    rex, fido = Dog("Rex"), Dog("Fido")
    rex.trigger_event(Dog.Event)
    application.save(fido, rex)
    wanted = [each.state for each in application.recorder.select_events(rex.id)]
    application.close()
    store, rejected = memory_streams(), list[Misfit]()
    importer = StreamImporter(writer=HistoryWriter(store), rejects=rejected.append, verifying=True)
    place = f"sqlite:///{path}#Dogs"
    importer.run(source_of("eventsourcing", place).rows(place, {}))
    assert importer.verify().unlike == []
    if compressed:  # nothing tells when they happened
        assert {each.rule.partition(":")[0] for each in rejected} == {"time"}
        return
    assert rejected == []
    assert [each.content for each in store.read(f"Dogs-{rex.id}")] == wanted
    assert [each.index for each in store.read(f"Dogs-{rex.id}")] == [0, 1]


ITEMS = Path(__file__).with_name("castore") / "items.jsonl"
"""What Castore's adapter puts: `castore/write.cjs` has written it."""


def exported(folder: Path, items: list[str]) -> str:
    """As DynamoDB exports a table."""
    (folder / "data").mkdir()
    (folder / "data" / "a.json.gz").write_bytes(
        gzip.compress("".join(f'{{"Item":{each}}}\n' for each in items).encode())
    )
    (folder / "manifest-summary.json").write_text(
        '{"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}'
    )
    listed = {"dataFileS3Key": "x/data/a.json.gz", "itemCount": len(items)}
    (folder / "manifest-files.json").write_text(json.dumps(listed))
    return str(folder)


def test_what_castores_adapter_wrote_is_brought_in_whatever_order_an_export_has(tmp_path: Path) -> None:
    place = exported(tmp_path, ITEMS.read_text().splitlines()[::-1])
    store, rejected = memory_streams(), list[Misfit]()
    importer = StreamImporter(writer=HistoryWriter(store), rejects=rejected.append, verifying=True)
    importer.run(source_of("castore", place).rows(place, {}))
    assert (rejected, importer.verify().unlike) == ([], [])
    first, second = store.read("POKEMONS-pikachu1")
    assert (first.type, first.meta) == ("POKEMON_APPEARED", b'{"trigger":"random"}')
    assert json.loads(first.content) == {"name": "Pikachu", "level": 42, "ratio": 1.5}
    assert first.timestamp == "2024-01-02T03:04:01.1230000+00:00"
    assert json.loads(second.content) == {"by": ["ash"], "shiny": False, "nothing": None}
    assert [(event.type, event.data) for event in store.read("TRAINERS-ash-1")] == [("GAME_STARTED", b"")]


def test_what_is_no_table_of_castores_is_refused(tmp_path: Path) -> None:
    place = exported(tmp_path, ['{"pk":{"S":"a"}}'])
    with pytest.raises(InvalidInput, match="not a Castore table"):
        read("castore", place)
    with pytest.raises(InvalidInput, match="must be a folder"):
        read("castore", "s3://bucket/prefix")
