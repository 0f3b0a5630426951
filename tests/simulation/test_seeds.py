"""Everything at once, by seed: processes that append, repeat keys, prune, delete and read, under faults and deaths.

Where the enumerations are complete but small, this is large and random. A failing seed is named, and replays exactly:
`replay(seed)`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from epochal.layout.tips.calving import ByCost, Fixed
from epochal.layout.tips.items import append_id, is_tip, tip_key
from epochal.model.events import Recorded, Unfold
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.versions import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion
from epochal.plan.ops import Execute, Op, Put, Reply, Transact, Update
from epochal.plan.values import AttributeValue
from epochal.store.streams import Streams
from epochal.testing.faults import Fault, Faults, Late
from tests.simulation.expectations import check_appended, check_conflict
from tests.simulation.scheduler import Body, Process, mortal, run
from tests.simulation.world import EQUAL, STREAM, World

SEEDS = 800

CALVINGS = (
    Fixed(max_events=1, mode="two-step"),
    Fixed(max_events=2, mode="two-step"),
    Fixed(max_events=3, mode="transactional"),
    ByCost(),
)
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


@dataclass(slots=True)
class Attempt:
    """One call of append: the ids it sent, and its outcome; None while under way, or where its process died."""

    events: int
    expected: ExpectedVersion = ANY
    ids: set[bytes] = field(default_factory=set)
    outcome: Outcome | None = None

    def listen(self, execute: Execute) -> Execute:
        def perform(op: Op) -> Reply:
            self.ids.update(filter(None, map(append_id, sent(op))))
            return execute(op)

        return perform


def sent(op: Op) -> list[AttributeValue]:
    """The events that an operation would add to the Tip."""
    match op:
        case Put(item=item) if item["i"] == tip_key(STREAM)["i"]:
            return list(item.get("e", {"L": []})["L"])
        case Update(sets=sets):
            return [event for change in sets if change.name == "e" for event in change.value["L"]]
        case Transact(writes=writes):
            return [event for write in writes for event in sent(write)]
        case _:
            return []


@dataclass(slots=True)
class Simulation:
    """What one seed makes happen, and what came of it."""

    seed: int
    world: World = field(default_factory=World)
    attempts: list[Attempt] = field(default_factory=list)
    reads: list[tuple[int, list[Recorded]]] = field(default_factory=list)

    def play(self) -> None:
        luck = random.Random(self.seed)
        faults = [self._faults(luck) for _ in range(luck.randint(2, 4))]
        processes = {
            f"process {number}": Process(f"process {number}", each.execute, self._body(luck, number))
            for number, each in enumerate(faults)
        }
        run(processes, luck.choice)
        for each in faults:
            each.land()

    def check(self) -> None:
        self.world.audit()
        tips = list(filter(is_tip, self.world.images()))
        for attempt in self.attempts:
            match attempt.outcome:
                case Appended() as appended:
                    check_appended(attempt.expected, appended, tips)
                case Conflict() as conflict:
                    check_conflict(attempt.expected, conflict)
            for identity in attempt.ids:
                if attempt.outcome is None:
                    assert len(self.world.places_of(identity)) <= 1
                else:
                    self.world.judge(attempt.outcome, identity, attempt.events)
        for acknowledged, events in self.reads:
            self._check_read(acknowledged, events)

    def _faults(self, luck: random.Random) -> Faults:
        rate = luck.choice((0.0, 0.1, 0.3))
        schedule = {number: luck.choice(FAULTS) for number in range(60) if luck.random() < rate}
        return Faults(self.world.tables.execute, schedule)

    def _body(self, luck: random.Random, number: int) -> Body:
        """A process with dice of its own, so that what it does depends on nothing but the seed and what it sees."""
        own = random.Random(luck.random())
        dies_after = own.choice((None, None, None, own.randint(0, 12)))
        calving = own.choice(CALVINGS)

        def body(execute: Execute) -> None:
            store = self.world.store(f"process {number}", mortal(execute, dies_after), calving=calving)
            for _ in range(own.randint(1, 5)):
                self._act(own, store)

        return body

    def _act(self, luck: random.Random, store: Streams) -> None:
        match luck.choice(("append",) * 5 + ("keyed", "keyed", "read", "read", "page", "prune", "delete")):
            case "append":
                self._append(luck, store, self._expectation(luck, store), None)
            case "keyed":
                self._append(luck, store, luck.choice((ANY, STREAM_EXISTS)), luck.choice("kl"))
            case "read":
                direction = luck.choice(("forward", "backward"))
                self.reads.append((self._acknowledged(), list(store.read(STREAM, direction=direction))))
            case "page":
                start = luck.choice((None, luck.randint(0, 8)))
                found = store.page(STREAM, start=start, limit=luck.randint(1, 4))
                self.reads.append((0, list(found.events)))
            case "prune":
                store.prune(STREAM, luck.randint(0, 10))
            case "delete":
                store.delete(STREAM, leave_open=luck.random() < 0.8)

    def _append(
        self, luck: random.Random, store: Streams, expected: ExpectedVersion, key: str | None
    ) -> None:
        attempt = Attempt(events=1 if key else luck.randint(1, 3), expected=expected)
        self.attempts.append(attempt)
        listening = replace(store, driver=replace(store.driver, execute=attempt.listen(store.driver.execute)))
        attempt.outcome = listening.append(
            STREAM,
            [EQUAL] * attempt.events,
            unfolds=None if key else luck.choice((None, (), (Unfold(type="State"),))),
            expected=expected,
            idempotency_key=key,
        )

    def _expectation(self, luck: random.Random, store: Streams) -> ExpectedVersion:
        match luck.choice(("any", "no stream", "exists", "version", "token")):
            case "no stream":
                return NO_STREAM
            case "exists":
                return STREAM_EXISTS
            case "version":
                return AtVersion(version=luck.randint(0, 4))
            case "token":
                state = store.load(STREAM)
                return NO_STREAM if state is None else state.token
            case _:
                return ANY

    def _acknowledged(self) -> int:
        outcomes = (attempt.outcome for attempt in self.attempts)
        return max((outcome.version for outcome in outcomes if isinstance(outcome, Appended)), default=0)

    def _check_read(self, acknowledged: int, events: list[Recorded]) -> None:
        history, tip = self.world.history(), self.world.tip()
        low = int(tip["l"]["N"]) if tip is not None and "l" in tip else 0
        indices = [event.index for event in events]
        assert indices in (sorted(indices), sorted(indices, reverse=True))
        assert all(event.append_id == history[event.index] for event in events)
        certain = sorted(index for index in indices if index >= low)
        assert certain == list(range(certain[0], certain[0] + len(certain))) if certain else True
        if acknowledged > low:
            assert certain[:1] == [low]
            assert certain[-1] + 1 >= acknowledged


def replay(seed: int) -> Simulation:
    simulation = Simulation(seed)
    try:
        simulation.play()
        simulation.check()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}") from error
    return simulation


def test_whatever_happens_appends_are_made_once_reads_are_true_and_the_stream_is_whole() -> None:
    kinds = {type(attempt.outcome) for seed in range(SEEDS) for attempt in replay(seed).attempts}

    assert len(kinds) == 4, "appended, conflicts, undetermined, and died"


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.images() == replay(7).world.images()
