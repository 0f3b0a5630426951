"""Extras: what they bring is imported where it is used, and what is missing is told with the command that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def brought_by(extra: str, what: str, *packages: str) -> Iterator[None]:
    """Around imports of `packages`, which `what` needs and an extra brings.

    Raises:
        ModuleNotFoundError: one is missing; it says what to install. Of others it is raised as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        how = f"{what} need {error.name}, which the extra brings: pip install 'epochal[{extra}]'"
        raise ModuleNotFoundError(how, name=error.name) from error
