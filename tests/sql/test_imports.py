"""Histories of others in PostgreSQL are brought in: Message DB's and `eventsourcing`'s as their own software wrote
them, Marten's in tables with its columns, filled here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import UUID, uuid4

import psycopg
import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate

from epochal.contrib.local.programs import Package, Places, fetch
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Misfit
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.contrib.transfer.importing.writing import HistoryWriter
from epochal.errors import InvalidInput
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams
from tests.support.postgres import Postgres

MESSAGE_DB: Final = Package(
    title="Message DB, 20 KB",
    folder="message-db",
    name="@eventide/message-db",
    version="1.3.1",
    sha256="d7938e108d950e29da1974e3acad05bcf680045d0961f6a12039fb002140840d",
    part=PurePosixPath("package/database"),
)
INSTALLED: Final = (
    "schema/message-store",
    "tables/messages",
    "types/message",
    *(
        f"functions/{name}"
        for name in ("hash-64", "acquire-lock", "category", "is-category", "id", "cardinal-id")
    ),
    "functions/stream-version",
    "functions/write-message",
)
"""In the order in which its own installer has them."""

MARTEN: Final = """
CREATE TABLE mt_streams (id {id} PRIMARY KEY, type varchar, version bigint, tenant_id varchar DEFAULT '*DEFAULT*');
CREATE TABLE mt_events (
    seq_id bigint PRIMARY KEY, id uuid NOT NULL, stream_id {id}, version bigint NOT NULL, data jsonb NOT NULL,
    type varchar(500) NOT NULL, timestamp timestamptz NOT NULL, tenant_id varchar DEFAULT '*DEFAULT*',
    mt_dotnet_type varchar, is_archived bool DEFAULT FALSE {more}
);
"""
METADATA: Final = ", correlation_id varchar, causation_id varchar, headers jsonb"


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """An empty database, by its name."""
    name = f"imports_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.conninfo(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    yield name
    with psycopg.connect(postgres.conninfo(), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def imported(kind: str, place: str, **fields: str) -> tuple[Streams, list[Misfit]]:
    """Brought in twice, and verified."""
    store, rejected = memory_streams(), list[Misfit]()
    for again in (False, True):
        rejected.clear()
        importer = StreamImporter(writer=HistoryWriter(store), rejects=rejected.append, verifying=True)
        done = importer.run(source_of(kind, place).rows(place, fields))
        assert importer.verify().unlike == []
        assert done.rows == done.written + done.there + done.rejected
        assert not (again and done.written)
    return store, rejected


def test_what_message_db_wrote_is_brought_in(postgres: Postgres, database: str, places: Places) -> None:
    folder = fetch(MESSAGE_DB, places.cache)
    ids = [uuid4() for _ in range(5)]
    streams = ["account-1", "account-2", "account-1", "account:command-1", "account-1"]
    with psycopg.connect(postgres.conninfo(database), autocommit=True) as connection:
        for name in INSTALLED:
            connection.execute((folder / f"{name}.sql").read_bytes())
        connection.execute("SET search_path = message_store, public")
        for number, (each, stream) in enumerate(zip(ids, streams, strict=True)):
            written = json.dumps({"amount": 1.5, "n": number})
            meta = json.dumps({"correlationStreamName": "transfer-9"}) if number else None
            connection.execute(
                "SELECT write_message(%s, %s, %s, %s::jsonb, %s::jsonb)",
                (str(each), stream, "Deposited", written, meta),
            )
        times = [row[0] for row in connection.execute("SELECT time FROM messages ORDER BY global_position")]
    store, rejected = imported("message-db", postgres.url(database))
    assert rejected == []
    found = [*store.read("account-1")]
    assert [(event.index, event.id) for event in found] == [
        (0, str(ids[0])),
        (1, str(ids[2])),
        (2, str(ids[4])),
    ]
    assert json.loads(found[1].content) == {"amount": 1.5, "n": 2}
    assert (found[0].meta, found[1].meta) == (b"", b'{"correlationStreamName": "transfer-9"}')
    assert found[1].timestamp == f"{times[2].isoformat()}0+00:00"
    assert [event.type for event in store.read("account:command-1")] == ["Deposited"]


def filled(connection: psycopg.Connection[Any], rows: list[tuple[Any, ...]], more: str = "") -> None:
    columns = f"seq_id, id, stream_id, version, data, type, timestamp{more}"
    values = ", ".join(["%s"] * len(rows[0]))
    insert = f"INSERT INTO mt_events ({columns}) VALUES ({values})"
    for row in rows:
        connection.execute(insert.encode(), row)


def test_martens_events_are_brought_in_with_their_metadata(postgres: Postgres, database: str) -> None:
    quest, other = uuid4(), uuid4()
    ids = [uuid4() for _ in range(5)]
    at = "2024-01-02T03:04:05.123456+02:00"
    with psycopg.connect(postgres.conninfo(database), autocommit=True) as connection:
        connection.execute(MARTEN.format(id="uuid", more=METADATA).encode())
        connection.execute(
            "INSERT INTO mt_streams (id, type) VALUES (%s, 'quest'), (%s, NULL)", (quest, other)
        )
        headers = '{"by": "ann"}'
        filled(
            connection,
            [
                (1, ids[0], quest, 1, '{"gold": 1.10}', "quest_started", at, "c-1", "k-1", headers),
                (2, ids[1], other, 1, "{}", "joined", at, None, None, None),
                (3, ids[2], uuid4(), 1, "{}", "tombstone", at, None, None, None),
                (5, ids[3], quest, 2, '{"n": 123456789012345678901}', "ended", at, None, None, None),
            ],
            ", correlation_id, causation_id, headers",
        )
    store, rejected = imported("marten", postgres.url(database))
    assert rejected == []
    first, second = store.read(f"quest-{quest}")
    assert (first.type, first.content, first.meta) == ("quest_started", b'{"gold": 1.10}', b'{"by":"ann"}')
    assert (first.correlation_id, first.causation_id, first.id) == ("c-1", "k-1", str(ids[0]))
    assert first.timestamp == "2024-01-02T01:04:05.1234560+00:00"
    assert second.content == b'{"n": 123456789012345678901}'
    assert [event.type for event in store.read(f"Stream-{other}")] == ["joined"]


def test_martens_streams_may_have_texts_for_ids_no_metadata_and_a_gap(
    postgres: Postgres, database: str
) -> None:
    at = "2024-01-02T03:04:05Z"
    with psycopg.connect(postgres.conninfo(database), autocommit=True) as connection:
        connection.execute(MARTEN.format(id="varchar", more="").encode())
        connection.execute("INSERT INTO mt_streams (id, type) VALUES ('cart-7', 'cart'), ('cart-8', 'cart')")
        filled(
            connection,
            [
                (1, uuid4(), "cart-7", 1, "{}", "opened", at),
                (2, uuid4(), "cart-7", 3, "{}", "paid", at),
                (3, uuid4(), "cart-8", 4, "{}", "paid", at),
            ],
        )
    store, rejected = imported("marten", f"{postgres.url(database)}#public")
    assert [(each.at, each.stream) for each in rejected] == [("sequence 2", "cart-7")]
    assert rejected[0].rule.startswith("index: is 2, expected 1")
    assert [event.index for event in store.read("cart-8")] == [3]
    renamed, _ = imported("marten", postgres.url(database), stream="Basket-{seq_id}", index="")
    assert [event.type for event in renamed.read("Basket-2")] == ["paid"]


class Dog(Aggregate):
    """Of the library's own examples."""

    def __init__(self, name: str) -> None:
        self.name = name


class Dogs(Application[UUID]):
    """Saves dogs."""


def test_what_eventsourcing_wrote_to_postgresql_is_brought_in(postgres: Postgres, database: str) -> None:
    application = Dogs(
        env={
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": database,
            "POSTGRES_HOST": str(postgres.folder),
            "POSTGRES_PORT": "5432",
            "POSTGRES_USER": "epochal",
            "POSTGRES_PASSWORD": "none",
        }
    )
    rex, fido = Dog("Rex"), Dog("Fido")
    rex.trigger_event(Dog.Event)
    application.save(rex, fido)
    application.close()
    store, rejected = imported("eventsourcing", f"{postgres.url(database)}#Dogs")
    assert rejected == []
    first, second = store.read(f"Dogs-{rex.id}")
    assert first.type.endswith("Dog.Created")
    assert json.loads(first.content)["name"] == "Rex"
    assert json.loads(first.content)["timestamp"]["_data_"][:26] == first.timestamp[:26]
    assert second.index == 1


def test_a_database_that_cannot_be_read_is_refused(postgres: Postgres, database: str, tmp_path: Path) -> None:
    places = ("marten", postgres.url(database)), ("marten", postgres.url("nowhere"))
    for kind, place in (*places, ("eventsourcing", f"sqlite:///{tmp_path}/none.db#Dogs")):
        with pytest.raises(InvalidInput, match="cannot be read"):
            list(source_of(kind, place).rows(place, {}))
    with pytest.raises(InvalidInput, match="must be URL#part"):
        list(source_of("eventsourcing", "sqlite://").rows("sqlite://", {}))
    with pytest.raises(InvalidInput, match="must be URL#part"):
        list(source_of("marten", "sqlite://#a;b").rows("sqlite://#a;b", {}))
