"""The content of layers with packages: wheels for the functions' platform, fetched by pip before synthesis.

pip can fetch wheels for another platform, so no container is needed, and it refuses a wheel whose hash is not written
beside its pin. (uv would read markers too, but teams have configured pip for their index and certificates.) Fetched
packages are cached in a folder whose name is a hash of everything that decides its content; a folder gets this name
only when it is complete. So synthesis asks a registry once for each set of pins and platform, and never again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from epochal import extensions
from epochal.cdk.parts.bytecode import LITTER, compile_modules, digest_of, filling, interpreter_of
from epochal.cdk.rules import BadSetting
from epochal.lazy_dataclasses import dataclass
from epochal.plugins import entry_of

if TYPE_CHECKING:
    from importlib.metadata import Distribution


RECIPE: Final = 4
"""Version of the folders' content; raise it when `_fetch` or `_arguments` change the content."""

SCHEMAS: Final = "epochal_event_schemas"
"""Name of the module that checks events against the schemas that a stage names."""

_OURS: Final = re.compile(r"\s*epochal\s*([\[=<>~!@;#]|$)", re.IGNORECASE)
"""Pattern of a requirement that the library's layer meets: Epochal itself."""

_NOT_NEEDED: Final = re.compile(rf"^{_OURS.pattern}|\bextra\s*==", re.IGNORECASE)
"""Pattern of a package's requirement that is not fetched: Epochal itself, or a requirement of an extra."""

_REFERRING: Final = re.compile(r"^\s*(-|\.|/)|file:", re.MULTILINE)
"""Pattern of a line that refers to another file."""

_NO_PIP: Final = "No module named pip"

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class InstallerFailed(RuntimeError):
    """pip could not fetch the packages of a layer; the message ends with pip's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The Python and machine that wheels must fit.

    Attributes:
        python: Python version `major.minor`.
        tags: platform tags of another machine; empty for this one.
    """

    python: str
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the platform in names of folders, this machine's included."""
        return "-".join((self.python, *(self.tags or (sysconfig.get_platform(),))))


def _pip(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run pip with these arguments and return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False
    )


def vendored(requirements: Path, platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """Return the folder of a layer with the pinned wheels for a platform; fetch them if missing."""

    def fill(content: Path) -> None:
        """Fetch the pinned wheels into a new folder."""
        # The pins are complete, so pip resolves no dependencies.
        complete = ["--no-deps", "--require-hashes", "--requirement", str(requirements)]
        _fetch(requirements, platform, content / "python", run, complete)

    return _kept(cache, "", platform, requirements.read_text("utf-8"), fill)


def bundled(requirements: Path, platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """Return the layer folder with a requirements file's packages and dependencies; fetch it if missing.

    Epochal is left out, since its own layer has it. The folder is cached by the file's text: pins make the packages
    reproducible. The packages of a file that refers to other files are fetched anew each time. Where the file has
    hashes, pip refuses packages without.

    Raises:
        InstallerFailed: pip could not fetch the packages.
    """
    lines = _lines(requirements)
    text = "\n".join(line for line in lines if not _OURS.match(line))
    fresh = str(uuid4()) if _REFERRING.search(text) else ""

    def fill(content: Path) -> None:
        """Install the required packages with pip into a new folder, for the given platform."""
        content.mkdir()
        requirements_path = requirements
        if len(text.splitlines()) < len(lines):
            requirements_path = content.parent / requirements.name
            requirements_path.write_text(text, "utf-8")
        _fetch(requirements, platform, content / "python", run, ["--requirement", str(requirements_path)])

    return _kept(cache, "bundled-", platform, f"{fresh}\n{text}", fill)


def brought(names: Sequence[str], platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """Return the layer folder with the packages that bring the named layouts; make it if missing.

    The functions thus run on the code that makes the tables. Requirements of a package besides Epochal are fetched.

    Raises:
        InstallerFailed: pip could not fetch a requirement, or a package has no files to copy.
    """
    entries = [entry_of(name) for name in names]
    packages = {entry.module.partition(".")[0]: cast("Distribution", entry.dist) for entry in entries}
    places = {name: _place_of(name) for name in packages}
    contents = (f"{packages[name].version} {digest_of(place, name)}" for name, place in places.items())

    def fill(content: Path) -> None:
        """Copy the packages, their entry points and their requirements into a new folder."""
        for name, package in packages.items():
            needed = [
                requirement for requirement in package.requires or () if not _NOT_NEEDED.search(requirement)
            ]
            if needed:
                _fetch(Path(package.name), platform, content / "python", run, needed)
            _copy(places[name], content / "python" / places[name].name)
            # The entry point is found through these files.
            metadata = content / "python" / f"{package.name.replace('-', '_')}-{package.version}.dist-info"
            metadata.mkdir()
            for file_name in ("METADATA", "entry_points.txt"):
                (metadata / file_name).write_text(package.read_text(file_name) or "", "utf-8")

    return _kept(cache, "layouts-", platform, "\n".join(contents), fill)


def checking(document: Path, platform: Platform, cache: Path) -> Path:
    """Return the layer folder with the module `SCHEMAS`, which checks events; make it from `document`.

    Args:
        document: file of schemas that `epochal schema` has printed.

    Raises:
        BadSetting: the file has no schemas, or such as cannot be checked.
    """
    try:
        source = extensions.required_part("event_schemas", "event_schemas")(
            json.loads(document.read_text("utf-8"))
        )
    except (OSError, ValueError) as error:
        raise BadSetting("event_schemas", f"cannot be used: {document.name}: {error}") from error

    def fill(content: Path) -> None:
        """Write the module into a new folder."""
        (content / "python").mkdir(parents=True)
        (content / "python" / f"{SCHEMAS}.py").write_text(source, "utf-8")

    return _kept(cache, "schemas-", platform, source, fill)


def _kept(cache: Path, kind: str, platform: Platform, identity: str, fill: Callable[[Path], None]) -> Path:
    """Return the cached folder of a layer; fill and compile it if missing.

    Args:
        kind: prefix of the folder's name.
        identity: text that identifies the content, besides the platform.
        fill: function that fills the new folder.
    """
    interpreter = interpreter_of(platform.python)
    description = f"{RECIPE}\n{'bytecode' if interpreter else 'sources'}\n{platform.name}\n{identity}"
    folder = cache / f"{kind}{hashlib.sha256(description.encode()).hexdigest()[:24]}"
    if not folder.exists():
        with filling(folder) as content:
            fill(content)
            compile_modules(content / "python", interpreter)
    return folder


def _place_of(package: str) -> Path:
    """Return a package's folder or a module's file; raise `InstallerFailed` where there is none.

    Raises:
        InstallerFailed: the package has no files.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InstallerFailed(
            f"{package} provides a layout, but is not a package of files that fit in a layer"
        )
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations else origin


def _copy(place: Path, into: Path) -> None:
    """Copy a package's folder, without litter, or a module's file."""
    if place.is_dir():
        shutil.copytree(place, into, ignore=shutil.ignore_patterns(*LITTER))
    else:
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place, into)


def _fetch(
    requirements: Path, platform: Platform, packages: Path, run: Run, arguments: Sequence[str]
) -> None:
    """Install packages into a folder with pip, and delete their scripts; raise if pip fails.

    Args:
        requirements: file that names the packages, for errors.
        packages: folder to install into.
        run: function that runs pip.
        arguments: arguments that name the packages.

    Raises:
        InstallerFailed: pip failed.
    """
    answer = run(_arguments(platform, packages, arguments))
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip()
        how = (
            "; an environment created by uv has no pip before `uv pip install pip`" if _NO_PIP in said else ""
        )
        raise InstallerFailed(f"pip could not fetch {requirements} for {platform.name}: {said}{how}")
    # Command-line scripts name this machine's interpreter in their first line.
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _lines(requirements: Path) -> list[str]:
    """Return the lines of a requirements file, each joined with its continuation lines, such as hashes."""
    return re.sub(r"\s*\\\n\s*", " ", requirements.read_text("utf-8")).splitlines()


def _arguments(platform: Platform, into: Path, arguments: Sequence[str]) -> list[str]:
    """Return pip's arguments to install wheels for a platform into a folder.

    pip compiles no bytecode, since its bytecode would fit only this interpreter.
    """
    foreign = ["--python-version", platform.python, "--implementation", "cp"] if platform.tags else []
    for tag in platform.tags:
        foreign += ["--platform", tag]
    return [
        "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile",
        "--only-binary=:all:", *foreign, "--target", str(into), *arguments,
    ]  # fmt: skip
