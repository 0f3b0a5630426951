"""`python -m bench.load`, or `make load MINUTES=3`: deploy, load, report, verify.

With `STACK=epochal-dev-store REGION=eu-west-1` the load is put on that stage on AWS instead, once its price is
agreed to.
Ends with status 1 where anything is not as it must be.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from bench.load import reacting
from bench.load.reporting import report
from bench.load.run import Load, Target
from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.programs import here
from epochal.errors import EpochalError

SHOWN = 20
"""Differences that are printed; the rest is counted."""

MOST_MINUTES = 24 * 60

CENTS_A_MINUTE = 10
"""Some 50 requests a second, half of them appends of 17 write units on average, with the feed behind them."""


def main() -> int:
    """Run a load, and report expected failures in one line."""
    try:
        minutes = _minutes(os.environ.get("MINUTES") or "1")
        if stack := os.environ.get("STACK"):
            return _on_aws(stack, minutes) if _agreed(stack, minutes) else 1
        with deployed() as deployment:
            return _loaded(Target.embedded(deployment), 60 * minutes, deployment.endpoint)
    except (EpochalError, BotoCoreError, ClientError, LookupError, ValueError) as error:
        say(f"✗ {error}")
        return 2
    except KeyboardInterrupt:
        say("✗ stopped")
        return 130


@contextmanager
def deployed() -> Iterator[LocalDeployment]:
    """Deploy this checkout with the reaction on an embedded AWS, for the duration of a block."""
    places = here()
    say("starting the embedded AWS")
    server = ministack.start(places)
    try:
        reacting.make_table(ministack.endpoint(server))
        say("deploying to it")
        yield deploy.deploy(places, server, context={"stages": reacting.stages(places)})
    finally:
        processes.stop(server)


def _agreed(stack: str, minutes: float) -> bool:
    say(f"{minutes:g} minutes of load on the stage of {stack}: {CENTS_A_MINUTE * minutes:.0f} cents at most")
    say(
        "it writes streams Load-…, aggregates of the type order, which the stage must declare, and tags course:…"
    )
    try:
        return bool(os.environ.get("YES")) or input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        say("nobody is there to answer; YES=1 goes on without asking")
        return False


def _on_aws(stack: str, minutes: float) -> int:
    session = boto3.Session(region_name=os.environ.get("REGION") or os.environ.get("AWS_REGION"))
    credentials = session.get_credentials()
    if credentials is None:
        raise ValueError("there are no AWS credentials")
    return _loaded(Target.deployed(session.client("cloudformation"), stack, credentials), 60 * minutes)


def _loaded(target: Target, seconds: float, reacting_at: Endpoint | None = None) -> int:
    """Put load on a target, verify what was stored, and print the figures; return the exit status."""
    load = Load(target=target, tell=say)
    say(f"load for {seconds:.0f} s")
    load.put_on(seconds)
    say("verifying")
    differences = list(load.differences())
    if reacting_at is not None:
        streams = {name: len(events) for name, events in load.stored.items() if name.startswith("Load-")}
        differences += reacting.reaction_differs(reacting_at, streams)
    for table in report(load):
        table.print()
    for difference in differences[:SHOWN]:
        say(f"✗ {difference}")
    if differences:
        say(f"✗ {len(differences):,} differences from what was sent and answered")
        return 1
    say(
        f"✓ all {load.ledger.events:,} acknowledged events are there once, where they were acknowledged, to the byte, "
        "in replay and in the feed; nothing that was refused is"
        + ("; the reaction skipped none" if reacting_at else "")
    )
    return 0


def say(line: str) -> None:
    """Print a line of progress with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def _minutes(text: str) -> float:
    minutes = float(text) if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII) else 0
    if not 0 < minutes <= MOST_MINUTES:
        raise ValueError(f"MINUTES must be a number above 0 and at most {MOST_MINUTES:,}, not {text!r}")
    return minutes


if __name__ == "__main__":
    sys.exit(main())
