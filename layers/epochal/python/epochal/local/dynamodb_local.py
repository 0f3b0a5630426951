"""DynamoDB Local, AWS's own stand-in: fetched once, checked, started in memory on a free port.

It judges the storage code and the cost of plans, in tests and in benchmarks. AWS licenses it for development and
testing, so it is fetched and never committed. npm is the registry that carries it; what npm brings is compared with
the digest below before anything is unpacked. `python -m epochal.local.dynamodb_local` fetches it.

What it does not do, and tests cannot show: throttling, TransactionConflict, unprocessed items, stale index reads,
point-in-time recovery, tags; and it reports 4 write units where AWS charges 2 for a small transactional write.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from epochal.local import processes, programs
from epochal.local.endpoint import Endpoint
from epochal.local.errors import CommandFailed, DownloadCorrupt, LocalError
from epochal.local.places import Places, here
from epochal.local.processes import Server, Tell

PACKAGE = "amplify-dynamodb-simulator"
VERSION = "2.9.30"  # carries DynamoDB Local 1.25.1
SHA256 = "3503ffac19f183407909fecdacf4db51ab1fdad1da7b2f177016670b2d80e4b9"
EMULATOR = PurePosixPath("package/emulator")

READY_SECONDS = 60.0
"""It takes two to four; a machine with every core busy takes far longer."""


def fetch(places: Places, *, tell: Tell | None = None) -> Path:
    """The directory of DynamoDB Local, fetched if it is not here yet.

    Raises `ProgramMissing` without npm, `CommandFailed` when npm cannot get it, `DownloadCorrupt` when what it got
    differs from what this file pins.
    """
    directory = places.cache / f"dynamodb-local-{VERSION}-{SHA256[:12]}"
    if directory.is_dir():
        return directory
    npm = programs.find(programs.NPM)
    places.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=places.cache, prefix="fetching-") as scratch:
        if tell is not None:
            tell("fetching DynamoDB Local, 54 MB")
        archive = _pack(npm, Path(scratch))
        check(archive, SHA256)
        unpacked = Path(scratch) / "unpacked"
        unpack(archive, unpacked)
        _move_into_place(unpacked, directory)
    return directory


def start(places: Places, *, port: int | None = None, tell: Tell | None = None) -> Server:
    """A ready DynamoDB Local, empty and in memory, that ends with this process."""
    java = programs.find(programs.JAVA)
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


def endpoint(server: Server) -> Endpoint:
    """How to reach it: any credentials do, and with a shared database they all see the same tables."""
    return Endpoint(url=server.url)


def check(archive: Path, sha256: str) -> None:
    """Raise `DownloadCorrupt` unless the file has that digest."""
    with archive.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise DownloadCorrupt(archive.name, sha256, actual)


def unpack(archive: Path, directory: Path) -> None:
    """Write the emulator's files below `directory`: plain files only, and nothing outside of it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            content = (
                tar.extractfile(member) if path.is_relative_to(EMULATOR) and ".." not in path.parts else None
            )
            if content is None:
                continue
            target = directory / path.relative_to(EMULATOR)
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file)


def _pack(npm: str, directory: Path) -> Path:
    """Let npm write the package's archive into `directory`."""
    command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--ignore-scripts", "--pack-destination", str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise CommandFailed(f"npm pack {PACKAGE}@{VERSION}", ran.returncode, ran.stderr.strip())
    return directory / f"{PACKAGE}-{VERSION}.tgz"


def _move_into_place(unpacked: Path, directory: Path) -> None:
    """Rename, so that the directory is either complete or not there."""
    try:
        unpacked.replace(directory)
    except OSError:
        if not directory.is_dir():  # else another command fetched the same meanwhile
            raise


def main() -> int:
    """Fetch it, or say what is in the way."""
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
