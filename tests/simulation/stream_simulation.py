"""One seed of a stream: processes that append, repeat keys, prune, delete and read, under faults and deaths.

An append is recognised by its append id, never by its contents.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from epochal.errors import InvalidInput
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token
from epochal.plan.ops import Execute, Op, Reply
from epochal.store.streams import Streams
from tests.simulation.expectations import check_appended, check_conflict
from tests.simulation.gradual import Gradual, awaiting
from tests.simulation.histories import Simulation, played
from tests.simulation.keys import check_key
from tests.simulation.stream_items import TIP_ITEMS, StreamItems
from tests.simulation.world import EQUAL, NOON, STREAM, World

NEIGHBOUR = "Flight-2"


@dataclass(slots=True)
class Attempt:
    """One call of append: the ids and marks it sent, and its outcome; None while under way, or where its process died.

    Attributes:
        made: the same had been written under its key when it began.
    """

    stream: str
    events: tuple[Event, ...]
    expected: ExpectedVersion = ANY
    key: str | None = None
    made: bool = False
    ids: set[bytes] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)
    outcome: Outcome | InvalidInput | None = None

    def listen(self, kind: StreamItems, execute: Execute) -> Execute:
        def perform(op: Op) -> Reply:
            sent = kind.sent(op, self.stream)
            self.ids |= sent.ids
            self.marks |= sent.marks
            return execute(op)

        return perform


@dataclass(slots=True)
class OneStream(Simulation):
    """Processes at work on one stream.

    Attributes:
        kind: what the items of its layout say.
        event: what an append's next event is; under an idempotency key it is the same each time.
        neighbour: another stream, which keys are reused for.
    """

    tables: Gradual = field(default_factory=lambda: tables_of(TIP_ITEMS))
    stream: str = STREAM
    kind: StreamItems = TIP_ITEMS
    world: World = field(init=False)
    event: Callable[[random.Random, str | None], Event] = lambda _luck, _key: EQUAL
    neighbour: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    reads: list[tuple[int, list[Recorded]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.tables, self.stream, kind=self.kind)
        if self.seed % 3 == 1:
            self.tables.gradually(random.Random(self.seed))

    def calm(self) -> None:
        """Complete transactional calves."""
        self.tables.settle()

    def check(self) -> None:
        self.world.audit()
        heads = self.world.heads()
        for attempt in self.attempts:
            match attempt.outcome:
                case Appended() as appended if attempt.key is None:
                    check_appended(attempt.expected, appended, heads, self.kind.is_as_good)
                case Conflict() as conflict:
                    check_conflict(attempt.expected, conflict)
                    assert not attempt.made, "a repeated key is in conflict"
            for identity in attempt.ids:
                if isinstance(attempt.outcome, Appended | Conflict | Undetermined) and attempt.events:
                    self._judge(attempt, attempt.outcome, identity)
                else:
                    assert len(self.world.places_of(identity)) <= 1
        for key in {attempt.key for attempt in self.attempts if attempt.key}:
            check_key([attempt for attempt in self.attempts if attempt.key == key], self.world)
        for acknowledged, events in self.reads:
            self._check_read(acknowledged, events)

    def execute(self, _luck: random.Random, _rate: float) -> Execute:
        return self.tables.execute

    def store(self, luck: random.Random, name: str, execute: Execute) -> Streams:
        hours = luck.randint(-6, 6)
        return self.world.store(
            name,
            awaiting(execute, self.tables),
            layout=luck.choice(self.kind.layouts),
            now=lambda: NOON + hours * 3600 * 10**9,
        )

    def act(self, luck: random.Random, store: Streams) -> None:
        stream = self.world.stream
        match luck.choice(
            ("append",) * 5
            + ("keyed",) * 3
            + ("unfolds", "elsewhere", "read", "read", "page", "prune", "delete")
        ):
            case "append":
                self._append(luck, store, self._expectation(luck, store), None)
            case "keyed":
                self._append(luck, store, self._expectation(luck, store), luck.choice("kl"))
            case "unfolds":
                self._unfold(store, self._expectation(luck, store), luck.choice("klmn"))
            case "elsewhere" if self.neighbour is not None:
                state = Unfold(type="Elsewhere")
                store.try_append(self.neighbour, (), unfolds=[state], idempotency_key=luck.choice("klmn"))
            case "read":
                direction = luck.choice(("forward", "backward"))
                self.reads.append((self._acknowledged(), list(store.read(stream, direction=direction))))
            case "page":
                start = luck.choice((None, luck.randint(0, 8)))
                found = store.page(stream, start=start, limit=luck.randint(1, 4))
                self.reads.append((0, list(found.events)))
            case "prune":
                store.prune(stream, luck.randint(0, 10))
            case "delete":
                store.try_delete(stream, leave_open=luck.random() < 0.8)

    def _append(
        self, luck: random.Random, store: Streams, expected: ExpectedVersion, key: str | None
    ) -> None:
        events = tuple(self.event(luck, key) for _ in range(1 if key else luck.randint(1, 3)))
        unfolds = None if key else luck.choice((None, (), (Unfold(type="State"),)))
        self._attempt(store, events, unfolds, expected, key)

    def _unfold(self, store: Streams, expected: ExpectedVersion, key: str) -> None:
        """Write unfolds alone, with a key that may be one of an append of events."""
        self._attempt(store, (), (Unfold(type="State", data=key.encode()),), expected, key)

    def _attempt(
        self,
        store: Streams,
        events: tuple[Event, ...],
        unfolds: tuple[Unfold, ...] | None,
        expected: ExpectedVersion,
        key: str | None,
    ) -> None:
        attempt = Attempt(stream=self.world.stream, events=events, expected=expected, key=key)
        attempt.made = key is not None and self._is_made(key, events)
        self.attempts.append(attempt)
        listener = attempt.listen(self.kind, store.driver.execute)
        listening = replace(store, driver=replace(store.driver, execute=listener))
        try:
            attempt.outcome = listening.try_append(
                attempt.stream, events, unfolds=unfolds, expected=expected, idempotency_key=key
            )
        except InvalidInput as refused:
            if refused.field != "idempotency_key":
                raise
            attempt.outcome = refused

    def _is_made(self, key: str, events: tuple[Event, ...]) -> bool:
        """Return whether the append has been answered under the key."""
        return any(
            isinstance(each.outcome, Appended) and (each.key, each.events) == (key, events)
            for each in self.attempts
        )

    def _expectation(self, luck: random.Random, store: Streams) -> ExpectedVersion:
        match luck.choice(("any", "no stream", "exists", "version", "token", "answer", "ahead")):
            case (
                "ahead"
            ):  # of a stream as it never was, or before the table was restored to an earlier moment
                return Token(version=luck.randint(2, 9), etag=luck.randbytes(16).hex())
            case "answer":
                answers = [each.outcome for each in self.attempts if isinstance(each.outcome, Appended)]
                return luck.choice(answers).token if answers else NO_STREAM
            case "no stream":
                return NO_STREAM
            case "exists":
                return STREAM_EXISTS
            case "version":
                return AtVersion(version=luck.randint(0, 4))
            case "token":
                state = store.load(self.world.stream)
                return NO_STREAM if state is None else state.token
            case _:
                return ANY

    def _acknowledged(self) -> int:
        outcomes = (attempt.outcome for attempt in self.attempts)
        return max((outcome.version for outcome in outcomes if isinstance(outcome, Appended)), default=0)

    def _judge(self, attempt: Attempt, outcome: Outcome, identity: bytes) -> None:
        """Under a key a call may be in conflict while another call, which began meanwhile, has made the append."""
        if attempt.key is not None and isinstance(outcome, Conflict):
            assert len(self.world.places_of(identity)) <= 1
        else:
            self.world.judge(outcome, identity, len(attempt.events))

    def _check_read(self, acknowledged: int, events: list[Recorded]) -> None:
        history, low = self.world.history(), self.kind.low(self.world.items())
        indices = [event.index for event in events]
        assert all(abs(one - other) == 1 for one, other in pairwise(indices)), f"untold: {indices}"
        assert indices in (sorted(indices), sorted(indices, reverse=True))
        assert all(event.append_id == history[event.index] for event in events)
        certain = sorted(index for index in indices if index >= low)
        assert certain == list(range(certain[0], certain[0] + len(certain))) if certain else True
        if acknowledged > low:
            assert certain[:1] == [low]
            assert certain[-1] + 1 >= acknowledged


def tables_of(kind: StreamItems) -> Gradual:
    """Return an empty table of a layout."""
    return Gradual({kind.spec.kind: kind.spec})


def replay(seed: int, kind: StreamItems = TIP_ITEMS) -> OneStream:
    """Play a seed and check the result; a failure names the seed."""
    return played(OneStream(seed, tables_of(kind), kind=kind, neighbour=NEIGHBOUR))
