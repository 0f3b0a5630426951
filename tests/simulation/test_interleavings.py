"""G1, G3, G4, G5: every order in which writers, readers and pruners can take turns, request by request.

Two writers and a reader are enough for the hard cases: stale Tips, calves that a crashed writer left, pages between two
of another's steps. Each order runs from the same state to its end and is audited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from epochal.contrib.equinox.calving import ByCost, Calving, Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.index.checkpoints import tip_key
from epochal.model.events import Recorded
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.plan.ops import Execute, Get, Op, Reply
from epochal.store.reading import Direction
from tests.simulation.scheduler import Body, Process, every_order, mortal, run
from tests.simulation.world import EQUAL, STREAM, World

TWO_STEP = Fixed(max_events=2, mode="two-step")
AT_ONCE = Fixed(max_events=2, mode="transactional")
CALVINGS = {"two-step": TWO_STEP, "at once": AT_ONCE, "by cost": ByCost()}

DEAR = pytest.mark.proof
"""Of what has so many orders that only `make proof` has time for them."""

DIRECTIONS = ["forward", pytest.param("backward", marks=DEAR)]

Choose = Callable[[list[str]], str]


def started(events: int, calving: Calving = TWO_STEP) -> World:
    world = World()
    store = world.store("before", layout=Tips(calving=calving))
    for _ in range(events):
        store.append(STREAM, [EQUAL])
    return world


@dataclass(slots=True)
class Run:
    """One order of turns, and what the processes were told.

    Attributes:
        outcomes: of each writer.
        reads: what each reader read.
        began: the version that had been acknowledged when each process made its first request.
    """

    world: World
    before: int
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    reads: dict[str, list[Recorded]] = field(default_factory=dict)
    began: dict[str, int] = field(default_factory=dict)

    def writer(
        self,
        name: str,
        *,
        expected: ExpectedVersion = ANY,
        events: int = 1,
        calving: Calving = TWO_STEP,
        key: str | None = None,
        dies_after: int | None = None,
    ) -> Body:
        def body(execute: Execute) -> None:
            store = self.world.store(name, mortal(execute, dies_after), layout=Tips(calving=calving))
            self.outcomes[name] = store.try_append(
                STREAM, [EQUAL] * events, expected=expected, idempotency_key=key
            )

        return body

    def rival(self) -> Body:
        """A writer whose append calves, and takes a single turn from beginning to end."""

        def body(execute: Execute) -> None:
            execute(Get(table="tips", key=tip_key(STREAM)))
            store = self.world.store("rival", layout=Tips(calving=Fixed(max_events=1, mode="two-step")))
            self.outcomes["rival"] = store.try_append(STREAM, [EQUAL])

        return body

    def reader(self, direction: Direction, start: int | None = None) -> Body:
        def body(execute: Execute) -> None:
            store = self.world.store("reader", execute)
            self.reads["reader"] = list(store.read(STREAM, start=start, direction=direction))

        return body

    def pager(self, limit: int) -> Body:
        """A reader that keeps nothing between its pages but an index, as over HTTP."""

        def body(execute: Execute) -> None:
            store, found = self.world.store("pager", execute), self.reads.setdefault("pager", [])
            at: int | None = 0
            while at is not None:
                page = store.page(STREAM, start=at, limit=limit)
                found += page.events
                at = page.next

        return body

    def pruner(self, before: int, dies_after: int | None = None) -> Body:
        def body(execute: Execute) -> None:
            self.world.store("pruner", mortal(execute, dies_after)).prune(STREAM, before)

        return body

    def take_turns(self, choose: Choose, **bodies: Body) -> list[str]:
        return run({name: Process(name, self._noting(name), body) for name, body in bodies.items()}, choose)

    def _noting(self, name: str) -> Execute:
        def perform(op: Op) -> Reply:
            self.began.setdefault(name, self._acknowledged())
            return self.world.tables.execute(op)

        return perform

    def _acknowledged(self) -> int:
        versions = (outcome.version for outcome in self.outcomes.values() if isinstance(outcome, Appended))
        return max(versions, default=self.before)

    def check_reads(self, pruned: int = 0) -> None:
        """What was read is true and in order; from `pruned` on without gap, and with all that was acknowledged."""
        history = self.world.history()
        for name, events in self.reads.items():
            indices = [event.index for event in events]
            assert indices in (sorted(indices), sorted(indices, reverse=True))
            assert all(event.append_id == history[event.index] for event in events)
            certain = sorted(index for index in indices if index >= pruned)
            assert certain == list(range(pruned, pruned + len(certain)))
            assert pruned + len(certain) >= self.began[name]


def explore(start: World, version: int, scene: Callable[[Run, Choose], list[str]]) -> int:
    """Play a scene in every order; how many there were. Its checks may fail with `AssertionError`."""

    def in_order(choose: Choose) -> None:
        taken: list[str] = []

        def note(waiting: list[str]) -> str:
            taken.append(choose(waiting))
            return taken[-1]

        done = Run(start.copy(), version)
        try:
            scene(done, note)
            done.world.audit()
        except AssertionError as error:
            raise AssertionError(f"in the order {taken}: {error}") from error

    return max(every_order(in_order))


@pytest.mark.parametrize("calving", CALVINGS.values(), ids=CALVINGS)
@pytest.mark.parametrize("events", [1, 3])
def test_of_two_writers_with_one_expected_version_exactly_one_wins(calving: Calving, events: int) -> None:
    def scene(done: Run, choose: Choose) -> None:
        expected = AtVersion(version=2)
        done.take_turns(
            choose,
            one=done.writer("one", expected=expected, events=events, calving=calving),
            two=done.writer("two", expected=expected, events=events, calving=calving),
        )
        assert sorted(type(outcome).__name__ for outcome in done.outcomes.values()) == [
            "Appended",
            "Conflict",
        ]
        assert max(done.world.history()) == 1 + events

    assert explore(started(2), 2, scene) > 5


@pytest.mark.parametrize("calving", [pytest.param(TWO_STEP, marks=DEAR), AT_ONCE, ByCost()], ids=CALVINGS)
def test_of_three_writers_with_one_token_exactly_one_wins(calving: Calving) -> None:
    start = started(4, calving)
    state = start.store("reader").load(STREAM)
    assert state is not None

    def scene(done: Run, choose: Choose) -> None:
        bodies = {
            name: done.writer(name, expected=state.token, calving=calving) for name in ("one", "two", "three")
        }
        done.take_turns(choose, **bodies)
        outcomes = list(done.outcomes.values())
        assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 2

    assert explore(start, 4, scene) >= 6


def test_of_three_writers_of_a_new_stream_exactly_one_creates_it() -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(
            choose, **{name: done.writer(name, expected=NO_STREAM) for name in ("one", "two", "three")}
        )
        assert sum(isinstance(outcome, Appended) for outcome in done.outcomes.values()) == 1

    assert explore(World(), 0, scene) == 6


@pytest.mark.parametrize("calving", [TWO_STEP, AT_ONCE], ids=["two-step", "at once"])
def test_where_any_version_will_do_both_writers_append_and_neither_loses_anything(calving: Calving) -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(
            choose,
            one=done.writer("one", events=2, calving=calving),
            two=done.writer("two", events=2, calving=calving),
        )
        outcomes = done.outcomes.values()
        assert sorted(outcome.first for outcome in outcomes if isinstance(outcome, Appended)) == [2, 4]

    assert explore(started(2), 2, scene) >= 6


@pytest.mark.parametrize(("rivals", "orders"), [(0, 6), pytest.param(1, 60, marks=DEAR)])
def test_two_processes_that_use_one_key_at_once_append_once(rivals: int, orders: int) -> None:
    def scene(done: Run, choose: Choose) -> None:
        bodies = {name: done.writer(name, key="k") for name in ("one", "two")}
        done.take_turns(choose, **bodies, **({"rival": done.rival()} if rivals else {}))
        one, two = done.outcomes["one"], done.outcomes["two"]
        assert isinstance(one, Appended)
        assert isinstance(two, Appended)
        assert one.first == two.first
        assert max(done.world.history()) == 2 + rivals

    assert explore(started(2), 2, scene) >= orders


@pytest.mark.parametrize("dies_after", [0, 1, 2, pytest.param(3, marks=DEAR)])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_reader_is_right_whatever_calving_writers_do_and_wherever_one_dies(
    direction: Direction, dies_after: int
) -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(
            choose,
            dying=done.writer("dying", events=2, dies_after=dies_after),
            writer=done.writer("writer"),
            reader=done.reader(direction),
        )
        assert isinstance(done.outcomes["writer"], Appended)
        done.check_reads()

    explore(started(4), 4, scene)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_by_index_join_without_gap_or_overlap_while_others_calve(limit: int) -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(choose, writer=done.writer("writer", calving=TWO_STEP), pager=done.pager(limit))
        done.check_reads()

    explore(started(4), 4, scene)


@pytest.mark.parametrize("before", [1, *(pytest.param(before, marks=DEAR) for before in (2, 3, 5, 99))])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_read_that_a_prune_overtakes_is_gapless_from_the_low_water_mark_on(
    direction: Direction, before: int
) -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(
            choose, pruner=done.pruner(before), reader=done.reader(direction), writer=done.writer("writer")
        )
        done.check_reads(pruned=min(before, 6))

    explore(started(5), 5, scene)


@pytest.mark.parametrize("writer_dies_after", [1, 2, pytest.param(3, marks=DEAR)])
@pytest.mark.parametrize("pruner_dies_after", [1, 2, pytest.param(3, marks=DEAR)])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_reader_is_right_where_a_pruner_and_a_calving_writer_die_beside_it(
    direction: Direction, pruner_dies_after: int, writer_dies_after: int
) -> None:
    """Calves that a prune takes away, calves that nobody took out of the Tip: the Tip, read first, tells."""

    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(
            choose,
            pruner=done.pruner(3, pruner_dies_after),
            dying=done.writer("dying", events=2, dies_after=writer_dies_after),
            reader=done.reader(direction),
        )
        done.check_reads(pruned=3)
        done.world.store("after", layout=Tips(calving=TWO_STEP)).append(STREAM, [EQUAL])
        assert done.world.store("after").prune(STREAM, 4) is not None

    assert explore(started(5), 5, scene) > 10


@pytest.mark.parametrize("dies_after", range(5))
def test_a_prune_that_dies_half_way_loses_nothing_above_its_mark_and_can_be_done_again(
    dies_after: int,
) -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(choose, pruner=done.pruner(3, dies_after), writer=done.writer("writer", events=2))
        again = done.world.store("again").prune(STREAM, 3)
        assert again is not None
        assert (again.low_water, again.done) == (3, True)
        done.check_reads(pruned=3)

    explore(started(5), 5, scene)


@pytest.mark.proof
def test_two_pruners_and_a_writer_leave_the_higher_mark_and_all_above_it() -> None:
    def scene(done: Run, choose: Choose) -> None:
        done.take_turns(choose, low=done.pruner(1), high=done.pruner(2), writer=done.rival())
        tip = done.world.tip()
        assert tip is not None
        assert (tip["l"]["N"], tip["n"]["N"]) == ("2", "4")

    explore(started(3), 3, scene)
