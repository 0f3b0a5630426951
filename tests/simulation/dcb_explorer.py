"""Every interleaving of a few writers of tagged events: the real generators, each state of the world visited once.

A generator cannot be copied, but it is a function of the replies it was sent. So a writer is its replies, and a state
is the tables with every writer's replies. Reads are taken apart, key by key and entry by entry. While the budget lasts
a transaction may lose its answer, within or beyond the store's ten minutes, arrive late, or be its sender's last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from epochal.model.tagged_results import TaggedAppended, TaggedConflict
from epochal.plan.ops import Op, Refusal, Reply, Transact
from tests.simulation.dcb_history import check_tables
from tests.simulation.dcb_states import (
    NOTHING,
    Budget,
    Ids,
    Standing,
    State,
    Writer,
    apart,
    replay,
    write,
)
from tests.simulation.dcb_world import Tables, World
from tests.simulation.exploring import Numbering, Past, explore, put
from tests.simulation.index_explorer import frames


@dataclass(slots=True)
class Explorer(Numbering):
    """Explores all that may happen to `writers`."""

    writers: tuple[Writer, ...]
    budget: Budget = NOTHING
    type_heads: bool = False
    tables: list[Tables] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    performed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    same: dict[Past, Past] = field(default_factory=dict)
    firsts: dict[bytes, Past] = field(default_factory=dict)
    standing: dict[Past, Standing] = field(default_factory=dict)
    conflicts: int = 0

    def explore(self) -> int:
        """Visit every state; how many there are. Fails with the way that led to one that must not be."""
        writers = tuple(self._same(Past(who)) for who in range(len(self.writers)))
        first = State(self._tables_number(Tables()), writers, self.budget)
        return explore(first, self._steps)

    # ------------------------------------------------------------------------------------------------------- the steps

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        for place, (who, number, seen) in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            tables, _ = self._perform(state, who, number, seen)
            yield f"late: {_shown(self.ops[number])}", state._replace(tables=tables, on_the_way=left)
        for who, past in enumerate(state.writers):
            if past is not None:
                yield from self._go_on(state, who, past)

    def _go_on(self, state: State, who: int, past: Past) -> Iterator[tuple[str, State]]:
        at = self.standing[past._replace(lost=False)]
        if at.op is None:
            yield self._finish(state, who, at)
            return
        what, budget = f"{who}: {_shown(self.ops[at.op])}", state.budget
        tables, reply = self._perform(state, who, at.op, at.seen)
        told = put(state.writers, who, self._told(past, reply))
        yield what, state._replace(tables=tables, writers=told)
        if not isinstance(self.ops[at.op], Transact):
            return
        if budget.partly:
            for part in self._parts(reply):
                partly = put(state.writers, who, self._told(past, part))
                left = budget.less("partly")
                yield f"{what}, told in part", state._replace(tables=tables, writers=partly, budget=left)
        unsure = put(state.writers, who, past._replace(lost=True))
        gone = put(state.writers, who, None)
        if budget.unheard:
            left = budget.less("unheard")
            yield f"{what}, unheard", state._replace(tables=tables, writers=unsure, budget=left)
            if budget.forgotten:
                later = self._forgotten(tables)
                left = left.less("forgotten")
                yield f"{what}, unheard for long", state._replace(tables=later, writers=unsure, budget=left)
        if budget.late:
            late = (*state.on_the_way, (who, at.op, at.seen))
            left = budget.less("late")
            yield f"{what}, held up", state._replace(writers=unsure, on_the_way=late, budget=left)
            yield f"{what}, held up, and dies", state._replace(writers=gone, on_the_way=late, budget=left)
        if budget.crashes:
            yield (
                f"{what}, and dies",
                state._replace(tables=tables, writers=gone, budget=budget.less("crashes")),
            )

    def _parts(self, number: int) -> Iterator[int]:
        """What may be left of a refusal with several reasons: any one of them alone."""
        reply = self.replies[number]
        if not isinstance(reply, Refusal) or sum(reply.failed) < 2:
            return
        for kept in (place for place, failed in enumerate(reply.failed) if failed):
            items = tuple(item if place == kept else None for place, item in enumerate(reply.items))
            failed = tuple(place == kept for place in range(len(reply.failed)))
            part = replace(reply, items=items, failed=failed)
            yield self._number(repr(part), self.replies, part)

    def _finish(self, state: State, who: int, at: Standing) -> tuple[str, State]:
        writer, committed = self.writers[who], self._committed(state.tables)
        own = writer.event.id or ""
        gone = state._replace(writers=put(state.writers, who, None))
        if isinstance(at.answer, TaggedAppended):
            assert own in committed, f"{who} was told of an append that never was"
            return f"{who}: written", gone
        assert isinstance(at.answer, TaggedConflict)
        self.conflicts += 1
        assert own not in committed, f"{who} was told of a conflict, yet its event is there"
        ids = {event.id for event in at.answer.events}
        assert ids, f"{who} was told of a conflict with nothing"
        # A broader read may have shown what its position, under a narrower query, does not vouch for.
        shown = bool(ids & at.seen) and writer.broader is None
        assert not shown, f"{who} was told of a conflict with what it had seen"
        return f"{who}: rejected", gone._replace(rejected=state.rejected | {own})

    def _perform(self, state: State, who: int, number: int, seen: Ids) -> tuple[int, int]:
        """What a request makes of the tables, and the reply to it; if it commits, its condition must hold."""
        if (state.tables, number) not in self.performed:
            op, tables = self.ops[number], self.tables[state.tables]
            if isinstance(op, Transact):
                tables = _copy(tables)
            reply = tables.execute(op)
            after = self._tables_number(tables) if isinstance(op, Transact) else state.tables
            self.performed[state.tables, number] = after, self._number(repr(reply), self.replies, reply)
        tables_after, reply_number = self.performed[state.tables, number]
        if len(self._committed(tables_after)) > len(self._committed(state.tables)):
            self._check_commit(state, who, seen)
        return tables_after, reply_number

    def _check_commit(self, state: State, who: int, seen: Ids) -> None:
        writer = self.writers[who]
        assert writer.event.id not in state.rejected, f"{who} was told of a conflict, and commits"
        if writer.query is None:
            return
        for event in World(tables=self.tables[state.tables]).events():
            known = event.id in seen or not writer.query.matches(event.type, event.tags)
            assert known, f"{who} commits although {event} matches and it has not seen it"

    # -------------------------------------------------------------------------------------- the generators, and tables

    def _same(self, past: Past) -> Past:
        if past not in self.same:
            seen: set[str] = set()
            inner = write(self.writers[past.who], self.type_heads, seen)
            outer = apart(inner)
            op, answer = replay(outer, [self.replies[number] for number in past.replies])
            key = f"{past.who} {op} {answer} {sorted(seen)} {list(frames(outer))} {list(frames(inner))}"
            first = self.firsts.setdefault(hashlib.sha256(key.encode()).digest(), past)
            self.same[past] = first
            number = None if op is None else self._number(repr(op), self.ops, op)
            self.standing[first] = Standing(number, frozenset(seen), answer)
        return self.same[past]

    def _committed(self, number: int) -> list[str]:
        return [event_id for ids in self.tables[number].committed for event_id in ids]

    def _forgotten(self, number: int) -> int:
        tables = _copy(self.tables[number])
        tables.forget_tokens()
        return self._tables_number(tables)

    def _tables_number(self, tables: Tables) -> int:
        content = f"{tables.committed} {sorted(tables._tokens)} {list(tables.items('tags'))}"  # noqa: SLF001
        content += f"{list(tables.items('events'))}"
        count = len(self.tables)
        number = self._number(content, self.tables, tables)
        if number == count:
            check_tables(World(type_heads=self.type_heads, tables=tables))
        return number


def _copy(tables: Tables) -> Tables:
    twin = Tables()
    twin.__dict__.update(tables.copy().__dict__)
    twin.committed = list(tables.committed)
    return twin


def _shown(op: Op) -> str:
    if not isinstance(op, Transact):
        return f"reads {getattr(op, 'keys', None) or getattr(op, 'partition', None)}"
    return "writes " + ", ".join(str(getattr(write, "condition", "")) for write in op.writes)
