"""CPU that an append by token takes, beside boto3 updating the same bytes without a library.

One thread asks a server of this process, which grants everything: what is counted is the asking thread's own time. Ways
take turns, and what counts is the middle of the ratios, so a busy machine disturbs both alike.

    light       the store through the light carrier, as it is opened
    boto3       the store through a client of boto3's
    function    the handler of the function `append`, asked over the gateway: no boto3 either
    bare        `update_item` of boto3's client with the very parameters that the store sends

Bounds: `light` at most 0.42 times `bare`, and `function` 0.72.
"""

from __future__ import annotations

import io
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import boto3
from botocore.config import Config

from bench.corpus import body
from bench.functions import CONTEXT, request
from bench.pages import store
from bench.report import Report, progress
from bench.rounds import Compared
from epochal.dynamo.carriers import LightCarrier
from epochal.dynamo.interpreter import carrier_interpreter, interpreter, open_deployment
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.signatures import FixedKeys
from epochal.http.gateway import serve
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM
from epochal.model.outcomes import Appended
from epochal.plan.ops import Execute
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter

BOUNDS: Final = {"light": 0.42, "function": 0.72}
ROUNDS: Final = 15
APPENDS: Final = 20

_BODY: Final = b'{"ConsumedCapacity":{"CapacityUnits":1.0,"TableName":"streams"},"Items":[]}'
"""The response to any request."""

_GRANTED: Final = (
    b"HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Sun, 22 Nov 2026 10:00:00 GMT\r\n"
    b"Content-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\nConnection: keep-alive\r\n"
    b"x-amzn-RequestId: ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789VV4KQNSO5AEMVJF66Q9ASUAAJG\r\n\r\n%s"
) % (len(_BODY), _BODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """CPU seconds of one append."""

    seconds: float


@contextmanager
def granting() -> Iterator[str]:
    """Start a server that grants every request, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_grant, args=(client,), daemon=True).start()


def _grant(client: socket.socket) -> None:
    with suppress(OSError), client, client.makefile("rb") as request:
        while line := request.readline():
            length = 0
            while line not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                line = request.readline()
            request.read(length)
            client.sendall(_GRANTED)


def compared(rounds: int = ROUNDS) -> Compared[Took]:
    """Measure each way of appending over several rounds."""
    with redirect_stdout(io.StringIO()), granting() as url, _ways(url) as ways:  # the function's metrics
        for way in ways.values():
            way()
        return Compared(
            rounds=tuple({name: _timed(way) for name, way in ways.items()} for _ in range(rounds))
        )


def _timed(append: Callable[[], object]) -> Took:
    began = time.thread_time()
    for _ in range(APPENDS):
        append()
    return Took(seconds=(time.thread_time() - began) / APPENDS)


@contextmanager
def _ways(url: str) -> Iterator[Mapping[str, Callable[[], object]]]:
    place: Any = {"region_name": "eu-central-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = boto3.client("dynamodb", endpoint_url=url, config=Config(max_pool_connections=32), **place)
    carrier = LightCarrier(Service(url=url, region="eu-central-1", credentials=FixedKeys("test", "test")))
    sent: list[DynamoRequest] = []

    def noting(request: DynamoRequest) -> dict[str, Any]:
        sent.append(request)
        return carrier(request)

    with closing(client), closing(carrier):
        _appending(carrier_interpreter(noting))()
        assert sent[-1].operation == "UpdateItem"
        yield {
            "bare": lambda: client.update_item(**sent[-1].parameters),
            "light": _appending(carrier_interpreter(carrier)),
            "boto3": _appending(interpreter(client)),
            "function": _handling(carrier_interpreter(carrier)),
        }


def _appending(execute: Execute) -> Callable[[], Appended]:
    """Return a function that appends one event by a token, always the same token, as the server grants anything."""
    streams = store(Driver(execute=execute, meter=Meter()), "streams")
    event = Event(type="Happened", data=body(random.Random(1), 600, "json"))
    token = streams.append("Bench-1", [event], expected=NO_STREAM).token
    return lambda: streams.append("Bench-1", [event], expected=token)


def _handling(execute: Execute) -> Callable[[], object]:
    """Return a function that invokes the `append` function as Lambda does, with metrics switched on."""
    handler = serve("append", open_deployment(Settings.of(streams_table="streams"), execute=execute))
    handler.__self__._metrics.keep()  # type: ignore[attr-defined]  # noqa: SLF001
    data = json.loads(body(random.Random(1), 600, "json"))
    payload = {"events": [{"type": "Happened", "data": data}]}

    def ask(event: dict[str, Any]) -> str:
        answer = handler(event, CONTEXT)
        assert answer["statusCode"] == HTTPStatus.CREATED, answer
        return str(answer["headers"]["ETag"])

    etag = ask(request("/streams/Bench-1/events", payload, None, None))
    event = request("/streams/Bench-1/events", payload, etag, None)
    return lambda: ask(event)


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    (comparison,) = progress("append-cpu", (compared() for _ in range(1)), 1)
    Report(
        title="CPU of an append by token: the middle of the rounds",
        columns=["way", "µs", "times"],
        rows=[
            (way, f"{comparison.took(way).seconds * 1e6:.0f}", f"{1 / comparison.ratio(way, 'bare'):.2f}")
            for way in ("bare", "light", "boto3", "function")
        ],
    ).print()
    if over := [way for way, most in BOUNDS.items() if comparison.ratio(way, "bare") < 1 / most]:
        raise SystemExit(f"more of the CPU of a bare update than bounded: {', '.join(over)}")


if __name__ == "__main__":
    main()
