"""Both carriers bring the same reply of all that DynamoDB answers, and tell the same of a server that does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest

from epochal.contrib.equinox.port import TIPS
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.interpreter import carrier_interpreter, database_name, interpreter
from epochal.errors import EpochalError
from epochal.plan.conditions import Absent, Compare
from epochal.plan.failures import Lost, RequestFailure, RequestNotApplied, Unreached
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Execute,
    Get,
    Op,
    Put,
    Query,
    Scan,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import number, text
from tests.faults.proxy import message
from tests.support.tables import Tables, light

KEYS = [{"p": text("Flight-1"), "i": number(k)} for k in range(10)]
EVERYTHING = {
    **KEYS[0],
    "text": text("ä ✈ \0"),
    "number": number(10**37),
    "bytes": {"B": bytes(range(256))},
    "none": {"B": b""},
    "some": {"BS": [b"a", b"\xff"]},
    "list": {"L": [{"B": b"a"}, {"M": {"B": {"B": b"b"}, "BS": {"BS": [b"c"]}, "S": {"NULL": True}}}]},
}


def conversation(table: str, missing: str) -> list[Op]:
    """One after the other, of each kind, applied and refused."""
    first, second = KEYS[:2]
    absent = Absent("i")
    both = (
        Put(table=table, item=second, condition=absent),
        Check(table=table, key=first, condition=Compare("n", "=", number(1))),
    )
    return [
        Put(table=table, item=EVERYTHING, condition=absent),
        Put(table=table, item=EVERYTHING, condition=absent),
        Update(table=table, key=first, sets=(Set("n", number(1)),), removes=("text",)),
        Update(table=table, key=first, sets=(Set("n", number(2)),), condition=Compare("n", "=", number(9))),
        Get(table=table, key=first),
        Get(table=table, key=second),
        Transact(writes=both),
        Transact(writes=both),
        Transact(writes=(Put(table=table, item=KEYS[2]),), token=table),
        Transact(writes=(Put(table=table, item=KEYS[3]),), token=table),
        TransactGet(keys=((table, first), (table, KEYS[9]))),
        BatchGet(table=table, keys=tuple(KEYS[:5])),
        *(Put(table=table, item={**key, "pad": {"B": bytes(100_000)}}) for key in KEYS[3:6]),
        Query(table=table, partition=("p", text("Flight-1")), sort=("i", number(0), number(2))),
        Query(table=table, partition=("p", text("Flight-1")), only_count=True),
        Query(table=table, partition=("p", text("Flight-1")), limit=2, forward=False),
        Scan(table=table, limit=1, consistent=True),
        Delete(table=table, key=first, condition=Compare("n", "=", number(9))),
        Delete(table=table, key=first),
        Put(table=table, item={**first, "pad": {"B": bytes(500_000)}}),
        Put(table=table, item={"q": text("other keys")}),
        Get(table=missing, key=first),
        Query(table=table, partition=("q", text("a"))),
        Update(table=table, key=first, sets=(Set("p", text("a")),)),
    ]  # fmt: skip


def told(execute: Execute, table: str) -> list[tuple[str, object]]:
    """What came of each: a reply, or an error."""
    found: list[tuple[str, object]] = []
    for op in conversation(table, "there-is-no-such-table"):
        try:
            reply: object = execute(op)
        except (EpochalError, RequestFailure) as error:
            reply = type(error), str(error).replace(table, "the table")
        found.append((type(op).__name__, reply))
    return found


@pytest.mark.ddbl
def test_every_reply_is_the_same(ddbl_tables: Tables) -> None:
    carrier, there = light(ddbl_tables.endpoint), ddbl_tables.client.meta
    where = partial(database_name, there.region_name, there.endpoint_url)
    ours = told(carrier_interpreter(carrier, where), ddbl_tables.create(TIPS))
    assert ours == told(interpreter(ddbl_tables.client), ddbl_tables.create(TIPS))
    carrier.close()


def read(client: socket.socket) -> None:
    """Take a request."""
    with client.makefile("rb") as asked:
        message(asked)


class Server:
    """A server that does one thing with whoever connects."""

    def __init__(self, behave: Callable[[socket.socket], object]) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client:
                    self._behave(client)

    def close(self) -> None:
        """Every connection is closed when this returns: a client that asks afterwards finds that before it sends."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


@pytest.fixture(params=["boto3", "light"])
def at(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Execute]]:
    """Performs plans at an address, by each carrier."""
    made = []

    def execute_at(url: str) -> Execute:
        endpoint = Endpoint(url=url)
        if request.param == "light":
            made.append(light(endpoint))
            return carrier_interpreter(made[-1])
        made.append(dynamodb_client(endpoint=url, region=endpoint.region))
        return interpreter(made[-1])

    yield execute_at
    for each in made:
        each.close()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


GET = Get(table="t", key=KEYS[0])
WHOLE = b'HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n{"ConsumedCapacity":{"CapacityUnits":1.0}}'


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        WHOLE[:9],
        WHOLE[:40],
        WHOLE[:-1],
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
    ids=["none", "half a line", "half a head", "half a body", "an internal error", "no HTTP"],
)
def test_a_request_without_a_whole_answer_may_have_been_applied(
    at: Callable[[str], Execute], answer: bytes
) -> None:
    def behave(client: socket.socket) -> None:
        read(client)
        client.sendall(answer)

    server = Server(behave)
    with pytest.raises(Lost):
        at(server.url)(Put(table="t", item=KEYS[0]))
    server.close()


def test_a_request_that_no_connection_was_made_for_was_not_applied(at: Callable[[str], Execute]) -> None:
    def behave(client: socket.socket) -> None:
        read(client)
        client.sendall(WHOLE)

    server = Server(behave)
    execute = at(server.url)
    assert execute(GET).units.read == 1.0
    server.close()
    with pytest.raises(RequestNotApplied) as later:
        execute(GET)
    assert not isinstance(later.value, Unreached)
    with pytest.raises(Unreached):
        at(server.url)(GET)


def test_a_body_does_not_wait_until_its_headers_are_acknowledged(
    at: Callable[[str], Execute], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[tuple[object, ...]] = []

    class Noting(socket.socket):
        def setsockopt(self, *option: object) -> None:  # type: ignore[override]
            chosen.append(option)
            super().setsockopt(*option)  # type: ignore[arg-type]

    server = Server(read)
    monkeypatch.setattr(socket, "socket", Noting)
    with pytest.raises(Lost):
        at(server.url)(GET)
    assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) in chosen
    server.close()
