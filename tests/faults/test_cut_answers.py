"""An answer that is cut off, wherever, is a failure to wait out: it never passes for another answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO
from urllib.parse import urlsplit

import pytest

from epochal.contrib.equinox.port import TIPS
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.interpreter import carrier_interpreter, interpreter
from epochal.plan.conditions import Absent
from epochal.plan.failures import RequestFailure
from epochal.plan.ops import (
    BatchGet,
    Execute,
    Found,
    Get,
    Items,
    Op,
    Put,
    Query,
    Refusal,
    Reply,
    Scan,
    Together,
    Transact,
    TransactGet,
)
from epochal.plan.values import number, text
from tests.faults.proxy import Proxy, message
from tests.support.tables import Tables, light

pytestmark = pytest.mark.ddbl

KEY = {"p": text("Flight-1"), "i": number(0)}
ITEM = {**KEY, "n": number(1)}


class Cutting(Proxy):
    """Cuts every answer after `at` bytes."""

    at = 0

    def _pass_on(
        self, request: bytes, client: socket.socket, server: socket.socket, answered: BinaryIO
    ) -> bool:
        server.sendall(request)
        client.sendall(message(answered)[: self.at])
        return False


@pytest.fixture
def cutting(ddbl_tables: Tables) -> Iterator[Cutting]:
    proxy = Cutting(urlsplit(ddbl_tables.endpoint.url).port or 0, rate=0, seed=0)
    yield proxy
    proxy.close()


@pytest.fixture(params=["boto3", "light"])
def execute(request: pytest.FixtureRequest, ddbl_tables: Tables, cutting: Cutting) -> Iterator[Execute]:
    """Performs plans through what cuts their answers, by each carrier."""
    endpoint = replace(ddbl_tables.endpoint, url=cutting.url)
    if request.param == "boto3":
        client = dynamodb_client(endpoint=endpoint.url, region=endpoint.region)
        yield interpreter(client)
        client.close()
    else:
        carrier = light(endpoint)
        yield carrier_interpreter(carrier)
        carrier.close()


@pytest.mark.parametrize("apart", [28, pytest.param(7, marks=pytest.mark.proof)])
@pytest.mark.parametrize("which", range(8))
def test_an_answer_cut_after_any_number_of_bytes_is_the_right_one_or_none(
    ddbl_tables: Tables, cutting: Cutting, execute: Execute, which: int, apart: int
) -> None:
    table = ddbl_tables.create(TIPS)
    interpreter(ddbl_tables.client)(Put(table=table, item=ITEM))
    op = ops(table)[which]
    whole = interpreter(ddbl_tables.client)(op)
    failed = 0

    for cutting.at in range(0, 700, apart):
        try:
            reply = execute(op)
        except RequestFailure:
            failed += 1
        else:
            assert contents(reply) == contents(whole), f"cut after {cutting.at} bytes"
    assert failed > 100 / apart


def ops(table: str) -> list[Op]:
    refused = Put(table=table, item=ITEM, condition=Absent("i"))
    return [
        Get(table=table, key=KEY),
        BatchGet(table=table, keys=(KEY,)),
        TransactGet(keys=((table, KEY),)),
        Query(table=table, partition=("p", KEY["p"])),
        Scan(table=table),
        Put(table=table, item=ITEM),
        refused,
        Transact(writes=(refused,)),
    ]


def contents(reply: Reply) -> object:
    """What a reply says, its cost left aside."""
    match reply:
        case Found(item=item):
            return item
        case Items(items=items, last=last):
            return items, last
        case Together(items=items):
            return items
        case Refusal(items=items, failed=failed):
            return items, failed
        case _:
            return type(reply)
