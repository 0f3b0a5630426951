"""One seed of an aggregate: processes that append under every expectation, with snapshots and without, beside another
library's writes, and that replay, while requests are throttled, lost, unanswered or late, and processes die.

An append is recognised by its id, never by its contents: all events here are equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from epochal.errors import InvalidInput
from epochal.layout.journal.append import ExpectedLock
from epochal.layout.journal.items import is_head, read_event
from epochal.layout.tables import JOURNAL, SNAPSHOT
from epochal.model.aggregates import AggregateEvent, AggregateId, Lock
from epochal.model.versions import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, Expected
from epochal.plan.ops import Execute
from epochal.store.aggregates import AggregateAppended, AggregateConflict, AggregateStore, Replay
from epochal.store.driver import Driver, Meter, Patience
from epochal.testing.faults import Fault, Faults, Late
from epochal.testing.memory import MemoryTables
from tests.simulation.dcb_world import piecemeal
from tests.simulation.scheduler import Body, Process, mortal, run
from tests.simulation.world import NOON, Calm
from tests.unit.feed.layouts import JOURNAL as SITE
from tests.unit.feed.layouts import persist_elsewhere

ALICE = AggregateId(type="user", value="alice")
EQUAL = AggregateEvent(type="Renamed", data=b"{}")
STATE = b'{"seq_nr":0}'
"""A snapshot that has folded nothing in, for those who find it beneath another library's write."""

FAULTS = (
    Fault.THROTTLED,
    Fault.LOST,
    Fault.UNANSWERED,
    Fault.UNANSWERED,
    Late(0),
    Late(1),
    Late(5),
    Late(99),
)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One call of append; `outcome` is None while under way, or where its process died."""

    events: int
    expected: ExpectedLock
    identity: bytes = b""
    outcome: AggregateAppended | AggregateConflict | None = None

    def listen(self, fresh: Callable[[int], bytes]) -> Callable[[int], bytes]:
        def draw(size: int) -> bytes:
            self.identity = fresh(size)
            return self.identity

        return draw


@dataclass(slots=True)
class Simulation:
    """What one seed makes happen, and what came of it."""

    seed: int
    tables: MemoryTables = field(
        default_factory=lambda: MemoryTables({SITE.journal: JOURNAL, SITE.snapshot: SNAPSHOT})
    )
    attempts: list[Attempt] = field(default_factory=list)
    reads: list[tuple[int, Replay]] = field(default_factory=list)
    elsewhere: int = 0

    def play(self) -> None:
        luck = random.Random(self.seed)
        faults = [self._faults(luck) for _ in range(luck.randint(2, 4))]
        processes = {
            f"process {number}": Process(f"process {number}", each.execute, self._body(luck))
            for number, each in enumerate(faults)
        }
        run(processes, luck.choice)
        for each in faults:
            each.land()

    def check(self) -> None:
        """The journal is whole, and every answer is the truth about it."""
        places = self._places()
        images = [item for item in self.tables.changes(SITE.snapshot) if is_head(item)]
        versions = [int(item["version"]["N"]) for item in images]
        assert versions == list(range(1, len(versions) + 1)), "the head's version does not count its writes"
        for attempt in self.attempts:
            self._judge(attempt, places.get(attempt.identity, []))
        for acknowledged, replay in self.reads:
            numbers = [event.seq_nr for event in replay.events]
            last = replay.snapshot.lock.seq_nr
            assert numbers == list(range(replay.snapshot.seq_nr + 1, last + 1)), "a replay with a gap"
            assert last >= acknowledged, "an acknowledged event is missing"

    def _judge(self, attempt: Attempt, places: list[int]) -> None:
        assert len(places) <= 1, f"appended {len(places)} times, at {places}"
        match attempt.outcome:
            case AggregateAppended(first=first, lock=lock):
                assert places == [first], "appended, yet not stored"
                assert lock.seq_nr == first + attempt.events - 1
                assert meets(attempt.expected, lock.version - 1), "appended on what was not expected"
            case AggregateConflict(version=version):
                assert not places, "reported as a conflict, yet appended"
                assert not meets(attempt.expected, version), "a false conflict"
            case None:
                pass

    def _places(self) -> dict[bytes, list[int]]:
        """The numbers at which each append began; fails where the journal has a gap, or a number came twice."""
        written = [(int(item["seq_nr"]["N"]), read_event(item)) for item in self.tables.items(SITE.journal)]
        numbers = sorted(number for number, _ in written)
        assert numbers == list(range(1, len(numbers) + 1)), f"a gap, or a number twice: {numbers}"
        expected = sum(each.events for each in self.attempts if isinstance(each.outcome, AggregateAppended))
        assert len(numbers) >= expected + self.elsewhere, "an acknowledged event is missing"
        found: dict[bytes, list[int]] = {}
        for number, event in written:
            if event.append_id is not None:
                found.setdefault(event.append_id, []).append(number)
        return found

    def _faults(self, luck: random.Random) -> Faults:
        rate = luck.choice((0.0, 0.1, 0.3))
        schedule = {number: luck.choice(FAULTS) for number in range(60) if luck.random() < rate}
        return Faults(self.tables.execute, schedule)

    def _body(self, luck: random.Random) -> Body:
        """A process with dice of its own, so that what it does depends on nothing but the seed and what it sees."""
        own = random.Random(luck.random())
        dies_after = own.choice((None, None, None, own.randint(0, 12)))

        def body(execute: Execute) -> None:
            store = self._store(piecemeal(mortal(execute, dies_after)), own.randbytes)
            for _ in range(own.randint(1, 5)):
                self._act(own, store)

        return body

    def _store(self, execute: Execute, fresh: Callable[[int], bytes]) -> AggregateStore:
        calm = Calm()
        driver = Driver(
            execute=execute,
            meter=Meter(),
            patience=Patience(seconds=1_000.0),
            clock=calm,
            sleep=calm.sleep,
            luck=lambda: 0.5,
        )
        return AggregateStore(driver=driver, site=SITE, fresh=fresh, now=lambda: NOON)

    def _act(self, luck: random.Random, store: AggregateStore) -> None:
        match luck.choice(("append",) * 5 + ("read", "read", "elsewhere")):
            case "append":
                self._append(luck, store)
            case "read":
                acknowledged, replay = self._acknowledged(), store.replay(ALICE)
                if replay is not None:
                    self.reads.append((acknowledged, replay))
            case _:
                self._persist_elsewhere()

    def _append(self, luck: random.Random, store: AggregateStore) -> None:
        expected: ExpectedLock | None = luck.choice(
            (ANY, NO_STREAM, STREAM_EXISTS, AtVersion(version=luck.randint(0, 4)), None)
        )
        if expected is None:
            replay = store.replay(ALICE)
            expected = NO_STREAM if replay is None else replay.snapshot.lock
        attempt = Attempt(events=luck.randint(1, 3), expected=expected)
        snapshot = None if luck.random() < 0.5 else STATE
        self.attempts.append(attempt)
        try:
            attempt.outcome = replace(store, fresh=attempt.listen(store.fresh)).append(
                ALICE, [EQUAL] * attempt.events, snapshot=snapshot, expected=expected
            )
        except InvalidInput as refused:
            if snapshot is not None or refused.field != "snapshot":
                raise

    def _persist_elsewhere(self) -> None:
        """A write of another library, in a turn of its own: its head tells neither numbers nor ids."""
        if any(is_head(item) for item in self.tables.items(SITE.snapshot)):
            persist_elsewhere(self.tables.execute, ALICE, "Elsewhere")
            self.elsewhere += 1

    def _acknowledged(self) -> int:
        outcomes = (attempt.outcome for attempt in self.attempts)
        return max((each.lock.seq_nr for each in outcomes if isinstance(each, AggregateAppended)), default=0)


def meets(expected: ExpectedLock, version: int) -> bool:
    """Whether a head of this version, 0 where there is none, is what a writer expects."""
    match expected:
        case Expected.ANY:
            return True
        case Expected.NO_STREAM:
            return version == 0
        case Expected.STREAM_EXISTS:
            return version > 0
        case AtVersion(version=wanted) | Lock(version=wanted):
            return version == wanted


def replay(seed: int) -> Simulation:
    """Play a seed and check what came of it; a failure names it."""
    simulation = Simulation(seed)
    try:
        simulation.play()
        simulation.check()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}") from error
    return simulation
