"""Files of comma-separated values, whose first line names the columns: those of `epochal export`, and any other with a
mapping.
"""

from __future__ import annotations

import csv
from typing import Final

from epochal.errors import InvalidInput
from epochal.importing.files import text_of
from epochal.importing.incoming import Misfit
from epochal.importing.sources import Columns, HistorySource

LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a value. What is longer is a quote that nobody has closed."""


def records(place: str) -> Columns:
    """The records, each at the line that it ends with. Commas or semicolons part values, as the first line has them."""
    csv.field_size_limit(LONGEST)
    with text_of(place) as text:
        head = text.readline()
        names = next(csv.reader([head], delimiter=(between := _between(head)), strict=True), [])
        if len(set(names)) != len(names) or not names:
            raise InvalidInput("PLACE", f"{place} must begin with the names of its columns, each once")
        reader = csv.reader(text, delimiter=between, strict=True)
        while True:
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InvalidInput("PLACE", f"{place}, line {reader.line_num + 1}: {error}") from error
            at = f"line {reader.line_num + 1}"
            if len(values) == len(names):
                yield at, dict(zip(names, values, strict=True))
            elif values:
                rule = f"has {len(values)} values, for {len(names)} columns"
                yield Misfit(at=at, stream="", rule=rule, raw=values)


def _between(head: str) -> str:
    return max(",;\t", key=head.count)


SOURCE: Final = HistorySource(columns=records, free=True)
