"""Joins concurrent appends of one process to the same stream in one write, with a frame for each.

    no write is under way       the caller leads: it writes its own append and those of all callers that wait
    a write is under way        the caller waits; after that write, the first waiting caller leads the next one

So no append is delayed to wait for others, and no background thread is needed: appends that do not overlap are made
alone. Appends keep the order of their calls, and each caller gets its own outcome. An invalid append fails alone: it is
encoded before it waits, and a joint write that is refused as invalid is repeated one append at a time. Callers are
threads, or tasks of an event loop (`epochal.store.driver`).

This is meant for telemetry, where many writers append to one stream at any version. A writer that decides on a state
gains nothing: of several decisions on one state, all but one would be refused.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from epochal.errors import EpochalError, InvalidInput, Unavailable
from epochal.layout.streams import Batch, JoinedWriters
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.capacity import Capacity
from epochal.model.events import Event
from epochal.model.expected_version import ANY
from epochal.model.outcomes import Appended, Outcome
from epochal.model.tokens import Token
from epochal.store.answers import complete
from epochal.store.driver import Turn, turn
from epochal.store.outcomes import append_error
from epochal.store.streams import Streams

JOINED_BYTES: Final = 32 * 1024
"""Largest bytes of events in one write, unless a single append has more. Each KB costs a unit, joined or not."""

JOINED_APPENDS: Final = 100
"""Largest number of appends in one write, and so of callers that wait for it."""

_ENDED: Final = "the caller that was writing this append has stopped"

TOKENS: Final = 1_000
"""Largest number of streams whose token is remembered, so that their last page need not be read for the next write."""


@dataclass(slots=True, eq=False)
class Waiting:
    """One append that waits to be written, by its own caller or by another that leads.

    Attributes:
        batch: its encoded events.
        done: whether its outcome is final.
        result: its outcome or error, once `done`.
        turn: set when the append is done, or when its caller is to lead.
    """

    batch: Batch
    done: bool = False
    result: Outcome | EpochalError = field(default_factory=lambda: Unavailable(_ENDED, maybe_applied=True))
    turn: Turn = field(default_factory=turn)

    @property
    def size(self) -> int:
        """Approximate bytes of the append's encoded events."""
        return sum(
            len(event.data.data) + len(event.meta.data) + len(event.type) for event in self.batch.events
        )


class Line:
    """The appends to one stream that wait, and whether a caller is writing for them.

    It holds no lock, and waits for nothing.
    """

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._led = False

    @property
    def waiting(self) -> int:
        """Number of appends that wait."""
        return len(self._waiting)

    def join(self, one: Waiting) -> bool:
        """Add an append behind the others; return whether its caller is to lead."""
        self._waiting.append(one)
        leads, self._led = not self._led, True
        return leads

    def take(self) -> list[Waiting]:
        """Remove and return the appends of the next write: the first one, and more while there is room."""
        taken = [self._waiting.popleft()]
        room = JOINED_BYTES - taken[0].size
        while self._waiting and len(taken) < JOINED_APPENDS and self._waiting[0].size <= room:
            taken.append(self._waiting.popleft())
            room -= taken[-1].size
        return taken

    def give_up(self, one: Waiting) -> bool:
        """Remove an append; return whether it was still waiting."""
        if one not in self._waiting:
            return False
        self._waiting.remove(one)
        return True

    def leave(self) -> Waiting | None:
        """End the leader's turn; return the append whose caller leads next, or None if nobody waits."""
        if self._waiting:
            return self._waiting[0]
        self._led = False
        return None


class Writes:
    """Makes writes of several appends each; may be shared among threads.

    It remembers the tokens of streams, so that their ends need not be read.
    """

    def __init__(self, streams: Streams) -> None:
        """Take the store to write to; raise `InvalidInput` if its layout cannot join appends.

        Raises:
            InvalidInput: the store's layout cannot write several appends at once.
        """
        if not isinstance(streams.layout, JoinedWriters):
            raise InvalidInput(
                "streams", f"must have a layout that can join appends, not {streams.layout.name}"
            )
        self._streams = streams
        self._layout: JoinedWriters = streams.layout
        self._tokens: OrderedDict[str, Token] = OrderedDict()
        self._lock = threading.Lock()

    def write(self, stream: str, taken: Sequence[Waiting]) -> None:
        """Write appends to a stream, together if possible, and set the outcome or error of each.

        A joint write that is refused as invalid is repeated one append at a time.
        """
        try:
            outcomes = self._written(stream, taken)
        except InvalidInput as error:
            if len(taken) == 1:
                taken[0].result = error
                return
            for waiting in taken:
                self.write(stream, [waiting])
        except EpochalError as error:
            for waiting in taken:
                failure = copy.copy(error)
                failure.__cause__ = error.__cause__
                waiting.result = failure
        else:
            for waiting, outcome in zip(taken, outcomes, strict=True):
                waiting.result = outcome

    def _written(self, stream: str, taken: Sequence[Waiting]) -> list[Outcome]:
        """Write appends to a stream in one write; return an outcome for each.

        The capacity is shared among them, and the stream's new token is remembered.
        """
        with self._lock:
            start = self._tokens.pop(stream, None)
        driver, meter = self._streams.driver.metered()
        batches = [waiting.batch for waiting in taken]
        with meter:
            outcomes = driver.run(self._layout.append_together(self._streams.table, batches, start))
        if isinstance(last := outcomes[-1], Appended):
            with self._lock:
                self._tokens[stream] = last.token
                if len(self._tokens) > TOKENS:
                    self._tokens.popitem(last=False)
        return [
            complete(outcome, share)
            for outcome, share in zip(outcomes, shares(meter.capacity, len(taken)), strict=True)
        ]


class JoinedAppends:
    """Appends events to streams, and makes concurrent appends to the same stream in one write.

    May be shared among threads; share one among all threads of a process.

    Args:
        streams: store that the events are appended to.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._writes = Writes(streams)
        self._lines: dict[str, Line] = {}
        self._lock = threading.Lock()

    def append(self, stream: str, events: Sequence[Event]) -> Appended:
        """Append events to a stream's end in one write with concurrent appends; raise if it was deleted.

        Any version of the stream is accepted. Events with ids are written by themselves.

        The capacity of a write is shared among its appends; its requests are counted with the first of them. A token is
        of the state right after the append; if other appends followed in the same write, an append that expects that
        token gets a conflict.

        Args:
            stream: name of the stream.
            events: events to append, without tags.

        Raises:
            InvalidInput, TooLarge, StreamDeleted, OutcomeUndetermined, Unavailable: as `Streams.append`.
        """
        outcome = self.try_append(stream, events)
        if isinstance(outcome, Appended):
            return outcome
        raise append_error(stream, outcome, ANY)

    def try_append(self, stream: str, events: Sequence[Event]) -> Outcome:
        """Append events as `append` does; return the outcome, a conflict if the stream was deleted.

        Args:
            stream, events: as for `append`.
        """
        own = Waiting(batch=self._streams.batch(stream, events))
        if any(event.label for event in own.batch.events):
            return self._streams.try_append(stream, events)
        with self._lock:
            leads = self._lines.setdefault(stream, Line()).join(own)
        if not leads:
            self._wait(stream, own)
        if not own.done:
            self._lead(stream)
        if isinstance(own.result, EpochalError):
            raise own.result
        return own.result

    def _wait(self, stream: str, own: Waiting) -> None:
        """Wait until the append is done or its caller is to lead; `own.done` tells which.

        After an interrupt the append is withdrawn, unless it is too late.
        """
        try:
            own.turn.wait()
        except BaseException:
            # After an interrupt the caller cannot lead any more: its append is withdrawn, unless it was taken already.
            with self._lock:
                line = self._lines.get(stream)
                if line is not None and line.give_up(own) and own.turn.is_set():
                    self._hand_on(stream)
            raise

    def _lead(self, stream: str) -> None:
        """Write the append of the caller and those behind it in one write; then let the next caller lead."""
        with self._lock:
            taken = self._lines[stream].take()
        try:
            self._writes.write(stream, taken)
        finally:
            with self._lock:
                self._hand_on(stream)
            for waiting in taken:
                waiting.done = True
                waiting.turn.set()

    def _hand_on(self, stream: str) -> None:
        """Wake the next caller to lead, or forget the stream's line if nobody waits."""
        following = self._lines[stream].leave()
        if following is None:
            del self._lines[stream]
        else:
            following.turn.set()


def shares(capacity: Capacity, parts: int) -> list[Capacity]:
    """Divide the capacity of a write among its appends; all requests are counted with the first."""
    units = Capacity(read=capacity.read / parts, write=capacity.write / parts)
    first = Capacity(read=units.read, write=units.write, requests=capacity.requests)
    return [first, *[units] * (parts - 1)]
