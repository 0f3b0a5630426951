"""How values look on a page."""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.model.events import Claim

LONGEST: Final = 4_000
"""Characters of a body that a page shows."""


DEEPEST: Final = 50
"""Lists and objects in one another that are on lines of their own."""

DIGITS: Final = 20
"""Of a number in an address."""


def body(data: bytes | str | Claim) -> str:
    """A body as people read it: JSON on several lines, text as it is, the beginning of what is long."""
    if isinstance(data, Claim):
        return f"in the bucket: {data.key}, {data.size:,} bytes"
    text = data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")
    with suppress(ValueError):  # not JSON: shown as it is
        text = _written(json.loads(text), "")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def instant(timestamp: str) -> str:
    """A time without the digits that nobody compares."""
    date, _, rest = timestamp.partition("T")
    return f"{date} {rest[:12].rstrip('Z')}" if rest else timestamp


def moment(seconds: float) -> str:
    """Seconds since 1970 as a time, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def ago(seconds: float | None) -> str:
    """How long something took or has waited, in the largest unit that it has two of."""
    if seconds is None:
        return ""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:,.0f} s"


def size(count: int) -> str:
    """Bytes as people read them."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,} bytes"


def whole(arguments: Any, name: str, default: int, most: int) -> int:
    """A number of the address; raises `InvalidInput` for what is none, or beyond `most`."""
    text = str(arguments.get(name, default))
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS or int(text) > most:
        raise InvalidInput(name, f"must be a whole number of at most {most:,}")
    return int(text)


def _written(value: Any, margin: str) -> str:
    inner = f"{margin}  "
    if len(margin) > 2 * DEEPEST:
        return _text(value)
    if isinstance(value, dict) and value:
        members = (f"{inner}{_text(name)}: {_written(each, inner)}" for name, each in value.items())
        return "{\n" + ",\n".join(members) + f"\n{margin}}}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "[\n" + ",\n".join(inner + _written(each, inner) for each in value) + f"\n{margin}]"
    return _text(value)


def _text(value: str | Decimal | Any) -> str:
    return json.dumps_again(value).decode()
