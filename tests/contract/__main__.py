"""`make contract PLACE=aws REGION=eu-west-1`: the contract suite against DynamoDB in one's own account.

It says what that costs and asks, makes tables with a ceiling, and deletes them afterwards, also when it is interrupted.
`PLACE=local` goes the same way, to DynamoDB Local.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from epochal.contrib.local import processes
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.programs import here
from tests.support import dynamodb_local

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

NAMED: Final = "epochal-contract-"
"""What the names of all tables of such runs begin with."""

PRICE: Final = (
    "The contract suite on DynamoDB in {region}, with the credentials of this shell: some {tables} tables on demand, "
    "each with at most 4,000 read and 4,000 write units a second, deleted afterwards; half an hour, and {cents} cents "
    "at most."
)
TABLES: Final = 320
CENTS: Final = 50

AT_ONCE: Final = {"aws": "8", "local": "2"}
"""Processes: on AWS most of the time goes into waiting for tables."""


def main(environment: Mapping[str, str]) -> int:
    """Run it as the environment says: `PLACE`, `REGION`, `YES`, and `ONLY` for pytest's `-k`."""
    place, region = environment.get("PLACE", "local"), environment.get("REGION", "")
    if place not in AT_ONCE or (place == "aws" and not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", region)):
        say("PLACE must be local, or aws with a REGION such as eu-west-1")
        return 2
    if place == "aws" and not agreed(region, environment):
        return 1
    prefix = f"{NAMED}{secrets.token_hex(3)}-"
    with contextmanager(on_aws if place == "aws" else locally)(region) as (client, told):
        try:
            return tested(place, prefix, told, environment)
        except KeyboardInterrupt:
            return 130
        finally:
            say(f"{removed(client, prefix)} tables deleted")


def agreed(region: str, environment: Mapping[str, str]) -> bool:
    """Whether the caller goes on, who is told what it costs."""
    say(PRICE.format(region=region, tables=TABLES, cents=CENTS))
    if environment.get("YES"):
        return True
    try:
        return input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        say("nobody is there to answer; YES=1 goes on without asking")
        return False


def on_aws(region: str) -> Iterator[tuple[DynamoDBClient, dict[str, str]]]:
    """DynamoDB in the caller's account."""
    patient = Config(retries={"total_max_attempts": 10, "mode": "standard"})
    yield boto3.client("dynamodb", region_name=region, config=patient), {"EPOCHAL_CONTRACT_REGION": region}


def locally(_: str) -> Iterator[tuple[DynamoDBClient, dict[str, str]]]:
    """A DynamoDB Local of this run's own."""
    server = dynamodb_local.start(here())
    try:
        endpoint = Endpoint(url=server.url)
        yield endpoint.client("dynamodb"), {"EPOCHAL_CONTRACT_URL": endpoint.url}
    finally:
        processes.stop(server)


def tested(place: str, prefix: str, told: Mapping[str, str], environment: Mapping[str, str]) -> int:
    """Run pytest; its status."""
    only = ["-k", environment["ONLY"]] if environment.get("ONLY") else []
    marked = "(ddbl or embedded) and not proof"
    run = ["pytest", "tests/contract", "-q", "-m", marked, "--numprocesses", AT_ONCE[place], *only]
    # A process that waits for tables takes as long as AWS does.
    run += ["--timeout", "900", "--hypothesis-profile", "check"]
    known = {**os.environ, **told, "EPOCHAL_CONTRACT_PREFIX": prefix}
    with subprocess.Popen([sys.executable, "-m", *run], env=known) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise


def removed(client: DynamoDBClient, prefix: str) -> int:
    """Delete the tables of a run; how many there were. One that is still being made is waited for."""
    pages = client.get_paginator("list_tables").paginate()
    names = [name for page in pages for name in page["TableNames"] if name.startswith(prefix)]
    for name in names:
        try:
            client.get_waiter("table_exists").wait(TableName=name)
            client.delete_table(TableName=name)
        except (BotoCoreError, ClientError) as error:
            say(f"{name} is left: {error}")
    return len(names)


def say(line: str) -> None:
    """Print a line of progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, _interrupt
    )  # a runner that gives up asks first, and tables are to be deleted
    sys.exit(main(os.environ))
