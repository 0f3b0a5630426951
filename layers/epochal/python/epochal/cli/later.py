"""How the command line writes a timer: `reminder=14d`, or with a time in ISO 8601."""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput
from epochal.scheduling import At, after

_UNITS: Final = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_SPAN: Final = re.compile(r"(\d{1,9})([wdhms])", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}.*[tT ].*([zZ]|[+-]\d\d(:?\d\d)?)", re.ASCII)


def later_of(text: str) -> tuple[str, At]:
    """Return the name of a timer written `NAME=WHEN`, and when it is due; raise `InvalidInput` otherwise."""
    name, _, when = text.partition("=")
    span = _SPAN.fullmatch(when)
    if not span and not _MOMENT.fullmatch(when):
        rule = (
            "must be NAME=WHEN, where WHEN is 30s, 90m, 36h, 14d, 2w or a time such as 2026-06-01T09:00:00Z"
        )
        raise InvalidInput("--later", rule)
    return name, after(**{_UNITS[span[2]]: int(span[1])}) if span else when
