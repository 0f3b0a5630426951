"""Answers to reads are parsed as botocore parses them: whatever an item holds, and whatever comes instead of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from epochal.dynamo.boto3_carrier import parse_answers

EVERY_KIND = {
    "text": {"S": "ä ✈"},
    "number": {"N": "12345678901234567890"},
    "bytes": {"B": "AAEC/w=="},
    "none": {"B": ""},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "some bytes": {"BS": ["AAE=", "AgM="]},
    "true": {"BOOL": True},
    "null": {"NULL": True},
    "list": {"L": [{"B": "AQ=="}, {"L": [{"M": {"d": {"B": "Ag=="}}}]}]},
    "map": {"M": {"B": {"S": "no bytes"}, "BS": {"B": "AQ=="}, "M": {"M": {}}}},
    "B": {"B": "AQ=="},
    "BS": {"BS": ["AQ=="]},
}

COST = {"TableName": "t", "CapacityUnits": 1.5}

ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "get_item": (
        {"TableName": "t", "Key": {"p": {"S": "a"}}},
        {"Item": EVERY_KIND, "ConsumedCapacity": COST},
    ),
    "query": (
        {"TableName": "t", "KeyConditionExpression": "p = :p"},
        {"Items": [EVERY_KIND], "Count": 1, "ScannedCount": 3, "LastEvaluatedKey": {"p": {"B": "AQ=="}}},
    ),
    "scan": ({"TableName": "t"}, {"Items": [], "Count": 0, "ScannedCount": 0, "ConsumedCapacity": COST}),
    "batch_get_item": (
        {"RequestItems": {"t": {"Keys": [{"p": {"S": "a"}}]}}},
        {
            "Responses": {"t": [EVERY_KIND], "BS": [EVERY_KIND]},
            "UnprocessedKeys": {"t": {"Keys": [{"p": {"B": "AQ=="}}], "ConsistentRead": True}},
            "ConsumedCapacity": [COST],
        },
    ),
}


class Raw(BytesIO):
    """A body as it comes from a connection."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def answering(status: int, body: bytes) -> Any:
    """A client to whom every request is answered so."""
    client = boto3.client(
        "dynamodb",
        region_name="eu-west-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
    )

    def answer(request: AWSRequest, **_: object) -> AWSResponse:
        headers = {"x-amzn-requestid": "1", "content-length": str(len(body))}
        return AWSResponse(request.url, status, headers, Raw(body))

    client.meta.events.register("before-send.dynamodb", answer)
    return client


@pytest.fixture(params=ANSWERS)
def read(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.mark.slow
def test_an_answer_is_what_botocore_makes_of_it(read: str) -> None:
    arguments, answer = ANSWERS[read]
    theirs, ours = (answering(200, json.dumps(answer).encode()) for _ in range(2))
    parse_answers(ours)
    assert getattr(ours, read)(**arguments) == getattr(theirs, read)(**arguments)


def test_it_is_not_botocore_that_parses(read: str) -> None:
    """It is told of a member that it does not know, and would leave it out."""
    arguments, answer = ANSWERS[read]
    client = answering(200, json.dumps(answer | {"Unknown": 1}).encode())
    assert "Unknown" not in getattr(client, read)(**arguments)
    parse_answers(client)
    assert getattr(client, read)(**arguments)["Unknown"] == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"null", b"<html>"], ids=repr)
def test_what_is_no_answer_is_one_without_contents(read: str, body: bytes) -> None:
    """botocore itself fails over JSON that is no object."""
    arguments, _ = ANSWERS[read]
    client = answering(200, body)
    parse_answers(client)
    assert getattr(client, read)(**arguments).keys() == {"ResponseMetadata"}


def test_an_error_is_left_to_botocore(read: str) -> None:
    arguments, _ = ANSWERS[read]
    client = answering(400, json.dumps({"__type": "x#ThrottlingException", "message": "slower"}).encode())
    parse_answers(client)
    with pytest.raises(ClientError) as caught:
        getattr(client, read)(**arguments)
    assert caught.value.response["Error"] == {"Code": "ThrottlingException", "Message": "slower"}
