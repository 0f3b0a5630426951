"""How much fits an answer.

An answer must fit what a Lambda function may return, 6 MB with every quote and backslash of its text escaped once more;
`RESPONSE_BYTES` of that are filled. A page ends where the next event would pass them. One event alone may go up to
`LARGEST`; beyond that it is given without its bodies and marked `omitted`, so that what follows it can still be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from simplejson import RawJSON

from epochal.codec.json import dumps
from epochal.plan.units import Units
from epochal.settings import RESPONSE_BYTES

LARGEST: Final = 5_500_000
"""Bytes of one event in an answer, out of the 6,291,556 of a Lambda function's."""


class AnswerSize:
    """How much of an answer is left.

    Args:
        frames: of what is to be `put` and can be given as its frame at worst: room for these is kept.
    """

    def __init__(self, frames: Iterable[dict[str, Any]] = ()) -> None:
        self._used = 0
        self._kept = sum(map(_size_of, frames))

    def fit(self, view: Any) -> Any | None:
        """The view, if it has room."""
        text = text_of(view)
        size = sent_size(text)
        if self._used + size > RESPONSE_BYTES:
            return None
        self._used += size
        return RawJSON(text)

    def put(self, view: dict[str, Any], frame: dict[str, Any]) -> Any:
        """The view; where it has no room even in an answer of its own, its frame, marked `omitted`."""
        self._kept = max(0, self._kept - _size_of(frame))
        text = text_of(view)
        size = sent_size(text)
        left = min(RESPONSE_BYTES if self._used else LARGEST, LARGEST - self._kept) - self._used
        if size > left:
            omitted = {**frame, "omitted": True}
            self._used += _size_of(omitted)
            return omitted
        self._used += size
        return RawJSON(text)


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return dumps(value).decode()


def capacity(units: Units) -> dict[str, float]:
    """What a request cost, as an answer tells it."""
    return {"read": units.read, "write": units.write}


def sent_size(text: str) -> int:
    """Bytes of the text inside a function's answer, where it stands as a JSON string."""
    return len(json.dumps(text, ensure_ascii=False).encode())


def _size_of(view: Any) -> int:
    return sent_size(text_of(view))
