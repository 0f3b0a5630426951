"""Where a project keeps what runs for it, and where what was fetched is.

    .epochal/   in the project: what runs now: logs, scratch, the state file of the embedded AWS, the outputs of the
                last deployment; and what is kept of it while it does not. git ignores it
    .cache/     in a checkout of Epochal: DynamoDB Local; safe to delete, fetched again
    ~/.cache    of the user: the CDK command line, where the project has none, and packages of functions; likewise

Two projects on one machine do not meet.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from epochal.local.errors import NoApplication

CACHE = "EPOCHAL_CACHE"
"""The variable that says where what was fetched is kept, instead of among the user's caches."""

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
        (self.running / ".gitignore").write_text("*\n")


def user_cache() -> Path:
    """For what was fetched for any project of this user."""
    if own := os.environ.get(CACHE):
        return Path(own)
    if told := os.environ.get("XDG_CACHE_HOME"):
        return Path(told) / "epochal"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "epochal"


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
