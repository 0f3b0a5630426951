"""G2: an append is exactly once, whichever request goes wrong and whatever others do meanwhile.

Enumerated, not sampled: every operation, every request of it, every fault; after the fault, and in `make proof` once
more at a later request, everything that other writers may do. Those append events that equal ours in every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import pytest

from epochal.contrib.equinox.calving import ByCost, Calving, Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.errors import InvalidInput, Unavailable
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token
from epochal.plan.failures import RequestFailure
from epochal.plan.ops import Execute, Op, Refusal, Reply
from epochal.store.driver import Patience
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, Late, Schedule
from tests.simulation.stream_items import TIP_ITEMS, StreamItems
from tests.simulation.stream_simulation import tables_of
from tests.simulation.world import EQUAL, STREAM, World, interrupted

TWO_STEP = Fixed(max_events=3, mode="two-step")
AT_ONCE = Fixed(max_events=3, mode="transactional")
EVERY_TIME = Fixed(max_events=1, mode="two-step")

FAULTS = (Fault.THROTTLED, Fault.LOST, Fault.UNANSWERED, Late(0), Late(2), Late(100))
UNCERTAIN = (Fault.LOST, Fault.UNANSWERED, Late(0))


def held_token(world: World) -> Token:
    state = world.store("reader").load(STREAM)
    assert state is not None
    return state.token


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """An append by us, on a stream that holds `before` events.

    Attributes:
        expected: None expects the token that the stream has before.
    """

    before: int = 2
    events: int = 1
    unfolds: int | None = None
    expected: ExpectedVersion | None = ANY
    key: str | None = None
    calving: Calving = field(default_factory=ByCost)
    kind: StreamItems = TIP_ITEMS

    def prepare(self) -> World:
        world = World(tables_of(self.kind), kind=self.kind)
        store = world.store("before", layout=self._layout(Fixed(max_events=2, mode="two-step")))
        for _ in range(self.before):
            store.append(STREAM, [EQUAL])
        return world

    def perform(self, store: Streams, expected: ExpectedVersion) -> Outcome:
        return replace(store, layout=self._layout(self.calving)).try_append(
            STREAM,
            [EQUAL] * self.events,
            unfolds=None if self.unfolds is None else [Unfold(type="State", data=b"{}")] * self.unfolds,
            expected=expected,
            idempotency_key=self.key,
        )

    def _layout(self, calving: Calving) -> AnyStreamLayout:
        return Tips(calving=calving) if self.kind is TIP_ITEMS else self.kind.layouts[-1]


APPENDS = {
    "any": Append(),
    "any, new stream": Append(before=0),
    "no stream": Append(before=0, expected=NO_STREAM),
    "stream exists": Append(expected=STREAM_EXISTS),
    "at version": Append(expected=AtVersion(version=2)),
    "token": Append(expected=None),
    "token, several events with unfolds": Append(events=3, unfolds=1, expected=None),
    "any, removing unfolds": Append(unfolds=0),
    "any, calving in two steps": Append(before=4, events=2, calving=TWO_STEP),
    "token, calving in two steps": Append(before=4, events=2, expected=None, calving=TWO_STEP),
    "any, calving at once": Append(before=4, events=2, calving=AT_ONCE),
    "token, calving at once": Append(before=4, events=2, expected=None, calving=AT_ONCE),
}
KEYED = {
    "any": Append(key="k"),
    "any, new stream": Append(before=0, key="k"),
    "stream exists": Append(key="k", expected=STREAM_EXISTS),
    "no stream": Append(before=0, key="k", expected=NO_STREAM),
    "at version": Append(key="k", expected=AtVersion(version=2)),
    "token, calving": Append(before=4, events=2, key="k", expected=None, calving=TWO_STEP),
}
ALL = APPENDS | {f"key, {name}": append for name, append in KEYED.items()}
UNFOLDS_ONLY = {
    "any": Append(events=0, unfolds=1),
    "any, new stream": Append(before=0, events=0, unfolds=1),
    "at version": Append(events=0, unfolds=1, expected=AtVersion(version=2)),
    "token": Append(events=0, unfolds=1, expected=None),
    "token, removing": Append(events=0, unfolds=0, expected=None),
}


def others(world: World) -> dict[str, Callable[[], object]]:
    """What others may do to the stream in between."""
    theirs = world.store("theirs")
    calving = world.store("calving", layout=world.kind.layouts[0])
    pruner = world.store("pruner")

    def append_and_calve() -> None:
        calving.try_append(STREAM, [EQUAL])
        calving.try_append(STREAM, [EQUAL])

    def prune() -> None:
        pruner.prune(STREAM, 10**6)

    def delete_and_go_on() -> None:
        pruner.try_delete(STREAM, leave_open=True)
        theirs.try_append(STREAM, [EQUAL])

    return {
        "nothing": lambda: None,
        "an equal append": lambda: theirs.try_append(STREAM, [EQUAL]),
        "equal appends that calve": append_and_calve,
        "other unfolds": lambda: theirs.try_append(STREAM, [], unfolds=[Unfold(type="State", data=b"{}")]),
        "a prune": prune,
        "equal appends that calve, and a prune": lambda: (append_and_calve(), prune()),
        "a deletion": lambda: pruner.try_delete(STREAM),
        "a deletion that leaves it open, and an equal append": delete_and_go_on,
    }


OTHERS = tuple(others(World()))
LATER = ("a prune", "equal appends that calve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """Request `at` meets `fault`, then `meanwhile` happens; after request `then`, `later` does."""

    at: int
    fault: Fault | Late
    meanwhile: str = "nothing"
    then: int = -1
    later: str = "nothing"

    @property
    def schedule(self) -> Schedule:
        return {self.at: self.fault}

    def interrupt(self, execute: Execute, world: World) -> Execute:
        acts = others(world)
        return interrupted(execute, {self.then: acts[self.later], self.at: acts[self.meanwhile]})


once_and_twice = pytest.mark.parametrize(
    "twice", [False, pytest.param(True, marks=pytest.mark.proof)], ids=["once", "and once more"]
)
"""How often others act. That they do so again at a later request are three times as many cases."""


def mishaps(requests: int, *, twice: bool) -> Iterator[Mishap]:
    for at, meanwhile in product(range(requests), OTHERS):
        if twice:
            for fault, then, later in product(UNCERTAIN, range(at + 1, at + 4), LATER):
                yield Mishap(at=at, fault=fault, meanwhile=meanwhile, then=then, later=later)
        else:
            for fault in FAULTS:
                yield Mishap(at=at, fault=fault, meanwhile=meanwhile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An append, and how it goes when nothing goes wrong.

    Attributes:
        start: before it.
        requests: how many it makes.
        identity: the append id of its events.
        etag: that it leaves.
    """

    append: Append
    start: World
    expected: ExpectedVersion
    requests: int
    identity: bytes | None
    etag: str | None

    @classmethod
    def of(cls, append: Append) -> Case:
        start = append.prepare()
        expected = held_token(start) if append.expected is None else append.expected
        world = start.copy()
        store = world.store("ours")
        outcome = append.perform(store, expected)
        assert isinstance(outcome, Appended)
        identity = world.whose().get(outcome.first)
        return cls(
            append=append,
            start=start,
            expected=expected,
            requests=store.driver.meter.requests,
            identity=identity,
            etag=outcome.token.etag,
        )

    def endure(self, mishap: Mishap) -> tuple[World, Outcome]:
        """The append with a mishap; all that is late has landed in the end."""
        world = self.start.copy()
        faults = Faults(world.tables.execute, mishap.schedule)
        execute = mishap.interrupt(faults.execute, world)
        outcome = self.append.perform(world.store("ours", execute), self.expected)
        faults.land()
        return world, outcome

    def judge(self, world: World, outcome: Outcome) -> None:
        assert self.identity is not None
        world.judge(outcome, self.identity, self.append.events)
        world.audit()


def explain(mishap: Mishap, outcome: Outcome, error: AssertionError) -> AssertionError:
    return AssertionError(f"{mishap} ended in {outcome}: {error}")


@once_and_twice
@pytest.mark.parametrize("append", ALL.values(), ids=ALL)
def test_an_append_is_made_once_or_not_at_all_and_says_which(append: Append, twice: bool) -> None:
    endured(append, twice=twice)


def endured(append: Append, *, twice: bool) -> None:
    """All mishaps of an append, one by one."""
    case, seen = Case.of(append), set()

    for mishap in mishaps(case.requests, twice=twice):
        world, outcome = case.endure(mishap)
        try:
            case.judge(world, outcome)
        except AssertionError as error:
            raise explain(mishap, outcome, error) from error
        seen.add(type(outcome))

    assert {Appended, Undetermined} <= seen


@once_and_twice
@pytest.mark.parametrize(
    "name", ["any", "any, new stream", "any, calving in two steps", "any, calving at once"]
)
def test_where_any_version_will_do_only_a_deletion_keeps_an_append_from_being_made(
    name: str, twice: bool
) -> None:
    case = Case.of(ALL[name])

    for mishap in mishaps(case.requests, twice=twice):
        _, outcome = case.endure(mishap)
        match outcome:
            case Conflict(deleted=deleted):
                assert deleted, mishap
                assert "a deletion" in mishap.meanwhile, mishap
            case Undetermined():
                assert "prune" in mishap.meanwhile + mishap.later or "deletion" in mishap.meanwhile, mishap
            case Appended():
                pass


@pytest.mark.parametrize("append", ALL.values(), ids=ALL)
def test_a_throttled_request_leaves_no_doubt(append: Append) -> None:
    """Nothing was applied, so nothing is looked for: the outcome is that of the same append begun later."""
    case = Case.of(append)
    if append.key is not None:
        return  # another process may have used the key, so there is always something to look for

    for at, meanwhile in product(range(case.requests), OTHERS):
        _, outcome = case.endure(Mishap(at=at, fault=Fault.THROTTLED, meanwhile=meanwhile))
        assert not isinstance(outcome, Undetermined)


UNKEYED = APPENDS | {f"unfolds, {name}": append for name, append in UNFOLDS_ONLY.items()}


@pytest.mark.parametrize("append", UNKEYED.values(), ids=UNKEYED)
def test_where_nobody_else_has_written_a_lost_answer_costs_one_request_more(append: Append) -> None:
    """The refusal of the retry brings our own write: nothing has to be looked up."""
    case = Case.of(append)
    world = case.start.copy()
    faults = Faults(world.tables.execute, {case.requests - 1: Fault.UNANSWERED})

    outcome = append.perform(world.store("ours", faults.execute), case.expected)

    assert isinstance(outcome, Appended)
    assert (outcome.token.etag, outcome.replayed) == (case.etag, False)
    assert faults.requests == case.requests + 1


class RetryingClient:
    """An interpreter that tries again by itself and only says that it did, as boto does where its retries are on."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def execute(self, op: Op) -> Reply:
        try:
            return self._execute(op)
        except RequestFailure:
            reply = self._execute(op)
            return replace(reply, ambiguous=True) if isinstance(reply, Refusal) else reply


@pytest.mark.parametrize("append", ALL.values(), ids=ALL)
def test_retries_that_the_client_makes_by_itself_are_told_from_conflicts_too(append: Append) -> None:
    case = Case.of(append)

    for at, fault, meanwhile in product(range(case.requests), UNCERTAIN, OTHERS):
        mishap = Mishap(at=at, fault=fault, meanwhile=meanwhile)
        world = case.start.copy()
        faults = Faults(world.tables.execute, mishap.schedule)
        client = RetryingClient(mishap.interrupt(faults.execute, world))
        outcome = append.perform(world.store("ours", client.execute), case.expected)
        faults.land()
        try:
            case.judge(world, outcome)
        except AssertionError as error:
            raise explain(mishap, outcome, error) from error


def crashed(case: Case, mishap: Mishap) -> World:
    """The append by a process that gives up at the mishap: its request may or may not have been applied."""
    world = case.start.copy()
    faults = Faults(world.tables.execute, mishap.schedule)
    store = world.store("ours", mishap.interrupt(faults.execute, world))
    impatient = replace(store, driver=replace(store.driver, patience=Patience(seconds=0)))
    with pytest.raises(Unavailable) as gave_up:
        case.append.perform(impatient, case.expected)
    if case.identity in world.whose().values():
        assert gave_up.value.maybe_applied, "it was applied, and the caller is told that it was not"
    faults.land()
    return world


@pytest.mark.parametrize("append", KEYED.values(), ids=KEYED)
def test_a_key_makes_an_append_once_whoever_repeats_it(append: Append) -> None:
    case, replayed = Case.of(append), 0

    for at, fault, meanwhile in product(range(case.requests), FAULTS, OTHERS):
        mishap = Mishap(at=at, fault=fault, meanwhile=meanwhile)
        world = crashed(case, mishap)
        for successor in ("successor", "its successor"):
            outcome = append.perform(world.store(successor), case.expected)
            try:
                case.judge(world, outcome)
            except AssertionError as error:
                raise explain(mishap, outcome, error) from error
        replayed += isinstance(outcome, Appended) and outcome.replayed

    assert replayed > 0


@pytest.mark.parametrize("append", KEYED.values(), ids=KEYED)
def test_a_key_makes_an_append_once_whatever_its_repeats_expect(append: Append) -> None:
    """After each fault at each request others act; then the caller reloads, and expects what it finds."""
    case, replayed = Case.of(append), 0

    for at, fault, meanwhile in product(range(case.requests), FAULTS, OTHERS):
        mishap = Mishap(at=at, fault=fault, meanwhile=meanwhile)
        world = crashed(case, mishap)
        state = world.store("reader").load(STREAM)
        version = 0 if state is None else state.version
        reloaded = NO_STREAM if state is None else state.token
        for expected in (reloaded, AtVersion(version=version), ANY, NO_STREAM):
            outcome = append.perform(world.store(f"expecting {expected}"), expected)
            try:
                case.judge(world, outcome)
            except AssertionError as error:
                raise explain(mishap, outcome, error) from error
            replayed += isinstance(outcome, Appended) and outcome.replayed

    assert replayed > 0


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("expected", [ANY, STREAM_EXISTS, AtVersion(version=4)], ids=repr)
def test_a_key_first_used_with_a_token_ahead_of_the_stream_is_appended_once_by_two(
    expected: ExpectedVersion, at: int
) -> None:
    """As after a restore. Another lowers the bound and appends there: what was known of the bound is too high then."""
    world = Append().prepare()
    ahead = Token(version=5, etag="of a stream that was longer")
    early = world.store("early").try_append(STREAM, [EQUAL], expected=ahead, idempotency_key="k")
    assert isinstance(early, Conflict)
    others: list[Outcome] = []

    def meanwhile() -> None:
        others.append(world.store("two").append(STREAM, [EQUAL], idempotency_key="k"))
        world.store("rival", layout=Tips(calving=EVERY_TIME)).append(STREAM, [EQUAL])

    one = world.store("one", interrupted(world.tables.execute, {at: meanwhile}))
    outcome = one.try_append(STREAM, [EQUAL], expected=expected, idempotency_key="k")

    identities = list(world.whose().values())
    assert len(identities) == len(set(identities)), "appended twice"
    if others and isinstance(outcome, Appended):
        (two,) = others
        assert isinstance(two, Appended)
        assert outcome.first == two.first


@pytest.mark.parametrize("append", KEYED.values(), ids=KEYED)
def test_a_repeated_key_is_answered_like_the_first_time(append: Append) -> None:
    case = Case.of(append)
    world = case.start.copy()
    first = append.perform(world.store("first"), case.expected)
    assert isinstance(first, Appended)

    for _ in range(3):
        again = append.perform(world.store("second"), case.expected)
        assert isinstance(again, Appended)
        assert (again.first, again.version, again.replayed) == (first.first, first.version, True)
        world.store("theirs", layout=Tips(calving=EVERY_TIME)).append(STREAM, [EQUAL])


@pytest.mark.parametrize("append", KEYED.values(), ids=KEYED)
def test_a_key_used_for_other_events_is_refused_and_nothing_is_written(append: Append) -> None:
    case = Case.of(append)
    world = case.start.copy()
    append.perform(world.store("first"), case.expected)
    written = world.images()

    with pytest.raises(InvalidInput) as refused:
        world.store("second").append(
            STREAM, [Event(type="Another")], expected=case.expected, idempotency_key=append.key
        )

    assert refused.value.field == "idempotency_key"
    assert world.images() == written


def test_a_key_is_forgotten_after_its_window_where_no_version_is_expected() -> None:
    world = World()
    store = world.store("ours")
    store.append(STREAM, [EQUAL], idempotency_key="k")
    tomorrow = replace(store, now=lambda: store.now() + 86_401 * 10**9)

    within = replace(store, now=lambda: store.now() + 86_399 * 10**9).try_append(
        STREAM, [EQUAL], idempotency_key="k"
    )
    after = tomorrow.try_append(STREAM, [EQUAL], idempotency_key="k")

    assert isinstance(within, Appended)
    assert isinstance(after, Appended)
    assert (within.first, within.replayed) == (0, True)
    assert (after.first, after.replayed) == (1, False)


@once_and_twice
@pytest.mark.parametrize("append", UNFOLDS_ONLY.values(), ids=UNFOLDS_ONLY)
def test_unfolds_alone_never_move_the_version_and_every_write_leaves_an_etag_of_its_own(
    append: Append, twice: bool
) -> None:
    """Replaced by others, unfolds leave no trace: with `any` they are written again, else nobody can tell."""
    case = Case.of(append)

    for mishap in mishaps(case.requests, twice=twice):
        world, outcome = case.endure(mishap)
        try:
            world.audit()
            if isinstance(outcome, Appended):
                assert outcome.first == outcome.version
                assert outcome.token.etag in world.etags()
            if isinstance(outcome, Conflict):
                assert case.etag not in world.etags()
            if append.expected is ANY:
                assert not isinstance(outcome, Undetermined) or mishap.meanwhile == "a deletion"
        except AssertionError as error:
            raise explain(mishap, outcome, error) from error
