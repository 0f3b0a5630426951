"""Writers of one process who append to the same stream at the same moment go out as one write, a frame each.

    nobody is writing       the caller leads: it writes for all callers that wait, itself first
    somebody is             the caller waits; once that write is answered, the first that waits leads

So nobody waits for others to come, and no thread is left behind: a stream on which appends follow each other slowly is
written as if each had been made alone. Appends keep the order in which they were handed in. Each is told what came of
it, and what is wrong with one is wrong with that one alone: it is encoded before it waits, and a write that is too
much as a whole is made again one by one. Callers are threads, or tasks of an event loop (`epochal.store.driver`).

It is for telemetry, where many append to one stream and none expects anything of it. A writer who decides on a state
has nothing to gain: of several decisions on one state all but one would be refused.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from epochal.errors import EpochalError, InvalidInput, Unavailable
from epochal.layout.streams import Batch, Head, JoinedWriters, Result, Written
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Event
from epochal.model.versions import ANY, Appended, Capacity, Outcome, Token
from epochal.store.driver import Turn, turn
from epochal.store.outcomes import not_made
from epochal.store.streams import Streams, outcome_of

JOINED_BYTES: Final = 32 * 1024
"""Bytes of events that one write takes, unless a single append has more. Each KB costs a unit, joined or not."""

JOINED_APPENDS: Final = 100
"""Appends that one write takes; so many callers wait for it."""

_ENDED: Final = "the caller who wrote for others has ended"

TOKENS: Final = 1_000
"""Streams whose last page is remembered, so that it need not be read for the next write."""


@dataclass(slots=True, eq=False)
class Waiting:
    """An append that is to be written, by its own caller or another.

    Attributes:
        done: nobody writes it any more, and
        told: this is what came of it.
    """

    batch: Batch
    done: bool = False
    told: Outcome | EpochalError = field(default_factory=lambda: Unavailable(_ENDED, maybe_applied=True))
    turn: Turn = field(default_factory=turn)

    @property
    def size(self) -> int:
        """Bytes of its events, about."""
        return sum(len(each.data.data) + len(each.meta.data) + len(each.type) for each in self.batch.events)


class Line:
    """Appends to one stream that wait, and whether someone is writing. Holds no lock, and waits for nothing."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._led = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def join(self, one: Waiting) -> bool:
        """Wait behind the others; whether the caller is to lead."""
        self._waiting.append(one)
        leads, self._led = not self._led, True
        return leads

    def take(self) -> list[Waiting]:
        """The appends of the next write: the first that waits, and those after it while there is room."""
        taken = [self._waiting.popleft()]
        room = JOINED_BYTES - taken[0].size
        while self._waiting and len(taken) < JOINED_APPENDS and self._waiting[0].size <= room:
            taken.append(self._waiting.popleft())
            room -= taken[-1].size
        return taken

    def give_up(self, one: Waiting) -> bool:
        """Wait no longer; whether it was still waiting."""
        if one not in self._waiting:
            return False
        self._waiting.remove(one)
        return True

    def leave(self) -> Waiting | None:
        """The leader is done: who leads now. None: nobody waits."""
        if self._waiting:
            return self._waiting[0]
        self._led = False
        return None


class Writes:
    """Writes of several appends each. Remembers where streams end, so as not to read that. Safe under threads."""

    def __init__(self, streams: Streams) -> None:
        if not isinstance(streams.layout, JoinedWriters):
            raise InvalidInput(
                "streams", f"cannot join appends where they are stored as {streams.layout.name}"
            )
        self._streams = streams
        self._layout: JoinedWriters = streams.layout
        self._tokens: OrderedDict[str, Token] = OrderedDict()
        self._lock = threading.Lock()

    def write(self, stream: str, taken: Sequence[Waiting]) -> None:
        """Write appends to a stream, together if that can be, and say of each what came of it."""
        try:
            outcomes = self._written(stream, taken)
        except InvalidInput as error:
            if len(taken) == 1:
                taken[0].told = error
                return
            for each in taken:
                self.write(stream, [each])
        except EpochalError as error:
            for each in taken:
                told = copy.copy(error)
                told.__cause__ = error.__cause__
                each.told = told
        else:
            for each, outcome in zip(taken, outcomes, strict=True):
                each.told = outcome

    def _written(self, stream: str, taken: Sequence[Waiting]) -> list[Outcome]:
        with self._lock:
            start = self._tokens.pop(stream, None)
        driver, meter = self._streams.driver.metered()
        batches = [each.batch for each in taken]
        with meter:
            results: Sequence[Result[Head]] = driver.run(
                self._layout.append_together(self._streams.table, batches, start)
            )
        if isinstance(last := results[-1], Written):
            with self._lock:
                self._tokens[stream] = last.token
                if len(self._tokens) > TOKENS:
                    self._tokens.popitem(last=False)
        return [
            outcome_of(result, share)
            for result, share in zip(results, shares(meter.capacity, len(taken)), strict=True)
        ]


class JoinedAppends:
    """Appends to streams of a store, joined where they meet. Safe under threads; share one among all of a process.

    Args:
        streams: the store, whose layout can write several appends at once. Raises `InvalidInput` where it cannot.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._writes = Writes(streams)
        self._lines: dict[str, Line] = {}
        self._lock = threading.Lock()

    def append(self, stream: str, events: Sequence[Event]) -> Appended:
        """`Streams.append` of events, whatever the stream's version is. Events with ids go out by themselves.

        The capacity of a write is shared among its appends; its requests are counted with the first of them. A token is
        of what the append has left; where others came with it, the stream has moved on, and an append on it is in
        conflict.

        Raises:
            InvalidInput, TooLarge, StreamDeleted, OutcomeUndetermined, Unavailable: as `Streams.append`.
        """
        outcome = self.try_append(stream, events)
        if isinstance(outcome, Appended):
            return outcome
        raise not_made(stream, outcome, ANY)

    def try_append(self, stream: str, events: Sequence[Event]) -> Outcome:
        """`append` that answers a conflict: the stream was deleted."""
        own = Waiting(batch=self._streams.batch(stream, events))
        if any(each.label for each in own.batch.events):
            return self._streams.try_append(stream, events)
        with self._lock:
            leads = self._lines.setdefault(stream, Line()).join(own)
        if not leads:
            self._wait(stream, own)
        if not own.done:
            self._lead(stream)
        if isinstance(own.told, EpochalError):
            raise own.told
        return own.told

    def _wait(self, stream: str, own: Waiting) -> None:
        """Until it is done, or the first of those who wait."""
        try:
            own.turn.wait()
        except BaseException:
            # An interrupt: a caller that is gone must not lead, and its events are not written unless it is too late.
            with self._lock:
                line = self._lines.get(stream)
                if line is not None and line.give_up(own) and own.turn.is_set():
                    self._hand_on(stream)
            raise

    def _lead(self, stream: str) -> None:
        """One write, for the caller and those who wait behind; then the next is woken to lead."""
        with self._lock:
            taken = self._lines[stream].take()
        try:
            self._writes.write(stream, taken)
        finally:
            with self._lock:
                self._hand_on(stream)
            for each in taken:
                each.done = True
                each.turn.set()

    def _hand_on(self, stream: str) -> None:
        following = self._lines[stream].leave()
        if following is None:
            del self._lines[stream]
        else:
            following.turn.set()


def shares(capacity: Capacity, parts: int) -> list[Capacity]:
    """What a write took, shared among its appends; its requests are the first one's."""
    units = Capacity(read=capacity.read / parts, write=capacity.write / parts)
    first = Capacity(read=units.read, write=units.write, requests=capacity.requests)
    return [first, *[units] * (parts - 1)]
