"""Who is calling the deployed API: only who signs, with a key that exists, whose policy names the route.

Everybody else is refused by the gateway in the same words, which tell nothing of what is behind it.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import ACCOUNT, KEY, SECRET
from epochal.http.operation import Operation
from epochal.http.routes import operations

TOLD: Final = ("epochal-", "tips", "Traceback", "dynamodb", "arn:aws:lambda", "arn:aws:execute-api")
"""What a refusal would tell about what is behind it. Who they are themselves callers know."""

USER: Final = "doors"


@dataclass(frozen=True, slots=True)
class Caller:
    """Sends requests to a deployment under a key; without one they are not signed."""

    deployment: LocalDeployment
    key: str | None = None
    secret: str = SECRET
    service: str = "execute-api"

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if content else {}
        request = AWSRequest(method, self.deployment.api_url + path, headers=headers, data=content)
        if self.key is not None:
            credentials = Credentials(self.key, self.secret)
            SigV4Auth(credentials, self.service, self.deployment.endpoint.region).add_auth(request)
        return sent(method, request.url, content, dict(request.headers))


def sent(method: str, url: str, content: bytes, headers: dict[str, str]) -> tuple[int, str]:
    request = urllib.request.Request(url, content or None, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def path_of(route: Operation) -> str:
    values = {"{stream}": "Door-1", "{type}": "order", "{partition}": "0", "{version}": "v1"}
    parts = [values.get(part, "door" if part.startswith("{") else part) for part in route.path.split("/")]
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class User:
    """A user of the account, allowed what a test says."""

    deployment: LocalDeployment
    key: str
    secret: str

    def allow(self, *routes: str) -> None:
        place = f"arn:aws:execute-api:{self.deployment.endpoint.region}:{ACCOUNT}:{self.deployment.api_id}"
        statement = {
            "Effect": "Allow",
            "Action": "execute-api:Invoke",
            "Resource": [f"{place}/$default/{route}" for route in routes],
        }
        self.deployment.endpoint.client("iam").put_user_policy(
            UserName=USER,
            PolicyName="routes",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        )

    @property
    def calls(self) -> Caller:
        return Caller(self.deployment, self.key, self.secret)


@pytest.fixture
def user(deployment: LocalDeployment) -> Iterator[User]:
    """A user without any policy."""
    iam = deployment.endpoint.client("iam")
    iam.create_user(UserName=USER)
    made = iam.create_access_key(UserName=USER)["AccessKey"]
    yield User(deployment, made["AccessKeyId"], made["SecretAccessKey"])
    with suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_user_policy(UserName=USER, PolicyName="routes")
    iam.delete_access_key(UserName=USER, AccessKeyId=made["AccessKeyId"])
    iam.delete_user(UserName=USER)


def refused(answer: tuple[int, str]) -> bool:
    status, text = answer
    return status == 403 and set(json.loads(text)) <= {"message", "Message", "__type"} and not told(text)


def told(text: str) -> list[str]:
    return [each for each in TOLD if each.lower() in text.lower()]


@pytest.mark.parametrize("route", operations(), ids=lambda route: route.name)
def test_no_route_answers_who_does_not_sign(deployment: LocalDeployment, route: Operation) -> None:
    assert refused(Caller(deployment)(route.method, path_of(route)))


@pytest.mark.parametrize(
    "key", ["AKIAIOSFODNN7EXAMPLE", "210987654321"], ids=["unknown", "of another account"]
)
def test_a_key_that_is_not_of_this_account_opens_nothing(deployment: LocalDeployment, key: str) -> None:
    for route in operations():
        status, text = Caller(deployment, key)(route.method, path_of(route))
        assert status in (403, 404), (route, text)
        assert not told(text)


def test_a_signature_made_with_another_secret_opens_nothing(deployment: LocalDeployment, user: User) -> None:
    user.allow("GET/health")
    assert user.calls("GET", "/health")[0] == 200
    assert refused(Caller(deployment, user.key, "another" + user.secret)("GET", "/health"))


def test_a_signature_for_another_request_opens_nothing(deployment: LocalDeployment, user: User) -> None:
    user.allow("*")
    request = AWSRequest("GET", deployment.api_url + "/health")
    SigV4Auth(Credentials(user.key, user.secret), "execute-api", deployment.endpoint.region).add_auth(request)
    headers = dict(request.headers)
    assert sent("GET", deployment.api_url + "/health", b"", headers)[0] == 200
    assert refused(sent("GET", deployment.api_url + "/feed", b"", headers))


def test_a_user_without_a_policy_is_refused_on_every_route(user: User) -> None:
    for route in operations():
        assert refused(user.calls(route.method, path_of(route))), route


def test_a_policy_that_names_one_route_opens_that_and_no_other(user: User) -> None:
    user.allow("GET/streams/*/events")
    assert user.calls("GET", "/streams/Door-1/events")[0] == 404
    for route in operations():
        if route.name != "readEvents":
            assert refused(user.calls(route.method, path_of(route))), route


@pytest.mark.parametrize(
    "path",
    [
        "/streams/Door-1/../../health",
        "/streams/Open-1/events/../../../streams/Door-1/events",
        "/streams/Open-1%2F..%2FDoor-1/events",
        "/streams/Open-1/..%2F..%2FDoor-1/events",
        "/streams//Door-1/events",
        "/streams/Open-1;Door-1/events",
        "/streams/Open-1%0a/events",
        "/streams/Open-1%00/events",
        "/streams/%c0%af/events",
        "/streams/Open-1%2e%2e%2fDoor-1/events",
        "/streams/%EF%BC%84Door/events",
        "/streams/%24marks/events",
        "/streams/%2524marks/events",
        "/streams/Open%2D1%3Fx/events",
    ],
)
def test_no_spelling_of_a_path_reaches_what_the_policy_does_not_name(
    deployment: LocalDeployment, user: User, path: str
) -> None:
    """The stream is there and a key that may do everything reads it; one that is for `Open-…` gets nothing of it."""
    caller = Caller(deployment, KEY)
    written = caller("POST", "/streams/Door-1/events", {"events": [{"type": "Secret"}], "expected": "any"})
    assert written[0] == 201
    user.allow("GET/streams/Open-*")
    status, text = user.calls("GET", path)
    assert status in (400, 403, 404), text
    assert "Secret" not in text
    assert not told(text)


@pytest.mark.parametrize("name", ["$marks", "$", "$tag:course", quote("$ünder")])
def test_reserved_streams_are_closed_to_who_may_do_everything_else(
    deployment: LocalDeployment, name: str
) -> None:
    caller, events = Caller(deployment, KEY), {"events": [{"type": "A"}]}
    answers = [
        caller("POST", f"/streams/{name}/events", events),
        caller("GET", f"/streams/{name}/events"),
        caller("GET", f"/streams/{name}"),
        caller("DELETE", f"/streams/{name}"),
        caller("POST", f"/streams/{name}/prune", {"before": 1}),
        caller("GET", f"/dcb/tags/{name}"),
    ]
    assert {status for status, _ in answers} == {400}
    assert all(json.loads(text)["field"] in ("stream", "tag") for _, text in answers)
