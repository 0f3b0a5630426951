"""What performs plans: through which carrier, and where.

light     botocore's signer and HTTP session, where the environment says all that there is to know; else as boto3, and
          the logger `epochal.dynamo` says why, once a process
boto3     a client of boto3's, whatever the configuration
"""

from __future__ import annotations

import logging
import os.path
from functools import cache
from pathlib import Path
from typing import Final

from epochal.dynamo.interpreter import interpreter, performed
from epochal.plan.ops import Execute
from epochal.settings import LIGHT

_LOGGER: Final = logging.getLogger("epochal.dynamo")


def execute_through(carrier: str, *, endpoint: str | None = None, region: str | None = None) -> Execute:
    """An interpreter. Credentials, address and region come from the usual AWS chain where they are not given."""
    if carrier == LIGHT:
        from epochal.dynamo.carriers import environment  # noqa: PLC0415  who asks for boto3 does without

        home = Path(os.path.expanduser("~"))  # noqa: PTH111  where there is none pathlib raises
        found = environment.carrier(os.environ, home, endpoint=endpoint, region=region)
        if not isinstance(found, str):
            return performed(found)
        _say(found)
    from epochal.dynamo.clients import dynamodb_client  # noqa: PLC0415  likewise

    return interpreter(dynamodb_client(endpoint=endpoint, region=region))


@cache
def _say(why: str) -> None:
    """No warning of Python's: a program that makes errors of these would not start for what is slower, not wrong."""
    _LOGGER.warning("the carrier `light` gives way to a boto3 client, at twice the CPU: %s", why)
