"""A table of streams in memory with several writers, and an auditor who knows everything that was ever written.

The memory interpreter keeps every image of every item, so that an audit sees events that have been pruned since. An
append is recognised by its append id, never by its contents: writers here append equal events on purpose.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, count

from epochal.index.checkpoints import is_tip
from epochal.index.tip import read_span
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token
from epochal.plan.ops import Execute, Op, Reply
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.simulation.stream_items import TIP_ITEMS, EventSeen, HeadSeen, StreamItems

STREAM = "Flight-1"
EQUAL = Event(type="Departed", data=b'{"from":"JFK"}', timestamp="2026-01-01T00:00:00Z")
"""What every writer appends."""

NOON = 1_800_000_000 * 10**9
SECOND = 10**9


def key_of(letter: str, nanoseconds: int) -> str:
    """Return an idempotency key that contains a moment: a UUIDv7."""
    digits = f"{nanoseconds // 10**6:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-{letter.encode().hex():0>12}"


class Calm:
    """A clock that only advances by sleeping; safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._now += seconds


def driver_on(execute: Execute, clock: Calm | None = None) -> Driver:
    """Return a driver without timeouts, with its own clock unless one is given."""
    clock = clock or Calm()
    return Driver(
        execute=execute,
        meter=Meter(),
        patience=Patience(seconds=1_000.0),
        clock=clock,
        sleep=clock.sleep,
        luck=lambda: 0.5,
    )


def bytes_of(name: str) -> Callable[[int], bytes]:
    """Random bytes of whoever is called so: never the same twice, and the same in every run."""
    numbers = count()
    return lambda size: hashlib.sha256(f"{name} {next(numbers)}".encode()).digest()[:size]


@dataclass(slots=True)
class World:
    """A stream, and stores over its table that differ in who writes.

    Attributes:
        shared: another library may prune the stream, and leave no mark.
        kind: what the items of its layout say.
    """

    tables: MemoryTables = field(default_factory=memory_tables)
    stream: str = STREAM
    shared: bool = False
    kind: StreamItems = TIP_ITEMS
    _read: tuple[int, list[HeadSeen], dict[int, bytes | None]] = (-1, [], {})

    def copy(self) -> World:
        return replace(self, tables=self.tables.copy())

    def store(self, writer: str, execute: Execute | None = None, **options: object) -> Streams:
        """Return a store with its own seeded random bytes."""
        return Streams(
            driver=driver_on(execute or self.tables.execute),
            table=self.kind.spec.kind,
            **{
                "layout": self.kind.layouts[-1],
                "now": lambda: NOON,
                "fresh": bytes_of(writer),
                **options,
            },
        )

    def images(self) -> list[Item]:
        """Return every image of the stream's items, in the order of writing."""
        return [item for item in self.tables.changes(self.kind.spec.kind) if item["p"]["S"] == self.stream]

    def tip(self) -> Item | None:
        return next(filter(is_tip, self.items()), None)

    def items(self) -> list[Item]:
        """Return the stream's present items."""
        return [item for item in self.tables.items(self.kind.spec.kind) if item["p"]["S"] == self.stream]

    def heads(self) -> list[HeadSeen]:
        """Return every state of the stream's head, in order."""
        return self._written()[0]

    def low(self) -> int:
        """Return the index below which all events are pruned."""
        tip, mark = self.tip() if self.shared else None, self.kind.low(self.items())
        if tip is None:
            return mark
        spans = [read_span(item).since(mark) for item in self.items()]
        return min((span.base for span in spans if span.events), default=int(tip["n"]["N"]))

    def places_of(self, identity: bytes) -> set[int]:
        """Return the indices at which an append with this id ever began."""
        return {index for index, found in self.whose().items() if found == identity}

    def whose(self) -> dict[int, bytes]:
        """Return the id of the append at each index at which one ever began."""
        ids = {index: found for index, found in self.history().items() if found is not None}
        return {index: self.kind.whose(found) for index, found in ids.items()}

    def history(self) -> dict[int, bytes | None]:
        """Return the append id at every index ever written; fail if an index ever had two events."""
        return self._written()[1]

    def _written(self) -> tuple[list[HeadSeen], dict[int, bytes | None]]:
        """What all images say, read anew where there are more: a check asks for it many times, and nobody writes."""
        count = len(self.tables.changes(self.kind.spec.kind))
        if self._read[0] != count:
            images = self.images()
            self._read = (
                count,
                list(self.kind.heads(images)),
                _history(chain.from_iterable(map(self.kind.events, images))),
            )
        return self._read[1:]

    def etags(self) -> list[str | None]:
        """Return the etag of every write of the head, in order."""
        return [head.etag for head in self.heads()]

    def audit(self) -> None:
        """Check that the stream reads alike in both directions, without gaps, as it was written, with unique etags."""
        heads, store = self.heads(), self.store("auditor")
        etags = {head.etag for head in heads}
        assert len(etags) == len(heads), "two writes left the same etag"
        if not heads:
            assert not self.history()
            return
        low, version = self.low(), heads[-1].version
        history = self.history()
        forward = list(store.read(self.stream))
        assert [event.index for event in forward] == list(range(low, version))
        assert list(store.read(self.stream, direction="backward")) == forward[::-1]
        assert {event.index: event.append_id for event in forward} == {
            index: identity for index, identity in history.items() if index >= low
        }
        assert version == max(history, default=-1) + 1, "the version counts every event ever written"

    def judge(self, outcome: Outcome, identity: bytes, events: int) -> None:
        """Check that an append's outcome is true, and that it was applied at most once."""
        places = self.places_of(identity)
        assert len(places) <= 1, f"appended {len(places)} times, at {sorted(places)}"
        match outcome:
            case Appended(first=first, version=version):
                assert places == {first}
                assert version == first + events
                assert self.describes(outcome), f"{outcome.token} is not of the head that the append left"
            case Conflict():
                assert not places, "reported as a conflict, yet appended"
            case Undetermined(first=first):
                assert self.low() > first, "undetermined, yet the evidence is there"

    def describes(self, outcome: Appended) -> bool:
        """Whether the token is of the head that the append left, and of no other, which its holder would not have seen.

        Where that head is still there, what the layout goes by, estimates left aside, is exact.
        """
        heads = self.heads()
        left = next(head for head in heads if head.version == outcome.version)
        bare = Token(version=left.version, etag=left.etag)
        if outcome.token == bare:
            return heads[-1].etag != left.etag
        if outcome.token.size == 0 and heads[-1].etag != left.etag and (etag := outcome.token.etag):
            # Whether the page was full, nobody knows any more, and an append on it is in conflict.
            return bare == Token(version=outcome.version, etag=f"{etag[:8]}8{etag[9:]}")
        true = left.token
        exact = replace(outcome.token, size=true.size, appends=true.appends) == true
        return exact and abs(outcome.token.size - true.size) <= 16


def _history(events: Iterable[EventSeen]) -> dict[int, bytes | None]:
    found: dict[int, EventSeen] = {}
    for event in events:
        before = found.setdefault(event.index, event)
        assert before == event, f"index {event.index} held two different events"
    return {index: event.append_id for index, event in sorted(found.items())}


def interrupted(execute: Execute, interruptions: dict[int, Callable[[], object]]) -> Execute:
    """Return an executor during which others act once each, after the request with their number."""
    numbers, left = count(), dict(interruptions)

    def perform(op: Op) -> Reply:
        number = next(numbers)
        try:
            return execute(op)
        finally:
            left.pop(number, lambda: None)()

    return perform
