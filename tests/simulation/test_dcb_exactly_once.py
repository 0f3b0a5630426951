"""G2 for tagged events: whoever repeats an append, and whenever, it is made once and never reported as a conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import InvalidInput, Unavailable
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Position
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Refusal, Reply, Transact
from epochal.store.driver import Patience
from tests.simulation.dcb_world import World, event, query

OWN = "00000000-0000-4000-8000-00000000000a"
TAKEN = query(("Taken", "name:ann"))
TAKE = event("Taken", "name:ann", "user:1", id_=OWN)

Between = Callable[[World, DcbEvents], object]
BETWEEN: dict[str, Between] = {
    "nothing": lambda _, __: None,
    "a match": lambda _, rival: rival.try_append([event("Taken", "name:ann")]),
    "an unrelated event of the same tags": lambda _, rival: rival.try_append(
        [event("Seen", "name:ann", "user:1")]
    ),
    "the end of the window": lambda world, _: world.tables.forget_tokens(),
    "the end of the window, and a match": lambda world, rival: (
        world.tables.forget_tokens(),
        rival.try_append([event("Taken", "name:ann")]),
    ),
}


def losing(execute: Execute, *, applied: bool) -> Execute:
    """Transactions get no answer, whether or not they are applied."""

    def perform(op: Op) -> Reply:
        if not isinstance(op, Transact):
            return execute(op)
        if applied:
            execute(op)
        raise Lost("no answer")

    return perform


def giving_up(store: DcbEvents) -> DcbEvents:
    return replace(store, driver=replace(store.driver, patience=Patience(seconds=0.0)))


@pytest.mark.parametrize("known", [True, False], ids=["with its position", "without a position"])
@pytest.mark.parametrize("between", BETWEEN)
def test_a_call_whose_answer_was_lost_may_be_made_again_with_the_same_id(between: str, known: bool) -> None:
    world = World()
    after = world.store("reader").read(TAKEN).position if known else None
    lost = giving_up(world.store("one", losing(world.tables.execute, applied=True)))
    with pytest.raises(Unavailable) as given_up:
        lost.append([TAKE], fail_if=TAKEN, after=after)
    assert given_up.value.maybe_applied

    BETWEEN[between](world, world.store("rival"))
    answer = world.store("one, again").try_append([TAKE], fail_if=TAKEN, after=after)

    assert isinstance(answer, Appended)
    assert answer.replayed
    assert [stored.id for stored in answer.events] == [OWN]
    assert sum(each.id == OWN for each in world.events()) == 1


@pytest.mark.parametrize("known", [True, False], ids=["with its position", "without a position"])
def test_a_call_that_never_arrived_meets_what_came_between(known: bool) -> None:
    world = World()
    after = world.store("reader").read(TAKEN).position if known else None
    with pytest.raises(Unavailable):
        giving_up(world.store("one", losing(world.tables.execute, applied=False))).append(
            [TAKE], fail_if=TAKEN, after=after
        )
    world.store("rival").append([event("Taken", "name:ann")])

    answer = world.store("one, again").try_append([TAKE], fail_if=TAKEN, after=after)

    assert isinstance(answer, Conflict)
    assert all(each.id != OWN for each in world.events())


@pytest.mark.parametrize("conditional", [True, False], ids=["conditional", "unconditional"])
def test_a_request_that_lands_after_its_repetition_changes_nothing(conditional: bool) -> None:
    world = World()
    held: list[Transact] = []

    def hold(op: Op) -> Reply:
        if isinstance(op, Transact):
            held.append(op)
            raise Lost("on its way")
        return world.tables.execute(op)

    fail_if = TAKEN if conditional else None
    with pytest.raises(Unavailable):
        giving_up(world.store("one", hold)).append([TAKE], fail_if=fail_if)
    assert isinstance(world.store("one, again").try_append([TAKE], fail_if=fail_if), Appended)
    before = world.everything()

    world.tables.forget_tokens()
    assert isinstance(world.tables.execute(held[0]), Refusal)

    assert world.everything() == before


def test_a_refusal_that_tells_only_a_part_of_what_stood_in_the_way_is_looked_into() -> None:
    """A transaction that conflicts with another on some items reports no failed condition there."""
    world = World()
    both = [TAKE, event("Noted", "user:1", id_="00000000-0000-4000-8000-00000000000b")]
    world.store("one").append(both)

    def partly(op: Op) -> Reply:
        reply = world.tables.execute(op)
        if isinstance(reply, Refusal):
            return replace(
                reply, failed=(True, False, *reply.failed[2:]), items=(reply.items[0], None, *reply.items[2:])
            )
        return reply

    world.tables.forget_tokens()
    answer = world.store("again", partly).try_append(both)

    assert isinstance(answer, Appended)
    assert [stored.id for stored in answer.events] == [each.id for each in both]


@pytest.mark.parametrize("known", [True, False], ids=["with its position", "without a position"])
def test_an_id_with_other_contents_is_an_error_even_where_its_condition_fails(known: bool) -> None:
    world = World()
    after: Position | None = world.store("reader").read(TAKEN).position if known else None
    world.store("one").append([TAKE])

    with pytest.raises(InvalidInput, match="exists, but with other contents"):
        world.store("two").append([replace(TAKE, data=b"[]")], fail_if=TAKEN, after=after)
    with pytest.raises(InvalidInput, match="some ids are stored already"):
        world.store("two").append([TAKE, event("Taken", "name:ben")], fail_if=TAKEN, after=after)
    assert len(world.events()) == 1
