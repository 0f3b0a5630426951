"""What each fault and each broken connection means: a reply, a failure to retry, or an error to raise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    ProxyConnectionError,
    ReadTimeoutError,
    ResponseStreamingError,
    SSLError,
)
from botocore.stub import Stubber

from epochal.dynamo.boto3_carrier import connection_failure
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.protocol.faults import DynamoFault, reply_to
from epochal.dynamo.wire.http import NoAnswer, Unsent
from epochal.errors import InvalidRequest, Misconfigured, MissingTable, Refused, WrongTable
from epochal.plan.conditions import Absent
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import (
    BatchGet,
    Delete,
    Get,
    Items,
    Op,
    Overflow,
    Oversized,
    Put,
    Query,
    Refusal,
    Scan,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import Units, number, text

KEY = {"p": text("a"), "i": number(0)}
PUT = Put(table="tips", item=KEY, condition=Absent("i"))
UPDATE = Update(table="tips", key=KEY, sets=(Set("n", number(1)),))
OPS: dict[str, Op] = {
    "get": Get(table="tips", key=KEY),
    "batch": BatchGet(table="tips", keys=(KEY,)),
    "together": TransactGet(keys=(("tips", KEY),)),
    "query": Query(table="tips", partition=("p", KEY["p"])),
    "scan": Scan(table="tips"),
    "put": PUT,
    "update": UPDATE,
    "delete": Delete(table="tips", key=KEY),
    "transact": Transact(writes=(PUT, UPDATE)),
}


def refused_by_aws(
    code: str, message: str = "", *, status: int = 400, retries: int = 0, **more: object
) -> DynamoFault:
    return DynamoFault("PutItem", code, message, status=status, members=more, retried=retries > 0)


def cancelled(*reasons: dict[str, object], retries: int = 0) -> DynamoFault:
    return refused_by_aws("TransactionCanceledException", retries=retries, CancellationReasons=list(reasons))


FAILED = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
PASSED = {"Code": "None"}
STORED = {**KEY, "d": {"B": bytes(2000)}}


def test_a_failed_condition_is_a_refusal_with_the_item_that_stood_there() -> None:
    reply = reply_to(refused_by_aws("ConditionalCheckFailedException", Item=STORED), PUT)

    assert reply == Refusal(items=(STORED,), failed=(True,), units=Units(write=2))


@pytest.mark.parametrize("item", [{}, {"Item": {}}], ids=["no item", "an empty item"])
def test_a_failed_condition_on_nothing_is_a_refusal_without_an_item(item: dict[str, object]) -> None:
    reply = reply_to(refused_by_aws("ConditionalCheckFailedException", **item), PUT)

    assert reply == Refusal(items=(None,), failed=(True,), units=Units(write=1))


def test_a_refusal_after_a_retry_of_botos_own_is_ambiguous() -> None:
    for error in (
        refused_by_aws("ConditionalCheckFailedException", Item=STORED, retries=1),
        cancelled({**FAILED, "Item": STORED}, retries=2),
    ):
        reply = reply_to(error, PUT)
        assert isinstance(reply, Refusal)
        assert reply.ambiguous


@pytest.mark.parametrize("retries", [0, 1])
def test_items_that_have_no_room_in_a_response_are_asked_for_in_parts_and_one_item_is_not(
    retries: int,
) -> None:
    too_large = refused_by_aws("ValidationException", "Payload in response is too large", retries=retries)
    keys = (("tips", KEY), ("tips", {**KEY, "i": number(1)}))
    whole, transaction = TransactGet(keys=keys), Transact(writes=(PUT, UPDATE))

    assert reply_to(too_large, whole) == reply_to(too_large, transaction) == Oversized(ambiguous=retries > 0)
    with pytest.raises(InvalidRequest, match="Payload in response is too large"):
        reply_to(too_large, replace(whole, keys=keys[:1]))
    with pytest.raises(Lost if retries else InvalidRequest):
        reply_to(too_large, replace(transaction, shown=range(1, 2)))


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException", "ValidationException"])
@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_what_is_said_after_a_retry_of_botos_own_leaves_open_what_came_of_a_write(op: Op, code: str) -> None:
    """Said of the last try, while an earlier one may have been applied: the driver asks again, and knows of it."""
    writes = isinstance(op, Put | Update | Delete | Transact)
    with pytest.raises(Lost if writes else (Refused, InvalidRequest)):
        reply_to(refused_by_aws(code, retries=1), op)


def test_a_transaction_cancelled_as_malformed_after_a_retry_of_botos_own_may_have_been_applied_before() -> (
    None
):
    malformed = {"Code": "ValidationError", "Message": "Invalid UpdateExpression"}
    for reasons in ([PASSED, malformed], []):
        with pytest.raises(Lost):
            reply_to(cancelled(*reasons, retries=1), OPS["transact"])
        with pytest.raises(InvalidRequest):
            reply_to(cancelled(*reasons), OPS["transact"])


def test_a_cancelled_transaction_tells_which_writes_were_refused_and_by_what() -> None:
    reply = reply_to(cancelled({**FAILED, "Item": STORED}, PASSED, FAILED), OPS["transact"])

    assert reply == Refusal(
        items=(STORED, None, None), failed=(True, False, True), units=Units(write=2 * (2 + 1 + 1))
    )


def test_a_failed_condition_counts_more_than_a_conflict_beside_it() -> None:
    reply = reply_to(cancelled({**FAILED, "Item": KEY}, {"Code": "TransactionConflict"}), OPS["transact"])

    assert isinstance(reply, Refusal)
    assert reply.failed == (True, False)


def test_an_expression_that_is_too_long_is_no_item_that_is() -> None:
    said = "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size"
    with pytest.raises(InvalidRequest):
        reply_to(refused_by_aws("ValidationException", said), PUT)


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_cancelled_by_traffic_was_not_applied(code: str) -> None:
    with pytest.raises(RequestNotApplied) as failure:
        reply_to(cancelled(PASSED, {"Code": code}), OPS["transact"])

    assert failure.value.cause == code


@pytest.mark.parametrize(
    "error",
    [
        refused_by_aws("ValidationException", "Item size to update has exceeded the maximum allowed size"),
        refused_by_aws("ValidationException", "Item size has exceeded the maximum allowed size"),
        cancelled(
            PASSED,
            {
                "Code": "ValidationError",
                "Message": "Item size to update has exceeded the maximum allowed size",
            },
        ),
    ],
    ids=["update", "put", "transaction"],
)
def test_an_item_grown_too_large_is_an_overflow(error: DynamoFault) -> None:
    reply = reply_to(error, UPDATE)

    assert isinstance(reply, Overflow)
    assert not reply.over or reply.over == (False, True), "of a transaction it is told which"


THROTTLES = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TransactionConflictException",
]


@pytest.mark.parametrize("code", THROTTLES)
def test_a_throttled_request_was_not_applied(code: str) -> None:
    with pytest.raises(RequestNotApplied):
        reply_to(refused_by_aws(code), PUT)


@pytest.mark.parametrize("code", THROTTLES)
def test_a_request_throttled_after_a_retry_of_botos_own_may_have_been_applied_before(code: str) -> None:
    with pytest.raises(Lost):
        reply_to(refused_by_aws(code, retries=1), PUT)
    with pytest.raises(Lost):
        reply_to(cancelled(PASSED, {"Code": "TransactionConflict"}, retries=1), OPS["transact"])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InternalServerError", 500),
        ("InternalFailure", 500),
        ("ServiceUnavailable", 503),
        ("502", 502),
        ("UnheardOf", 599),
        ("TransactionInProgressException", 400),
    ],
)
def test_an_internal_error_may_have_been_applied(code: str, status: int) -> None:
    with pytest.raises(Lost):
        reply_to(refused_by_aws(code, status=status), PUT)


@pytest.mark.parametrize(
    "code",
    [
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "ExpiredTokenException",
    ],
)
def test_a_denied_request_names_the_action(code: str) -> None:
    with pytest.raises(Refused, match="PutItem was denied: because") as refused:
        reply_to(refused_by_aws(code, "because"), PUT)

    assert refused.value.action == "PutItem"


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_a_missing_table_is_named_whatever_was_asked_of_it(op: Op) -> None:
    with pytest.raises(MissingTable) as missing:
        reply_to(refused_by_aws("ResourceNotFoundException"), op)

    assert missing.value.table == "tips"


@pytest.mark.parametrize(
    "error",
    [
        refused_by_aws("ValidationException", "One or more parameter values were invalid"),
        refused_by_aws("SerializationException"),
        cancelled({"Code": "ValidationError", "Message": "Invalid UpdateExpression"}),
        cancelled(),
    ],
    ids=["validation", "serialization", "validation in a transaction", "no reasons"],
)
def test_a_request_that_dynamodb_takes_for_malformed_keeps_its_code_and_words(error: DynamoFault) -> None:
    with pytest.raises(InvalidRequest, match="PutItem was refused as malformed") as raised:
        reply_to(error, PUT)

    assert raised.value.__cause__ is error
    assert raised.value.code == error.code
    reasons = error.members.get("CancellationReasons", [{}])
    told = error.message or "".join(each.get("Message", "") for each in reasons)
    assert told in str(raised.value)


def test_a_token_that_went_with_another_transaction_is_a_refusal_that_says_so() -> None:
    reply = reply_to(refused_by_aws("IdempotentParameterMismatchException"), OPS["transact"])

    assert reply == Refusal(items=(None, None), failed=(False, False), ambiguous=True, reused=True)


@pytest.mark.parametrize(
    ("code", "advice"),
    [("ExpiredTokenException", "log in again"), ("UnrecognizedClientException", "AWS_PROFILE")],
)
def test_credentials_that_are_over_or_of_elsewhere_are_said_with_what_to_do(code: str, advice: str) -> None:
    with pytest.raises(Refused, match=advice):
        reply_to(refused_by_aws(code, "The security token is no good"), PUT)


URL = {"endpoint_url": "https://dynamodb.eu-central-1.amazonaws.com"}
UNMADE = [
    EndpointConnectionError(**URL, error="refused"),
    ConnectTimeoutError(**URL, error="slow"),
    ProxyConnectionError(proxy_url="http://proxy"),
]
BROKEN = [
    ReadTimeoutError(**URL, error="slow"),
    ConnectionClosedError(**URL, error="closed"),
    HTTPClientError(error="anything"),
    ResponseStreamingError(error="cut off"),
    SSLError(**URL, error="broken record"),
]


def names(errors: list[BotoCoreError]) -> list[str]:
    return [type(error).__name__ for error in errors]


@pytest.mark.parametrize("error", UNMADE, ids=names(UNMADE))
def test_a_connection_never_made_applied_nothing_unless_the_client_tried_before(error: BotoCoreError) -> None:
    assert isinstance(connection_failure(error, retries=False), Unsent)
    assert isinstance(connection_failure(error, retries=True), NoAnswer)


@pytest.mark.parametrize("error", BROKEN, ids=names(BROKEN))
@pytest.mark.parametrize("retries", [True, False])
def test_a_connection_that_broke_may_have_applied_it(error: BotoCoreError, retries: bool) -> None:
    assert isinstance(connection_failure(error, retries=retries), NoAnswer)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [(NoCredentialsError(), Misconfigured), (ParamValidationError(report="wrong"), InvalidRequest)],
)
def test_what_no_retry_mends_is_raised_at_once(error: BotoCoreError, meaning: type[Exception]) -> None:
    with pytest.raises(meaning):
        connection_failure(error, retries=False)


@pytest.fixture
def stubber() -> Iterator[Stubber]:
    with Stubber(dynamodb_client(region="eu-central-1")) as stubbed:
        yield stubbed


@pytest.mark.slow
def test_boto_carries_the_item_of_a_refusal_where_we_look_for_it(stubber: Stubber) -> None:
    stubber.add_client_error(
        "put_item",
        "ConditionalCheckFailedException",
        modeled_fields={"Item": STORED},
    )

    reply = interpreter(stubber.client)(PUT)

    assert isinstance(reply, Refusal)
    assert reply.item == STORED


def test_keys_that_dynamodb_leaves_unprocessed_are_asked_for_again(stubber: Stubber) -> None:
    other = {"p": text("b"), "i": number(0)}
    measured = {"ConsumedCapacity": [{"CapacityUnits": 1.0}]}
    stubber.add_response(
        "batch_get_item",
        {
            "Responses": {"tips": [KEY]},
            "UnprocessedKeys": {"tips": {"Keys": [other], "ConsistentRead": True}},
            **measured,
        },
    )
    stubber.add_response("batch_get_item", {"Responses": {"tips": [other]}, **measured})

    reply = interpreter(stubber.client)(BatchGet(table="tips", keys=(KEY, other)))

    assert reply == Items(items=(KEY, other), units=Units(read=2))
    stubber.assert_no_pending_responses()


def test_keys_left_unprocessed_without_any_progress_are_a_failure_to_wait_out(stubber: Stubber) -> None:
    unprocessed = {"Responses": {"tips": []}, "UnprocessedKeys": {"tips": {"Keys": [KEY]}}}
    stubber.add_response("batch_get_item", {**unprocessed, "ConsumedCapacity": [{"CapacityUnits": 0.0}]})

    with pytest.raises(RequestNotApplied):
        interpreter(stubber.client)(BatchGet(table="tips", keys=(KEY,)))


def test_our_own_client_never_retries_by_itself() -> None:
    assert vars(dynamodb_client(region="eu-central-1").meta.config)["retries"]["total_max_attempts"] == 1


def test_an_operation_on_a_table_with_other_keys_names_the_table_in_a_transaction_too() -> None:
    said = "The provided key element does not match the schema"
    with pytest.raises(WrongTable, match="tips has other keys or indexes"):
        reply_to(refused_by_aws("ValidationException", said), OPS["get"])
    with pytest.raises(WrongTable, match="tips has other keys or indexes"):
        reply_to(cancelled({"Code": "ValidationError", "Message": said}, {"Code": "None"}), OPS["transact"])
    both = Transact(writes=(PUT, replace(UPDATE, table="carts")))
    with pytest.raises(WrongTable, match="table: carts has other keys or indexes"):
        reply_to(cancelled({"Code": "None"}, {"Code": "ValidationError", "Message": said}), both)
