"""Files of JSON, an object a line: those of `epochal export`, and any other with a mapping."""

from __future__ import annotations

from typing import Final

from epochal.codec import json
from epochal.importing.files import lines_of
from epochal.importing.incoming import Misfit
from epochal.importing.sources import Columns, HistorySource


def lines(place: str) -> Columns:
    """The objects; empty lines do not count."""
    with lines_of(place) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                if line.strip():
                    rule = (
                        "must be UTF-8"
                        if isinstance(error, UnicodeError)
                        else f"must be JSON, all of it on its line: {error}"
                    )
                    yield Misfit(at=f"line {number}", stream="", rule=rule, raw=line.decode(errors="replace"))
                continue
            if isinstance(row, dict):
                yield f"line {number}", row
            else:
                yield Misfit(at=f"line {number}", stream="", rule="must be a JSON object", raw=row)


SOURCE: Final = HistorySource(columns=lines, free=True)
