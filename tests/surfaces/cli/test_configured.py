"""What is wrong with the caller's AWS configuration, or with an address, is said in words of ours, with what to do."""

from __future__ import annotations

import os

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConfigParseError,
    CredentialRetrievalError,
    EndpointConnectionError,
    ParamValidationError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSOTokenLoadError,
    UnauthorizedSSOTokenError,
)
from botocore.session import Session

from epochal.cli import main as command_line
from epochal.contrib.equinox import open_tips
from epochal.dynamo.aws_configuration import describe_failure, translate_boto_error
from epochal.dynamo.boto3_carrier import connection_failure
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.stores import Place
from epochal.errors import InvalidInput, InvalidRequest, Misconfigured
from epochal.plan.failures import RequestNotApplied, Unreached
from epochal.plan.ops import Get
from epochal.plan.values import text

GET = Get(table="tips", key={"p": text("a")})
MADE_UP = {"AWS_ACCESS_KEY_ID": "made", "AWS_SECRET_ACCESS_KEY": "up"}
REGION = {"AWS_DEFAULT_REGION": "eu-central-1"}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any AWS configuration."""
    for name in os.environ:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("epochal.dynamo.clients._session", Session)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            MADE_UP,
            "specify a region: set AWS_DEFAULT_REGION (boto3 does not read AWS_REGION), or pass --region or place=",
        ),
        (REGION, "Unable to locate credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID"),
        (REGION | {"AWS_ACCESS_KEY_ID": "made"}, "AWS_SECRET_ACCESS_KEY: give all of them, or none"),
        (
            REGION | {"AWS_PROFILE": "nobody"},
            "(nobody) could not be found: set AWS_PROFILE to a profile that",
        ),
    ],
    ids=["no region", "no credentials", "a part of the credentials", "an unknown profile"],
)
def test_what_is_missing_is_said_with_how_to_give_it_in_library_and_command_line(
    environment: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def load() -> None:
        open_tips("tips").load("A-1")

    with pytest.raises(Misconfigured) as raised:
        load()
    assert said in str(raised.value)

    with pytest.raises(SystemExit) as ended:
        command_line.main(["--streams-table", "tips", "--index-table", "index", "state", "A-1"])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (CredentialRetrievalError(provider="sso", error_msg="gone"), "log in again"),
        (UnauthorizedSSOTokenError(), "log in again"),
        (SSOTokenLoadError(error_msg="expired"), "log in again"),
        (ConfigParseError(path="there"), "correct ~/.aws/config"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_credentials_that_cannot_be_had_are_said_with_what_to_do(error: BotoCoreError, how: str) -> None:
    with pytest.raises(Misconfigured, match=how):
        connection_failure(error, retries=False)


def test_what_boto_itself_refuses_is_an_error_of_ours_too() -> None:
    found = translate_boto_error(ParamValidationError(report="no table"))
    assert isinstance(found, InvalidRequest)
    assert found.code == "ParamValidationError"


def test_an_endpoint_that_is_no_url_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="endpoint: must be a URL"):
        open_tips("tips", place=Place(endpoint="nonsense", region="eu-central-1"))


def test_an_address_that_has_answered_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    client = dynamodb_client(region="eu-central-1")
    execute = interpreter(client)
    replies: list[object] = [EndpointConnectionError(endpoint_url="https://here:8000/", error="refused")] * 2
    replies.insert(1, {"ConsumedCapacity": {"CapacityUnits": 1.0}, "ResponseMetadata": {}})

    def get(**_: object) -> object:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    monkeypatch.setattr(client, "get_item", get)
    with pytest.raises(Unreached, match="https://here:8000"):
        execute(GET)
    execute(GET)
    with pytest.raises(RequestNotApplied) as later:
        execute(GET)
    assert not isinstance(later.value, Unreached)
    assert later.value.cause == "EndpointConnectionError at https://here:8000"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ReadTimeoutError(endpoint_url="https://b.s3.aws/key?X=1"), "ReadTimeoutError at https://b.s3.aws"),
        (
            ProxyConnectionError(proxy_url="http://me:secret@proxy:1"),
            "ProxyConnectionError at http://proxy:1",
        ),
    ],
    ids=["a URL with a query", "a proxy with a password"],
)
def test_an_address_is_named_without_what_may_be_secret(error: BotoCoreError, said: str) -> None:
    assert describe_failure(error) == said
