"""After a person is forgotten, nothing of them is in plain text anywhere, but for what a list says.

A whole deployment runs in memory, at DEBUG, with every part that holds what is in events. All that it has ever written
is searched: each write to each table, objects, files, lines of logs, messages and answers.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any
from uuid import UUID

import anyio
import pytest
from eventsourcing.application import Application
from eventsourcing.dcb.api import DCBEvent
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import InfrastructureFactory
from eventsourcing.utils import Environment
from mcp.client.client import Client
from sqlalchemy import Column, MetaData, Table, Text, create_engine

from epochal import Decider, Deciders, Delivery, Event, later, reaction
from epochal.contrib.console.server import application
from epochal.contrib.event_store_adapter import (
    AggregateDeciders,
    aggregate_id,
    every,
    json_state,
    sealed_state,
)
from epochal.contrib.eventsourcing import EpochalDCBRecorder, EpochalFactory
from epochal.contrib.mcp.server import server
from epochal.contrib.processes import Append, Call, CommandRefused, Output, Publish, Send, Target, process
from epochal.contrib.publish.publication import Publication, publisher
from epochal.contrib.publish.recipients import LIMITS
from epochal.contrib.sekiban.items import PROJECTION_STATES
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sql.read_models import SqlReadModels
from epochal.contrib.subjects.items import FORGET_LOG, SUBJECT_KEYS
from epochal.contrib.subjects.sealing import Shredded, Subjects, sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.contrib.transfer.export.files import FORMATS
from epochal.contrib.transfer.export.origins import begin_feed, run_feed
from epochal.contrib.transfer.export.parts import ExportScope
from epochal.deciders.access import snapshot
from epochal.deciders.codecs import EventCodec, Stored, json_codec
from epochal.deployment import Deployment
from epochal.feed.stream_records import Record
from epochal.hosting.commands import operate
from epochal.hosting.function_logs import log_attempt, logger_of
from epochal.layout.tables import READ_MODELS, TIMERS, store_tables
from epochal.plan.ops import Op, Reply
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.scheduling import after
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryObjects, memory_streams
from tests.contrib.subjects.plain_text import Evidence
from tests.support.api import Api
from tests.support.terminal import Terminal

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "forgetting.md"
SECRET, NAME_OF_STREAM, METADATA = "quokka4711lovelace", "quokka4712stream", "quokka4713metadata"
STREAM = f"Person-{NAME_OF_STREAM}"
PAGES = 30_000

REMAINS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "Read models": frozenset(
            {"table read-models", "file read-models", "table projection-states", "bucket of states"}
        ),
        "Applications of `eventsourcing`": frozenset({"application of eventsourcing"}),
        "Messages that your mapping unseals": frozenset({"sent by a mapping"}),
    }
)
"""Where the data of a person stay in plain text, by the titles under which the guide says why."""

UNSEALED = {"Names": NAME_OF_STREAM, "Metadata": METADATA}
"""What is not sealed at all, likewise."""

BEYOND = {
    "Errors about events that are not sealed": "here every event that is quoted is sealed",
    "Processes that unseal by themselves": "here the codec does",
    "Refusals that quote others": "here a target quotes its own command",
    "Sources of imports": "here nothing is imported",
    "Your own code": "what it writes elsewhere is not of this library",
}
"""What the guide lists, and why this deployment does not show it."""

OPEN = frozenset(
    {
        *("table streams", "table tips", "table journal", "table snapshot", "table events"),
        *(
            "table index",
            "import",
            "file rejected",
            "record set aside",
            "bucket",
            "file export",
            "log",
            "sent to a queue",
            "sent to a lake",
            "sent by a process",
            "sealed projection state",
            "application of eventsourcing that seals",
        ),
        *("copy", "answer of HTTP", "answer of the console", "answer of MCP", "answer of the CLI"),
        "answer about what is parked",
    }
)
"""Where they are as well if nothing is sealed: so the search looks there, and would find them."""


@dataclass(frozen=True)
class Registered:
    person: str
    name: str


@dataclass(frozen=True)
class Account:
    person: str = ""
    name: str = ""


@dataclass(frozen=True)
class Greet:
    person: str
    name: str


KINDS: tuple[type[Any], ...] = (Registered, Account, Greet)


def shredded(stored: Stored, gone: Shredded) -> Any:
    kind = next(kind for kind in KINDS if kind.__name__ == stored.type)
    return kind(gone.subject, "(forgotten)")


class Person(Aggregate):
    """An aggregate of the library `eventsourcing`."""

    @event("Registered")
    def __init__(self, name: str) -> None:
        self.name = name

    @event("Renamed")
    def rename(self, name: str) -> None:
        self.name = name


def people_in(tables: MemoryTables) -> Application[UUID]:
    """An application of the library `eventsourcing` on these tables."""

    class Factory(EpochalFactory):
        @cached_property
        def streams(self) -> Streams:
            return memory_streams(tables)

    class People(Application[UUID]):
        is_snapshotting_enabled = True

        def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
            return Factory(env)

    return People()


class Impolite(Exception):
    """A refusal."""


def greet(command: Greet, _: Account) -> list[Registered]:
    raise Impolite(f"{command.name} is not greeted")


class RecordingTables(MemoryTables):
    """Tables that keep every request, so that what is written over is searched, too."""

    def __init__(self) -> None:
        specs = (*store_tables(), READ_MODELS, TIMERS, SUBJECT_KEYS, FORGET_LOG, PROJECTION_STATES)
        super().__init__({spec.kind: spec for spec in specs})
        self.requests: list[Op] = []

    def execute(self, op: Op) -> Reply:
        self.requests.append(op)
        return super().execute(op)


@dataclass
class World:
    """A deployment in memory, and all that it leaves."""

    folder: Path
    sealing: bool
    logs: pytest.LogCaptureFixture
    tables: RecordingTables = field(default_factory=RecordingTables)
    found: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        self.feed = MemoryStore(tables=self.tables, options={"aggregate_types": ("user",)})
        self.feed.timers_table = RecordingTables()
        self.deployment: Deployment = self.feed._deployment  # noqa: SLF001  its bucket
        self.subjects: Subjects = memory_subjects(self.tables, table=SUBJECT_KEYS.kind, log=FORGET_LOG.kind)
        plain: EventCodec[Any] = json_codec(*KINDS)
        self.codec = plain
        self.state = json_state(Account)
        if self.sealing:
            self.codec = sealed_codec(
                plain, self.subjects, subject_of=lambda event: event.person or None, shredded=shredded
            )
            self.state = sealed_state(
                self.state, self.subjects, subject_of=lambda account: account.person or None
            )
        self.decider = Decider[Any, Account, Any](
            initial=Account,
            evolve=lambda _, event: Account(event.person, event.name),
            decide=lambda event, _: [event],
        )

    def unsealed(self, body: bytes) -> dict[str, Any]:
        opened = self.subjects.unseal(body)
        assert isinstance(opened, bytes)
        value: dict[str, Any] = json.loads(opened)
        return value

    def append(self) -> None:
        """To each layout, with a snapshot where it has one, a key, and a body for the bucket."""
        event = self.codec.encode(Registered("ada", SECRET))
        access = snapshot(lambda each: isinstance(each, Account), lambda account: account)
        Deciders(streams=self.feed.streams, decider=self.decider, codec=self.codec, access=access).handle(
            STREAM, decide=lambda _: [Registered("ada", SECRET)]
        )
        meta = json.dumps({"by": METADATA}).encode()
        self.feed.streams.append("Person-2", [Event(type=event.type, data=event.data, meta=meta)])
        self.feed.streams.append("Person-2", [event], idempotency_key="once")
        large = Registered("ada", SECRET + Random(1).randbytes(500_000).hex())
        self.feed.streams.append("Large-1", [self.codec.encode(large)])
        self.feed.tagged.append([self.codec.tagged(Registered("ada", SECRET), "person:1")])
        self.feed.tips.append("Person-3", [event])
        self.feed.dcb.append([self.codec.tagged(Registered("ada", SECRET), "person:2")])
        AggregateDeciders(
            store=self.feed.aggregates,
            decider=self.decider,
            codec=self.codec,
            state=self.state,
            policy=every(1),
        ).handle(aggregate_id("user", "1"), Registered("ada", SECRET))
        self.feed.index()

    def run_process(self) -> None:
        """One with a refused command, a call that fails, a message, events and a timer."""

        def fail(message: Any, _key: str) -> None:
            raise OSError(f"no letterbox of {message.name}")

        sent: list[Any] = []
        insurer = Target(
            decider=Decider[Greet, Account, Registered](
                initial=Account, evolve=lambda account, _: account, decide=greet
            ),
            codec=self.codec,
            refusals=(Impolite,),
        )

        @process(
            name="enrolment",
            categories=["Person"],
            codec=self.codec,
            begins=[Registered],
            targets={"Insurer": insurer, "letters": fail, "topic": sent.extend},
            attempts=1,
        )
        @dataclass(frozen=True)
        class Enrolment:
            names: tuple[str, ...] = ()

            def evolve(self, event: Any) -> Enrolment:
                said = event.text if isinstance(event, CommandRefused) else event.name
                return Enrolment((*self.names, said))

            def react(self, event: Any) -> Iterable[Output]:
                if isinstance(event, Registered):
                    yield Send("Insurer", Greet(event.person, event.name))
                    yield Publish("topic", Registered(event.person, event.name))
                    yield Append("Letter", [Registered(event.person, event.name)])
                    yield later("Greet", [Greet(event.person, event.name)], at=after(days=1))
                    yield Call("letters", Greet(event.person, event.name))

        self.feed.react(Enrolment)
        self.feed.advance(Enrolment, days=2)
        self.found.add("sent by a process", *sent)

    def park(self) -> None:
        """A stream whose handler quotes what it has unsealed, in a function that logs all that it may."""

        @reaction(name="greeting", categories=["Person"], attempts=2)
        def greeting(delivery: Delivery) -> None:
            raise ValueError(f"no greeting for {self.unsealed(delivery.events[0].content)['name']}")

        logger = logger_of("greeting")
        logger.setLevel(logging.DEBUG)
        self.feed.react(greeting)
        reactor = Reactor(
            member=Member(reaction=greeting, reader=self.feed.feed),
            on_failed=lambda attempt: log_attempt(logger, greeting.handler_name, attempt),
        )
        parking = Parking(reactor=reactor)
        for command in ("parked", "replay"):
            asked = {"command": command, "partition": PAGES, "stream": STREAM}
            self.found.add("answer about what is parked", operate(parking, asked, 60.0))

    def project(self) -> None:
        """Read models, into which the program's own code writes what it has unsealed."""
        folder = self.folder / "read-models"
        folder.mkdir()
        documents = self.feed.read_models.open("people", 1)

        def tables(generation: int) -> MetaData:
            metadata = MetaData()
            Table(f"people_{generation}", metadata, Column("name", Text, primary_key=True))
            return metadata

        engine = create_engine(f"sqlite:///{folder / 'people.db'}")
        rows = SqlReadModels(engine=engine, tables={"people": tables}).open("people", 1)
        rows.create()
        people = rows.tables["people"]

        @reaction(name="people", categories=["Person"], sources=["pages"])
        def update(delivery: Delivery) -> None:
            documents.apply(
                delivery,
                lambda model, event: model.put(event.stream, self.unsealed(event.content)["name"]),
            )
            rows.apply(
                delivery,
                lambda connection, event: (
                    connection.execute(
                        people.insert().values(name=f"{event.index} {self.unsealed(event.content)['name']}")
                    )
                    if event.stream == "Person-2"
                    else None
                ),
            )

        self.feed.react(update)
        engine.dispose()

    def save_states(self) -> None:
        """States of projections, one in an item and one in a bucket, of what was unsealed and of what was not."""
        large = Random(2).randbytes(5_000).hex()
        for sealed in (False, True):
            tables, objects = (RecordingTables() if sealed else self.tables), MemoryObjects()
            states = ProjectionStates(
                driver=replace(self.feed.feed.driver, execute=tables.execute),
                table=PROJECTION_STATES.kind,
                objects=objects,
                inline_bytes=1_000,
            )
            for projector, more in (("Small", ""), ("Large", large)):
                body = self.codec.encode(Registered("ada", SECRET)).content
                person = body.decode() if sealed else self.unsealed(body)
                state = json.dumps({"person": person, "more": more}).encode()
                states.save(projector, "1", [state], events_processed=0, last_sortable_id="")
            self.found.add("sealed projection state" if sealed else "bucket of states", objects.contents)
            if sealed:
                self.found.add("sealed projection state", *tables.requests)

    def run_eventsourcing(self) -> None:
        """Applications of the library `eventsourcing`, with snapshots, and events with tags."""
        for sealed in (False, True):
            name, tables = SECRET, RecordingTables()
            if sealed and self.sealing:
                name = self.subjects.seal("ada", SECRET.encode()).decode()
            people = people_in(tables)
            person = Person(name)
            person.rename(name)
            people.save(person)
            people.take_snapshot(person.id)
            recorder = EpochalDCBRecorder(memory_streams(tables), "People")
            recorder.append([DCBEvent(type="Registered", data=name.encode(), tags=["person:1"])])
            place = "application of eventsourcing"
            self.found.add(f"{place} that seals" if sealed else place, *tables.requests)

    def publish(self) -> None:
        """As CloudEvents, as rows for a lake, and as a mapping of the program's own shows them."""
        for place, as_rows in (("sent to a queue", None), ("sent to a lake", True)):
            publication = Publication(
                name=place.replace(" ", "-"), to="queue", place="q", source="here", as_rows=as_rows
            )
            sent: list[Any] = []
            bodies = self.deployment.bucket.bodies  # type: ignore[union-attr]  # it has one
            self.feed.react(publisher(publication, bodies, "bodies", sent.extend, LIMITS["queue"]))
            self.found.add(place, *sent)

        @reaction(name="mapped", categories=["Person"], sources=["pages"])
        def mapped(delivery: Delivery) -> None:
            self.found.add("sent by a mapping", *(self.unsealed(event.content) for event in delivery.events))

        self.feed.react(mapped)

    def export_and_copy(self) -> None:
        for format_ in FORMATS:
            scope = ExportScope(source="here", format=format_)
            export = begin_feed(self.feed.feed, self.folder / "export" / format_, scope)
            run_feed(export, lambda: self.feed.feed)
        other = RecordingTables()
        target = MemoryStore(tables=other)
        StreamCopier(source=StreamSource(self.feed.streams), target=target.tips).copy(STREAM)
        self.found.add("copy", *other.requests)

    def import_export(self) -> None:
        """Into a deployment of its own. Rows that have tags alone do not fit, and go to a file and to the terminal."""
        other = RecordingTables()
        rejected = self.folder / "rejected"
        rejected.mkdir()
        arguments = (
            "import",
            str(self.folder / "export" / "ndjson"),
            "--rejected",
            str(rejected / "rows.ndjson"),
        )
        result = Terminal(tables=other).run(*arguments)
        assert "2 rejected" in result.output
        self.found.add("answer of an import", result.output, repr(result.exception))
        self.found.add("import", *other.requests)

    def set_aside(self) -> None:
        """Records of changes that cannot be indexed, which are kept with their images."""
        other = RecordingTables()
        indexer = MemoryStore(tables=other)._indexer  # noqa: SLF001  it has no other door
        broken = [
            Record(
                table=table,
                sequence_number=f"{number:021d}",
                image={name: value for name, value in image.items() if "N" not in value},
            )
            for table in ("streams", "tips", "journal", "events")
            for number, image in enumerate(self.tables.changes(table))
        ]
        assert indexer.index(broken).set_aside
        self.found.add("record set aside", *other.requests)

    def ask(self) -> None:
        """Whatever answers, also about input that is wrong."""
        objects = self.deployment.bucket.objects  # type: ignore[union-attr]  # it has one
        api = Api(tables=self.tables, bodies=self.deployment.bucket.bodies)  # type: ignore[union-attr, arg-type]
        body = self.codec.encode(Registered("ada", SECRET)).content.decode()
        wrong = {"events": [{"type": "Registered", "data": json.loads(body), "timestamp": "never"}]}
        for method, path, content in (
            ("GET", f"/streams/{STREAM}/events", None),
            ("GET", "/streams/enrolment-2/events", None),
            ("GET", f"/feed/{PAGES}", None),
            ("POST", "/streams/Person-2/events", wrong),
            ("POST", "/streams/Person-2/events", {"events": [{"data": json.loads(body)}]}),
        ):
            self.found.add("answer of HTTP", api.call(method, path, content))
        browser = application(self.deployment, "test").test_client()
        for path in (
            f"/streams/{PAGES}/{STREAM}?from=0&stored=yes",
            "/reactions?group=greeting",
            "/feed",
            "/nothing",
        ):
            answer = browser.get(path, base_url="http://127.0.0.1:1")
            self.found.add("answer of the console", answer.text)
        terminal = Terminal(tables=self.tables, objects=objects)  # type: ignore[arg-type]
        for command in (["read", STREAM], ["state", STREAM], ["parked", "list", "greeting"], ["read", "-"]):
            result = terminal.run(*command)
            self.found.add("answer of the CLI", result.output, repr(result.exception))

        async def tools() -> None:
            async with Client(server(self.deployment)) as client:
                for tool, arguments in (
                    ("read", {"stream": STREAM}),
                    ("newest", {}),
                    ("read", {"stream": "-"}),
                ):
                    told = await client.call_tool(tool, arguments)
                    self.found.add("answer of MCP", [each.text for each in told.content])  # type: ignore[union-attr]

        anyio.run(tools)

    def run(self) -> Evidence:
        """All of it; then the person is forgotten, and the evidence collected."""
        self.logs.set_level("DEBUG")
        self.append()
        self.park()
        self.project()
        self.save_states()
        self.run_eventsourcing()
        self.publish()
        self.run_process()
        self.feed.index()
        self.export_and_copy()
        self.import_export()
        self.set_aside()
        self.ask()
        self.subjects.forget("ada")
        for request in self.tables.requests:
            for write in getattr(request, "writes", (request,)):
                if hasattr(write, "table"):
                    self.found.add(f"table {write.table}", write)
        for table, stored in self.tables._tables.items():  # noqa: SLF001  whatever tables there are
            self.found.add(f"table {table}", *self.tables.items(table), *stored.changes)
        timers: Any = self.feed.timers_table
        self.found.add("table timers", *timers.requests)
        bucket: Any = self.deployment.bucket
        self.found.add("bucket", bucket.bodies.objects, bucket.objects.contents)
        self.found.add("log", *(vars(record) for record in self.logs.records))
        self.found.files(self.folder)
        return self.found


@pytest.mark.slow
def test_nothing_of_a_forgotten_person_remains_but_for_what_the_guide_lists(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    found = World(tmp_path, sealing=True, logs=caplog).run()
    found.add("log", *capsys.readouterr())
    holders = found.holders(SECRET, *UNSEALED.values())
    assert holders[SECRET] == frozenset().union(*REMAINS.values())
    assert "table timers" in holders[NAME_OF_STREAM], "the search looks there: timers have names of streams"
    for title, marker in UNSEALED.items():
        assert holders[marker], f"{title} are listed as what is not sealed"


@pytest.mark.slow
def test_the_search_finds_a_person_wherever_nothing_is_sealed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    found = World(tmp_path, sealing=False, logs=caplog).run()
    found.add("log", *capsys.readouterr())
    assert found.holders(SECRET)[SECRET] == OPEN.union(*REMAINS.values())


def test_the_guide_lists_what_remains() -> None:
    text = GUIDE.read_text()
    listed = text.partition("\n## What remains\n")[2].partition("\n## ")[0]
    titles = re.findall(r"^- \*\*(.+?)\.\*\*", listed, re.MULTILINE)
    assert sorted(titles) == sorted([*REMAINS, *UNSEALED, *BEYOND])
