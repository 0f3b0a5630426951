"""Events with ids in appends to several streams of pages, on small worlds: all that can happen to one sent again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from epochal.layout.streams import Batch
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.pages import identified
from epochal.plan.ops import Steps
from tests.simulation.exploring import Budget, State, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Rule, batch_of
from tests.simulation.several_explorer import A, Actor, Answer, B, Explorer, Move, Table

ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Move):
    """An append whose events have ids: the same in each stream."""

    ids: tuple[int, ...] = ()

    def given(self, stream: str) -> Batch:
        return batch_of(self.name, stream, clock=self.clock, ids=self.ids)


class Identified(Explorer):
    """Holds what is said to the ids that are there, whoever has appended them."""

    def told(self, state: State, answers: tuple[Answer, ...]) -> State:
        table = self.tables[state.table]
        for move, _, told in answers:
            self.met |= {type(each).__name__ for each in told}
            assert isinstance(move, Named)
            for stream, each in zip(move.streams, told, strict=True):
                if not move.ids:
                    continue
                there, own = self.ids_of(table.appends.get(stream, ()), stream), move.batch(stream).rest
                match each:
                    case Appended(first=first, version=version, replayed=replayed):
                        assert there[first:version] == list(move.ids), f"told {first} to {version} of {there}"
                        assert replayed or own in table.appends[stream], "told that it was new"
                        assert all(isinstance(other, Appended) for other in told)
                    case Conflict() | None:
                        assert own not in table.appends.get(stream, ()), "refused, and it is there"
                    case Undetermined():
                        raise AssertionError("undetermined, though nothing is pruned")
            if move.ids and any(isinstance(each, Conflict) for each in told):
                begun = [self.ids_of(table.appends.get(stream, ()), stream) for stream in move.streams]
                made = all(each[: len(move.ids)] == list(move.ids) for each in begun)
                assert not made, "told of a conflict, and it was made before"
        return state

    def checked(self, before: Table, tables: Any) -> Table:
        # What the class is given slots for leaves no cell for `super()`.
        table = Explorer.checked(self, before, tables)
        for stream, appends in table.appends.items():
            chosen = [each for each in self.ids_of(appends, stream) if each]
            assert len(chosen) == len(set(chosen)), "an id was appended twice"
        return table

    def ids_of(self, appends: tuple[bytes, ...], stream: str) -> list[int]:
        """Of the event that each index was given; 0 where it has none."""
        ids = {each.batch(stream).rest: each.ids for each in self._moves() if isinstance(each, Named)}
        given = [ids[rest] or (0,) for rest in appends]
        return [each[(k - appends.index(appends[k])) % len(each)] for k, each in enumerate(given)]


def sender(name: str, *ids: int, rule: Rule = ALWAYS, **fields: Any) -> Actor:
    """A process that appends events of these ids to both streams, which it expects to have none."""
    move = Named(name=name, **{"expects": "none", **fields}, ids=ids, events=len(ids) or 1)
    return Actor(does=(move,), rule=rule)


def two_send_the_same() -> Explorer:
    """Another appends to one of the streams in between, on a page of its own."""
    return Identified(
        actors=(sender("a", 1, 2), sender("b", 1, 2, rule=ODD), sender("c", expects="any", streams=(A,))),
        budget=Budget(unheard=1, late=1),
    )


def one_is_sent_again_while_it_shows_in_parts() -> Explorer:
    return Identified(
        actors=(sender("a", 1), sender("b", 1, expects="first"), sender("c", expects="any", streams=(B,))),
        budget=Budget(torn=1),
    )


def a_batch_that_is_in_one_of_them() -> Explorer:
    """By an append to that stream alone."""
    return Identified(
        actors=(sender("a", 1, streams=(A,)), sender("b", 1), sender("c", expects="any", streams=(B,))),
        budget=Budget(unheard=1),
    )


WORLDS = (two_send_the_same, one_is_sent_again_while_it_shows_in_parts, a_batch_that_is_in_one_of_them)


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_said_of_an_append_sent_again_is_true_in_all_of_its_streams(
    world: Callable[[], Explorer],
) -> None:
    explorer = world()

    assert explorer.explore() > 100, "a world in which hardly anything happens proves nothing"
    assert explorer.met >= {"Appended", "Conflict"}


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    def unasked(*_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(identified, "find_all", unasked)


def the_first_stream_tells_of_all(patch: Patch) -> None:
    def first(table: str, appends: Any) -> Steps[Any]:
        batch, expected = appends[0]
        found = yield from identified.load_head_or_outcome(table, batch, expected)
        if not isinstance(found, Appended):
            return None
        return Appended(streams={batch.stream: found for batch, _ in appends}, replayed=True)

    patch.setattr(identified, "find_all", first)


def what_is_under_way_is_not_waited_for(patch: Patch) -> None:
    def nothing(_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(identified, "settled", nothing)


@left_out(
    (a_refused_append_is_not_looked_for, two_send_the_same, "made before"),
    (the_first_stream_tells_of_all, a_batch_that_is_in_one_of_them, "told 0 to"),
    (what_is_under_way_is_not_waited_for, one_is_sent_again_while_it_shows_in_parts, "made before"),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str | None, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
