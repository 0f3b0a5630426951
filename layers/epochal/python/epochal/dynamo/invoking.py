"""Invoking a function: its name and a payload in, its answer out."""

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
