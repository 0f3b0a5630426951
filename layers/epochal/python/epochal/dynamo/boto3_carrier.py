"""A client of boto3's as a carrier.

Its answers to reads are taken whole at botocore's event `before-parse`, which leaves botocore nothing to parse. It
still parses errors and answers to writes.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from botocore import xform_name
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  botocore's own name
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
)

from epochal.dynamo.aws_configuration import address_of, describe_failure, translate_boto_error
from epochal.dynamo.protocol.faults import DynamoFault
from epochal.dynamo.protocol.messages import READS, WRITES, check_answer, parse_object
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.dynamo.wire.http import NoAnswer, Unsent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from epochal.dynamo.carriers import Carrier


def boto3_carrier(client: DynamoDBClient) -> Carrier:
    """Build a thread-safe carrier that sends requests through a boto3 client, but parses answers itself."""
    parse_answers(client)
    retries = may_retry(client)

    def carry(request: DynamoRequest) -> dict[str, Any]:
        """Send a request through the client and return its answer; translate boto's errors."""
        try:
            answer: dict[str, Any] = getattr(client, xform_name(request.operation))(**request.parameters)
        except ClientError as error:
            raise _fault_from(error) from error
        except BotoCoreError as error:
            raise connection_failure(error, retries=retries) from error
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return check_answer(request.operation, answer, headers)

    return carry


def connection_failure(error: BotoCoreError, *, retries: bool) -> Unsent | NoAnswer:
    """Return the failure that a broken connection means; raise the library's error for any other.

    Args:
        retries: whether the client retries by itself, so that an earlier attempt may have gone further than the last.
    """
    unconnected = isinstance(error, EndpointConnectionError | ConnectTimeoutError | ProxyConnectionError)
    if unconnected and not retries:
        nowhere = not isinstance(error, ConnectTimeoutError)
        return Unsent(describe_failure(error), address=address_of(error), nowhere=nowhere)
    if isinstance(error, ConnectionError | HTTPClientError):
        return NoAnswer(describe_failure(error))
    raise translate_boto_error(error) from error


def may_retry(client: Any) -> bool:
    """Return whether a client may have tried more than once before it raises."""
    return bool((client.meta.config.retries or {}).get("total_max_attempts", 2) > 1)


def parse_answers(client: Any) -> None:
    """Make a client parse answers to reads and writes with this library's parser; repeated calls change nothing."""
    client.meta.events.register("before-parse.dynamodb", _parse_answer, unique_id="epochal")


def _parse_answer(
    operation_model: Any,
    response_dict: dict[str, Any],
    customized_response_dict: dict[str, Any],
    **_: object,
) -> None:
    """Parse an answer to a read or write in place of botocore, which calls this before it parses.

    The second dictionary overrides what botocore parses out of the first. JSON that is not an object makes botocore
    fail, so it is replaced by an empty object.
    """
    if operation_model.name in (*READS, *WRITES) and response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict.update(parse_object(response_dict["body"]))
    elif response_dict["body"].lstrip().startswith(b"{"):
        return
    response_dict["body"] = b"{}"


def _fault_from(error: ClientError) -> DynamoFault:
    """Convert an error answer of botocore into a `DynamoFault`."""
    metadata: Any = error.response.get("ResponseMetadata", {})
    return DynamoFault(
        error.operation_name,
        error.response["Error"]["Code"],
        error.response["Error"].get("Message", ""),
        status=int(metadata.get("HTTPStatusCode", 0)),
        members=error.response,
        retried=int(metadata.get("RetryAttempts", 0)) > 0,
    )
