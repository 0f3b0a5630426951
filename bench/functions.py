"""The deployed functions' real handlers over tables in memory: what they ask of DynamoDB and SNS, answer and log.

Time is what the benchmark says, so that a line of metrics holds as many requests as it would at that pace. Each
function has one environment throughout.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import logging
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final, Literal
from zlib import crc32

from bench.corpus import body
from epochal.deployment import Deployment
from epochal.dynamo import clients, interpreter
from epochal.hosting import metrics
from epochal.hosting.leases import Beat
from epochal.hosting.metrics import Metrics
from epochal.hosting.reaction_function import ReactionFunction
from epochal.hosting.wakeup_queue import Queue
from epochal.http import gateway
from epochal.http.gateway import Handler, serve
from epochal.plan.ops import Op, Reply
from epochal.plan.values import AttributeValue, Item, Units
from epochal.reactions.definition import reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.settings import SERVICE_NAME
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings, memory_tables

LAMBDAS: Final = Path(__file__).resolve().parent.parent / "lambdas"
INDEX: Final = "index"
HEADS: Final = ("tips", "streams")
"""Tables of named streams."""


def _fresh_key(luck: random.Random) -> str:
    """Return a UUIDv7 of now, whose millisecond began after the previous append.

    Real appends to one stream are seldom so close together that a key tells the millisecond of the one before, which
    costs a read. How many are here would depend on how fast the machine is.
    """
    before = time.time_ns() // 10**6
    while (now := time.time_ns() // 10**6) == before:
        pass
    return str(uuid.UUID(f"{now:012x}7000{0x8000 << 48 | luck.getrandbits(48):016x}"))


class _Context:
    aws_request_id = "6bc28136-1111-4365-b021-0ce6b2e64ab0"

    def get_remaining_time_in_millis(self) -> int:
        return 28_000


CONTEXT: Final[Any] = _Context()
"""What a function knows of its invocation."""


@dataclass(slots=True)
class Used:
    """Figures of a function's invocations. `requests` are those to DynamoDB, `messages` those that its queue received,
    `leases` those that extend the visibility of messages.
    """

    invocations: int = 0
    requests: int = 0
    units: Units = field(default_factory=Units)
    logged: int = 0
    answered: int = 0
    published: int = 0
    messages: int = 0
    leases: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How a stage is used.

    Attributes:
        streams: number of streams that the appends go to in turn.
        keyed: whether each append has an idempotency key that needs a record.
        timed: whether each append has an idempotency key that ends with a UUIDv7.
        unconditional: whether appends expect no version.
        loads: whether the events of its stream are read before each append, from the first on.
        shards: number of shards of the table's stream; each has an indexer.
        partitions: number of partitions of the feed.
        reactions: number of reactions, which handle every event and do nothing.
    """

    streams: int = 15
    keyed: bool = False
    timed: bool = False
    unconditional: bool = False
    loads: bool = False
    shards: int = 1
    partitions: int = 1
    reactions: int = 0


@dataclass(slots=True, kw_only=True)
class Functions:
    """The functions `append` and `indexer` and one per reaction, each in its own environment.

    Args:
        layout: where in the API the streams are: `streams`, which are pages, or `tips`.
    """

    layout: str = "streams"
    use: Use = field(default_factory=Use)
    now: float = 0.0
    tables: MemoryTables = field(default_factory=memory_tables)
    used: dict[str, Used] = field(default_factory=dict)
    _running: str = ""
    _metrics: list[tuple[str, Metrics]] = field(default_factory=list)
    _notices: list[dict[str, Any]] = field(default_factory=list)
    _adding: Lock = field(default_factory=Lock)
    _etags: dict[str, str] = field(default_factory=dict)
    _appended: int = 0

    def append(
        self,
        count: int,
        *,
        pace: float,
        together: int,
        take: Callable[[], object],
        every: int,
        bulk: int = 1,
    ) -> None:
        """Append `count` events at `pace` a second to the streams in turn, each on the ETag of the one before.

        Args:
            together: events of an append.
            bulk: appends of a request.
            take: called after each `every` events.
        """
        rng, handler, appends = random.Random(count), self._api("append"), list[dict[str, Any]]()
        loading = self._api("replay") if self.use.loads else None
        first = self._appended
        self._appended += count // together
        for number in range(first, self._appended):
            stream = f"Aircraft-N{100 + number % self.use.streams}AA"
            data = [json.loads(body(rng, 300, "json")) for _ in range(together)]
            events = [{"type": "FlightDeparted", "data": datum} for datum in data]
            key = _fresh_key(rng) if self.use.timed else f"departure-{number}" if self.use.keyed else None
            if loading is not None and stream in self._etags:
                self._answered("replay", loading, _reading(stream), 200)
            if bulk > 1:
                appends.append(self._of_bulk(stream, events, key, appends))
                if len(appends) == bulk:
                    self._append_each(handler, appends)
                    appends = []
            else:
                self._append_one(handler, stream, events, key)
            self.now += together / pace
            if (number + 1) * together % every == 0:
                take()

    def _append_one(self, handler: Handler, stream: str, events: Sequence[Any], key: str | None) -> None:
        etag = "" if self.use.unconditional else self._etags.get(stream)
        event = request(f"/{self.layout}/{stream}/events", {"events": events}, etag, key)
        self._etags[stream] = self._answered("append", handler, event, 201)["headers"]["ETag"]

    def _of_bulk(
        self, stream: str, events: Sequence[Any], key: str | None, before: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return an append of a bulk request: the first of a stream expects the token, the others any version."""
        etag = self._etags.get(stream, '"no_stream"').strip('"')
        expected = {} if any(member["stream"] == stream for member in before) else {"expected": etag}
        return {
            "stream": stream,
            "events": events,
            **expected,
            **({} if key is None else {"idempotencyKey": key}),
        }

    def _append_each(self, handler: Handler, appends: Sequence[Mapping[str, Any]]) -> None:
        answer = self._answered("append", handler, request("/appends", {"appends": appends}, "", None), 200)
        for result in json.loads(answer["body"])["results"]:
            if result["status"] != 201:  # noqa: PLR2004
                raise AssertionError(result)
            self._etags[result["stream"]] = f'"{result["token"]}"'

    def _answered(
        self, function: str, handler: Handler, event: dict[str, Any], status: int
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self.invoke(function, partial(handler, event, CONTEXT))
        if answer["statusCode"] != status:
            raise AssertionError(answer["body"])
        head = sum(len(name) + len(value) + 4 for name, value in answer["headers"].items())
        self.used[function].answered += head + len(answer["body"])
        return answer

    def follower(self) -> Callable[[], None]:
        """Return a function that follows the streams of all tables: new records go to the indexer, its notices to the
        reactions.
        """
        indexers = [self._load("indexer") for _ in range(self.use.shards)]
        reactions = [self._reaction(number) for number in range(self.use.reactions)]
        seen: dict[str, int] = {}

        def new(table: str) -> list[Item]:
            changes, before = self.tables.changes(table), seen.get(table, 0)
            seen[table] = len(changes)
            return list(changes[before:])

        def follow() -> None:
            for table in HEADS:
                heads = new(table)
                for shard, indexer in enumerate(indexers):
                    if its := [
                        head for head in heads if crc32(head["p"]["S"].encode()) % len(indexers) == shard
                    ]:
                        self.invoke("indexer", partial(indexer.handler, _event(table, its), CONTEXT))
            groups: dict[str, list[dict[str, Any]]] = {}
            for entry in self._notices:
                groups.setdefault(entry["MessageGroupId"], []).append(_message(entry))
            self._notices.clear()
            for reaction_ in reactions:
                # Of a FIFO queue Lambda takes a partition's first message at once, and what comes meanwhile together.
                for first, *others in groups.values():
                    for some in filter(None, ([first], others)):
                        self.invoke("reaction", partial(reaction_.handle, {"Records": some}, CONTEXT))
                    self.used["reaction"].messages += 1 + len(others)

        return follow

    def _reaction(self, number: int) -> ReactionFunction:
        reacting = reaction(name=f"reaction-{number}", categories=["Aircraft"])(lambda _: None)
        self._running = "reaction"
        member = Member(reaction=reacting, reader=self._deployment().feed)
        function = ReactionFunction(
            reactor=Reactor(member=member),
            queue=Queue(self, "queue"),  # type: ignore[arg-type]  # it answers as the client does
            logger=logging.getLogger("reaction"),  # type: ignore[arg-type]  # none fails, so it logs nothing
            metrics=self._metrics_of("epochal-prod-reaction"),
            beats=_once,
        )
        self.used["reaction"] = Used()
        return function

    def invoke(self, function: str, run: Callable[[], Any]) -> Any:
        """Invoke a function, and count its figures."""
        used = self.used.setdefault(function, Used())
        used.invocations += 1
        self._running = function
        with _logged(used), _replaced(clients, "service_client", lambda *_, **__: self):
            return run()

    def end(self) -> None:
        """Shut the environments down, as Lambda does."""
        for function, counted in self._metrics:
            with _logged(self.used[function]):
                counted.write_all()

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        """Stand in for the client of the queue."""
        self.used[self._running].leases += 1
        return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}

    def publish_batch(self, **request: Any) -> dict[str, Any]:
        """Stand in for the client of the topic."""
        self.used[self._running].published += 1
        self._notices += request["PublishBatchRequestEntries"]
        return {}

    def _execute(self, op: Op) -> Reply:
        reply = self.tables.execute(op)
        with self._adding:  # a reaction reads several streams side by side, and many appends are made so
            used = self.used.setdefault(self._running, Used())
            used.units += reply.units
            used.requests += 1
        return reply

    def _deployment(self, *_: object, **__: object) -> Deployment:
        driver = Driver(execute=self._execute, meter=Meter())
        settings = memory_settings(pages_partitions=self.use.partitions)
        return Deployment(settings=settings, driver=driver, bucket=MemoryBucket())

    def _metrics_of(self, service: str) -> Metrics:
        counted = Metrics(service, kept=True, now=lambda: 1_763_800_000 + self.now)
        self._metrics.append((service.rpartition("-")[2], counted))
        return counted

    def _api(self, function: Literal["append", "replay"]) -> Handler:
        with self._made(function, gateway):
            return serve(function, self._deployment())

    def _load(self, function: str) -> Any:
        spec = importlib.util.spec_from_file_location(
            f"{function}_handler", LAMBDAS / function / "handler.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with self._made(function, metrics):
            spec.loader.exec_module(module)
        return module

    @contextmanager
    def _made(self, function: str, importer: ModuleType) -> Iterator[None]:
        """Load a function's module, whose metrics and deployment are replaced for the duration of the block."""
        self._running = function
        os.environ[SERVICE_NAME] = f"epochal-prod-{function}"
        with ExitStack() as stack:
            stack.callback(os.environ.pop, SERVICE_NAME)
            stack.enter_context(_replaced(importer, "metrics_of", self._metrics_of))
            stack.enter_context(_replaced(interpreter, "open_deployment", self._deployment))
            yield
        # Whatever a start takes, it is not once for each request.
        self.used[function] = Used()


@contextmanager
def _replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _logged(used: Used) -> Iterator[None]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        yield
    used.logged += len(printed.getvalue().encode())


def _once(renew: Callable[[], object]) -> Beat:
    """Stand in for a lease: the invocation ends before it is renewed."""
    renew()
    return Beat(wait=lambda: None, stop=lambda: None)


def _message(notice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the queue's message for a notice."""
    return {
        "messageId": notice["MessageDeduplicationId"],
        "receiptHandle": notice["MessageDeduplicationId"],
        "body": notice["Message"],
        "attributes": {"MessageGroupId": notice["MessageGroupId"]},
    }


def request(path: str, document: Mapping[str, Any], etag: str | None, key: str | None) -> dict[str, Any]:
    """Return the event that the gateway passes to the function `append`."""
    expected = {"if-none-match": "*"} if etag is None else {"if-match": etag} if etag else {}
    if key is not None:
        expected["idempotency-key"] = key
    context = {"requestId": "JKJaXmPLvHcESHA=", "stage": "$default", "http": {"method": "POST", "path": path}}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", **expected},
        "requestContext": context,
        "body": json.dumps(document),
        "isBase64Encoded": False,
    }


def _reading(stream: str) -> dict[str, Any]:
    path = f"/streams/{stream}/events"
    context = {"requestId": "JKJaXmPLvHcESHA=", "stage": "$default", "http": {"method": "GET", "path": path}}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"accept-encoding": "gzip"},
        "requestContext": context,
        "isBase64Encoded": False,
    }


def _event(table: str, images: Sequence[Item]) -> dict[str, Any]:
    """Return the event that Lambda passes on from a table's stream."""
    arn = f"arn:aws:dynamodb:eu-central-1:123456789012:table/{table}/stream/2026-01-01T00:00:00.000"
    return {
        "Records": [
            {
                "eventName": "MODIFY",
                "eventSource": "aws:dynamodb",
                "eventSourceARN": arn,
                "dynamodb": {
                    "SequenceNumber": str(number),
                    "NewImage": {name: _wire(value) for name, value in image.items()},
                },
            }
            for number, image in enumerate(images)
        ]
    }


def _wire(value: AttributeValue) -> AttributeValue:
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": base64.b64encode(content).decode()}
        case "L":
            return {"L": [_wire(member) for member in content]}
        case "M":
            return {"M": {name: _wire(member) for name, member in content.items()}}
        case _:
            return {kind: content}
