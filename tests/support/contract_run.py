"""What `make contract` tells the tests that it runs: where DynamoDB is, and how the tables of this run are called.

Without it, as in `make test`, each process has a DynamoDB Local of its own, and names need no prefix.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config

from epochal.contrib.local.endpoint import Endpoint

PREFIX: Final = os.environ.get("EPOCHAL_CONTRACT_PREFIX", "")
"""What the names of tables begin with; empty where nobody asked for such a run."""

URL: Final = os.environ.get("EPOCHAL_CONTRACT_URL", "")
REGION: Final = os.environ.get("EPOCHAL_CONTRACT_REGION", "")
"""Of AWS, whose credentials are then those of the caller; empty for a stand-in."""

MOST_UNITS: Final = 4_000
"""Ceiling of a table's read and of its write units a second: of what a mistake can cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account(Endpoint):
    """DynamoDB in the AWS account of the user who runs the tests."""

    def clients(self, *services: str, config: Config | None = None) -> list[Any]:
        """Return clients with credentials from the usual chain."""
        session: Any = boto3.Session(region_name=self.region)
        return [session.client(service, config=config) for service in services]


def endpoint() -> Endpoint | None:
    """Return the DynamoDB endpoint of the contract run; None if no such run was requested."""
    if REGION:
        return Account(url=f"https://dynamodb.{REGION}.amazonaws.com", region=REGION)
    return Endpoint(url=URL) if URL else None
