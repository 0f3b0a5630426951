"""Files of a program's own: opened, unpacked where they are compressed, and read line by line."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from epochal.errors import InvalidInput


@contextmanager
def text_of(place: str) -> Iterator[IO[str]]:
    """The text of a file, or of standard input where that is `-`; of one that ends with `.gz`, unpacked.

    Raises:
        InvalidInput: it cannot be read, or is not UTF-8.
    """
    try:
        # Some programs begin a file with a byte order mark. What ends a line is left to who reads it.
        with _opened(place) as packed, io.TextIOWrapper(packed, "utf-8-sig", newline="") as text:
            yield text
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput("PLACE", f"{place} cannot be read: {error}") from error


def _opened(place: str) -> IO[bytes]:
    if place.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(place))
    return sys.stdin.buffer if place == "-" else Path(place).open("rb")
