"""Exclusive lock on a file, held by one process at a time, and released when the process ends for any reason.

Unix       `flock` on the file
Windows    `locking` on its first byte, which may lie beyond its end
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epochal.errors import InvalidInput


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file within a block; raise `InvalidInput` if another process has it.

    Raises:
        InvalidInput: another process holds the lock.
    """
    with lock.open("wb") as file:
        try:
            _take(file.fileno())
        except (BlockingIOError, PermissionError) as error:
            raise InvalidInput("folder", "is being written by another export") from error
        try:
            yield
        finally:
            _release(file.fileno())


def _take(descriptor: int) -> None:
    """Take an exclusive lock on a descriptor's file without waiting; raise `OSError` if another holds it.

    Raises:
        OSError: another process holds the lock.
    """
    try:
        import fcntl  # noqa: PLC0415  Windows has none
    except ImportError:
        import msvcrt  # noqa: PLC0415  only Windows has it

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _release(descriptor: int) -> None:
    """Release the lock on the file of a descriptor."""
    try:
        import fcntl  # noqa: PLC0415  Windows has none
    except ImportError:
        import msvcrt  # noqa: PLC0415  only Windows has it

        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
