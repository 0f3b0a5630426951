"""Files of JSON, an object a line: those of `epochal export`, and any other with a mapping."""

from __future__ import annotations

from typing import Final

from epochal.codec import json
from epochal.importing.files import text_of
from epochal.importing.incoming import Misfit
from epochal.importing.sources import Columns, HistorySource


def lines(place: str) -> Columns:
    """The objects; empty lines do not count."""
    with text_of(place) as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            at = f"line {number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                yield Misfit(at=at, stream="", rule=f"must be JSON: {error}", raw=line)
                continue
            if isinstance(row, dict):
                yield at, row
            else:
                yield Misfit(at=at, stream="", rule="must be a JSON object", raw=row)


SOURCE: Final = HistorySource(columns=lines, free=True)
