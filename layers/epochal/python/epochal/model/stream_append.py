"""The append to one stream within a call that appends to several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochal.lazy_dataclasses import dataclass
from epochal.model.expected_version import ANY, ExpectedVersion

if TYPE_CHECKING:
    from epochal.model.events import Event, Unfold


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAppend:
    """The append to one stream within a call that appends to several, with the arguments of `Streams.append`.

    Attributes:
        stream: name of the stream.
        events: events to append; may be empty if there are unfolds.
        unfolds: unfolds that replace the stored ones; None keeps the stored ones, an empty sequence removes them.
        expected: version that the stream is expected to have.
    """

    stream: str
    events: Sequence[Event] = ()
    unfolds: Sequence[Unfold] | None = None
    expected: ExpectedVersion = ANY
