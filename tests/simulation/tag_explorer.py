"""Every interleaving of a few processes that append tagged events to pages: the real generators.

As in `page_explorer` a process is the replies that it was sent, and a state is the table with every process's replies.
Queries are taken apart, page by page, and what is asked for together is asked for one by one. While the budget lasts an
answer may be lost, a request arrive late, a refusal tell only some of its reasons, a process end, or a transaction show
in parts: to plain reads one of its items shows last; until then nobody is told of it, and whatever else it meets waits.

What is true is which append each index of each tag was given, and in which order appends were committed. An append is
under all of its tags, once and under one stamp, or under none; whoever commits under a condition has seen all that
matches it; and whatever anyone is told agrees with that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import pytest

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.layout.fences import Condition, fence, fence_after
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import STREAMS, Page, is_page, read_page
from epochal.layout.pages.tags import append as appends
from epochal.layout.pages.tags.append import TaggedBatch, append
from epochal.layout.pages.tags.entries import TagStreams
from epochal.layout.pages.tags.reading import read
from epochal.model.dcb import Query, TaggedEvent
from epochal.model.names import TAG_STREAMS
from epochal.model.positions import read_position, write_position
from epochal.model.tagged_results import TaggedAppended, TaggedConflict
from epochal.model.times import Ticks
from epochal.model.versions import Position
from epochal.plan.ops import (
    BatchGet,
    Delete,
    Done,
    Found,
    Get,
    Op,
    Put,
    Refusal,
    Reply,
    Steps,
    Transact,
    Update,
)
from epochal.plan.ops import Query as Pages
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Numbering, Past, explore, put
from tests.simulation.index_explorer import frames
from tests.simulation.page_actors import TABLE, Rule, apart, replay
from tests.simulation.page_explorer import ruled_by
from tests.simulation.several_explorer import one_by_one

_WRITES: Final = (Put, Update, Transact)
_PLAIN: Final = (Get, BatchGet, Pages)

Names = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A process. Each of its events is an append, the first after what it read, the next after what it was told.

    Attributes:
        events: by name, which is also what their data are.
        query: the condition; None for none.
        reads: it reads first.
        broader: what it reads, where that is not just its condition.
        outside: positions go through their text.
        reserved: tags of the store's own that its events are in.
    """

    events: tuple[TaggedEvent, ...]
    query: Query | None = None
    reads: bool = False
    broader: Query | None = None
    outside: bool = False
    clock: int = 5
    rule: Rule = field(default_factory=Rule)
    reserved: frozenset[str] = frozenset()


class Budget(NamedTuple):
    """How often each thing may still go wrong."""

    unheard: int = 0
    late: int = 0
    crashes: int = 0
    partly: int = 0
    torn: int = 0

    def less(self, what: str) -> Budget:
        """After one more."""
        return self._replace(**{what: getattr(self, what) - 1})


NOTHING: Final = Budget()


class State(NamedTuple):
    """A state of the world.

    Attributes:
        denied: appends whose writers were told that they were not made.
        shown: the table as plain reads see it while a transaction shows in parts, and
        telling: whose it is, and what that is told then.
    """

    table: int
    pasts: tuple[Past | None, ...]
    budget: Budget
    on_the_way: tuple[tuple[int, int, Names], ...] = ()
    denied: Names = frozenset()
    shown: int | None = None
    telling: tuple[int, int] = (0, 0)


class Answer(NamedTuple):
    """An append, what its writer had seen before it, and what came of it."""

    name: str
    seen: Names
    told: TaggedAppended | TaggedConflict


class Standing(NamedTuple):
    """What a past has led to: the request it is at, the append that is for with what was seen, the answers so far."""

    op: int | None
    name: str
    seen: Names
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A state of the table, and what is true of it.

    Attributes:
        chains: which append each index of each tag was given.
        order: of the commits.
    """

    tables: MemoryTables
    chains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()


@dataclass(slots=True)
class _Diary:
    """What a process has been through, beside its generator."""

    name: str = ""
    seen: frozenset[str] = frozenset()
    answers: tuple[Answer, ...] = ()


def act(writer: Writer, diary: _Diary) -> Steps[None]:
    """All that a process does."""
    site = TagStreams(table=TABLE, type_heads=writer.reserved)
    position: Position | None = None
    if writer.reads and writer.query is not None:
        asked = fence(writer.broader or writer.query, type_heads=site.type_heads)
        found = yield from read(site, asked)
        keys = [event.key for event in found.events]
        assert keys == sorted(set(keys)), "read out of order, or twice"
        diary.seen = frozenset(str(event.data) for event in found.events)
        position = found.position
    for event in writer.events:
        diary.name = str(event.data)
        condition = None
        if writer.query is not None:
            if position is not None and writer.outside:
                position = read_position(write_position(position))
            fenced = (
                fence(writer.query, type_heads=site.type_heads)
                if position is None
                else fence_after(writer.query, position, type_heads=site.type_heads)
            )
            condition = Condition(fence=fenced, after=position)
        told = yield from append(site, batch_of(event, writer.clock), condition)
        diary.answers = (*diary.answers, Answer(diary.name, diary.seen, told))
        position = told.position if writer.query is not None else None
        if isinstance(told, TaggedConflict):
            diary.seen |= {str(each.data) for each in told.events}
        elif not told.replayed:
            diary.seen |= {diary.name}


def batch_of(event: TaggedEvent, clock: int) -> TaggedBatch:
    fresh = hashlib.sha256(str(event.data).encode()).digest()
    bodies = ((Encoded(DIRECT, str(event.data).encode()), EMPTY),)
    return TaggedBatch(
        events=(event,), bodies=bodies, now=Ticks(clock), append_id=fresh[:16], etag=fresh[16:].hex()
    )


@dataclass(slots=True)
class Explorer(Numbering):
    """Explores all that may happen to `writers`, after others have come first, one after the other.

    Attributes:
        refers: bodies are on the page of an event's first tag alone.
    """

    writers: tuple[Writer, ...]
    before: tuple[Writer, ...] = ()
    refers: bool = False
    budget: Budget = NOTHING
    tables: list[Table] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    performed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    same: dict[Past, Past] = field(default_factory=dict)
    standing: dict[Past, Standing] = field(default_factory=dict)
    firsts: dict[str, Past] = field(default_factory=dict)
    conflicts: int = 0

    @property
    def everyone(self) -> tuple[Writer, ...]:
        """Those who come first, then the others: who is who."""
        return (*self.before, *self.writers)

    def explore(self) -> int:
        """Visit every state; how many there are. Fails with the way that led to one that must not be."""
        table = self._number("", self.tables, Table(tables=MemoryTables({TABLE: STREAMS})))
        for who in range(len(self.before)):
            past = self._same(Past(who))
            while (number := self.standing[past].op) is not None:
                table, reply = self._perform(table, number)
                past = self._told(past, reply)
        others = range(len(self.before), len(self.everyone))
        return explore(State(table, tuple(self._same(Past(who)) for who in others), self.budget), self._steps)

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.shown is not None:
            yield from self._while_showing(state)
            return
        for place, (who, number, seen) in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            table, _ = self._perform(state.table, number)
            self._check_commit(state, table, who, seen)
            yield f"late: {_shown(self.ops[number])}", state._replace(table=table, on_the_way=left)
        for place, past in enumerate(state.pasts):
            if past is not None:
                yield from self._go_on(state, place, past)

    def _while_showing(self, state: State) -> Iterator[tuple[str, State]]:
        place, reply = state.telling
        past = state.pasts[place]
        assert past is not None
        told = put(state.pasts, place, self._told(past, reply))
        yield "all of it shows", state._replace(shown=None, telling=(0, 0), pasts=told)
        for other, each in enumerate(state.pasts):
            if each is None or other == place:
                continue
            at = self.standing[each._replace(lost=False)]
            if at.op is None or not isinstance(self.ops[at.op], _PLAIN):
                continue
            _, found = self._perform(state.shown or 0, at.op)
            yield (
                f"{each.who}: {_shown(self.ops[at.op])}, in parts",
                state._replace(pasts=put(state.pasts, other, self._told(each, found))),
            )

    def _go_on(self, state: State, place: int, past: Past) -> Iterator[tuple[str, State]]:
        at = self.standing[past._replace(lost=False)]
        if at.op is None:
            yield self._finish(state, place, at)
            return
        what, budget, op = f"{past.who}: {_shown(self.ops[at.op])}", state.budget, self.ops[at.op]
        table, reply = self._perform(state.table, at.op)
        self._check_commit(state, table, past.who, at.seen)

        def told(number: int) -> State:
            return state._replace(table=table, pasts=put(state.pasts, place, self._told(past, number)))

        yield what, told(reply)
        if not isinstance(op, _WRITES):
            return
        for shown in self._torn(state, op, table, reply):
            showing = state._replace(table=table, shown=shown, telling=(place, reply))
            yield f"{what}, in parts", showing._replace(budget=budget.less("torn"))
        if budget.partly:
            for part in self._parts(reply):
                yield f"{what}, told in part", told(part)._replace(budget=budget.less("partly"))
        unsure = put(state.pasts, place, past._replace(lost=True))
        gone = put(state.pasts, place, None)
        if budget.unheard:
            left = budget.less("unheard")
            yield f"{what}, unheard", state._replace(table=table, pasts=unsure, budget=left)
        if budget.late:
            late, left = (*state.on_the_way, (past.who, at.op, at.seen)), budget.less("late")
            yield f"{what}, held up", state._replace(pasts=unsure, on_the_way=late, budget=left)
            yield f"{what}, held up, and dies", state._replace(pasts=gone, on_the_way=late, budget=left)
        if budget.crashes:
            left = budget.less("crashes")
            yield f"{what}, and dies", state._replace(table=table, pasts=gone, budget=left)

    def _finish(self, state: State, place: int, at: Standing) -> tuple[str, State]:
        order, denied = self.tables[state.table].order, set(state.denied)
        for answer in at.answers:
            if isinstance(answer.told, TaggedAppended):
                assert answer.name in order, f"told of {answer.name}, which never was"
                continue
            self.conflicts += 1
            assert answer.name not in order, f"told of a conflict, yet {answer.name} is there"
            found = {str(event.data) for event in answer.told.events}
            assert found, "told of a conflict with nothing"
            broader = any(writer.broader for writer in self.everyone)
            assert broader or not found & answer.seen, "told of a conflict with what it had seen"
            denied.add(answer.name)
        return "ends", state._replace(pasts=put(state.pasts, place, None), denied=frozenset(denied))

    def _check_commit(self, state: State, table: int, who: int, seen: Names) -> None:
        before, after = self.tables[state.table].order, self.tables[table].order
        if len(after) == len(before):
            return
        assert after[-1] not in state.denied, f"told that {after[-1]} was not made, and it is"
        query = self.everyone[who].query
        if query is None:
            return
        events = {str(event.data): event for writer in self.everyone for event in writer.events}
        for name in before:
            known = name in seen or not query.matches(events[name].type, events[name].tags)
            assert known, f"{after[-1]} is committed although {name} matches and was not seen"

    # ---------------------------------------------------------------------------------------- the generators, the table

    def _perform(self, before: int, number: int) -> tuple[int, int]:
        """What a request makes of the table, and the reply to it."""
        if (before, number) not in self.performed:
            op, table = self.ops[number], self.tables[before]
            tables = table.tables
            if isinstance(op, _WRITES):
                tables = MemoryTables({TABLE: STREAMS})
                tables.__dict__.update(table.tables.copy().__dict__)
            reply = tables.execute(op)
            after = before
            if isinstance(op, _WRITES):
                key = f"{list(tables.items(TABLE))} {table.order}"
                after = self._number(key, self.tables, self._checked(table, tables))
            self.performed[before, number] = after, self._number(repr(reply), self.replies, reply)
        return self.performed[before, number]

    def _checked(self, before: Table, tables: MemoryTables) -> Table:
        """The table after a write, if all of it is true."""
        pages = [read_page(item) for item in tables.items(TABLE) if is_page(item)]
        names = {batch_of(event, 0).append_id: event for writer in self.everyone for event in writer.events}
        of_rest = {identity[:5] + identity[8:11]: str(event.data) for identity, event in names.items()}
        chains, stamps = dict[str, tuple[str, ...]](), dict[str, set[bytes]]()
        for tag in sorted({page.stream.removeprefix(TAG_STREAMS) for page in pages}):
            own = sorted(
                (page for page in pages if page.stream == TAG_STREAMS + tag), key=lambda page: page.index
            )
            found = _chain(own)
            chains[tag] = tuple(of_rest[stamp[8:]] for stamp in found)
            old = before.chains.get(tag, ())
            assert chains[tag][: len(old)] == old, f"tag {tag}: what was there has changed"
            for name, stamp in zip(chains[tag], found, strict=True):
                stamps.setdefault(name, set()).add(stamp)
        for writer in self.everyone:
            for event in writer.events:
                name = str(event.data)
                tags = TagStreams(table=TABLE, type_heads=writer.reserved).tags_of(event.type, event.tags)
                times = {chains.get(tag, ()).count(name) for tag in tags}
                assert times in ({0}, {1}), f"{name} is under its tags {sorted(times)} times"
                assert len(stamps.get(name, ())) <= 1, f"{name} has several stamps"
        new = sorted(set(stamps) - set(before.order))
        assert len(new) <= 1
        return Table(tables=tables, chains=chains, order=(*before.order, *new))

    def _torn(self, state: State, op: Op, after: int, reply: int) -> Iterator[int]:
        """The table after a transaction, without each of its writes in turn."""
        if state.budget.torn and isinstance(op, Transact) and isinstance(self.replies[reply], Done):
            for hidden in self._hidden(state.table, op):
                yield self._without(after, hidden)

    def _hidden(self, before: int, op: Transact) -> Iterator[Put | Delete]:
        """What undoes each of its writes alone."""
        for write in op.writes:
            if isinstance(write, Put | Update):
                key = {
                    name: (write.item if isinstance(write, Put) else write.key)[name] for name in ("p", "i")
                }
                found = self.tables[before].tables.execute(Get(table=TABLE, key=key))
                assert isinstance(found, Found)
                yield (
                    Delete(table=TABLE, key=key) if found.item is None else Put(table=TABLE, item=found.item)
                )

    def _without(self, number: int, hidden: Put | Delete) -> int:
        tables = MemoryTables({TABLE: STREAMS})
        tables.__dict__.update(self.tables[number].tables.copy().__dict__)
        tables.execute(hidden)
        key = f"shown: {list(tables.items(TABLE))}"
        return self._number(key, self.tables, replace(self.tables[number], tables=tables))

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

    def _same(self, past: Past) -> Past:
        if past not in self.same:
            writer, diary = self.everyone[past.who], _Diary()
            inner = act(writer, diary)
            middle = one_by_one(inner)
            outer = apart(middle)
            with ruled_by(writer.rule), pytest.MonkeyPatch.context() as patch:
                if self.refers:
                    patch.setattr(appends, "REFERRED_FROM", 0)
                op, _ = replay(outer, [self.replies[number] for number in past.replies])
            left = [list(frames(each)) for each in (outer, middle, inner)]
            key = _digest(f"{past.who} {op} {diary.name} {sorted(diary.seen)} {diary.answers} {left}")
            first = self.firsts.setdefault(key, past)
            self.same[past] = first
            number = None if op is None else self._number(repr(op), self.ops, op)
            self.standing[first] = Standing(number, diary.name, diary.seen, diary.answers)
        return self.same[past]


def _chain(pages: Sequence[Page]) -> list[bytes]:
    """The stamp that each index of a tag was given, if its pages follow each other."""
    found: list[bytes] = []
    for page in pages:
        assert page.index == len(found), f"{page.stream}: a page at {page.index} after {len(found)} events"
        for frame in page.frames:
            assert not found or time_of(frame.stamp) > time_of(found[-1]), "stamps do not increase"
            found += [frame.stamp] * frame.count
        assert page.version == len(found)
    return found


def _shown(op: Op) -> str:
    if isinstance(op, Transact):
        return " and ".join(_shown_write(write) for write in op.writes)
    if isinstance(op, _WRITES):
        return _shown_write(op)
    return f"reads {getattr(op, 'partition', None) or getattr(op, 'keys', None)}"


def _shown_write(write: object) -> str:
    key = write.item if isinstance(write, Put) else getattr(write, "key", {})
    return f"{type(write).__name__} {key['p']['S']} {key['i']['N']}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
