"""Invoking a function: its answer comes back, and what went wrong is told as what it means."""

from __future__ import annotations

import io
from typing import Any

import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from epochal.dynamo.clients import service_client
from epochal.errors import EpochalError, InvalidRequest, Refused, Unavailable
from epochal.hosting.services import invoker


@pytest.fixture
def client() -> Any:
    return service_client("lambda", region="us-east-1")


def _answer(text: bytes, **more: Any) -> dict[str, Any]:
    return {"StatusCode": 200, "Payload": StreamingBody(io.BytesIO(text), len(text)), **more}


def test_a_payload_goes_out_and_the_answer_comes_back(client: Any) -> None:
    with Stubber(client) as stub:
        stub.add_response(
            "invoke", _answer(b'{"next":3}'), {"FunctionName": "f", "Payload": b'{"command": "replay"}'}
        )
        assert invoker(client)("f", {"command": "replay"}) == {"next": 3}
        stub.assert_no_pending_responses()


def test_a_function_that_fails_is_told_with_its_words(client: Any) -> None:
    failed = _answer(b'{"errorType":"KeyError","errorMessage":"x"}', FunctionError="Unhandled")
    with Stubber(client) as stub:
        stub.add_response("invoke", failed)
        with pytest.raises(InvalidRequest, match="KeyError"):
            invoker(client)("f", {})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDeniedException", Refused),
        ("ResourceNotFoundException", InvalidRequest),
        ("TooManyRequestsException", Unavailable),
    ],
)
def test_what_lambda_refuses_is_raised_as_what_it_means(
    client: Any, code: str, kind: type[EpochalError]
) -> None:
    with Stubber(client) as stub:
        stub.add_client_error("invoke", code, "told", 400)
        with pytest.raises(kind, match="Invoke|told|TooMany"):
            invoker(client)("f", {})
