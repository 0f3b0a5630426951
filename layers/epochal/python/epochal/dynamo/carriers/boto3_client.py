"""A client of boto3's as a carrier.

Its answers to reads are taken whole at botocore's event `before-parse`, which leaves botocore nothing to parse. It
still parses errors and answers to writes.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from epochal.dynamo.protocol.faults import DynamoFault
from epochal.dynamo.protocol.messages import READS, of_a_write, parsed
from epochal.dynamo.protocol.requests import DynamoRequest

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from epochal.dynamo.interpreter import Carrier

_METHODS: Final = {
    "BatchGetItem": "batch_get_item",
    "DeleteItem": "delete_item",
    "GetItem": "get_item",
    "PutItem": "put_item",
    "Query": "query",
    "Scan": "scan",
    "TransactGetItems": "transact_get_items",
    "TransactWriteItems": "transact_write_items",
    "UpdateItem": "update_item",
}


def carrier(client: DynamoDBClient) -> Carrier:
    """What sends requests through a client. Safe to share between threads, as clients are."""
    parse_reads(client)

    def carry(request: DynamoRequest) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(client, _METHODS[request.operation])(**request.parameters)
        except ClientError as error:
            raise _fault(error) from error
        if request.operation in READS:
            return answer
        return of_a_write(answer, answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}))

    return carry


def retries(client: Any) -> bool:
    """Whether a client may have tried more than once before it raises."""
    return bool((client.meta.config.retries or {}).get("total_max_attempts", 2) > 1)


def parse_reads(client: Any) -> None:
    """Have a client's reads parsed here. Its callers see no difference. Asked for twice, it is done once."""
    client.meta.events.register("before-parse.dynamodb", _take_answer, unique_id="epochal")


def _take_answer(
    operation_model: Any,
    response_dict: dict[str, Any],
    customized_response_dict: dict[str, Any],
    **_: object,
) -> None:
    """Called by botocore: the second dictionary overrides what it parses out of the first. JSON that is no object, it
    fails over.
    """
    if operation_model.name in READS and response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict.update(parsed(response_dict["body"]))
    elif response_dict["body"].lstrip().startswith(b"{"):
        return
    response_dict["body"] = b"{}"


def _fault(error: ClientError) -> DynamoFault:
    about: Any = error.response.get("ResponseMetadata", {})
    return DynamoFault(
        error.operation_name,
        error.response["Error"]["Code"],
        error.response["Error"].get("Message", ""),
        status=int(about.get("HTTPStatusCode", 0)),
        members=error.response,
        retried=int(about.get("RetryAttempts", 0)) > 0,
    )
