"""How mappings of streams to functions are: one that is disabled brings nothing, and has no metric that says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient

IDLE: Final = ("Disabling", "Disabled", "Deleting")
"""States of a mapping that brings nothing any more; an update, for one, does not stop it."""


def disabled(client: LambdaClient, mappings: Iterable[str]) -> list[str]:
    """Those that bring nothing, or are gone."""
    return [each for each in mappings if _state(client, each) in IDLE]


def _state(client: LambdaClient, mapping: str) -> str:
    try:
        return client.get_event_source_mapping(UUID=mapping)["State"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return "Disabled"
