"""The light carrier does as a client of boto3's: what it sends, where and as whom, and what it makes of answers."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, wraps
from io import BytesIO
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import botocore.auth
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError, NoCredentialsError
from botocore.loaders import create_loader
from botocore.session import Session

from epochal.dynamo import boto3_carrier, clients, interpreter
from epochal.dynamo.carriers import Carrier, LightCarrier
from epochal.dynamo.clients import Renewed
from epochal.dynamo.interpreter import carrier_interpreter
from epochal.dynamo.protocol.faults import DynamoFault
from epochal.dynamo.protocol.requests import DynamoRequest, request_of
from epochal.dynamo.wire import environment
from epochal.dynamo.wire.environment import Service as Found
from epochal.dynamo.wire.environment import service_from_environment
from epochal.dynamo.wire.http import HttpAnswer, NoAnswer
from epochal.errors import Misconfigured, MissingTable
from epochal.plan.failures import Lost
from epochal.plan.ops import Get, Op, Put, Query
from tests.core.dynamo.test_errors import OPS

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
    asked: list[Any] = field(default_factory=list)

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        self.asked.append(request)
        return AWSResponse(request.url, self.status, self.headers, Raw(self.body))

    def light(self, credentials: Any = None) -> LightCarrier:
        url = f"https://dynamodb.{REGION}.amazonaws.com"
        known = credentials or Credentials("AKID", "secret", "token")
        carrier = LightCarrier(Found(url=url, region=REGION, credentials=known))
        carrier._signer.now = datetime(2026, 11, 22, tzinfo=UTC).timestamp  # noqa: SLF001
        carrier._connections.send = self.take  # type: ignore[method-assign]  # noqa: SLF001
        return carrier

    def take(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        url = f"https://{headers['Host']}"
        self.asked.append(SimpleNamespace(method="POST", url=url, headers=headers, body=body))
        return self.status, {name.lower(): value for name, value in self.headers.items()}, self.body

    def boto3(self) -> Carrier:
        client = botocores()
        client.meta.events.unregister("before-send.dynamodb", unique_id="service")
        client.meta.events.register(
            "before-send.dynamodb", lambda request, **_: self.send(request), unique_id="service"
        )
        return boto3_carrier.boto3_carrier(client)


@cache
def botocores() -> BaseClient:
    """One for all, since making it takes longer than any of the tests."""
    return Session().create_client(
        "dynamodb",
        REGION,
        aws_access_key_id="AKID",
        aws_secret_access_key="secret",
        aws_session_token="token",
        config=Config(retries={"total_max_attempts": 1}),
    )


LOADER = cache(create_loader)
"""One for all, too: a session reads botocore's descriptions of services for itself."""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any AWS configuration, on which time stands still."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name == "REQUESTS_CA_BUNDLE" or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delitem(sys.modules, "moto", raising=False)
    monkeypatch.setattr("epochal.dynamo.clients._session", Session)
    monkeypatch.setattr("botocore.session.create_loader", LOADER)
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
    execute = carrier_interpreter(way(Service(body=body)))
    with pytest.raises(Lost):
        execute(Get(table="t", key={"p": {"S": "a"}}))
    assert execute(OPS["put"]).units.write == 0


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("operation", OPS)
@pytest.mark.parametrize("body", [b"", b"<html>log in here</html>", b'{"status":"ok"}', b"{}", b"[]"])
def test_what_something_in_between_answers_tells_nothing_of_a_write(
    way: Callable[[Service], Carrier], operation: str, body: bytes
) -> None:
    execute = carrier_interpreter(way(Service(body=body, headers={"Content-Type": "text/html"})))
    with pytest.raises(Lost):
        execute(OPS[operation])


@WAYS
@pytest.mark.parametrize("where", ["", "eu-west-1 (https://here)"])
def test_a_table_that_is_missing_is_missing_somewhere(way: Callable[[Service], Carrier], where: str) -> None:
    body = told("x#ResourceNotFoundException", message="Requested resource not found")
    execute = carrier_interpreter(way(Service(400, body)), lambda: where)
    with pytest.raises(MissingTable) as missing:
        execute(OPS["put"])
    assert missing.value.where == where
    assert f"table tips does not exist {f'in {where}' if where else 'here'}: deploy first" in str(
        missing.value
    )


@pytest.mark.parametrize("carrier", ["light", "boto3"])
def test_a_carrier_knows_where_it_sends_to(carrier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)
    places: list[str] = []
    monkeypatch.setattr(interpreter, "carrier_interpreter", lambda _, where: places.append(where()))
    interpreter.execute_through(carrier)
    interpreter.execute_through(carrier, endpoint="http://127.0.0.1:8000", region="us-west-2")
    assert places == [
        f"{REGION} (https://dynamodb.{REGION}.amazonaws.com)",
        "us-west-2 (http://127.0.0.1:8000)",
    ]


COST = {"TableName": "t", "CapacityUnits": 1.0}


@WAYS
@pytest.mark.parametrize("operation", OPS)
@pytest.mark.parametrize("more", [{}, {"ConsumedCapacity": COST, "Responses": [{}], "Items": [], "Count": 0}])
@pytest.mark.parametrize("code", ["com.amazonaws.x#InternalServerError", "x#ThrottlingException", ""])
def test_an_answer_of_success_that_names_an_error_is_lost(
    way: Callable[[Service], Carrier], operation: str, code: str, more: dict[str, object]
) -> None:
    execute = carrier_interpreter(way(Service(body=told(code, message="no", **more))))
    with pytest.raises(Lost, match="an answer of success that names an error"):
        execute(OPS[operation])


MALFORMED: dict[str, list[dict[str, object]]] = {
    "get": [
        {"Item": []},
        {"ConsumedCapacity": 1},
        {"ConsumedCapacity": {"CapacityUnits": "1"}},
    ],
    "together": [
        {"Responses": {}},
        {"Responses": []},
        {"Responses": [{}, {}]},
        {"Responses": [None]},
        {"Responses": [{"Item": "a"}]},
    ],
    "query": [{"Items": {}}, {"Items": [1]}, {"Items": [], "LastEvaluatedKey": "a"}],
    "count": [{"Count": "1"}, {"Count": None}],
    "scan": [{"Items": None}, {"Items": [], "LastEvaluatedKey": []}],
    "batch": [
        {"Responses": []},
        {"Responses": {"tips": {}}},
        {"Responses": {"tips": [1]}},
        {"Responses": {}, "UnprocessedKeys": [1]},
    ],
    "put": [{"ConsumedCapacity": 1}, {"ConsumedCapacity": {}}, {"ConsumedCapacity": {"CapacityUnits": "1"}}],
    "transact": [{"ConsumedCapacity": "1"}, {"ConsumedCapacity": [1]}, {"ConsumedCapacity": [{}]}],
}
COUNTED: dict[str, Op] = {"count": Query(table="t", partition=("p", {"S": "a"}), only_count=True), **OPS}


@WAYS
@pytest.mark.parametrize(
    ("operation", "members"),
    [(operation, members) for operation, each in MALFORMED.items() for members in each],
    ids=str,
)
def test_an_answer_whose_members_are_of_other_kinds_is_lost(
    way: Callable[[Service], Carrier], operation: str, members: dict[str, object]
) -> None:
    cost = [COST] if operation in ("batch", "together", "transact") else COST
    execute = carrier_interpreter(
        way(Service(body=json.dumps({"ConsumedCapacity": cost, **members}).encode()))
    )
    with pytest.raises(Lost, match="an answer that is malformed"):
        execute(COUNTED[operation])


def test_a_connection_that_broke_is_lost() -> None:
    class Breaking(Service):
        def take(self, *_: object) -> HttpAnswer:
            raise NoAnswer("closed")

    with pytest.raises(Lost):
        carrier_interpreter(Breaking().light())(OPS["put"])


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


@pytest.mark.slow
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
    found = service_from_environment(told, tmp_path, **where)
    assert found is not None
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
        PLAIN | {"AWS_CREDENTIAL_EXPIRATION": "2030-01-01T00:00:00Z"},
        PLAIN | {"AWS_ACCOUNT_ID": "1.2"},
        *(PLAIN | {"AWS_DEFAULT_REGION": each} for each in ("cn-north-1", "us-gov-west-1", "local", "nonsense/")),
        *(PLAIN | {"AWS_ENDPOINT_URL": each} for each in ("nonsense", "http://me:secret@here", "http://here/path")),
        *(
            PLAIN | {name: "true"}
            for name in (
                "AWS_PROFILE", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
                "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_ACCOUNT_ID_ENDPOINT_MODE", "AWS_CONFIG_FILE",
                "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_NOT_YET_INVENTED", "BOTO_CONFIG", "BOTOCORE_TCP_KEEPALIVE",
                "https_proxy", "HTTP_PROXY",
            )
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_out_of_the_ordinary_is_left_for_botocore_to_find(
    told: dict[str, str], tmp_path: Path
) -> None:
    assert service_from_environment(told, tmp_path) is None


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_system_may_have_proxies_in_its_settings(
    system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.platform", system)
    assert service_from_environment(PLAIN, tmp_path) is None


def test_the_files_of_profiles_are_botocores_to_read(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    assert service_from_environment(PLAIN, tmp_path) is not None
    (tmp_path / ".aws" / "config").touch()
    assert service_from_environment(PLAIN, tmp_path) is None


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
    assert service_from_environment(PLAIN, tmp_path) is not None


PROFILES = """
[default]
region = eu-west-1
[profile fips]
region = us-east-1
use_fips_endpoint = true
[profile dual]
region = eu-central-1
use_dualstack_endpoint = true
[profile china]
region = cn-north-1
[profile other]
region = us-west-2
endpoint_url = http://other:1
ca_bundle = /etc/profile.pem
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "where", "bundle"),
    [
        ({"AWS_PROFILE": "fips"}, {}, ""),
        ({"AWS_PROFILE": "dual"}, {}, ""),
        ({"AWS_PROFILE": "china"}, {}, ""),
        ({"AWS_PROFILE": "other"}, {}, "/etc/profile.pem"),
        ({"AWS_PROFILE": "other"}, {"endpoint": "http://127.0.0.1:8000"}, "/etc/profile.pem"),
        ({}, {"region": "us-gov-west-1"}, ""),
        ({"AWS_USE_FIPS_ENDPOINT": "true"}, {"region": "us-east-2"}, ""),
        ({"AWS_USE_DUALSTACK_ENDPOINT": "true"}, {}, ""),
        ({"AWS_CA_BUNDLE": "/etc/own.pem", "REQUESTS_CA_BUNDLE": "/etc/no.pem"}, {}, "/etc/own.pem"),
        ({"REQUESTS_CA_BUNDLE": "/etc/own.pem"}, {}, "/etc/own.pem"),
        ({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "amazonaws.com"}, {}, ""),
    ],
    ids=str,
)
def test_what_botocore_finds_is_sent_where_its_client_sends_it(
    told: dict[str, str],
    where: dict[str, str],
    bundle: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(PROFILES)
    for name, value in (KEYS | told).items():
        monkeypatch.setenv(name, value)
    found = interpreter._find_service(where.get("endpoint"), where.get("region"))  # noqa: SLF001
    assert isinstance(found, Found)
    assert (found.url.rstrip("/"), found.region) == client_for(told, monkeypatch, **where)
    assert found.bundle == bundle
    assert found.credentials.get_frozen_credentials().access_key == "AKID"


def test_an_older_botocore_that_knows_no_addresses_of_accounts_finds_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Lambda runtime's own may be years old."""
    config = SimpleNamespace(signature_version="v4")
    meta = SimpleNamespace(endpoint_url="https://here", region_name=REGION, config=config)
    monkeypatch.setattr(clients, "dynamodb_client", lambda **_: SimpleNamespace(meta=meta))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    assert isinstance(clients.service_from_botocore(endpoint=None, region=None), Found)


@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_a_bundle_of_the_environment_is_used_without_botocore(name: str, tmp_path: Path) -> None:
    found = service_from_environment(PLAIN | {name: "/etc/own.pem"}, tmp_path)
    assert found is not None
    assert found.bundle == "/etc/own.pem"


def test_a_containers_credentials_are_fetched_and_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
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
    session = Session()
    monkeypatch.setattr(clients, "_session", lambda: session)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret")
    found = interpreter._find_service(None, None)  # noqa: SLF001
    assert isinstance(found, Found)
    keys = [found.credentials.get_frozen_credentials().access_key for _ in range(2)]
    assert "AKID0" not in keys
    assert len(set(keys)) == 2


def test_credentials_that_cannot_be_renewed_are_an_error_that_says_what_to_do() -> None:
    class Gone(Credentials):
        def get_frozen_credentials(self) -> Any:
            raise CredentialRetrievalError(provider="sso", error_msg="gone")

    service = Service()
    with pytest.raises(Misconfigured, match="log in again"):
        carrier_interpreter(service.light(Renewed(Gone("a", "b"))))(OPS["put"])
    assert service.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("carrier", "told", "light"),
    [("light", {}, True), ("boto3", {}, False), ("light", {"HTTPS_PROXY": "http://proxy"}, False)],
)
def test_a_client_is_made_where_it_is_asked_for_or_needed(
    carrier: str, told: dict[str, str], light: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (PLAIN | told).items():
        monkeypatch.setenv(name, value)
    made: list[Callable[[DynamoRequest], dict[str, Any]]] = []
    monkeypatch.setattr(interpreter, "carrier_interpreter", lambda carrier, _: made.append(carrier))
    monkeypatch.setattr(interpreter, "interpreter", lambda _: None)
    interpreter.execute_through(carrier)
    assert bool(made) is light


def traced(method: Any) -> Any:
    @wraps(method)
    def tracing(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return tracing


class Posing:
    """Passes for what it wraps, as instruments have it."""

    def __init__(self, method: Any) -> None:
        self.method = method

    @property
    def __class__(self) -> Any:
        return type(self.method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)


@pytest.mark.parametrize("method", ["__init__", "_make_api_call"])
@pytest.mark.parametrize("wrap", [traced, Posing])
def test_what_hooks_into_boto3s_clients_sees_every_request(
    wrap: Callable[[Any], Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environment.find_client_patch() == ""
    monkeypatch.setattr(BaseClient, method, wrap(getattr(BaseClient, method)))
    assert environment.find_client_patch() == "something has wrapped botocore's clients"


def test_what_mocks_aws_sees_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moto", sys)
    assert environment.find_client_patch() == "moto is imported"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"HTTPS_PROXY": "http://me:secret@here"}, "there is a proxy"),
        ({"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"}, "addressed in a way of their own"),
        (
            {"AWS_ENDPOINT_URL": "http://me:secret@here"},
            "the endpoint is more than a scheme, a host and a port",
        ),
        ({"AWS_SECRET_ACCESS_KEY": "", "AWS_ACCESS_KEY_ID": ""}, "there are no credentials"),
        ({"AWS_USE_FIPS_ENDPOINT": "true"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_that_the_light_carrier_gives_way_is_logged_once_with_the_reason_and_no_value(
    told: dict[str, str],
    why: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    interpreter._warn_once.cache_clear()  # noqa: SLF001  a process says it once
    for name, value in (PLAIN | told).items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        interpreter.execute_through("light")
    said = [record.getMessage() for record in caplog.records if record.name == "epochal.dynamo"]
    assert len(said) == (why is not None)
    assert why is None or (why in said[0] and "secret" not in said[0])


@pytest.mark.slow
def test_no_credentials_are_an_error_of_boto3s_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with pytest.raises(Exception, match="Unable to locate credentials") as raised:
        interpreter.execute_through("light")(OPS["get"])
    assert isinstance(raised.value.__cause__.__cause__ or raised.value.__cause__, NoCredentialsError)
