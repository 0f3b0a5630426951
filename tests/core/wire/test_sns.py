"""What is published without botocore is what botocore's client publishes, and so is what is made of answers."""

from __future__ import annotations

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
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.loaders import create_loader
from botocore.session import Session

from epochal.dynamo.wire.batches import TRIES
from epochal.dynamo.wire.environment import Service, service_from_environment
from epochal.dynamo.wire.http import HttpAnswer, NoAnswer, Unsent
from epochal.dynamo.wire.signatures import FixedKeys
from epochal.dynamo.wire.sns import MEDIA, LightTopics, topic_client
from epochal.errors import InvalidRequest, Unavailable
from epochal.feed.notices import Topic
from epochal.index.checkpoints import Checkpoint

REGION = "eu-central-1"
URL = f"https://sns.{REGION}.amazonaws.com"
ARN = f"arn:aws:sns:{REGION}:123456789012:notices.fifo"
NOW = datetime(2026, 11, 26, 21, 5, 7, tzinfo=UTC)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKID",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_SESSION_TOKEN": "token",
}
UNUSUAL = ("", " ", "a b", "a+b", "ä ✈ 😀", "&x=1", "%41", "</Message>", "\n\t\0", "'\"", "x" * 3_000)

Reply = tuple[int, bytes] | Exception


def taken(*ids: str, failed: Mapping[str, str] | None = None) -> bytes:
    """An answer as SNS writes it."""
    ok = "".join(
        f"<member><MessageId>m{each}</MessageId><Id>{each}</Id><SequenceNumber>1</SequenceNumber></member>"
        for each in ids
    )
    bad = "".join(
        f"<member><Id>{each}</Id><Code>{code}</Code><Message>no &amp; never</Message>"
        "<SenderFault>false</SenderFault></member>"
        for each, code in (failed or {}).items()
    )
    return (
        '<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">\n  <PublishBatchResult>\n'
        f"    <Successful>{ok}</Successful>\n    <Failed>{bad}</Failed>\n  </PublishBatchResult>\n"
        "  <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>\n</PublishBatchResponse>\n"
    ).encode()


def refused(code: str, message: str = "no") -> bytes:
    return (
        '<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{message}</Message></Error><RequestId>r</RequestId></ErrorResponse>"
    ).encode()


def entry(number: str, message: str, **more: Any) -> dict[str, Any]:
    return {"Id": number, "Message": message, **more}


class Sns:
    """Answers one request after another, and keeps what was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[Mapping[str, str], bytes]] = []
        self.slept: list[float] = []

    def light(self, region: str = REGION, bundle: str = "") -> LightTopics:
        keys = FixedKeys("AKID", "secret", "token")
        service = Service(url=URL, region=region, credentials=keys, bundle=bundle)
        made = LightTopics(service, sleep=self.slept.append, luck=lambda: 0.5)
        made._batches._signer.now = NOW.timestamp  # noqa: SLF001
        made._batches._connections.send = self._send  # type: ignore[method-assign]  # noqa: SLF001
        return made

    def boto3(self) -> Any:
        client = Session().create_client(
            "sns",
            REGION,
            aws_access_key_id="AKID",
            aws_secret_access_key="secret",
            aws_session_token="token",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.meta.events.register("before-send.sns", self._boto3s)
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


def batches(seed: int, count: int) -> Iterator[list[dict[str, Any]]]:
    luck = random.Random(seed)
    for _ in range(count):
        words = lambda: "".join(luck.choices(UNUSUAL[:-1], k=luck.randint(0, 4)))  # noqa: E731
        yield [
            entry(
                str(number),
                luck.choice(UNUSUAL) + words(),
                MessageAttributes={
                    f"{key}{words()}": {"DataType": "String", "StringValue": words()}
                    for key in range(luck.randint(0, 3))
                },
                **(
                    {"MessageGroupId": words(), "MessageDeduplicationId": words()}
                    if luck.random() < 0.5
                    else {}
                ),
            )
            for number in range(luck.randint(1, 10))
        ]


@pytest.mark.slow
def test_a_request_is_the_one_of_botocores_client_to_the_byte() -> None:
    ours, theirs = Sns((200, b"")), Sns((200, b""))
    light, client = ours.light(), theirs.boto3()
    for batch in batches(29, 300):
        ours.replies = theirs.replies = [(200, taken(*(each["Id"] for each in batch)))]
        light.publish_batch(TopicArn=ARN, PublishBatchRequestEntries=batch)
        client.publish_batch(TopicArn=ARN, PublishBatchRequestEntries=batch)
        (headers, body), (expected, form) = ours.asked[-1], theirs.asked[-1]
        assert body == (form.encode() if isinstance(form, str) else form)
        for name in ("Content-Type", "X-Amz-Date", "X-Amz-Security-Token"):
            assert headers[name] == expected[name]


@pytest.mark.parametrize("region", [REGION, "us-east-1"])
def test_a_signature_of_a_form_is_botocores(region: str) -> None:
    sns = Sns((200, taken("1")))
    sns.light(region).publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "ä")])
    ((headers, body),) = sns.asked
    theirs = AWSRequest("POST", URL, headers={"Content-Type": MEDIA}, data=body)
    botocore.auth.SigV4Auth(Credentials("AKID", "secret", "token"), "sns", region).add_auth(theirs)
    assert headers["Authorization"] == theirs.headers["Authorization"]
    assert "X-Amz-Target" not in headers


def test_the_roots_to_trust_are_those_that_the_environment_names(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Sns((200, b"")).light(bundle=str(tmp_path / "none.pem"))._batches._connections.tls()  # noqa: SLF001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("taken_ids", "failed"),
    [(("1", "2"), {}), (("1",), {"2": "InternalError"}), ((), {"1": "KMSThrottling", "2": "Nope"})],
    ids=str,
)
def test_what_was_taken_and_what_was_not_is_read_as_by_botocore(
    taken_ids: tuple[str, ...], failed: dict[str, str]
) -> None:
    batch = [entry("1", "a"), entry("2", "b")]
    answer = (200, taken(*taken_ids, failed=failed))
    ours = Sns(answer).light().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=batch)
    theirs = Sns(answer).boto3().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=batch)
    assert ours["Successful"] == theirs.get("Successful", [])
    assert [{**each, "SenderFault": each["SenderFault"] == "true"} for each in ours["Failed"]] == theirs.get(
        "Failed", []
    )
    topic = Topic(Sns(answer).light(), ARN)  # type: ignore[arg-type]  # what it needs of a client
    positions = {1: Checkpoint(5), 2: Checkpoint(7)}
    if failed:
        with pytest.raises(Unavailable, match=next(iter(failed.values()))):
            topic.publish(positions)
    else:
        assert topic.publish(positions) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["InvalidParameter", "NotFound", "AuthorizationError", "InvalidClientTokenId"]
)
def test_a_request_that_is_refused_is_sent_once(code: str) -> None:
    more = b"</Error><Detail><Code>Throttling</Code></Detail>"
    answer = (403, refused(code, "why &lt;not&gt;").replace(b"</Error>", more))
    sns = Sns(answer)
    with pytest.raises(InvalidRequest) as raised:
        sns.light().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")])
    with pytest.raises(ClientError) as theirs:
        Sns(answer).boto3().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")])
    error = theirs.value.response["Error"]
    assert (raised.value.action, raised.value.code, raised.value.message) == (
        theirs.value.operation_name,
        error["Code"],
        error["Message"],
    )
    assert len(sns.asked) == 1


PASSING: list[Reply] = [
    (400, refused("Throttling")),
    (400, refused("ThrottledException")),
    (400, refused("RequestLimitExceeded")),
    (400, refused("KMSThrottlingException")),
    (400, refused("RequestTimeout")),
    (400, refused("TooManyRequestsException")),
    (400, refused("SlowDown")),
    (400, refused("PriorRequestNotComplete")),
    (400, refused("BandwidthLimitExceeded")),
    (429, b""),
    (500, refused("InternalFailure")),
    (502, b"<html>bad gateway</html>"),
    (503, b""),
    (504, b"<!DOCTYPE x>"),
    NoAnswer("closed"),
    Unsent("refused", address=URL, nowhere=True),
]


@pytest.mark.parametrize("reply", PASSING, ids=str)
def test_what_passes_by_itself_is_tried_again_the_same_and_after_a_pause(reply: Reply) -> None:
    sns = Sns(reply, reply, (200, taken("1")))
    found = sns.light().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")])
    assert [each["Id"] for each in found["Successful"]] == ["1"]
    assert [body for _, body in sns.asked] == [sns.asked[0][1]] * 3
    assert sns.slept == [0.5, 1.0]


@pytest.mark.parametrize("reply", PASSING, ids=str)
def test_what_does_not_pass_is_said_after_as_many_tries_as_botocores(reply: Reply) -> None:
    sns = Sns(reply)
    with pytest.raises(Unavailable):
        sns.light().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")])
    assert len(sns.asked) == TRIES == 4


LAUGHS = b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + taken("1").replace(b"m1", b"&b;")


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"<html>log in here</html>", b"<a><b></a>", taken("1")[:-9], LAUGHS, taken("2"), taken("1", "2"),
     taken(), b"<x>" * 30_000, b"<x>" * 30_000 + b"</x>" * 30_000, b"\xff\xfe",
     taken("1").replace(b"PublishBatchR", b"PublishR"),
     b"<PublishBatchResponse><PublishBatchResult/></PublishBatchResponse>"],
    ids=lambda body: str(body[:40]),
)  # fmt: skip
def test_success_that_does_not_name_what_was_sent_is_not_believed(body: bytes) -> None:
    with pytest.raises(Unavailable, match="not SNS's"):
        Sns((200, body)).light().publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")])


@pytest.mark.parametrize("code", ["x" * 500, "a b", "<![CDATA[&\n]]>", "", "ä"])
def test_a_code_that_is_none_of_aws_is_not_repeated(code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Sns((400, refused(code))).light().publish_batch(
            TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")]
        )
    assert raised.value.code == "400"


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"AWS_ENDPOINT_URL": "http://here:4566"},
        {"AWS_ENDPOINT_URL_SNS": "http://there:1", "AWS_ENDPOINT_URL": "http://here:4566"},
        {"AWS_ENDPOINT_URL_DYNAMODB": "http://there:1"},
        {"AWS_ACCOUNT_ID": "123456789012"},
        {"AWS_DEFAULT_REGION": "us-east-1", "AWS_LAMBDA_FUNCTION_NAME": "f"},
    ],
    ids=str,
)
def test_it_publishes_where_botocores_client_does(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (ENVIRONMENT | told).items():
        monkeypatch.setenv(name, value)
    found = service_from_environment(os.environ, tmp_path, service="sns")
    assert found is not None
    client: Any = Session().create_client("sns", config=Config(retries={"total_max_attempts": 1}))
    asked: list[str] = []

    def fail(request: AWSPreparedRequest, **_: object) -> None:
        asked.append(request.url)
        raise EndpointConnectionError(endpoint_url=request.url)

    client.meta.events.register("before-send.sns", fail)
    with pytest.raises(EndpointConnectionError):
        client.publish_batch(TopicArn=ARN, PublishBatchRequestEntries=[entry("1", "a")])
    assert asked[0].rstrip("/") == found.url
    assert isinstance(topic_client(lambda: "botocore's"), LightTopics)


@pytest.mark.parametrize(
    "told",
    [
        {"HTTPS_PROXY": "http://proxy:1"},
        {"AWS_USE_FIPS_ENDPOINT": "true"},
        {"AWS_ENDPOINT_URL_SNS": "http://here/path"},
        {"AWS_PROFILE": "mine"},
        {"AWS_DEFAULT_REGION": "cn-north-1"},
        {"AWS_SECRET_ACCESS_KEY": ""},
    ],
    ids=str,
)
def test_botocores_client_publishes_where_the_environment_does_not_say_all(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (ENVIRONMENT | told).items():
        monkeypatch.setenv(name, value)
    assert topic_client(lambda: "botocore's") == "botocore's"


def test_a_mock_of_aws_is_not_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "moto", os)
    assert topic_client(lambda: "botocore's") == "botocore's"
