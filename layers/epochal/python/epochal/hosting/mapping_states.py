"""The event source mappings that bring changes of tables to a function, with their states in Lambda's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import InvalidRequest
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingState:
    """The state of a mapping that brings changes to a function.

    Attributes:
        source: ARN of the stream that the changes come from.
        state: state of the mapping, in Lambda's words.
        result: how the last batch ended, in Lambda's words.
        window: seconds for which Lambda gathers changes.
    """

    source: str
    state: str
    result: str
    window: int


def mappings_to(client: LambdaClient, function: str) -> list[MappingState]:
    """Return the event source mappings to a function; empty if there is no such function.

    Raises:
        Refused: the credentials may not list them.
        Unavailable: throttling, an outage, or no answer in time.
    """
    mappings: list[MappingState] = []
    try:
        with translate_errors("ListEventSourceMappings"):
            for page in client.get_paginator("list_event_source_mappings").paginate(FunctionName=function):
                mappings += (
                    MappingState(
                        source=mapping.get("EventSourceArn", ""),
                        state=mapping.get("State", ""),
                        result=mapping.get("LastProcessingResult", ""),
                        window=mapping.get("MaximumBatchingWindowInSeconds", 0),
                    )
                    for mapping in page["EventSourceMappings"]
                )
    except InvalidRequest as error:
        if error.code != "ResourceNotFoundException":
            raise
    return mappings
