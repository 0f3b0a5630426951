"""Functions of a deployment: invoking one by its name, and which reactions there are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from epochal.dynamo.aws_errors import Codes, translated
from epochal.errors import InvalidRequest

Invoke = Callable[[str, dict[str, Any]], dict[str, Any]]

LAMBDA: Final = Codes(
    denied=frozenset(
        {
            "AccessDeniedException",
            "UnrecognizedClientException",
            "InvalidClientTokenId",
            "InvalidSignatureException",
            "ExpiredTokenException",
        }
    ),
    busy=frozenset({"TooManyRequestsException", "ThrottlingException"}),
)

SQS: Final = Codes(
    denied=LAMBDA.denied | {"AccessDenied", "InvalidAccessKeyId"},
    busy=frozenset({"RequestThrottled", "ThrottlingException"}),
)


def invoker(client: Any) -> Invoke:
    """Invokes functions with a client of Lambda's.

    Raises, when called:
        Refused: the credentials may not.
        InvalidRequest: there is no such function, or it failed.
        Unavailable: throttling, an outage, or no answer in time.
    """

    def invoke(function: str, payload: dict[str, Any]) -> dict[str, Any]:
        with translated("Invoke", codes=LAMBDA):
            answer = client.invoke(FunctionName=function, Payload=json.dumps(payload).encode())
            told = json.loads(answer["Payload"].read())
        if answer.get("FunctionError"):
            raise InvalidRequest(
                "Invoke", str(told.get("errorType", "")), str(told.get("errorMessage", told))
            )
        return dict(told)

    return invoke


def reactions_of(client: Any, prefix: str) -> list[str]:
    """The reactions of a deployment, by the names of their queues: one request finds up to a thousand.

    Args:
        client: of SQS.
        prefix: of the names of the deployment's functions.

    Raises:
        Refused: the credentials may not list queues.
        Unavailable: throttling, an outage, or no answer in time.
    """
    begins = f"{prefix}-reaction-"
    with translated("ListQueues", codes=SQS):
        urls = client.list_queues(QueueNamePrefix=begins, MaxResults=1000).get("QueueUrls", ())
    names = {url.rpartition("/")[2].removeprefix(begins).removesuffix(".fifo") for url in urls}
    return sorted(each for each in names if each.removesuffix("-failed") not in names - {each})
