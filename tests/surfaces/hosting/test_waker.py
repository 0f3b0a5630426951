"""The function that answers CloudFormation when a reaction is deployed: none of the user's code is in it."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import Request

import pytest

from epochal.dynamo import clients, interpreter
from epochal.errors import InvalidInput, Unavailable
from epochal.hosting import custom_resource, first_wakeups, function, reaction_function
from epochal.settings import variable
from tests.core.reactions.world import World

HANDLER = Path(__file__).parents[3] / "lambdas" / "waker" / "handler.py"
EVENT = {
    "RequestType": "Create",
    "ResponseURL": "https://answers/",
    "StackId": "stack",
    "RequestId": "request",
    "LogicalResourceId": "Wake",
    "ResourceProperties": {"Queue": "queue"},
}


class Context:
    """No time for a second attempt."""

    def get_remaining_time_in_millis(self) -> int:
        return 16_000


class Sent:
    """A queue's client that takes everything, or nothing."""

    def __init__(self, *, refusing: bool = False) -> None:
        self.entries: list[dict[str, Any]] = []
        self.refusing = refusing

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "queue"
        self.entries += Entries
        return {"Failed": [{"Id": "1", "Code": "AccessDenied"}]} if self.refusing else {}


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("waker_handler", HANDLER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What CloudFormation is told."""
    found: list[dict[str, Any]] = []

    def receive(request: Request, **_: Any) -> nullcontext[None]:
        assert (request.full_url, request.method) == ("https://answers/", "PUT")
        assert isinstance(request.data, bytes)
        found.append(json.loads(request.data))
        return nullcontext()

    monkeypatch.setattr(custom_resource, "urlopen", receive)
    return found


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    made.append("A-1")
    monkeypatch.setattr(interpreter, "execute_through", lambda _: made.feeds.tables.execute)
    monkeypatch.setenv(variable("index_table"), "index")
    return made


@pytest.mark.usefixtures("world")
def test_a_deployment_is_answered_whatever_happens(
    answers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Sent()
    monkeypatch.setattr(clients, "service_client", lambda *_, **__: sent)
    loaded().handler(EVENT, Context())
    messages = [(each["MessageGroupId"].partition("-")[0], each["MessageBody"]) for each in sent.entries]
    assert messages == [("0", "1"), ("0!deployed", "1")]
    loaded().handler({**EVENT, "RequestType": "Delete"}, Context())
    assert len(sent.entries) == 2, "a deletion wakes nothing"
    monkeypatch.setattr(clients, "service_client", lambda *_, **__: Sent(refusing=True))
    monkeypatch.setattr(first_wakeups, "PAUSE_SECONDS", 60.0)
    with pytest.raises(Unavailable):
        loaded().handler(EVENT, Context())
    assert [answer["Status"] for answer in answers] == ["SUCCESS", "SUCCESS", "FAILED"]


@pytest.mark.parametrize("letter", ["x", "é", "\N{GRINNING FACE}", '"'])
def test_an_answer_is_never_longer_than_cloudformation_takes(
    answers: list[dict[str, Any]], letter: str
) -> None:
    def fail() -> None:
        raise Unavailable(letter * 10_000)

    with pytest.raises(Unavailable):
        custom_resource.respond(EVENT, fail)
    (answer,) = answers
    assert answer["Reason"].startswith("Unavailable: ")
    assert answer["Reason"].endswith(letter)
    assert 3_000 < len(json.dumps(answer)) <= custom_resource.MOST_BYTES == 4_096


def test_a_library_that_cannot_be_imported_is_answered_too(
    answers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "epochal.hosting.first_wakeups", None)
    with pytest.raises(ImportError):
        loaded().handler(EVENT, Context())
    loaded().handler({**EVENT, "RequestType": "Delete"}, Context())
    assert [answer["Status"] for answer in answers] == ["FAILED", "SUCCESS"]


def test_a_permission_that_does_not_hold_yet_is_waited_for() -> None:
    slept: list[float] = []

    def after(pauses: int) -> Callable[[], None]:
        def do() -> None:
            if len(slept) < pauses:
                raise Unavailable("AccessDenied")

        return do

    first_wakeups.patiently(after(3), 45.0, slept.append)
    assert slept == [first_wakeups.PAUSE_SECONDS] * 3
    with pytest.raises(Unavailable):
        first_wakeups.patiently(after(100), 45.0, slept.append)
    assert sum(slept[3:]) == 45.0


def test_a_function_with_a_users_code_answers_no_deployment() -> None:
    """It could not, where that code cannot be imported: neither the creation nor the rollback's deletion."""
    for module in (function, reaction_function):
        source = ast.parse(Path(module.__file__).read_text("utf-8"))
        names = {each.module for each in ast.walk(source) if isinstance(each, ast.ImportFrom)}
        assert "epochal.hosting.custom_resource" not in names


def test_an_answer_goes_to_the_web_and_nowhere_else() -> None:
    event = {**EVENT, "RequestType": "Delete", "ResponseURL": "file:///etc/passwd"}
    with pytest.raises(InvalidInput, match="ResponseURL"):
        loaded().handler(event, Context())
