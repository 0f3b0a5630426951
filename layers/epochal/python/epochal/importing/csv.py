"""Files of comma-separated values, whose first line names the columns: those of `epochal export`, and any other with a
mapping.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.importing.files import LONGEST, lines_of
from epochal.importing.incoming import Misfit
from epochal.importing.sources import Columns, HistorySource


def records(place: str) -> Columns:
    """The records, each at the line that it ends with. Commas or semicolons part values, as the first line has them."""
    csv.field_size_limit(LONGEST)
    with lines_of(place) as file:
        strange = list[str]()
        text = _text(file, strange)
        head = next(text, "")
        reader = csv.reader(chain((head,), text), delimiter=_between(head), strict=True)
        names = _next(place, reader) or []
        if len(set(names)) != len(names) or not names or strange:
            raise InvalidInput("PLACE", f"{place} must begin with the names of its columns, each once")
        while (values := _next(place, reader)) is not None:
            at = f"line {reader.line_num}"
            if strange:
                yield Misfit(at=at, stream="", rule="must be UTF-8", raw=values)
                strange.clear()
            elif len(values) == len(names):
                yield at, dict(zip(names, values, strict=True))
            elif values:
                rule = f"has {len(values)} values, for {len(names)} columns"
                yield Misfit(at=at, stream="", rule=rule, raw=values)


def _next(place: str, reader: Any) -> list[str] | None:
    """The next record; None behind the last one."""
    try:
        found: list[str] | None = next(reader, None)
    except csv.Error as error:
        raise InvalidInput("PLACE", f"{place}, line {reader.line_num}: {error}") from error
    return found


def _text(lines: Iterator[bytes], strange: list[str]) -> Iterator[str]:
    """The lines as text; of those that are none, what there is of them, and a note."""
    for line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError:
            strange.append(text := line.decode(errors="replace"))
            yield text


def _between(head: str) -> str:
    named = re.sub('"[^"]*("|$)', "", head)
    return max(",;\t", key=named.count)


SOURCE: Final = HistorySource(columns=records, free=True, whole=True)
