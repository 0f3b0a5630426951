"""The second layer's content: wheels for the functions' platform, fetched by pip before synthesis.

pip takes wheels for another platform when told to, so no container has to imitate one, and none whose hash is not
written beside its pin. (uv would read markers too; pip is what a team has told of its index and certificates.) What was
fetched is kept in a folder named after everything that decides its content; a folder that exists is complete, because
it gets its name only then. So synthesis asks a registry once for each set of pins and platform, and never again.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from epochal.cdk.parts.bytecode import compile_modules, filling, interpreter_of

RECIPE: Final = 4
"""Raise this when `_fetch` or `_arguments` change what ends up in the folder."""

_OLDER: Final = re.compile(r'(\S+); python_version < "3\.(\d+)"(.*)')
"""A pin for older Pythons than one: what a later one has in its standard library."""

_OURS: Final = re.compile(r"\s*epochal\s*([\[=<>~!@;#]|$)", re.IGNORECASE)
"""A requirement that the library's layer meets."""

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
    interpreter = interpreter_of(platform.python)
    kind = "bytecode" if interpreter else "sources"
    identity = f"{RECIPE}\n{kind}\n{platform.name}\n{requirements.read_text()}"
    folder = cache / hashlib.sha256(identity.encode()).hexdigest()[:24]
    if not folder.exists():
        with filling(folder) as content:
            named = content.parent / "pins.txt"
            named.write_text("\n".join(_pinned(requirements, platform)))
            complete = ["--no-deps", "--require-hashes", "--requirement", str(named)]
            _fetch(requirements, platform, content / "python", run, complete)
            compile_modules(content / "python", interpreter)
    return folder


def bundled(requirements: Path, platform: Platform, cache: Path, *, run: Run = _pip) -> Path:
    """A layer with what a file of requirements asks for and what that needs, but for Epochal, whose layer is there.

    What is fetched is kept by the file's text: pins make it the same tomorrow. A file that refers to others is fetched
    anew each time. Where it has hashes, pip takes nothing without.
    """
    lines = _lines(requirements)
    text = "\n".join(line for line in lines if not _OURS.match(line))
    interpreter = interpreter_of(platform.python)
    fresh = str(uuid4()) if _REFERRING.search(text) else ""
    identity = f"{RECIPE}\n{bool(interpreter)}\n{platform.name}\n{fresh}\n{text}"
    folder = cache / f"bundled-{hashlib.sha256(identity.encode()).hexdigest()[:24]}"
    if not folder.exists():
        with filling(folder) as content:
            content.mkdir()
            named = requirements
            if len(text.splitlines()) < len(lines):
                named = content.parent / requirements.name
                named.write_text(text)
            _fetch(requirements, platform, content / "python", run, ["--requirement", str(named)])
            compile_modules(content / "python", interpreter)
    return folder


def _fetch(requirements: Path, platform: Platform, packages: Path, run: Run, wanted: Sequence[str]) -> None:
    answer = run(_arguments(platform, packages, wanted))
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip()
        how = "; an environment of uv's has none before `uv pip install pip`" if _NO_PIP in said else ""
        raise InstallerFailed(f"pip could not fetch {requirements} for {platform.name}: {said}{how}")
    # Command-line scripts name this machine's interpreter in their first line.
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _pinned(requirements: Path, platform: Platform) -> list[str]:
    """The pins are complete, so nothing is resolved."""
    return _pins(_lines(requirements), int(platform.python.partition(".")[2]))


def _lines(requirements: Path) -> list[str]:
    """Its lines, each with those that continue it, as hashes do."""
    return re.sub(r"\s*\\\n\s*", " ", requirements.read_text()).splitlines()


def _arguments(platform: Platform, into: Path, wanted: Sequence[str]) -> list[str]:
    """Pip's own bytecode would be for this interpreter only."""
    foreign = ["--python-version", platform.python, "--implementation", "cp"] if platform.tags else []
    for tag in platform.tags:
        foreign += ["--platform", tag]
    return [
        "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile",
        "--only-binary=:all:", *foreign, "--target", str(into), *wanted,
    ]  # fmt: skip


def _pins(lines: Sequence[str], minor: int) -> list[str]:
    """Those for Python 3.`minor`. pip would ask the Python that it runs on, not the functions'."""
    pins = [line for line in lines if line and not line.startswith("#")]
    older = {pin: found for pin in pins if (found := _OLDER.fullmatch(pin))}
    return [
        older[pin][1] + older[pin][3] if pin in older else pin
        for pin in pins
        if pin not in older or minor < int(older[pin][2])
    ]
