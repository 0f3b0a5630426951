"""`python -m bench.load`, or `make load MINUTES=3`: deploy, load, report, verify.

Ends with status 1 where anything is not as it must be.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.load import reacting
from bench.load.reporting import report
from bench.load.run import Load
from epochal.errors import EpochalError
from epochal.local import deploy, ministack, processes
from epochal.local.deploy import LocalDeployment
from epochal.local.places import here

SHOWN = 20
"""Differences that are printed; the rest is counted."""

MOST_MINUTES = 24 * 60


def main() -> int:
    """Run it; what can go wrong on the way is said in one line."""
    try:
        minutes = _minutes(os.environ.get("MINUTES") or "1")
        with deployed() as deployment:
            return _loaded(deployment, 60 * minutes)
    except (EpochalError, ValueError) as error:
        say(f"✗ {error}")
        return 2
    except KeyboardInterrupt:
        say("✗ stopped")
        return 130


@contextmanager
def deployed() -> Iterator[LocalDeployment]:
    """This checkout with the reaction beside it, on an embedded AWS that lasts as long as the block."""
    places = here()
    say("starting the embedded AWS")
    server = ministack.start(places)
    try:
        reacting.make_table(ministack.endpoint(server))
        say("deploying to it")
        yield deploy.deploy(places, server, context={"stages": reacting.stages(places)})
    finally:
        processes.stop(server)


def _loaded(deployment: LocalDeployment, seconds: float) -> int:
    load = Load(deployment=deployment, tell=say)
    say(f"load for {seconds:.0f} s")
    load.put_on(seconds)
    say("verifying")
    found = list(load.differences())
    streams = {name: len(each) for name, each in load.stored.items() if name.startswith("Load-")}
    found += reacting.reaction_differs(deployment.endpoint, streams)
    for table in report(load):
        table.print()
    for difference in found[:SHOWN]:
        say(f"✗ {difference}")
    if found:
        say(f"✗ {len(found):,} differences from what was sent and answered")
        return 1
    say(
        f"✓ all {load.ledger.events:,} acknowledged events are there once, where they were acknowledged, to the byte, "
        "in replay and in the feed; nothing that was refused is; the reaction skipped none"
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
