"""What a store over HTTP is opened with: an address, and how the API knows the caller."""

from __future__ import annotations

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.utils import parse_timestamp

from epochal import open_streams
from epochal.contrib.http_client import HttpStreams, bearer, open_http_streams, sigv4
from epochal.contrib.http_client import credentials as module
from epochal.contrib.http_client.exchange import HttpRequest
from epochal.errors import InvalidInput, Misconfigured

GATEWAY = "https://a1b2.execute-api.eu-west-1.amazonaws.com"
FUNCTION = "https://a1b2.lambda-url.us-east-1.on.aws"
KEYS = Credentials("AKIDEXAMPLE", "secret", "session")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "credentials", lambda: KEYS)
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def request(url: str) -> HttpRequest:
    return HttpRequest(
        method="POST", url=f"{url}/streams/A-1/events?x=1", headers={"Accept": "a/b"}, body=b"{}"
    )


def test_a_table_opens_no_address_and_says_what_does() -> None:
    with pytest.raises(InvalidInput, match=r"epochal\.contrib\.http_client\.open_http_streams") as caught:
        open_streams(GATEWAY)
    assert caught.value.field == "table"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "table",
        "ftp://a",
        "https://",
        "https://user@a",
        "https://a?b=c",
        "https://a#b",
        None,
        "https://[a",
    ],
)
def test_what_is_no_address_is_refused(url: object) -> None:
    with pytest.raises(InvalidInput, match="ApiUrl"):
        open_http_streams(url)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [float("nan"), "1", True])
def test_what_is_no_time_is_refused(seconds: object) -> None:
    with pytest.raises(InvalidInput, match="seconds"):
        open_http_streams(GATEWAY, answer_seconds=seconds)  # type: ignore[arg-type]


def test_opening_sends_nothing_and_closing_closes_the_connections() -> None:
    with open_http_streams(f"{GATEWAY}/") as streams:
        assert isinstance(streams, HttpStreams)
        assert streams.api.url == GATEWAY
    streams.close()


@pytest.mark.parametrize(
    ("url", "scope"), [(GATEWAY, "eu-west-1/execute-api"), (FUNCTION, "us-east-1/lambda")]
)
def test_a_signature_is_botocores_with_region_and_service_of_the_address(url: str, scope: str) -> None:
    asked = request(url)
    headers = sigv4()(asked)
    assert f"/{scope}/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "session"
    assert {*headers} == {"Authorization", "X-Amz-Date", "X-Amz-Security-Token"}
    region, service = scope.split("/")
    again = AWSRequest(asked.method, asked.url, {**asked.headers}, asked.body)
    signer = SigV4Auth(KEYS, service, region)
    again.context["timestamp"] = headers["X-Amz-Date"]
    assert parse_timestamp(headers["X-Amz-Date"]).tzinfo is not None
    again.headers["X-Amz-Date"] = headers["X-Amz-Date"]
    again.headers["X-Amz-Security-Token"] = "session"
    text = signer.string_to_sign(again, signer.canonical_request(again))
    assert headers["Authorization"].endswith(f"Signature={signer.signature(text, again)}")


def test_an_address_that_names_no_region_takes_the_one_given_or_of_the_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = request("https://api.example.com")
    with pytest.raises(Misconfigured, match="region"):
        sigv4()(own)
    assert "/eu-central-1/execute-api/" in sigv4(region="eu-central-1")(own)["Authorization"]
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert "/eu-north-1/lambda/" in sigv4(service="lambda")(own)["Authorization"]


def test_a_bearer_token_may_be_made_for_each_request() -> None:
    tokens = iter(["one", "two"])
    auth = bearer(lambda: next(tokens))
    assert [auth(request(GATEWAY))["Authorization"] for _ in range(2)] == ["Bearer one", "Bearer two"]
    assert bearer("t.o-k_en~")(request(GATEWAY)) == {"Authorization": "Bearer t.o-k_en~"}


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "é", None])
def test_what_no_header_can_carry_is_refused(token: object) -> None:
    with pytest.raises(InvalidInput):
        bearer(token)(request(GATEWAY))  # type: ignore[arg-type]
