"""A table of keys is restored to a moment before somebody was forgotten: nothing of hers can be read again.

Without a forget log it can, which is why the guide says that the table must have no backup.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from epochal.contrib.subjects.items import FORGET_LOG, SUBJECT_KEYS
from epochal.contrib.subjects.sealing import Shredded, Subjects
from epochal.contrib.subjects.testing import memory_subjects
from epochal.errors import InvalidInput, SubjectForgotten, Unavailable
from epochal.plan.failures import Lost
from epochal.plan.ops import Delete, Op, Put, Reply, Scan
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from tests.core.feed.feeds import Clock

KEYS, LOG = SUBJECT_KEYS.kind, FORGET_LOG.kind
SECRET = b'{"name":"Ada Lovelace"}'


@dataclass
class World:
    """Both tables, and what is known to bring the first back."""

    tables: MemoryTables = field(
        default_factory=lambda: MemoryTables({spec.kind: spec for spec in (SUBJECT_KEYS, FORGET_LOG)})
    )

    def __post_init__(self) -> None:
        self.subjects = memory_subjects(self.tables, log=LOG)

    @property
    def without_log(self) -> Subjects:
        """As an application opens it that was not told of the log."""
        return replace(self.subjects, log="")

    def backup(self) -> list[Item]:
        return list(self.tables.items(KEYS))

    def restore(self, backup: list[Item]) -> None:
        """The table as it was then, and nothing that came since."""
        for item in self.backup():
            self.tables.execute(Delete(table=KEYS, key={"pk": item["pk"]}))
        for item in backup:
            self.tables.execute(Put(table=KEYS, item=item))

    def on(self, around: Callable[[Op], Reply]) -> Subjects:
        clock = Clock()
        driver = Driver(execute=around, meter=Meter(), clock=clock, sleep=clock.sleep)
        return replace(self.subjects, driver=driver)


@pytest.fixture
def world() -> World:
    return World()


def test_without_a_log_a_restored_table_brings_back_who_was_forgotten(world: World) -> None:
    subjects = world.without_log
    sealed, backup = subjects.seal("ada", SECRET), world.backup()
    subjects.forget("ada")
    world.restore(backup)
    assert subjects.unseal(sealed) == SECRET


def test_with_the_log_a_restored_key_opens_nothing(world: World) -> None:
    sealed, his = world.subjects.seal("ada", SECRET), world.subjects.seal("ben", SECRET)
    backup = world.backup()
    world.subjects.forget("ada")
    world.restore(backup)
    assert world.subjects.unseal(sealed) == Shredded("ada")
    assert world.subjects.is_forgotten("ada")
    with pytest.raises(SubjectForgotten):
        world.subjects.seal("ada", SECRET)
    assert world.subjects.unseal(his) == SECRET
    assert not world.subjects.is_forgotten("ben")


def test_who_was_forgotten_gets_no_new_key_from_a_table_older_than_her_first(world: World) -> None:
    backup = world.backup()
    world.subjects.seal("ada", SECRET)
    world.subjects.forget("ada")
    world.restore(backup)
    with pytest.raises(SubjectForgotten):
        world.subjects.seal("ada", SECRET)
    assert world.backup() == []


def test_the_log_applied_again_destroys_the_restored_keys_for_everybody(world: World) -> None:
    sealed = {name: world.subjects.seal(name, SECRET) for name in ("ada", "ben", "cid")}
    backup = world.backup()
    for name in ("ada", "cid", "dan"):
        world.subjects.forget(name)
    world.restore(backup)
    assert world.without_log.unseal(sealed["ada"]) == SECRET

    assert sorted(world.subjects.reapply()) == ["ada", "cid", "dan"]

    assert [name for name, body in sealed.items() if world.without_log.unseal(body) == SECRET] == ["ben"]
    assert {item["pk"]["S"] for item in world.backup() if "k" in item} == {"ben"}
    assert list(world.subjects.reapply()) == []


def test_a_tombstone_applied_again_says_when_it_was_first_put(world: World) -> None:
    world.subjects.seal("ada", SECRET)
    backup = world.backup()
    at = replace(world.subjects, now=lambda: 1_000_000_000_000_000_000)
    at.forget("ada")
    (first,) = world.backup()
    world.restore(backup)
    assert list(world.subjects.reapply()) == ["ada"]
    assert world.backup() == [first]


def test_a_log_of_many_pages_is_applied_to_its_end(world: World) -> None:
    names = sorted(f"{number:04}" for number in range(60))
    for name in names:
        world.subjects.forget(name)
    world.restore([])
    pages = 0

    def in_small_pages(op: Op) -> Reply:
        nonlocal pages
        if isinstance(op, Scan):
            pages += 1
            return world.tables.execute(replace(op, limit=7))
        return world.tables.execute(op)

    assert sorted(world.on(in_small_pages).reapply()) == names
    assert pages >= 9


def test_who_dies_after_the_log_was_written_has_forgotten_all_the_same(world: World) -> None:
    sealed = world.subjects.seal("ada", SECRET)

    def dies(op: Op) -> Reply:
        if isinstance(op, Put) and op.table == KEYS:
            raise Lost("the process is gone")
        return world.tables.execute(op)

    with pytest.raises(Unavailable):
        world.on(dies).forget("ada")
    assert world.subjects.unseal(sealed) == Shredded("ada")
    assert list(world.subjects.reapply()) == ["ada"]


def test_the_log_holds_no_keys(world: World) -> None:
    world.subjects.seal("ada", SECRET)
    world.subjects.forget("ada")
    (entry,) = world.tables.items(LOG)
    assert set(entry) == {"pk", "z", "t"}


def test_there_is_nothing_to_apply_where_there_is_no_log(world: World) -> None:
    with pytest.raises(InvalidInput, match="log"):
        list(world.without_log.reapply())


Act = Callable[[Subjects, list[bytes]], None]


def seal(subjects: Subjects, bodies: list[bytes]) -> None:
    with suppress(SubjectForgotten):
        bodies.append(subjects.seal("ada", SECRET))


def forget(subjects: Subjects, _: list[bytes]) -> None:
    subjects.forget("ada")


def meet(world: World, outer: Act, inner: Act, *, log: str, at: int, bodies: list[bytes]) -> bool:
    """Let `inner` happen before the request number `at` of `outer`; whether there is such a request."""
    asked = 0

    def execute(op: Op) -> Reply:
        nonlocal asked
        asked += 1
        if asked == at:
            inner(replace(world.subjects, log=log), bodies)
        return world.tables.execute(op)

    outer(replace(world.on(execute), log=log), bodies)
    return asked >= at


@pytest.mark.parametrize("log", ["", LOG], ids=["", "log"])
@pytest.mark.parametrize("sealed_before", [False, True])
@pytest.mark.parametrize(("outer", "inner"), [(seal, forget), (forget, seal)])
def test_wherever_forgetting_meets_sealing_nothing_that_was_sealed_can_be_read(
    outer: Act, inner: Act, sealed_before: bool, log: str
) -> None:
    """One of them as a whole before each request of the other, by two processes: no key is left, none comes back."""
    met = 0
    while True:
        world, bodies = World(), list[bytes]()
        subjects = replace(world.subjects, log=log)
        if sealed_before:
            seal(subjects, bodies)
        if not meet(world, outer, inner, log=log, at=met + 1, bodies=bodies):
            break
        met += 1
        assert [subjects.unseal(body) for body in bodies] == [Shredded("ada")] * len(bodies)
        assert [set(item) for item in world.tables.items(KEYS)] == [{"pk", "z", "t"}]
        with pytest.raises(SubjectForgotten):
            subjects.seal("ada", SECRET)
    assert met >= 1 + bool(log)
