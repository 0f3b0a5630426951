"""The Python interpreters of this machine: on the path, and those that pyenv has installed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 14)
"""Versions of Python that the package is declared to run on."""


@cache
def interpreters() -> dict[tuple[int, int], str]:
    """Return an interpreter for each version of Python that is here and new enough, the oldest version first."""
    here = {version: path for path in _candidates() if (version := _version_of(path)) is not None}
    return dict(sorted(here.items()))


def _candidates() -> Iterator[str]:
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for name in names:
        yield from map(str, sorted(pyenv.glob(f"*/bin/{name}")))
    for folder in os.get_exec_path():
        yield from (str(path) for name in names if (path := Path(folder, name)).exists())


def _version_of(path: str) -> tuple[int, int] | None:
    """Return the version of an interpreter that runs and can make virtual environments; None otherwise.

    A shim of pyenv runs only if its version is chosen, and Debian has `ensurepip` in a package of its own.
    """
    code = "import ensurepip, sys, venv; print(*sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    major, minor = map(int, done.stdout.split())
    return major, minor
