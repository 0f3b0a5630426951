"""What performs plans: through which carrier, and where.

light     botocore's signer and HTTP session, where the environment says all that there is to know; else as boto3
boto3     a client of boto3's, whatever the configuration
"""

from __future__ import annotations

import os.path
from pathlib import Path

from epochal.dynamo.interpreter import interpreter, performed
from epochal.plan.ops import Execute
from epochal.settings import LIGHT


def execute_through(carrier: str, *, endpoint: str | None = None, region: str | None = None) -> Execute:
    """An interpreter. Credentials, address and region come from the usual AWS chain where they are not given."""
    if carrier == LIGHT:
        from epochal.dynamo.carriers import environment  # noqa: PLC0415  who asks for boto3 does without

        home = Path(os.path.expanduser("~"))  # noqa: PTH111  where there is none pathlib raises
        if (found := environment.carrier(os.environ, home, endpoint=endpoint, region=region)) is not None:
            return performed(found)
    from epochal.dynamo.clients import dynamodb_client  # noqa: PLC0415  likewise

    return interpreter(dynamodb_client(endpoint=endpoint, region=region))
