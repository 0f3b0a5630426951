"""Changed files of a project, by their times and sizes, whether an editor, `git` or a generator changes them.

Folders without sources are skipped: hidden ones, virtual environments, and those that npm, CDK and Python make.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from epochal.contrib.local.errors import TooManyFiles

POLL_SECONDS: Final = 0.5
"""Seconds between scans of the files, at some microseconds a file; changes are reported once a scan finds no more."""

MOST_FILES: Final = 20_000
"""Files of a project, at most: scans of more would keep a processor busy."""

_MADE: Final = frozenset({"node_modules", "__pycache__", "cdk.out"})
_ENVIRONMENT: Final = "pyvenv.cfg"

Seen = Mapping[str, tuple[int, int]]


def changes(root: Path, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[tuple[str, ...]]:
    """Yield, without end, the names of files that changed, appeared or vanished since the last yield.

    The first names are of files that changed since this call. Names are relative to `root`. Files that change while the
    caller handles a yield come with the next one.

    Raises:
        TooManyFiles: the folder has too many files for a project.
    """
    return _changes(root, _seen(root), sleep)


def _changes(root: Path, before: Seen, sleep: Callable[[float], object]) -> Iterator[tuple[str, ...]]:
    """Yield the names of changed files, each time a change has settled, starting from `before`."""
    while True:
        sleep(POLL_SECONDS)
        now = _seen(root)
        if now == before:
            continue
        sleep(POLL_SECONDS)
        while (again := _seen(root)) != now:
            now = again
            sleep(POLL_SECONDS)
        changed = tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
        before = now
        if changed:  # empty where a change was undone
            yield changed


def _seen(root: Path) -> Seen:
    """Return each file's modification time and size by name; raise `TooManyFiles` above `MOST_FILES`.

    Raises:
        TooManyFiles: there are more than `MOST_FILES`.
    """
    states: dict[str, tuple[int, int]] = {}
    for path, changed, size in _files(root):
        states[os.path.relpath(path, root)] = (changed, size)
        if len(states) > MOST_FILES:
            raise TooManyFiles(str(root), MOST_FILES)
    return states


def _files(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, time in nanoseconds and size of each file below a folder, but hidden and generated ones.

    Hidden files, generated folders and virtual environments are skipped.
    """
    try:
        with os.scandir(folder) as listed:
            entries = [
                entry for entry in listed if not entry.name.startswith(".") and entry.name not in _MADE
            ]
    except (FileNotFoundError, NotADirectoryError):
        return  # gone since it was listed
    if any(entry.name == _ENVIRONMENT for entry in entries):
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                stat = entry.stat()
                yield entry.path, stat.st_mtime_ns, stat.st_size
        except FileNotFoundError:
            continue
