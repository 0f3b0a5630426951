"""The second layer's content: wheels for the functions' platform, fetched by pip before synthesis.

pip takes wheels for another platform when told to, so no container has to imitate one, and none whose hash is not
written beside its pin. (uv would read markers too; pip is what a team has told of its index and certificates.) What was
fetched is kept in a folder named after everything that decides its content; a folder that exists is complete, because
it gets its name only then. So synthesis asks a registry once for each set of pins and platform, and never again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4

from epochal import extensions
from epochal.cdk.stages import BadSetting
from epochal.lazy_dataclasses import dataclass
from epochal.plugins import entry_of

if TYPE_CHECKING:
    from importlib.metadata import Distribution

RECIPE: Final = 4
"""Raise this when `_fetch` or `_arguments` change what ends up in the folder."""

SCHEMAS: Final = "epochal_event_schemas"
"""The module that checks events by the schemas that a stage names."""

_OURS: Final = re.compile(r"\s*epochal\s*([\[=<>~!@;#]|$)", re.IGNORECASE)
"""A requirement that the library's layer meets."""

_NOT_NEEDED: Final = re.compile(rf"^{_OURS.pattern}|\bextra\s*==", re.IGNORECASE)
"""A requirement of a package that the library's layer meets, or that is an extra's."""

_REFERRING: Final = re.compile(r"^\s*(-|\.|/)|file:", re.MULTILINE)
"""A line that is about another file."""

_NO_PIP: Final = "No module named pip"

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class InstallerFailed(RuntimeError):
    """pip could not fetch the pins; the message ends with what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What wheels have to fit.

    Attributes:
        python: `major.minor`.
        tags: platform tags of another machine; none means this one.
    """

    python: str
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Names the platform, this machine's included."""
        return "-".join((self.python, *(self.tags or (sysconfig.get_platform(),))))


def _pip(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False
    )


def vendored(requirements: Path, platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """The folder with the wheels of `requirements` for `platform`, laid out as a layer; fetched if missing."""

    def fill(content: Path) -> None:
        # The pins are complete, so nothing is resolved.
        complete = ["--no-deps", "--require-hashes", "--requirement", str(requirements)]
        _fetch(requirements, platform, content / "python", run, complete)

    return _kept(cache, "", platform, requirements.read_text("utf-8"), fill)


def bundled(requirements: Path, platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """A layer with what a file of requirements asks for and what that needs, but for Epochal, whose layer is there.

    What is fetched is kept by the file's text: pins make it the same tomorrow. A file that refers to others is fetched
    anew each time. Where it has hashes, pip takes nothing without.
    """
    lines = _lines(requirements)
    text = "\n".join(line for line in lines if not _OURS.match(line))
    fresh = str(uuid4()) if _REFERRING.search(text) else ""

    def fill(content: Path) -> None:
        content.mkdir()
        named = requirements
        if len(text.splitlines()) < len(lines):
            named = content.parent / requirements.name
            named.write_text(text, "utf-8")
        _fetch(requirements, platform, content / "python", run, ["--requirement", str(named)])

    return _kept(cache, "bundled-", platform, f"{fresh}\n{text}", fill)


def brought(names: Sequence[str], platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """A layer with the packages that bring layouts of these names, as they are installed here: what makes the tables is
    what runs on them. What a package needs beside the library is fetched.
    """
    entries = [entry_of(name) for name in names]
    packages = {each.module.partition(".")[0]: cast("Distribution", each.dist) for each in entries}
    places = {name: _place_of(name) for name in packages}
    contents = (f"{packages[name].version} {_digest(place, name)}" for name, place in places.items())

    def fill(content: Path) -> None:
        for name, package in packages.items():
            needed = [each for each in package.requires or () if not _NOT_NEEDED.search(each)]
            if needed:
                _fetch(Path(package.name), platform, content / "python", run, needed)
            _copy(places[name], content / "python" / places[name].name)
            # By these the entry point is found there.
            metadata = content / "python" / f"{package.name.replace('-', '_')}-{package.version}.dist-info"
            metadata.mkdir()
            for each in ("METADATA", "entry_points.txt"):
                (metadata / each).write_text(package.read_text(each) or "", "utf-8")

    return _kept(cache, "layouts-", platform, "\n".join(contents), fill)


def checking(document: Path, platform: Platform, cache: Path) -> Path:
    """A layer with the module `SCHEMAS`, which checks events by a file that `epochal schema` has printed.

    Raises:
        BadSetting: there are no schemas in the file, or such as cannot be checked.
    """
    try:
        source = extensions.required_part("event_schemas", "event_schemas")(
            json.loads(document.read_text("utf-8"))
        )
    except (OSError, ValueError) as error:
        raise BadSetting("event_schemas", f"cannot be used: {document.name}: {error}") from error

    def fill(content: Path) -> None:
        (content / "python").mkdir(parents=True)
        (content / "python" / f"{SCHEMAS}.py").write_text(source, "utf-8")

    return _kept(cache, "schemas-", platform, source, fill)


def _kept(cache: Path, kind: str, platform: Platform, identity: str, fill: Callable[[Path], None]) -> Path:
    """The folder of a layer, filled and compiled where none is kept that is of the same."""
    interpreter = interpreter_of(platform.python)
    told = f"{RECIPE}\n{'bytecode' if interpreter else 'sources'}\n{platform.name}\n{identity}"
    folder = cache / f"{kind}{hashlib.sha256(told.encode()).hexdigest()[:24]}"
    if not folder.exists():
        with filling(folder) as content:
            fill(content)
            compile_modules(content / "python", interpreter)
    return folder


def _place_of(package: str) -> Path:
    """The folder of a package that can be imported, or the file of a module."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise InstallerFailed(
            f"{package} brings a layout, and is no package of files that a layer could have"
        )
    origin = Path(found.origin)
    return origin.parent if found.submodule_search_locations else origin


def _copy(place: Path, into: Path) -> None:
    if place.is_dir():
        shutil.copytree(place, into, ignore=shutil.ignore_patterns(*LITTER))
    else:
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place, into)


def _fetch(requirements: Path, platform: Platform, packages: Path, run: Run, wanted: Sequence[str]) -> None:
    answer = run(_arguments(platform, packages, wanted))
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip()
        how = "; an environment of uv's has none before `uv pip install pip`" if _NO_PIP in said else ""
        raise InstallerFailed(f"pip could not fetch {requirements} for {platform.name}: {said}{how}")
    # Command-line scripts name this machine's interpreter in their first line.
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _lines(requirements: Path) -> list[str]:
    """Its lines, each with those that continue it, as hashes do."""
    return re.sub(r"\s*\\\n\s*", " ", requirements.read_text("utf-8")).splitlines()


def _arguments(platform: Platform, into: Path, wanted: Sequence[str]) -> list[str]:
    """Pip's own bytecode would be for this interpreter only."""
    foreign = ["--python-version", platform.python, "--implementation", "cp"] if platform.tags else []
    for tag in platform.tags:
        foreign += ["--platform", tag]
    return [
        "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile",
        "--only-binary=:all:", *foreign, "--target", str(into), *wanted,
    ]  # fmt: skip


# Layers with bytecode, where this machine has the functions' Python.
#
# A layer is read-only, so modules without bytecode are compiled at each cold start, which takes nearly half as long
# again as all that importing takes otherwise. Bytecode fits one version of Python and every processor. It is never
# compared with its source, whose date does not survive the way into a layer. Without that Python, layers hold sources
# only: slower to start, and as right.

LITTER: Final = ("__pycache__", "*.pyc", "*.egg-info", ".*")
"""What lies about in a checkout and belongs to no layer."""

_WHICH: Final = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"

_SHIMS: Final = ("PYENV_VERSION", "MISE_PYTHON_VERSION")
"""Variables that tell version managers which Python is meant: what they put into the path runs none that is not
chosen."""


def interpreter_of(python: str) -> str | None:
    """The interpreter of version `major.minor` on this machine; None where there is none that runs.

    A command of that name may be a version manager's, which runs nothing, and an interpreter lie behind it: in the
    manager's keeping, or further on in the path.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" == python:
        return sys.executable
    for folder in os.get_exec_path():
        found = shutil.which(f"python{python}", path=folder)
        if found is not None and (run := _run_by(found, python)) is not None:
            return run
    return None


def compile_modules(packages: Path, interpreter: str | None) -> None:
    """Put bytecode beside the modules in a layer's folder `python`; they are called there as they will be in AWS. What
    an interpreter cannot compile it could not import either, so nobody does. Without an interpreter there is none.
    """
    if interpreter is None:
        return
    subprocess.run(
        [interpreter, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
         "-s", str(packages), "-p", "/opt/python", str(packages)],
        capture_output=True,
        check=False,
    )  # fmt: skip


def prepared(layer: Path, python: str, cache: Path, *, below: str = "") -> Path:
    """A clean copy of the folder `layer`, with bytecode where that can be had. Copies of what it used to be go.

    Args:
        layer: laid out as a layer, or what lies in one at `below`.
        python: the functions', `major.minor`.
        cache: where copies are kept.
        below: where in the layer the folder's content belongs.
    """
    interpreter = interpreter_of(python)
    # Without a dot: what comes after one CDK would take for the file's type.
    kind = f"{layer.name}-py{python.replace('.', '')}-{'bytecode' if interpreter else 'sources'}-"
    folder = cache / (kind + _digest(layer, below))
    if not folder.exists():
        old = list(cache.glob(f"{kind}*"))
        with filling(folder) as content:
            shutil.copytree(layer, content / below, ignore=shutil.ignore_patterns(*LITTER))
            compile_modules(content / "python", interpreter)
        for each in old:
            shutil.rmtree(each, ignore_errors=True)
    return folder


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """A folder to be made and filled, which then becomes `folder`, unless another process was faster."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        content = Path(scratch) / "layer"
        yield content
        if not folder.exists():
            content.rename(folder)


def has_bytecode(layer: Path) -> bool:
    """Whether a folder as `prepared` has bytecode."""
    return next(layer.rglob("*.pyc"), None) is not None


def _digest(layer: Path, below: str) -> str:
    digest = hashlib.sha256(below.encode())
    for path in sorted(layer.rglob("*")) if layer.is_dir() else [layer]:
        place = path.relative_to(layer)
        if path.is_file() and not any(fnmatch(part, each) for part in place.parts for each in LITTER):
            content = path.read_bytes()
            digest.update(f"{place}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:24]


def _run_by(command: str, python: str) -> str | None:
    """The interpreter that a command runs, if it is of that version: the command may be a shim before it."""
    environment = {**os.environ, **dict.fromkeys(_SHIMS, python)}
    try:
        ran = subprocess.run(
            [command, "-I", "-c", _WHICH], capture_output=True, text=True, check=True, env=environment
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version, _, interpreter = ran.stdout.strip().partition(" ")
    return interpreter if version == python and interpreter else None
