"""The HTTP API over stores in memory, called with the events that API Gateway sends (payload format 2.0).

Every answer is held to the OpenAPI document, and so is every request that was accepted.
"""

from __future__ import annotations

import base64
import logging
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from epochal.codec import json
from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.contrib.sekiban.projections import ProjectionStates, states_of
from epochal.contrib.sekiban.store import DcbEvents, dcb_of
from epochal.deployment import Deployment
from epochal.feed.stream_records import Record
from epochal.http.gateway import Handler, serve
from epochal.http.routes import operations
from epochal.layout.tables import store_tables
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Reply, Transact
from epochal.plan.values import Item
from epochal.settings import WAIT_SECONDS, Settings
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBodies, MemoryBucket, MemoryObjects, memory_settings, memory_tables
from tests.support.contract import hold

TEXT_MEDIA = ("application/json", "application/javascript", "application/xml", "text/")
"""What API Gateway hands on as text; everything else arrives in base64."""


class Clock:
    """Time that passes only during sleeps; `at_sleep` is called at each sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at_sleep: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.at_sleep()


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a function's invocation."""

    seconds: float = 28.0
    aws_request_id: str = "6bc28136-xmpl-4365-b021-0ce6b2e64ab0"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of the API."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def etag(self) -> str:
        return self.headers["ETag"]

    @property
    def problem(self) -> str:
        """Type of the problem, without the prefix that all types share."""
        assert self.headers["Content-Type"] == "application/problem+json"
        assert self.json["status"] == self.status
        kind: str = self.json["type"]
        return kind.removeprefix("urn:epochal:problem:")


@dataclass
class Api:
    """Three functions over the tables of a deployment and one bucket. `around` may inject faults.

    Requests to `/streams` are sent to `store`, and where tagged events are in `pages`, those to `/dcb` to `/events` and
    `/tags`: tests of one store are those of the other.
    """

    partitions: int = 1
    store: str = "streams"
    types: tuple[str, ...] = ("order", "user-account")
    type_heads: bool = False
    pages: bool = False
    everything: bool = False
    around: Callable[[Execute], Execute] = lambda execute: execute
    tables: MemoryTables = field(default_factory=memory_tables)
    bodies: MemoryBodies = field(default_factory=MemoryBodies)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    feed_wait_seconds: int = WAIT_SECONDS
    chosen: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    indexed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        deployment = self.deployment
        self.handlers: dict[str, Handler] = {
            function: serve(function, deployment) for function in ("append", "replay", "feed")
        }

    @property
    def deployment(self) -> Deployment:
        bucket = MemoryBucket(bodies=self.bodies, objects=self.objects)
        return Deployment(settings=self.settings, driver=self.driver, bucket=bucket)

    @property
    def driver(self) -> Driver:
        execute = self.around(self.tables.execute)
        return Driver(
            execute=execute, meter=Meter(), clock=self.clock, sleep=self.clock.sleep, luck=lambda: 1.0
        )

    @property
    def streams(self) -> Streams:
        found: Streams = getattr(self.deployment, self.store)
        return found

    @property
    def settings(self) -> Settings:
        """The functions' settings with these tables."""
        return memory_settings(
            feed_wait_seconds=self.feed_wait_seconds,
            aggregate_types=self.types,
            type_heads=self.type_heads,
            tagged_types=("A", "B") if self.type_heads else (),
            tagged_everything=self.type_heads or self.everything,
            tips_partitions=self.partitions,
            **self.chosen,
        )

    @property
    def aggregates(self) -> AggregateStore:
        return opened(self.deployment)

    @property
    def tagged(self) -> DcbEvents:
        return dcb_of(self.deployment.settings, self.deployment.driver)

    @property
    def states(self) -> ProjectionStates:
        return states_of(self.deployment)

    @property
    def stored(self) -> list[Item]:
        """All items of all tables."""
        return [item for spec in store_tables() for item in self.tables.items(spec.kind)]

    def index(self) -> None:
        """Pass the changes since the previous call to the indexer."""
        indexer = replace(self.deployment, driver=replace(self.driver, execute=self.tables.execute)).indexer
        indexer.register()
        for table in (source.table for source in indexer.sources):
            changes, before = self.tables.changes(table), self.indexed.get(table, 0)
            report = indexer.index(
                Record(table=table, sequence_number=str(number), image=image)
                for number, image in enumerate(changes[before:], before)
            )
            assert not report.failed
            self.indexed[table] = len(changes)

    def append(self, stream: str, *types: str, **body: Any) -> Answer:
        """Append events of these types, whose data is their position in the call."""
        events = [{"type": kind, "data": {"n": n}} for n, kind in enumerate(types)]
        return self.call("POST", f"/streams/{stream}/events", {"events": events, **body})

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        seconds: float = 28.0,
    ) -> Answer:
        """Send a request; a body that is not bytes is sent as JSON."""
        if path.startswith("/streams") and (method, path) != ("GET", "/streams"):
            path = path.replace("streams", self.store, 1)
        if self.pages:
            path = re.sub("^/dcb/(?=query|count)", "/events/", path).replace("/dcb/", "/", 1)
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        event = gateway_event(method, path, content, query=query, headers=headers)
        return self.send(event, seconds=seconds)

    def send(self, event: dict[str, Any], *, seconds: float = 28.0) -> Answer:
        """Invoke the function that the gateway would, and check its response against the API's document."""
        answer = self.invoke(event, seconds=seconds)
        hold(event, answer.status, answer.headers, answer.text)
        return answer

    def invoke(self, event: dict[str, Any], *, seconds: float = 28.0) -> Answer:
        """Invoke the function that the gateway would."""
        method, path = event["requestContext"]["http"]["method"], event["rawPath"]
        return self.hand(_function(method, path), event, seconds=seconds)

    def hand(self, function: str, event: Any, *, seconds: float = 28.0) -> Answer:
        """Invoke a function with any event, bypassing the gateway."""
        _log_here(function)
        sent = self.handlers[function](event, Context(seconds))  # type: ignore[arg-type]
        assert sent["isBase64Encoded"] is False
        return Answer(status=sent["statusCode"], headers=sent["headers"], text=sent["body"])


def losing_one_answer(lost: list[Op]) -> Callable[[Execute], Execute]:
    """Wrap an executor: the first transaction is performed, and its response is lost with the error `lost`."""

    def around(execute: Execute) -> Execute:
        def losing(op: Op) -> Reply:
            reply = execute(op)
            if isinstance(op, Transact) and not lost:
                lost.append(op)
                raise Lost("the answer was dropped")
            return reply

        return losing

    return around


def gateway_event(
    method: str, path: str, body: bytes = b"", *, query: str = "", headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return an event as API Gateway sends it: header names in lower case, the path decoded once."""
    sent = {"content-type": "application/json"} if body else {}
    sent |= {name.lower(): value for name, value in (headers or {}).items()}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"accept": "*/*", "host": "a1.execute-api.eu-central-1.amazonaws.com", **sent},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1",
            "authentication": None,
            "authorizer": {"iam": {"userArn": "arn:aws:iam::123456789012:user/test"}},
            "domainName": "a1.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "a1",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "test",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": "$default",
            "time": "12/Mar/2020:19:03:58 +0000",
            "timeEpoch": 1583348638390,
        },
        "isBase64Encoded": False,
    }
    if body and sent.get("content-type", "").startswith(TEXT_MEDIA):
        event["body"] = body.decode("utf-8", "replace")
    elif body:
        event |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    return event


def url_event(event: dict[str, Any], sent: str) -> dict[str, Any]:
    """Return the same event as a function URL sends it, with the path as it was sent."""
    domain = "abcdefghij0123456789abcdefghij01.lambda-url.eu-central-1.on.aws"
    context = {**event["requestContext"], "domainName": domain, "domainPrefix": domain.partition(".")[0]}
    headers = {**event["headers"], "host": domain}
    return {**event, "rawPath": sent, "headers": headers, "requestContext": context}


def _function(method: str, path: str) -> str:
    matching = [each for each in operations() if each.parameters(path) is not None]
    served = [each.function for each in matching if each.method == method]
    return (served or [each.function for each in matching] or ["replay"])[0]


def _log_here(function: str) -> None:
    """Direct a function's log, which has one handler per process, to the output of the current test."""
    for handler in logging.getLogger(function).handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.stream = sys.stdout
