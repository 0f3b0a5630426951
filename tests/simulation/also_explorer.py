"""Every interleaving of processes whose appends write to a table of their program's own, in one transaction.

What is true of that table is counted: each append raises a number by one, and may claim a name that must be free, or
want a seat that another process gives back. So the number says how often what went with appends was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from epochal.errors import Unavailable
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.pages.items import STREAMS
from epochal.plan.ops import Found, Get, Steps
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.store.also import Absent, TransactionWrite, compare, plain, put, update
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Diary, State
from tests.simulation.page_actors import PAGES, TABLE
from tests.simulation.several_explorer import A, Explorer, Move, Prune, Table, check_told, known_of, told_of

OWN: Final = TableSpec(
    kind="own", partition=KeyAttribute(name="p", type="S"), sort=KeyAttribute(name="i", type="N")
)
COUNT: Final = {"p": "count", "i": 0}
SEATS: Final = {"p": "seats", "i": 0}
NAME: Final = {"p": "name", "i": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class With(Move):
    """An append, and what goes with it.

    Attributes:
        counts: a number is raised by one.
        claims: a name, which must be free.
        sits: there must be a seat.
    """

    counts: bool = True
    claims: bool = False
    sits: bool = False

    @property
    def also(self) -> tuple[TransactionWrite, ...]:
        counts = [update("own", COUNT, adds={"n": 1})] if self.counts else []
        claims = [put("own", {**NAME, "by": self.name}, when=Absent("p"))] if self.claims else []
        sits = [update("own", SEATS, adds={"n": -1}, when=compare("n", ">=", 1))] if self.sits else []
        return (*counts, *claims, *sits)


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBack(Prune):
    """Gives a seat back, without an append."""

    stream: str = A
    before: int = 0


class Said(NamedTuple):
    """An append, what was expected, and what came of it: of each stream, or of all."""

    move: With
    expected: tuple[ExpectedVersion, ...]
    told: Any


def act(actor: Any, diary: Diary) -> Steps[None]:
    """Perform all that an actor does."""
    tokens: dict[str, ExpectedVersion] = {}
    for doing in actor.does:
        if isinstance(doing, GiveBack):
            yield update("own", SEATS, adds={"n": 1})
            continue
        if isinstance(doing, Prune):
            yield from PAGES.prune(TABLE, doing.stream, doing.before, "0" * 32)
            continue
        fixed = {"any": ANY, "none": NO_STREAM}.get(doing.expects)
        expected = tuple(fixed or tokens.get(stream, NO_STREAM) for stream in doing.streams)
        told = yield from _append(doing, expected)
        diary.answers = (*diary.answers, Said(doing, expected, told))
        if isinstance(told, tuple):
            tokens |= known_of(dict(zip(doing.streams, told, strict=True)))


def _append(move: With, expected: tuple[ExpectedVersion, ...]) -> Steps[Any]:
    appends = [(move.given(stream), each) for stream, each in zip(move.streams, expected, strict=True)]
    try:
        outcome = yield from PAGES.append_all(TABLE, appends, move.key or None, move.also)
    except Unavailable as error:
        return "unsure" if error.maybe_applied else error
    return outcome if isinstance(outcome, Conflict) and outcome.unmet else told_of(outcome, move.streams)


@dataclass(slots=True)
class AlsoExplorer(Explorer):
    """Explores all that may happen to `actors`."""

    def first(self) -> Table:
        return Table(tables=MemoryTables({TABLE: STREAMS, "own": OWN}))

    def content(self, table: Table) -> str:
        own = sorted(map(repr, table.tables.items("own")))
        return f"{super(AlsoExplorer, self).content(table)} {own}"

    def checked(self, before: Table, tables: MemoryTables) -> Table:
        """Check that the `also` writes of the applied appends are stored exactly once, and nothing else is."""
        table = super(AlsoExplorer, self).checked(before, tables)
        made = {move.name: move for move in self._moves() if move.batch(A).rest in table.order}
        by_key = {move.key or move.name: move for move in made.values()}
        counted = sum(getattr(move, "counts", False) for move in by_key.values())
        assert _own(tables, COUNT).get("n", 0) == counted, "written more or less often than its events"
        holder = _own(tables, NAME).get("by")
        claims = [name for name, move in made.items() if getattr(move, "claims", False)]
        assert claims == ([] if holder is None else [holder]), (
            "a name is claimed by an append that has it not"
        )
        return table

    def told(self, state: State, answers: tuple[Any, ...]) -> State:
        table, kept = self.tables[state.table], set[str]()
        for move, expected, told in answers:
            there = move.batch(A).rest in table.order
            if isinstance(told, Conflict):
                self.met.add("Unmet")
                assert move.key not in kept, "a repeat is told something else than the first"
                assert move.key or not there, "told that a condition kept it from being made, and it is there"
                assert all(place < len(move.also) for place in told.unmet)
                if not move.key:
                    state = state._replace(denied=state.denied | {move.name})
                continue
            if told == "unsure":
                self.met.add("unsure")
                continue
            self.met |= {type(each).__name__ for each in told}
            kept |= {move.key for each in told if isinstance(each, Appended) and move.key}
            for stream, wanted, each in zip(move.streams, expected, told, strict=True):
                check_told(move, stream, wanted, each, table)
                assert not isinstance(each, Appended) or there, "told that it was made, and it is not"
            if any(isinstance(each, Conflict) for each in told) and not move.key:
                state = state._replace(denied=state.denied | {move.name})
            if any(isinstance(each, Undetermined) for each in told):
                self.met.add("Undetermined")
        return state


def _own(tables: MemoryTables, key: dict[str, Any]) -> dict[str, Any]:
    reply = tables.execute(Get(table="own", key=update("own", key, sets={"x": 1}).key))
    assert isinstance(reply, Found)
    return {} if reply.item is None else plain(reply.item)
