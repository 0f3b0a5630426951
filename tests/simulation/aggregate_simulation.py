"""One seed of an aggregate: processes that append under every expectation, with snapshots and without, beside another
library's writes, and that replay, while requests are throttled, lost, unanswered or late, and processes die.

An append is recognised by its id, never by its contents: all events here are equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, is_head, read_event
from epochal.contrib.event_store_adapter.model import AggregateEvent, ExpectedLock, Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict, Replay
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import InvalidInput
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, Expected
from epochal.plan.ops import Execute, Op, Query, Reply
from epochal.plan.values import Item
from tests.layouts.stores import JOURNAL as SITE
from tests.layouts.stores import persist_elsewhere
from tests.simulation.dcb_world import piecemeal
from tests.simulation.gradual import Gradual, awaiting
from tests.simulation.histories import Simulation, played
from tests.simulation.world import NOON, driver_on

ALICE = AggregateId(type="user", value="alice")
EQUAL = AggregateEvent(type="Renamed", data=b"{}")
RETENTION = Retention(keep=1, ttl_seconds=60)
"""Of every other seed."""

STATE = b'{"seq_nr":0}'
"""A snapshot that has folded nothing in, for those who find it beneath another library's write."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One call of append; `outcome` is None while under way, or where its process died.

    Attributes:
        made: the same had been answered under its key when it began.
    """

    events: tuple[AggregateEvent, ...]
    expected: ExpectedLock
    key: str | None = None
    made: bool = False
    identity: bytes = b""
    outcome: AggregateAppended | AggregateConflict | InvalidInput | None = None

    def listen(self, fresh: Callable[[int], bytes]) -> Callable[[int], bytes]:
        def draw(size: int) -> bytes:
            self.identity = fresh(size)
            return self.identity

        return draw


@dataclass(slots=True)
class Aggregates(Simulation):
    """Processes at work on one aggregate.

    Attributes:
        event: what an append's next event is.
    """

    tables: Gradual = field(default_factory=lambda: Gradual({SITE.journal: JOURNAL, SITE.snapshot: SNAPSHOT}))
    aggregate: AggregateId = ALICE
    event: Callable[[random.Random], AggregateEvent] = lambda _: EQUAL
    attempts: list[Attempt] = field(default_factory=list)
    reads: list[tuple[int, Replay]] = field(default_factory=list)
    elsewhere: int = 0
    retired: int = 0
    shown: dict[str, list[Reply]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.seed % 3 == 1:
            self.tables.gradually(random.Random(self.seed))

    def calm(self) -> None:
        """Complete all transactions under way."""
        self.tables.settle()

    def check(self) -> None:
        """Check that the journal is complete, and that every answer is true."""
        places = self.places()
        images = [item for item in self.tables.changes(SITE.snapshot) if self._is_head(item)]
        versions = [int(item["version"]["N"]) for item in images]
        assert versions == list(range(1, len(versions) + 1)), "the head's version does not count its writes"
        for attempt in self.attempts:
            self._judge(attempt, places.get(attempt.identity, []))
        for key in {attempt.key for attempt in self.attempts if attempt.key}:
            self._judge_key([attempt for attempt in self.attempts if attempt.key == key], places)
        for acknowledged, replay in self.reads:
            numbers = [event.seq_nr for event in replay.events]
            last = replay.snapshot.lock.seq_nr
            assert numbers == list(range(replay.snapshot.seq_nr + 1, last + 1)), "a replay with a gap"
            assert last >= acknowledged, "an acknowledged event is missing"
        self._check_copies()

    def _check_copies(self) -> None:
        """Check that the newest copies of snapshots exist, and never expire."""
        images = [item for item in self.tables.changes(SITE.snapshot) if "seq_nr" in item]
        written = {int(item["seq_nr"]["N"]) for item in images if not is_head(item)}
        snapshots = [item for item in self.tables.items(SITE.snapshot) if "seq_nr" in item]
        until = {int(item["seq_nr"]["N"]): int(item["ttl"]["N"]) for item in snapshots}
        for number in sorted(written)[-RETENTION.keep :]:
            assert until.get(number) == 0, f"copy {number} of {sorted(written)} is retired"
        self.retired = sum(1 for number in written if until.get(number))

    def _judge(self, attempt: Attempt, places: list[int]) -> None:
        assert len(places) <= 1, f"appended {len(places)} times, at {places}"
        match attempt.outcome:
            case AggregateAppended(first=first, lock=lock, replayed=False):
                assert not attempt.made, "a repeated key was appended again"
                assert places == [first], "appended, yet not stored"
                assert lock.seq_nr == first + len(attempt.events) - 1
                assert meets(attempt.expected, lock.version - 1), "appended on what was not expected"
            case AggregateAppended() | InvalidInput():
                assert not places, "answered by what the key was used for, yet appended"
            case AggregateConflict(version=version):
                assert not attempt.made, "a repeated key is in conflict"
                assert not places, "reported as a conflict, yet appended"
                assert not meets(attempt.expected, version), "a false conflict"
            case None:
                pass

    def _judge_key(self, attempts: list[Attempt], places: dict[bytes, list[int]]) -> None:
        """Check that all calls with one key made one append or none, and that each answer describes it."""
        made = [each for each in attempts if each.identity in places]
        assert len(made) <= 1, f"one key, yet appended {len(made)} times"
        answers = [each.outcome for each in attempts if isinstance(each.outcome, AggregateAppended)]
        assert len({(answer.first, answer.lock) for answer in answers}) <= 1, "one key, several answers"
        for each in attempts:
            if isinstance(each.outcome, AggregateAppended):
                assert [made[0].events] == [each.events], "answered for other contents"
            if isinstance(each.outcome, InvalidInput):
                assert made[0].events != each.events, "refused, though the contents are the same"

    def places(self) -> dict[bytes, list[int]]:
        """Return the numbers at which each append began; fail if the journal has a gap or a number twice."""
        mine = (item for item in self.tables.items(SITE.journal) if item["aid"]["S"] == str(self.aggregate))
        written = [(int(item["seq_nr"]["N"]), read_event(item)) for item in mine]
        numbers = sorted(number for number, _ in written)
        assert numbers == list(range(1, len(numbers) + 1)), f"a gap, or a number twice: {numbers}"
        expected = sum(
            len(each.events)
            for each in self.attempts
            if isinstance(each.outcome, AggregateAppended) and not each.outcome.replayed
        )
        assert len(numbers) >= expected + self.elsewhere, "an acknowledged event is missing"
        found: dict[bytes, list[int]] = {}
        for number, event in written:
            if event.append_id is not None:
                found.setdefault(event.append_id, []).append(number)
        return found

    def execute(self, _luck: random.Random, _rate: float) -> Execute:
        """Return an executor on the tables, whose indexes may lag."""
        late = random.Random(self.seed)

        def lagging(op: Op) -> Reply:
            reply = self.tables.execute(op)
            if isinstance(op, Query) and op.index is not None:
                before = self.shown.setdefault(repr(op), [])
                before.append(reply)
                return late.choice(before)
            return reply

        return lagging

    def store(self, luck: random.Random, _name: str, execute: Execute) -> AggregateStore:
        return AggregateStore(
            driver=driver_on(awaiting(piecemeal(execute), self.tables)),
            site=SITE,
            retention=RETENTION if self.seed % 2 else None,
            fresh=luck.randbytes,
            now=lambda: NOON,
        )

    def act(self, luck: random.Random, store: AggregateStore) -> None:
        match luck.choice(("append",) * 5 + ("keyed",) * 3 + ("read", "read", "elsewhere")):
            case "append":
                events = tuple(self.event(luck) for _ in range(luck.randint(1, 3)))
                self._append(luck, store, events, None)
            case "keyed":
                key, others = luck.choice("kl"), luck.random() < 0.1
                same = self.event(random.Random(key))
                self._append(luck, store, (same, same) if others else (same,), key)
            case "read":
                acknowledged, replay = self._acknowledged(), store.replay(self.aggregate)
                if replay is not None:
                    self.reads.append((acknowledged, replay))
            case _:
                self._persist_elsewhere()

    def _append(
        self,
        luck: random.Random,
        store: AggregateStore,
        events: tuple[AggregateEvent, ...],
        key: str | None,
    ) -> None:
        expected: ExpectedLock | None = luck.choice(
            (ANY, NO_STREAM, STREAM_EXISTS, AtVersion(version=luck.randint(0, 4)), None)
        )
        if expected is None:
            replay = store.replay(self.aggregate)
            expected = NO_STREAM if replay is None else replay.snapshot.lock
        attempt = Attempt(events=events, expected=expected, key=key)
        attempt.made = key is not None and any(
            isinstance(each.outcome, AggregateAppended) and (each.key, each.events) == (key, events)
            for each in self.attempts
        )
        snapshot = None if key is None and luck.random() < 0.5 else STATE
        self.attempts.append(attempt)
        try:
            attempt.outcome = replace(store, fresh=attempt.listen(store.fresh)).try_append(
                self.aggregate, events, snapshot=snapshot, expected=expected, idempotency_key=key
            )
        except InvalidInput as refused:
            if refused.field == "idempotency_key":
                attempt.outcome = refused
            elif snapshot is not None or refused.field != "snapshot":
                raise

    def _persist_elsewhere(self) -> None:
        """Write as another library does, in one turn: its head contains neither numbers nor ids."""
        if any(self._is_head(item) for item in self.tables.items(SITE.snapshot)):
            self.tables.carry_out()
            persist_elsewhere(self.tables.execute, self.aggregate, "Elsewhere")
            self.elsewhere += 1

    def _is_head(self, item: Item) -> bool:
        return is_head(item) and item["aid"]["S"] == str(self.aggregate)

    def _acknowledged(self) -> int:
        outcomes = (attempt.outcome for attempt in self.attempts)
        return max((each.lock.seq_nr for each in outcomes if isinstance(each, AggregateAppended)), default=0)


def meets(expected: ExpectedLock, version: int) -> bool:
    """Return whether a head of this version, 0 if there is none, is what a writer expects."""
    match expected:
        case Expected.ANY:
            return True
        case Expected.NO_STREAM:
            return version == 0
        case Expected.STREAM_EXISTS:
            return version > 0
        case AtVersion(version=wanted) | Lock(version=wanted):
            return version == wanted


def replay(seed: int) -> Aggregates:
    """Play a seed and check the result; a failure names the seed."""
    return played(Aggregates(seed))
