"""The light carrier does as a client of boto3's: what it sends, where and as whom, and what it makes of answers."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import botocore.auth
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ConnectionClosedError, NoCredentialsError
from botocore.session import Session

from epochal.dynamo import clients, interpreter
from epochal.dynamo.interpreter import Carrier, SessionCarrier, performed
from epochal.dynamo.protocol import DynamoFault, DynamoRequest, request_of
from epochal.plan.ops import Get, Lost, Op, Put
from tests.unit.dynamo.test_errors import OPS

REGION = "eu-central-1"
KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
PLAIN = KEYS | {"AWS_DEFAULT_REGION": REGION}
EXTREME = {"p": {"S": "ä ✈ \ud800"}, "i": {"N": "1"}, "b": {"L": [{"B": b"\x00\xff"}, {"BS": [b"", b"a"]}]}}


class Raw(BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.read()


@dataclass
class Service:
    """Answers every request alike, and keeps what was asked."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"x-amzn-RequestId": "ABCD"})
    asked: list[AWSPreparedRequest] = field(default_factory=list)

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        self.asked.append(request)
        return AWSResponse(request.url, self.status, self.headers, Raw(self.body))

    def light(self, credentials: Any = None) -> SessionCarrier:
        return SessionCarrier(
            url=f"https://dynamodb.{REGION}.amazonaws.com",
            region=REGION,
            credentials=credentials or Credentials("AKID", "secret", "token"),
            session=self,  # type: ignore[arg-type]
        )

    def boto3(self) -> Carrier:
        client = Session().create_client(
            "dynamodb",
            REGION,
            aws_access_key_id="AKID",
            aws_secret_access_key="secret",
            aws_session_token="token",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.meta.events.register("before-send.dynamodb", lambda request, **_: self.send(request))
        return clients.boto3_carrier(client)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any AWS configuration, on which time stands still."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name == "REQUESTS_CA_BUNDLE":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("epochal.dynamo.clients._session", Session)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: datetime(2026, 11, 22, tzinfo=UTC))


@pytest.mark.parametrize("op", [*OPS.values(), Put(table="t", item=EXTREME)], ids=[*OPS, "extreme"])
def test_what_is_sent_is_what_boto3_sends_but_for_headers_about_the_sender(op: Op) -> None:
    ours, theirs = Service(), Service()
    ours.light()(request_of(op))
    theirs.boto3()(request_of(op))
    (sent,), (expected,) = ours.asked, theirs.asked
    assert json.loads(sent.body) == without_token(json.loads(expected.body))
    assert (sent.method, urlsplit(sent.url).netloc) == (expected.method, urlsplit(expected.url).netloc)
    for name in ("X-Amz-Target", "Content-Type", "X-Amz-Security-Token", "X-Amz-Date"):
        assert text(sent.headers[name]) == text(expected.headers[name])
    assert int(sent.headers["Content-Length"]) == len(sent.body)


def test_the_signature_is_that_of_version_4_over_body_and_headers() -> None:
    service = Service()
    service.light()(request_of(OPS["put"]))
    (sent,) = service.asked
    authorization = text(sent.headers["Authorization"])
    signed = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target"} <= set(signed)
    again = AWSRequest(
        "POST",
        sent.url,
        data=sent.body,
        headers={name: text(sent.headers[name]) for name in signed if name != "host"},
    )
    botocore.auth.SigV4Auth(Credentials("AKID", "secret", "token"), "dynamodb", REGION).add_auth(again)
    assert again.headers["Authorization"] == authorization


def without_token(parameters: dict[str, Any]) -> dict[str, Any]:
    """boto3 makes up a token for each transaction that has none: each is then its own, as without."""
    return {name: value for name, value in parameters.items() if name != "ClientRequestToken"}


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


ITEM = {"p": {"S": "a"}, "d": {"B": "AAE="}}
REASONS = [{"Code": "ConditionalCheckFailed", "Message": "no", "Item": ITEM}, {"Code": "None"}]


def told(kind: str, **members: object) -> bytes:
    return json.dumps({"__type": kind, **members}).encode()


FAULTS: dict[str, tuple[int, bytes]] = {
    "a condition": (400, told("com.amazonaws.x#ConditionalCheckFailedException", message="no", Item=ITEM)),
    "a transaction": (
        400,
        told("x#TransactionCanceledException", Message="cancelled", CancellationReasons=REASONS),
    ),
    "throttled": (400, told("x#ThrottlingException", message="slower")),
    "a code with an address": (400, told("x#ValidationException:http://x/", message="no")),
    "internal": (500, told("x#InternalServerError")),
    "no body": (503, b""),
    "a page": (502, b"<html>bad gateway</html>"),
    "a list": (502, b"[]"),
    "cut": (400, b'{"__type":"x#Condi'),
    "another place": (301, b""),
}


@pytest.mark.parametrize(("status", "body"), FAULTS.values(), ids=FAULTS)
def test_an_error_is_the_fault_that_boto3_makes_of_it(status: int, body: bytes) -> None:
    service = Service(status, body)
    ours, theirs = (fault(make()) for make in (service.light, service.boto3))
    assert (ours.operation, ours.code, ours.status, ours.retried) == (
        theirs.operation,
        theirs.code,
        status,
        False,
    )
    for name in ("Item", "CancellationReasons"):
        assert ours.members.get(name) == theirs.members.get(name)
    if body.startswith(b"{") and body.endswith(b"}"):
        assert ours.message == theirs.message


def fault(carry: Carrier) -> DynamoFault:
    with pytest.raises(DynamoFault) as raised:
        carry(request_of(OPS["transact"]))
    return raised.value


@pytest.mark.parametrize("operation", ["get", "put"])
def test_an_answer_whose_checksum_is_another_is_lost(operation: str) -> None:
    body = b'{"ConsumedCapacity":{"CapacityUnits":1.0}}'
    right = Service(body=body, headers={"X-Amz-CRC32": str(zlib.crc32(body))})
    assert right.light()(request_of(OPS[operation]))["ConsumedCapacity"] == {"CapacityUnits": 1.0}
    wrong = Service(body=body, headers={"x-amz-crc32": "1"})
    with pytest.raises(Lost):
        wrong.light()(request_of(OPS[operation]))


WAYS = pytest.mark.parametrize("way", [Service.light, Service.boto3], ids=["light", "boto3"])


@WAYS
@pytest.mark.parametrize("body", [b"{", b"{}"])
def test_an_answer_without_contents_is_lost_to_a_read_and_nothing_to_a_write_that_was_made(
    way: Callable[[Service], Carrier], body: bytes
) -> None:
    execute = performed(way(Service(body=body)))
    with pytest.raises(Lost):
        execute(Get(table="t", key={"p": {"S": "a"}}))
    assert execute(OPS["put"]).units.write == 0


@WAYS
@pytest.mark.parametrize("operation", OPS)
@pytest.mark.parametrize("body", [b"", b"<html>log in here</html>", b'{"status":"ok"}', b"{}", b"[]"])
def test_what_something_in_between_answers_tells_nothing_of_a_write(
    way: Callable[[Service], Carrier], operation: str, body: bytes
) -> None:
    execute = performed(way(Service(body=body, headers={"Content-Type": "text/html"})))
    with pytest.raises(Lost):
        execute(OPS[operation])


def test_a_connection_that_broke_is_lost() -> None:
    class Broken(Service):
        def send(self, request: AWSPreparedRequest) -> AWSResponse:
            raise ConnectionClosedError(endpoint_url=request.url, error="closed", request=request)

    with pytest.raises(Lost):
        performed(Broken().light())(OPS["put"])


def test_credentials_that_expire_are_renewed_before_they_do() -> None:
    issued: list[str] = []

    def issue() -> dict[str, str]:
        issued.append(f"AKID{len(issued)}")
        return {
            "access_key": issued[-1],
            "secret_key": "secret",
            "token": f"token{len(issued)}",
            "expiry_time": (datetime.now(UTC) + lives).isoformat(),
        }

    lives = timedelta(minutes=1)
    credentials = RefreshableCredentials.create_from_metadata(issue(), refresh_using=issue, method="test")
    service = Service()
    carry = service.light(credentials)
    for _ in range(2):
        carry(request_of(OPS["put"]))
    lives = timedelta(hours=6)
    for _ in range(3):
        carry(request_of(OPS["put"]))
    keys = [
        text(sent.headers["Authorization"]).partition("Credential=")[2].partition("/")[0]
        for sent in service.asked
    ]
    tokens = [text(sent.headers["X-Amz-Security-Token"]) for sent in service.asked]
    assert keys == ["AKID1", "AKID2", "AKID3", "AKID3", "AKID3"]
    assert tokens == ["token2", "token3", "token4", "token4", "token4"]


def client_for(told: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, **where: str) -> tuple[str, str]:
    """The address and region of boto3's client."""
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    client, service = clients.dynamodb_client(**where), Service()
    client.meta.events.register("before-send.dynamodb", lambda request, **_: service.send(request))
    client.get_item(TableName="t", Key={"p": {"S": "a"}})
    return service.asked[0].url.rstrip("/"), client.meta.region_name


@pytest.mark.parametrize(
    ("told", "where"),
    [
        (PLAIN, {}),
        (PLAIN | {"AWS_SESSION_TOKEN": "t"}, {}),
        (PLAIN, {"region": "us-west-2"}),
        (PLAIN, {"endpoint": "http://127.0.0.1:8000"}),
        (PLAIN | {"AWS_ENDPOINT_URL": "http://here:1/"}, {}),
        (PLAIN | {"AWS_ENDPOINT_URL": "http://here:1", "AWS_ENDPOINT_URL_DYNAMODB": "http://there:2"}, {}),
        (PLAIN | {"AWS_ENDPOINT_URL": "http://here:1"}, {"endpoint": "http://127.0.0.1:8000"}),
        (PLAIN | {"AWS_ENDPOINT_URL_S3": "http://here:1"}, {}),
        (PLAIN | {"AWS_ACCOUNT_ID": "123456789012"}, {}),
        (PLAIN | {"AWS_ACCOUNT_ID": "123456789012", "AWS_ENDPOINT_URL": "http://here:1"}, {}),
        (
            PLAIN
            | {"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_REGION": "us-east-1", "AWS_XRAY_DAEMON_ADDRESS": "x"},
            {},
        ),
    ],
)
def test_requests_go_where_boto3s_client_would_send_them(
    told: dict[str, str], where: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = interpreter.light_carrier(told, tmp_path, **where)
    assert not isinstance(found, str)
    assert (found.url.rstrip("/"), found.region) == client_for(told, monkeypatch, **where)
    frozen = found.credentials.get_frozen_credentials()
    assert (frozen.access_key, frozen.secret_key) == ("AKID", "secret")
    assert frozen.token == told.get("AWS_SESSION_TOKEN")


@pytest.mark.parametrize(
    "told",
    [
        KEYS,
        {"AWS_DEFAULT_REGION": REGION},
        {"AWS_DEFAULT_REGION": REGION, "AWS_ACCESS_KEY_ID": "a part"},
        *(PLAIN | {"AWS_DEFAULT_REGION": each} for each in ("cn-north-1", "us-gov-west-1", "local", "nonsense/")),
        *(PLAIN | {"AWS_ENDPOINT_URL": each} for each in ("nonsense", "http://me:secret@here", "http://here/path")),
        *(
            PLAIN | {name: "true"}
            for name in (
                "AWS_PROFILE", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_CA_BUNDLE",
                "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_ACCOUNT_ID_ENDPOINT_MODE", "AWS_CONFIG_FILE",
                "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_NOT_YET_INVENTED", "BOTO_CONFIG", "BOTOCORE_TCP_KEEPALIVE",
                "https_proxy", "HTTP_PROXY", "REQUESTS_CA_BUNDLE",
            )
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_out_of_the_ordinary_is_left_to_boto3s_client(told: dict[str, str], tmp_path: Path) -> None:
    assert isinstance(interpreter.light_carrier(told, tmp_path), str)


def test_the_files_of_profiles_are_left_to_boto3s_client(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    assert isinstance(interpreter.light_carrier(PLAIN, tmp_path), SessionCarrier)
    (tmp_path / ".aws" / "config").touch()
    assert interpreter.light_carrier(PLAIN, tmp_path) == "~/.aws/config is there"


def test_of_a_home_that_cannot_be_read_no_profile_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's user may have the home of another. botocore takes such files for missing."""
    status = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(str(tmp_path)):
            raise PermissionError(13, "Permission denied", str(path))
        return status(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert isinstance(interpreter.light_carrier(PLAIN, tmp_path), SessionCarrier)


def test_a_containers_credentials_are_fetched_and_renewed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    issued = count()

    def retrieve(_: object, uri: str, headers: object = None) -> dict[str, str]:
        assert (uri, headers) == ("http://169.254.170.23/v1", {"Authorization": "secret"})
        soon = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
        return {
            "AccessKeyId": f"AKID{next(issued)}",
            "SecretAccessKey": "s",
            "Token": "t",
            "Expiration": soon,
        }

    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.retrieve_full_uri", retrieve)
    told = {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "secret",
    }
    found = interpreter.light_carrier(told, tmp_path)
    assert not isinstance(found, str)
    keys = [found.credentials.get_frozen_credentials().access_key for _ in range(2)]
    assert "AKID0" not in keys
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("carrier", "told", "light"),
    [("light", {}, True), ("boto3", {}, False), ("light", {"AWS_USE_FIPS_ENDPOINT": "true"}, False)],
)
def test_a_client_is_made_where_it_is_asked_for_or_needed(
    carrier: str, told: dict[str, str], light: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (PLAIN | told).items():
        monkeypatch.setenv(name, value)
    made: list[Callable[[DynamoRequest], dict[str, Any]]] = []
    monkeypatch.setattr(interpreter, "performed", made.append)
    monkeypatch.setattr(interpreter, "interpreter", lambda _: None)
    interpreter.execute_through(carrier)
    assert bool(made) is light


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"REQUESTS_CA_BUNDLE": "/etc/secret.pem"}, "REQUESTS_CA_BUNDLE is set"),
        ({"AWS_PROFILE": "mine"}, "AWS_PROFILE is set"),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "the region is not in AWS_DEFAULT_REGION"),
        (
            {"AWS_ENDPOINT_URL": "http://me:secret@here"},
            "the endpoint is more than a scheme, a host and a port",
        ),
        ({"AWS_SECRET_ACCESS_KEY": ""}, "the environment has no credentials"),
        ({}, None),
    ],
    ids=str,
)
def test_that_the_light_carrier_gives_way_is_logged_once_with_the_reason_and_no_value(
    told: dict[str, str],
    why: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    interpreter._say.cache_clear()  # noqa: SLF001  a process says it once
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in (PLAIN | told).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(interpreter, "interpreter", lambda _: None)
    monkeypatch.setattr(clients, "dynamodb_client", lambda **_: None)
    for _ in range(2):
        interpreter.execute_through("light")
    said = [record.getMessage() for record in caplog.records if record.name == "epochal.dynamo"]
    assert len(said) == (why is not None)
    assert why is None or (why in said[0] and "secret" not in said[0])


def test_no_credentials_are_an_error_of_boto3s_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with pytest.raises(Exception, match="Unable to locate credentials") as raised:
        interpreter.execute_through("light")(OPS["get"])
    assert isinstance(raised.value.__cause__, NoCredentialsError)
