"""Pruning and deleting, whichever request goes wrong and whatever others do meanwhile: done, and told truly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.store.reading import Pruned
from epochal.store.streams import Streams
from epochal.testing.memory import Faults, Late
from tests.simulation.test_exactly_once import FAULTS, OTHERS, Mishap
from tests.simulation.world import EQUAL, STREAM, World

Act = Callable[[Streams], Pruned | Conflict | None]

PRUNES: dict[str, int] = {
    "a part of a calf": 1,
    "a calf": 2,
    "a part of the Tip": 5,
    "all": 6,
    "more than all": 99,
}


def five_events() -> World:
    """Two calves of two events, and a Tip with the rest and an unfold."""
    world = World()
    store = world.store("before", layout=Tips(calving=Fixed(max_events=2, mode="two-step")))
    for number in range(6):
        store.append(STREAM, [EQUAL], unfolds=[Unfold(type="State", data=b"%d" % number)])
    return world


def undisturbed(start: World, act: Act) -> tuple[int, str]:
    world = start.copy()
    store = world.store("ours")
    act(store)
    return store.driver.meter.requests, world.etags()[-1]


def mishaps(requests: int) -> list[Mishap]:
    return [
        Mishap(at=at, fault=fault, meanwhile=meanwhile)
        for at, fault, meanwhile in product(range(requests), FAULTS, OTHERS)
    ]


def endured(start: World, act: Act, mishap: Mishap) -> tuple[World, Pruned | Conflict | None]:
    world = start.copy()
    faults = Faults(world.tables.execute, mishap.schedule)
    done = act(world.store("ours", mishap.interrupt(faults.execute, world)))
    faults.land()
    return world, done


def low_water(world: World) -> int:
    tip = world.tip()
    assert tip is not None
    return int(tip.get("l", {"N": "0"})["N"])


@pytest.mark.parametrize("before", PRUNES.values(), ids=PRUNES)
def test_a_prune_is_done_and_loses_nothing_above_its_mark_whatever_goes_wrong(before: int) -> None:
    start = five_events()

    def act(store: Streams) -> Pruned | None:
        return store.prune(STREAM, before)

    requests, _ = undisturbed(start, act)
    for mishap in mishaps(requests):
        world, done = endured(start, act, mishap)
        try:
            assert isinstance(done, Pruned)
            assert done.done
            assert low_water(world) >= done.low_water >= min(before, 6)
            world.audit()
            assert calves_below(world, done.low_water) <= 1, (
                "at most the one that a late request brought back"
            )
        except AssertionError as error:
            raise AssertionError(f"{mishap}: {error}") from error


def calves_below(world: World, mark: int) -> int:
    return sum(int(item["n"]["N"]) <= mark for item in world.tables.items("tips") if item["p"]["S"] == STREAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A deletion by us."""

    leave_open: bool
    expected: ExpectedVersion = ANY

    def __call__(self, store: Streams) -> Pruned | Conflict:
        return store.try_delete(STREAM, expected=self.expected, leave_open=self.leave_open)


DELETIONS = {
    "any": Deletion(leave_open=False),
    "at version": Deletion(leave_open=False, expected=AtVersion(version=6)),
    "left open": Deletion(leave_open=True),
    "left open, at version": Deletion(leave_open=True, expected=AtVersion(version=6)),
}


@pytest.mark.parametrize("deletion", DELETIONS.values(), ids=DELETIONS)
def test_a_deletion_takes_all_there_was_or_is_a_conflict_and_changes_nothing(deletion: Deletion) -> None:
    start = five_events()
    requests, etag = undisturbed(start, deletion)
    for mishap in mishaps(requests):
        world, done = endured(start, deletion, mishap)
        try:
            world.audit()
            match done:
                case Pruned():
                    assert low_water(world) >= 6
                    if not deletion.leave_open:
                        assert world.tip()["z"]["N"] == "1"
                case Conflict():
                    assert deletion.expected is not ANY
                    assert etag not in world.etags(), "it was applied, and is reported as a conflict"
        except AssertionError as error:
            raise AssertionError(f"{mishap} ended in {done}: {error}") from error


@pytest.mark.parametrize(
    "expected", [ANY, NO_STREAM, AtVersion(version=6)], ids=["any", "no stream", "at version"]
)
def test_a_deleted_stream_takes_no_more_events_and_says_so(expected: ExpectedVersion) -> None:
    world = five_events()
    store = world.store("ours")
    store.delete(STREAM)
    written = world.images()

    refused = store.try_append(STREAM, [EQUAL], expected=expected)

    assert isinstance(refused, Conflict)
    assert (refused.version, refused.deleted) == (6, True)
    assert world.images() == written


def test_a_deleted_stream_has_no_events_left_in_any_item() -> None:
    world = five_events()

    world.store("ours").delete(STREAM)

    (tip,) = [item for item in world.tables.items("tips") if item["p"]["S"] == STREAM]
    assert set(tip) == {"p", "i", "n", "b", "etag", "a", "l", "z"}
    assert (tip["n"]["N"], tip["l"]["N"], tip["a"]["N"], tip["z"]["N"]) == ("6", "6", "0", "1")


def test_deleting_again_changes_nothing_and_ends_well() -> None:
    world = five_events()
    store = world.store("ours")
    store.delete(STREAM)
    written = world.images()

    assert store.try_delete(STREAM) == Pruned(low_water=6, deleted=0, done=True)
    assert world.images() == written


def test_a_stream_left_open_goes_on_at_its_next_index() -> None:
    world = five_events()
    store = world.store("ours")
    store.delete(STREAM, leave_open=True)

    again = store.try_append(STREAM, [Event(type="Again")])

    assert isinstance(again, Appended)
    assert (again.first, again.version) == (6, 7)
    assert [event.type for event in store.read(STREAM)] == ["Again"]
    state = store.load(STREAM)
    assert state is not None
    assert (state.unfolds, state.deleted, state.low_water) == ((), False, 6)


def test_deleting_what_does_not_exist_is_a_conflict_and_creates_nothing() -> None:
    world = World()

    assert world.store("ours").try_delete(STREAM) == Conflict(version=0)
    assert world.store("ours").prune(STREAM, 5) is None
    assert world.images() == []


def test_a_stream_with_more_calves_than_one_call_deletes_says_so_and_is_finished_by_further_calls() -> None:
    world = World()
    store = world.store("ours", layout=Tips(calving=Fixed(max_events=1, mode="two-step")))
    for _ in range(1_103):
        store.append(STREAM, [EQUAL])

    calls = [store.prune(STREAM, 1_102) for _ in range(3)]

    assert [(done.deleted, done.done) for done in calls if done] == [(500, False), (500, False), (102, True)]
    world.audit()


def test_a_late_calf_below_the_mark_is_never_read_and_goes_with_the_next_prune() -> None:
    """Its writer was slow: the stream was calved and pruned by others before its request arrived."""
    world = World()
    before = world.store("before")
    for _ in range(2):
        before.append(STREAM, [EQUAL])
    faults = Faults(world.tables.execute, {1: Late(99)})
    slow = world.store("slow", faults.execute, layout=Tips(calving=Fixed(max_events=2, mode="two-step")))
    slow.append(STREAM, [EQUAL])
    world.store("pruner").prune(STREAM, 2)

    faults.land()

    world.audit()
    assert world.store("reader").page(STREAM).low_water == 2
    world.store("pruner").prune(STREAM, 3)
    assert calves_below(world, 2) == 0


def test_a_prune_is_no_append_to_the_feed() -> None:
    world = five_events()

    world.store("ours").prune(STREAM, 5)

    tip = world.tip()
    assert tip is not None
    assert tip["a"]["N"] == "0"
