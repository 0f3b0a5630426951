"""DynamoDB Local, AWS's own stand-in: fetched once, checked, started in memory on a free port.

It judges the storage code and the cost of plans, in tests and in benchmarks. AWS licenses it for development and
testing, so it is fetched and never committed. npm's registry carries it. `python -m tests.support.dynamodb_local`
fetches it.

What it does not do, and tests cannot show: throttling, TransactionConflict, unprocessed items, stale index reads,
point-in-time recovery, tags; and it reports 4 write units where AWS charges 2 for a small transactional write.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path, PurePosixPath

from epochal.contrib.local import processes, programs
from epochal.contrib.local.errors import LocalError
from epochal.contrib.local.processes import Server, Tell
from epochal.contrib.local.programs import Package, Places, here
from tests.support.needed import JAVA

PACKAGE = Package(
    title="DynamoDB Local, 54 MB",
    folder="dynamodb-local",
    name="amplify-dynamodb-simulator",
    version="2.9.30",  # carries DynamoDB Local 1.25.1
    sha256="3503ffac19f183407909fecdacf4db51ab1fdad1da7b2f177016670b2d80e4b9",
    part=PurePosixPath("package/emulator"),
)

READY_SECONDS = 60.0
"""It takes two to four; a machine with every core busy takes far longer."""


def fetch(places: Places, *, tell: Tell = str) -> Path:
    """Return the directory of DynamoDB Local, downloading it if necessary; raise what `npm.fetch` raises."""
    return programs.fetch(PACKAGE, places.cache, tell=tell)


def start(places: Places, *, port: int | None = None, tell: Tell = str) -> Server:
    """Start an empty DynamoDB Local in memory, which ends with this process; all credentials share its tables."""
    java = programs.find(JAVA)
    directory = fetch(places, tell=tell)
    port = port or processes.free_port()
    command = [
        java,
        "-XX:+UseSerialGC",  # two cores are shared with the tests: no collector threads beside them
        "-XX:TieredStopAtLevel=1",  # in the minutes that it runs, the better compiler costs more than it brings
        f"-Djava.library.path={directory / 'DynamoDBLocal_lib'}",
        "-jar",
        str(directory / "DynamoDBLocal.jar"),
        "-inMemory",
        "-sharedDb",
        "-disableTelemetry",
        "-port",
        str(port),
    ]
    server = processes.start(
        "DynamoDB Local", command, port=port, directory=places.running / f"dynamodb-local-{port}"
    )
    processes.stop_at_exit(server)
    processes.wait_until_ready(
        server, functools.partial(processes.answers, server.url), seconds=READY_SECONDS, tell=tell
    )
    return server


def main() -> int:
    """Download DynamoDB Local, or print why that is impossible."""
    try:
        directory = fetch(here(), tell=_say)
    except LocalError as error:
        _say(f"epochal: {error}")
        return 1
    _say(f"DynamoDB Local is in {directory}")
    return 0


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
