"""A stage in memory with its API, and stand-ins for the clients that tell of an account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochal.contrib.proving.deployed_stacks import DeployedStack
from epochal.contrib.proving.proof import CATEGORY, ProofRun
from epochal.contrib.proving.signed_http import Answer
from tests.support.api import Api

ACCOUNT = "123456789012"
REGION = "eu-west-1"


@dataclass
class Stage:
    """Tables in memory, indexed whenever the proof sleeps. What a test breaks is between the proof and them."""

    api: Api = field(default_factory=lambda: Api(types=(CATEGORY,)))
    now: float = 0.0
    indexes: bool = True
    answers: Callable[[str, str, Answer], Answer] = lambda _method, _path, answer: answer

    def proof(
        self, stacks: tuple[DeployedStack, ...] = (), client: Callable[[str], Any] = lambda _: None
    ) -> ProofRun:
        self.api.index()
        return ProofRun(
            store=self.api.deployment,
            client=client,
            stacks=stacks,
            http=self.http,
            marker="m1",
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.indexes:
            self.api.index()

    def http(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Answer:
        """The API, past the gateway, which refuses what is not signed; a URL is an object of the bucket."""
        if "://" in path:
            raise AssertionError("uploads have a stand-in of their own")
        if not signed:
            return self.answers(method, path, Answer(status=403, headers={}, content=b"{}"))
        place, _, query = path.partition("?")
        found = self.api.call(method, place, body, query=query, headers=headers)
        named = {name.lower(): value for name, value in found.headers.items()}
        return self.answers(
            method, path, Answer(status=found.status, headers=named, content=found.text.encode())
        )


def function(name: str, **variables: str) -> dict[str, Any]:
    """A function of a template."""
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "FunctionName": name,
            "Timeout": 28,
            "Environment": {"Variables": {"POWERTOOLS_SERVICE_NAME": name, **variables}},
        },
    }


def deployed_as(name: str, properties: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    """What Lambda says of a function."""
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    role = f"arn:aws:iam::{ACCOUNT}:role/{name}"
    return {"FunctionArn": arn, "Role": role, **properties, **changed}
