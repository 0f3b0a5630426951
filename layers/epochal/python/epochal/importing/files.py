"""Files of a program's own: opened, unpacked where they are compressed, and read line by line."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from epochal.codec.json import MARK
from epochal.errors import InvalidInput

LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a line. A file whose line goes on is of another kind, or has a quote that nobody closes."""

_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
"""What a file of UTF-16 begins with."""


@contextmanager
def lines_of(place: str) -> Iterator[Iterator[bytes]]:
    """The lines of a file with their ends, or of standard input where that is `-`; a name with `.gz` is unpacked.

    Raises:
        InvalidInput: it cannot be read, is UTF-16, or a line is too long.
    """
    try:
        with _opened(place) as file:
            yield _lines(place, file)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput("PLACE", f"{place} cannot be read: {error}") from error


def _lines(place: str, file: IO[bytes]) -> Iterator[bytes]:
    first = file.readline(LONGEST + 1)
    if first.startswith(_WIDE):
        raise InvalidInput("PLACE", f"{place} cannot be read: it must be UTF-8, and is UTF-16")
    line, number = first.removeprefix(MARK), 1  # some programs begin a file with a byte order mark
    while line:
        if len(line) > LONGEST:
            raise InvalidInput("PLACE", f"{place}, line {number}: is longer than {LONGEST >> 20} MB")
        yield line
        line, number = file.readline(LONGEST + 1), number + 1


def _opened(place: str) -> IO[bytes]:
    if place.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(place))
    return sys.stdin.buffer if place == "-" else Path(place).open("rb")
