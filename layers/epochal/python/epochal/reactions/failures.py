"""Failures of handlers: a call that failed, and a stream that was given up after several."""

from __future__ import annotations

from collections.abc import Callable

from epochal.feed.events import FeedEvent
from epochal.lazy_dataclasses import dataclass, field
from epochal.reactions.traces import trace_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A stream was given up at an event.

    Attributes:
        stream: name of the stream.
        index: index of the event.
        cause: kind and message of what the handler raised.
        attempts: number of calls that failed.
        trace: where it was raised, without values; empty if nothing was raised.
    """

    stream: str
    index: int
    cause: str
    attempts: int
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A call of a handler that failed.

    Attributes:
        partition: partition of the feed.
        stream: name of the stream.
        index: index of the first of the call's events.
        events: number of events.
        number: number of the attempt, from 1.
        error: what the handler raised. It is not in the `repr`, since it may quote what is sealed.
        type: type of the first event; for a removal, its kind.
        keeps_sealed: whether what the reaction keeps is sealed.
        batch: events of the call.
    """

    partition: int
    stream: str
    index: int
    events: int
    number: int
    error: Exception = field(repr=False)
    type: str = ""
    keeps_sealed: bool = False
    batch: tuple[FeedEvent, ...] = field(default=(), repr=False, compare=False)

    @property
    def sealed(self) -> bool:
        """Whether an event of the call has a sealed body, or what the reaction keeps is sealed, so that the error's
        message must not be written down. Bodies are searched for it, which takes time where they are large.
        """
        return self.keeps_sealed or any(event.is_sealed for event in self.batch)

    @property
    def words(self) -> str:
        """Kind and message of the error, as text that may be stored."""
        return words_of(self.error, sealed=self.sealed)

    def __str__(self) -> str:
        """Return the stream, the index, the attempt and the error, for people."""
        more = f" and {self.events - 1} more" if self.events > 1 else ""
        return f"{self.stream} at {self.index}{more}, attempt {self.number}: {self.words}"


OnFailed = Callable[[Attempt], None]
"""Called with each call that failed."""


def failure_of(stream: str, index: int, cause: Exception, attempts: int, *, sealed: bool = False) -> Failure:
    """Build the failure of a stream, with its cause and trace as text that can be stored."""
    trace = trace_of(cause).encode("utf-8", "backslashreplace").decode()
    return Failure(
        stream=stream, index=index, cause=words_of(cause, sealed=sealed), attempts=attempts, trace=trace
    )


def words_of(cause: Exception, *, sealed: bool = False) -> str:
    """Return kind and message of a handler's exception as storable text; with `sealed` only the kind.

    Args:
        sealed: whether the event's body, or what the reaction keeps, is sealed. The message may quote the person for
            whom it is sealed, and would outlive the key, so it is left out.
    """
    if sealed:
        return f"{type(cause).__name__}: (message not stored, because it may quote sealed data)"
    try:
        message = str(cause)
    except Exception:  # noqa: BLE001  # a user's exception, and its own idea of a text
        message = "(the message cannot be read, because `str` of the exception failed)"
    return f"{type(cause).__name__}: {message}".encode("utf-8", "backslashreplace").decode()
