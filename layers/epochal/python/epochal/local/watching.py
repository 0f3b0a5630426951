"""Which files of a project change, by their times and sizes: what editors, `git` and generators do all the same.

Nothing is looked into that is no source: hidden folders, virtual environments, what npm, CDK and Python make.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from epochal.local.errors import TooManyFiles

POLL_SECONDS: Final = 0.5
"""Between looks, each of some microseconds a file; changes are told once a look finds no more of them."""

MOST_FILES: Final = 20_000
"""Of a project; more would keep a processor busy with looking."""

_MADE: Final = frozenset({"node_modules", "__pycache__", "cdk.out"})
_ENVIRONMENT: Final = "pyvenv.cfg"

Seen = Mapping[str, tuple[int, int]]


def changes(root: Path, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[tuple[str, ...]]:
    """Files that have changed, come or gone since this call or the last time, for ever; names within `root`.

    What changes while the caller does something about it comes next.

    Raises:
        TooManyFiles: that is no project.
    """
    return _changes(root, _seen(root), sleep)


def _changes(root: Path, before: Seen, sleep: Callable[[float], object]) -> Iterator[tuple[str, ...]]:
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
        if changed:  # not what was put back
            yield changed


def _seen(root: Path) -> Seen:
    found: dict[str, tuple[int, int]] = {}
    for path, at, size in _files(root):
        found[os.path.relpath(path, root)] = (at, size)
        if len(found) > MOST_FILES:
            raise TooManyFiles(str(root), MOST_FILES)
    return found


def _files(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as listed:
            entries = [each for each in listed if not each.name.startswith(".") and each.name not in _MADE]
    except (FileNotFoundError, NotADirectoryError):
        return  # gone since it was listed
    if any(each.name == _ENVIRONMENT for each in entries):
        return
    for each in entries:
        try:
            if each.is_dir(follow_symlinks=False):
                yield from _files(each.path)
            else:
                stat = each.stat()
                yield each.path, stat.st_mtime_ns, stat.st_size
        except FileNotFoundError:
            continue
