"""Warnings for table columns that look like numbers, booleans or dates, and are stored as text without a codec."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from epochal.codec import json
from epochal.contrib.transfer.importing.incoming import Incoming, Row
from epochal.model.bodies import content_of

_LOOKS: Final[Mapping[str, re.Pattern[str]]] = {
    "booleans": re.compile(r"true|false|yes|no|t|f|y|n", re.IGNORECASE),
    "numbers": re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
    "dates that are not ISO 8601": re.compile(r"[0-9]{1,4}([/.])[0-9]{1,2}\1[0-9]{1,4}\b.*"),
}
"""Patterns of cells that look like more than text. A time of ISO 8601 is text in JSON, and so is a code such as 007."""


class TextColumns:
    """Detects columns of bodies whose cells all look like numbers, booleans or dates.

    Attributes:
        looks: by column, kinds that all its cells so far look like; empty where they differ, or are plain text
    """

    def __init__(self) -> None:
        self.looks = dict[str, tuple[str, ...]]()
        self._examples = dict[str, str]()

    def watched(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows unchanged, and look at the cells of their bodies."""
        for row in rows:
            if isinstance(row, Incoming):
                self._look(json.loads(content_of(row.event.data)))
            yield row

    def _look(self, cells: Mapping[str, str]) -> None:
        """Compare cells with the kinds that their columns have looked like so far."""
        for column, text in cells.items():
            if text and (looks := self.looks.get(column, tuple(_LOOKS))):
                self.looks[column] = tuple(look for look in looks if _LOOKS[look].fullmatch(text))
                self._examples.setdefault(column, text)

    @property
    def warnings(self) -> dict[str, str]:
        """Kind that each suspicious column looks like, by column, in order."""
        return {column: looks[0] for column, looks in self.looks.items() if looks}

    def _example(self, column: str) -> str:
        """Return a cell of a column as JSON text."""
        return json.dumps(self._examples[column]).decode()

    def lines(self) -> list[str]:
        """Format the warnings as text, a line for each column."""
        return [
            f"warning: {column} looks like {look}, and is stored as text: {self._example(column)}"
            for column, look in self.warnings.items()
        ]
