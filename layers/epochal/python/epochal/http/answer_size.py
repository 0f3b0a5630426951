"""The size of an answer.

An answer must fit what a Lambda function may return, 6 MB with every quote and backslash of its text escaped once more;
`RESPONSE_BYTES` of that are filled. A page ends before an event that would exceed them. One event alone may take up to
`LARGEST` bytes; a larger event is answered without its bodies and marked `omitted`, so that the events after it can be
read.
"""

from __future__ import annotations

import json as plain_json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from simplejson import RawJSON

from epochal.http.answers import text_of
from epochal.model.events import OutlinedEvent, Recorded
from epochal.settings import RESPONSE_BYTES

if TYPE_CHECKING:
    from epochal.feed.events import FeedEvent


LARGEST: Final = 5_500_000
"""Most bytes of one event in an answer. The answer of a Lambda function may have 6,291,556 bytes."""

OPENED: Final = 2 * RESPONSE_BYTES
"""Bytes of possibly large bodies that one answer opens, whether they are used or not: compression stores megabytes of
spaces in a few bytes."""


def body_bytes(event: Recorded | FeedEvent) -> int:
    """Return the bytes of an event's bodies that are not in the bucket.

    An answer that shows these bodies has at least as many bytes.
    """
    return sum(len(body) for body in (event.data, event.meta) if isinstance(body, bytes))


def is_too_large(event: Recorded) -> bool:
    """Return whether no answer could hold an event with its bodies."""
    return isinstance(event, OutlinedEvent) or body_bytes(event) > LARGEST


class AnswerSize:
    """Tracks how much room is left in an answer.

    Args:
        frames: frames of the objects that will be `put`: each may be reduced to its frame, so that room is reserved
            for all frames.
    """

    def __init__(self, frames: Iterable[dict[str, Any]] = ()) -> None:
        self._used = 0
        self._opened = 0
        self._kept = sum(map(_size_of, frames))

    def fit(self, view: Any) -> Any | None:
        """Return a value's JSON and count its bytes; None if the answer has no room for it."""
        text = text_of(view)
        size = sent_size(text)
        if self._used + size > RESPONSE_BYTES:
            return None
        self._used += size
        return RawJSON(text)

    def put(self, view: dict[str, Any], frame: dict[str, Any]) -> Any:
        """Return an object's JSON, or its frame marked `omitted` if it does not fit; count the bytes.

        Args:
            view: the object with its bodies.
            frame: the object without its bodies.
        """
        self._kept = max(0, self._kept - _size_of(frame))
        text = text_of(view)
        size = sent_size(text)
        if size > self._remaining:
            return self._omitted(frame)
        self._used += size
        return RawJSON(text)

    def put_opened(
        self, open_view: Callable[[int], dict[str, Any] | None], frame: dict[str, Any], *, large: bool
    ) -> Any:
        """Open an object and return its JSON, or its frame marked `omitted` if too large; count the bytes.

        The frame marked `omitted` is added instead where the bodies are larger.

        Args:
            open_view: opener of the object, given the most bytes of its bodies; returns None where they are larger.
            frame: the object without its bodies.
            large: whether the bodies may be large.
        """
        available = self._remaining + _size_of(frame)
        room = min(available, OPENED - self._opened) if large else available
        view = open_view(room) if room > 0 else None
        if large:
            self._opened += room if view is None else _size_of(view)
        if view is None:
            self._kept = max(0, self._kept - _size_of(frame))
            return self._omitted(frame)
        return self.put(view, frame)

    def omit(self, frame: dict[str, Any]) -> Any:
        """Add an object's frame, marked `omitted`."""
        self._kept = max(0, self._kept - _size_of(frame))
        return self._omitted(frame)

    @property
    def _remaining(self) -> int:
        """Bytes that are left in the answer."""
        return min(RESPONSE_BYTES if self._used else LARGEST, LARGEST - self._kept) - self._used

    def _omitted(self, frame: dict[str, Any]) -> Any:
        """Add a frame marked `omitted`, whose reserved room is already released."""
        omitted = {**frame, "omitted": True}
        self._used += _size_of(omitted)
        return omitted


def sent_size(text: str) -> int:
    """Return the bytes of a text inside a function's answer, where it is a JSON string."""
    return len(plain_json.dumps(text, ensure_ascii=False).encode())


def _size_of(view: Any) -> int:
    """Return the bytes of a JSON value inside a function's answer."""
    return sent_size(text_of(view))
