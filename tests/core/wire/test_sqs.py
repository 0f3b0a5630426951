"""What is sent to queues without botocore is what botocore's client sends, and so is what is made of answers."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.loaders import create_loader
from botocore.session import Session

from epochal.dynamo.wire.batches import TRIES
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.http import HttpAnswer, NoAnswer, Unsent
from epochal.dynamo.wire.signatures import FixedKeys
from epochal.dynamo.wire.sqs import MEDIA, LightQueues, queue_client
from epochal.errors import InvalidRequest, Unavailable

REGION = "eu-central-1"
URL = f"https://sqs.{REGION}.amazonaws.com"
QUEUE = f"{URL}/123456789012/epochal-prod-reaction-board.fifo"
NOW = datetime(2026, 11, 26, 21, 5, 7, tzinfo=UTC)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKID",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_SESSION_TOKEN": "token",
}
UNUSUAL = ("", " ", "a b", "ä ✈ 😀", "&x=1", '"', "\\", "\n\t", "</x>", "x" * 3_000)

Reply = tuple[int, bytes] | Exception


def taken(*ids: str, failed: Mapping[str, str] | None = None) -> bytes:
    """An answer as SQS writes it."""
    answer: dict[str, Any] = {"Successful": [{"Id": each} for each in ids]}
    if failed:
        answer["Failed"] = [
            {"Id": each, "Code": code, "Message": "no", "SenderFault": False} for each, code in failed.items()
        ]
    return json.dumps(answer).encode()


def refused(code: str, message: str = "no") -> bytes:
    return json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": message}).encode()


def change(id_: str, receipt: str = "r", seconds: int = 45) -> dict[str, Any]:
    return {"Id": id_, "ReceiptHandle": receipt, "VisibilityTimeout": seconds}


class Sqs:
    """Answers one request after another, and keeps what was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[Mapping[str, str], bytes]] = []
        self.slept: list[float] = []

    def light(self, region: str = REGION) -> LightQueues:
        service = Service(url=URL, region=region, credentials=FixedKeys("AKID", "secret", "token"))
        made = LightQueues(service, sleep=self.slept.append, luck=lambda: 0.5)
        made._batches._signer.now = NOW.timestamp  # noqa: SLF001
        made._batches._connections.send = self._send  # type: ignore[method-assign]  # noqa: SLF001
        return made

    def boto3(self) -> Any:
        client = Session().create_client(
            "sqs",
            REGION,
            aws_access_key_id="AKID",
            aws_secret_access_key="secret",
            aws_session_token="token",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.meta.events.register("before-send.sqs", self._boto3s)
        return client

    def _send(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        self.asked.append((headers, body))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply[0], {}, reply[1]

    def _boto3s(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        status, _, body = self._send({k: _text(v) for k, v in request.headers.items()}, request.body)
        return AWSResponse(request.url, status, {}, _Raw(body))


class _Raw(BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.read()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


LOADER = cache(create_loader)
"""One for all: a session reads botocore's descriptions of services for itself."""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any AWS configuration, on which time stands still."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "moto", raising=False)
    monkeypatch.setattr("botocore.session.create_loader", LOADER)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: NOW)


def messages(seed: int, count: int) -> Iterator[list[dict[str, Any]]]:
    luck = random.Random(seed)
    for _ in range(count):
        words = lambda: "".join(luck.choices(UNUSUAL, k=luck.randint(1, 4)))  # noqa: E731
        yield [
            {
                "Id": str(number),
                "MessageBody": words(),
                "MessageGroupId": words(),
                "MessageDeduplicationId": words(),
                "MessageAttributes": {
                    f"{key}{words()}": {"DataType": "Number", "StringValue": words()}
                    for key in range(luck.randint(0, 3))
                },
            }
            for number in range(luck.randint(1, 10))
        ]


@pytest.mark.slow
def test_messages_are_sent_as_by_botocores_client() -> None:
    ours, theirs = Sqs((200, b"")), Sqs((200, b""))
    light, client = ours.light(), theirs.boto3()
    for batch in messages(29, 100):
        ours.replies = theirs.replies = [(200, taken(*(each["Id"] for each in batch)))]
        light.send_message_batch(QueueUrl=QUEUE, Entries=batch)
        client.send_message_batch(QueueUrl=QUEUE, Entries=batch)
        _assert_same(ours, theirs)


@pytest.mark.slow
def test_visibility_is_changed_as_by_botocores_client() -> None:
    ours, theirs = Sqs((200, taken("0", "1"))), Sqs((200, taken("0", "1")))
    batch = [change("0", "AQEB+/= x", 0), change("1", "ä", 43_200)]
    ours.light().change_message_visibility_batch(QueueUrl=QUEUE, Entries=batch)
    theirs.boto3().change_message_visibility_batch(QueueUrl=QUEUE, Entries=batch)
    _assert_same(ours, theirs)


def _assert_same(ours: Sqs, theirs: Sqs) -> None:
    (headers, body), (expected, text) = ours.asked[-1], theirs.asked[-1]
    assert json.loads(body) == json.loads(text)
    for name in ("Content-Type", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Target"):
        assert headers[name] == expected[name]


@pytest.mark.parametrize("region", [REGION, "us-east-1"])
def test_a_signature_is_botocores(region: str) -> None:
    sqs = Sqs((200, taken("1")))
    sqs.light(region).change_message_visibility_batch(QueueUrl=QUEUE, Entries=[change("1", "ä")])
    ((headers, body),) = sqs.asked
    named = {"Content-Type": MEDIA, "X-Amz-Target": "AmazonSQS.ChangeMessageVisibilityBatch"}
    theirs = AWSRequest("POST", URL, headers=named, data=body)
    botocore.auth.SigV4Auth(Credentials("AKID", "secret", "token"), "sqs", region).add_auth(theirs)
    assert headers["Authorization"] == theirs.headers["Authorization"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ids", "failed"),
    [(("1", "2"), {}), (("1",), {"2": "InternalError"}), ((), {"1": "A", "2": "B"})],
    ids=str,
)
def test_what_was_changed_and_what_was_not_is_read_as_by_botocore(
    ids: tuple[str, ...], failed: dict[str, str]
) -> None:
    answer = (200, taken(*ids, failed=failed))
    batch = [change("1"), change("2")]
    ours = Sqs(answer).light().change_message_visibility_batch(QueueUrl=QUEUE, Entries=batch)
    theirs = Sqs(answer).boto3().change_message_visibility_batch(QueueUrl=QUEUE, Entries=batch)
    assert ours == {kind: theirs.get(kind, []) for kind in ("Successful", "Failed")}


@pytest.mark.slow
@pytest.mark.parametrize("code", ["QueueDoesNotExist", "AccessDeniedException", "InvalidParameterValue"])
def test_a_request_that_is_refused_is_sent_once(code: str) -> None:
    answer = (400, refused(code, "why <not>"))
    sqs = Sqs(answer)
    with pytest.raises(InvalidRequest) as raised:
        sqs.light().change_message_visibility_batch(QueueUrl=QUEUE, Entries=[change("1")])
    with pytest.raises(ClientError) as theirs:
        Sqs(answer).boto3().change_message_visibility_batch(QueueUrl=QUEUE, Entries=[change("1")])
    assert (raised.value.action, raised.value.message) == (
        theirs.value.operation_name,
        theirs.value.response["Error"]["Message"],
    )
    assert raised.value.code == code
    assert len(sqs.asked) == 1


PASSING: list[Reply] = [
    (400, refused("RequestThrottled")),
    (400, refused("ThrottlingException")),
    (429, b""),
    (500, refused("InternalFailure")),
    (502, b"<html>bad gateway</html>"),
    (503, b""),
    NoAnswer("closed"),
    Unsent("refused", address=URL, nowhere=True),
]


@pytest.mark.parametrize("reply", PASSING, ids=str)
def test_what_passes_by_itself_is_tried_again_the_same_and_after_a_pause(reply: Reply) -> None:
    sqs = Sqs(reply, reply, (200, taken("1")))
    answer = sqs.light().change_message_visibility_batch(QueueUrl=QUEUE, Entries=[change("1")])
    assert [each["Id"] for each in answer["Successful"]] == ["1"]
    assert [body for _, body in sqs.asked] == [sqs.asked[0][1]] * 3
    assert sqs.slept == [0.5, 1.0]


@pytest.mark.parametrize("reply", PASSING, ids=str)
def test_what_does_not_pass_is_said_after_as_many_tries_as_botocores(reply: Reply) -> None:
    sqs = Sqs(reply)
    with pytest.raises(Unavailable):
        sqs.light().change_message_visibility_batch(QueueUrl=QUEUE, Entries=[change("1")])
    assert len(sqs.asked) == TRIES == 4


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"<html>log in here</html>",
        b"\xff\xfe",
        taken("1")[:-1],
        taken("2"),
        taken("1", "2"),
        taken(),
        b'{"Successful": "1"}',
        b'{"Successful": ["1"]}',
        b'{"Successful": null, "Failed": [{"Id": "1"}]}',
    ],
)
def test_success_that_does_not_name_what_was_sent_is_not_believed(body: bytes) -> None:
    with pytest.raises(Unavailable, match="not SQS's"):
        Sqs((200, body)).light().change_message_visibility_batch(QueueUrl=QUEUE, Entries=[change("1")])


@pytest.mark.parametrize("code", ["x" * 500, "a b", "&\n", "", "ä"])
def test_a_code_that_is_none_of_aws_is_not_repeated(code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Sqs((400, refused(code))).light().change_message_visibility_batch(
            QueueUrl=QUEUE, Entries=[change("1")]
        )
    assert raised.value.code == "400"


def test_botocores_client_asks_where_the_environment_does_not_say_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert isinstance(queue_client(lambda: "botocore's"), LightQueues)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    assert queue_client(lambda: "botocore's") == "botocore's"


def test_a_mock_of_aws_is_not_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "moto", os)
    assert queue_client(lambda: "botocore's") == "botocore's"
