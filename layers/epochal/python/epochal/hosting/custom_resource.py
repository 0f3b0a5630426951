"""Answers CloudFormation, which invokes a function for a custom resource when a stack is deployed.

A custom resource that does not answer delays its stack for an hour, so there is an answer whatever happens.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.request import Request, urlopen

from epochal.errors import InvalidInput

TIMEOUT_SECONDS: Final = 10

MOST_BYTES: Final = 4_096
"""Most bytes of an answer. CloudFormation refuses a longer one, and then waits as if there were none."""


def respond(event: dict[str, Any], do: Callable[[], object]) -> None:
    """Call `do` unless the resource is being deleted; tell CloudFormation the result, and raise its error."""
    failure = None
    try:
        if event["RequestType"] != "Delete":
            do()
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        _put(event, failure)


def _put(event: dict[str, Any], failure: str | None) -> None:
    """Tell CloudFormation, at the address that it gave, whether its request succeeded or why it failed."""
    answer = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": failure or "",
        "PhysicalResourceId": event.get("PhysicalResourceId", event["LogicalResourceId"]),
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    # The address is CloudFormation's own, signed; still, what comes in an event opens no file.
    url = str(event["ResponseURL"])
    if not url.startswith(("https://", "http://")):
        raise InvalidInput("ResponseURL", "must be an http:// or https:// URL")
    request = Request(url, _fitted(answer), {"Content-Type": ""}, method="PUT")  # noqa: S310  # checked
    with urlopen(request, timeout=TIMEOUT_SECONDS):  # noqa: S310  # checked above
        pass


def _fitted(answer: dict[str, str]) -> bytes:
    """Return the answer as JSON, its reason shortened until CloudFormation accepts the size."""
    body = json.dumps(answer).encode()
    while len(body) > MOST_BYTES and answer["Reason"]:
        answer = {**answer, "Reason": answer["Reason"][: len(answer["Reason"]) * 3 // 4]}
        body = json.dumps(answer).encode()
    return body
