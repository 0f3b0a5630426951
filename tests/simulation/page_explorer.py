"""Every interleaving of a few processes on one stream of pages: the real generators, each state visited once.

A generator cannot be copied, but it is a function of the replies it was sent. So an actor is its replies, and a state
is the table with every actor's replies. Queries are taken apart, page by page. While the budget lasts an answer may be
lost, and a request may arrive late, or be its sender's last.

What is true is what was written: which append's event each index was given, and the unfolds that were left last. Every
state of the table is held to that, and so is all that anyone is told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from epochal.layout.expectations import accepts
from epochal.layout.pages import writes
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.frames import read_unfolds
from epochal.layout.pages.items import STREAMS, Page, is_page, read_page, state_of
from epochal.layout.streams import PruneProgress, Rejected, Unknown, Written
from epochal.model.versions import ANY, ExpectedVersion, Token
from epochal.plan.ops import ITEM_BYTES, Op, Put, Refusal, Reply, Transact, Update
from epochal.plan.ops import Delete as Removal
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Numbering, Past, explore, put
from tests.simulation.index_explorer import frames
from tests.simulation.page_actors import (
    TABLE,
    Actor,
    Answer,
    Call,
    Delete,
    Load,
    Read,
    Rule,
    Seen,
    act,
    apart,
    replay,
)

_WRITES = (Put, Update, Removal, Transact)


class Budget(NamedTuple):
    """How often each thing may still go wrong."""

    unheard: int = 0
    late: int = 0
    crashes: int = 0

    def less(self, what: str) -> Budget:
        """After one more."""
        return self._replace(**{what: getattr(self, what) - 1})


NOTHING = Budget()


class State(NamedTuple):
    """A state of the world.

    Attributes:
        table: by its number.
        actors: each one's past; None at its end.
        on_the_way: late requests, by their senders.
        denied: appends whose writers were told that they were not made.
        ended: somebody was told that the stream is deleted.
    """

    table: int
    actors: tuple[Past | None, ...]
    budget: Budget
    on_the_way: tuple[tuple[int, int, ExpectedVersion], ...] = ()
    denied: frozenset[bytes] = frozenset()
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A state of the table, and what is true of it.

    Attributes:
        appends: what each index was given, by the part of a stamp that tells appends apart.
        unfolds: those of the stream.
        marks: who has written without events.
        states: every last page that there has been, and its unfolds.
    """

    tables: MemoryTables
    appends: tuple[bytes, ...] = ()
    unfolds: bytes = b""
    marks: frozenset[bytes] = frozenset()
    pages: tuple[Page, ...] = ()
    states: frozenset[tuple[Page, bytes]] = frozenset()

    @property
    def held(self) -> frozenset[int]:
        """Every event that a page holds."""
        return frozenset(index for page in self.pages for index in range(page.base, page.version))

    @property
    def gone(self) -> int:
        """Every event below this is gone."""
        return min(
            (page.span.base for page in self.pages if page.span.base < page.version),
            default=len(self.appends),
        )


@dataclass(slots=True)
class Explorer(Numbering):
    """Explores all that may happen to `actors`, after others have acted alone, one after the other."""

    actors: tuple[Actor, ...]
    before: tuple[Actor, ...] = ()
    budget: Budget = NOTHING
    tables: list[Table] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    performed: dict[tuple[int, int, int, str], tuple[int, int]] = field(default_factory=dict)
    same: dict[Past, Past] = field(default_factory=dict)
    firsts: dict[bytes, Past] = field(default_factory=dict)
    standing: dict[Past, tuple[int | None, tuple[Answer, ...] | None, ExpectedVersion]] = field(
        default_factory=dict
    )
    batches: dict[str, Packed] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    loads: bool = False

    def explore(self) -> int:
        """Visit every state; how many there are. Fails with the way that led to one that must not be."""
        everyone = (*self.before, *self.actors)
        self.loads = any(isinstance(each, Load) for actor in everyone for each in actor.does)
        self.batches = {call.name: call.batch for actor in everyone for call in actor.calls}
        first = self._table_number(Table(tables=MemoryTables({TABLE: STREAMS})))
        actors = self.actors
        for each in self.before:
            self.actors = (each,)
            self.same.clear()
            first = self._alone(first)
        self.actors = actors
        self.same.clear()
        self.performed.clear()
        pasts = tuple(self._same(Past(who)) for who in range(len(actors)))
        return explore(State(first, pasts, self.budget), self._steps)

    def _alone(self, table: int) -> int:
        past = self._same(Past(0))
        while (number := self.standing[past][0]) is not None:
            table, reply = self._perform(table, 0, number, ANY)
            past = self._told(past, reply)
            self.performed.clear()
        return table

    # ------------------------------------------------------------------------------------------------------- the steps

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        for place, (who, number, expected) in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            table, _ = self._perform(state.table, who, number, expected)
            yield f"late: {_shown(self.ops[number])}", self._moved(state, table)._replace(on_the_way=left)
        for who, past in enumerate(state.actors):
            if past is not None:
                yield from self._go_on(state, who, past)

    def _go_on(self, state: State, who: int, past: Past) -> Iterator[tuple[str, State]]:
        number, answers, expected = self.standing[past._replace(lost=False)]
        if number is None:
            yield f"{who} is done", self._finish(state, who, answers or ())
            return
        what, budget = f"{who}: {_shown(self.ops[number])}", state.budget
        table, reply = self._perform(state.table, who, number, expected)
        moved = self._moved(state, table)
        yield (
            f"{what} {self._outcome(reply)}",
            moved._replace(actors=put(state.actors, who, self._told(past, reply))),
        )
        if not isinstance(self.ops[number], _WRITES):
            return
        unsure = put(state.actors, who, past._replace(lost=True))
        gone = put(state.actors, who, None)
        if budget.unheard:
            yield f"{what}, unheard", moved._replace(actors=unsure, budget=budget.less("unheard"))
        if budget.crashes:
            yield f"{what}, and dies", moved._replace(actors=gone, budget=budget.less("crashes"))
        if budget.late:
            late = state._replace(
                on_the_way=(*state.on_the_way, (who, number, expected)), budget=budget.less("late")
            )
            yield f"{what}, held up", late._replace(actors=unsure)
            yield f"{what}, held up, and dies", late._replace(actors=gone)

    def _moved(self, state: State, table: int) -> State:
        """The state with another table, if that may follow."""
        if len(self.tables[table].appends) > len(self.tables[state.table].appends):
            assert not state.ended, "an event after the stream was said to be deleted"
            assert self.tables[table].appends[-1] not in state.denied, (
                "told that it was not appended, and then it is"
            )
        return state._replace(table=table)

    # ------------------------------------------------------------------------------------------- what anybody was told

    def _finish(self, state: State, who: int, answers: tuple[Answer, ...]) -> State:
        table, state = self.tables[state.table], state._replace(actors=put(state.actors, who, None))
        for doing, expected, told in answers:
            self.met.add(type(told).__name__)
            match told:
                case Page():
                    _check_state(told, table)
                case Seen() if isinstance(doing, Read):
                    _check_read(doing, told, table)
                case PruneProgress(low_water=low_water, done=done):
                    assert done
                    assert table.gone >= low_water, f"pruned below {low_water}, yet {table.gone} is there"
                    assert (
                        not isinstance(doing, Delete)
                        or doing.leave_open
                        or not any(page.unfolds for page in table.pages)
                    ), "unfolds that outlive the stream"
                    state = state._replace(
                        ended=state.ended or (isinstance(doing, Delete) and not doing.leave_open)
                    )
                case _ if isinstance(doing, Call):
                    batch = self.batches[doing.name]
                    _check_told(doing, batch, self._own(doing), told, table)
                    if isinstance(told, Rejected) and not doing.key:
                        assert not accepts(expected, told.head), "in conflict with what was expected"
                        state = state._replace(denied=state.denied | {batch.rest})
        return state

    def _own(self, doing: Call) -> frozenset[bytes]:
        """What tells the call's writes, or those of others under its key, from all others."""
        calls = [call for actor in self.actors for call in actor.calls]
        calls = [call for call in calls if call == doing or (call.key and call.key == doing.key)]
        batches = [self.batches[call.name] for call in calls]
        return frozenset(each for batch in batches for each in (batch.rest, batch.mark))

    # ---------------------------------------------------------------------------------------- the generators, and table

    def _perform(self, before: int, who: int, number: int, expected: ExpectedVersion) -> tuple[int, int]:
        """What a request makes of the table, and the reply to it."""
        key = before, who, number, str(expected)
        if key not in self.performed:
            op, table = self.ops[number], self.tables[before]
            after = before
            tables = table.tables.copy() if isinstance(op, _WRITES) else table.tables
            reply = tables.execute(op)
            if isinstance(op, _WRITES) and not isinstance(reply, Refusal):
                after = self._table_number(self._checked(table, tables, self.actors[who]))
                self._check_expected(table, expected, self.actors[who])
            self.performed[key] = after, self._number(repr(reply), self.replies, reply)
        return self.performed[key]

    def _check_expected(self, before: Table, expected: ExpectedVersion, actor: Actor) -> None:
        """A write on a token is one on that state, or on the page that the same append has closed."""
        if not isinstance(expected, Token) or not before.pages:
            return
        last, known = before.pages[-1], state_of(expected.etag or "")
        closed = last.latest[8:] in {self.batches[call.name].mark for call in actor.calls}
        # What is pruned of a full page changes nothing for the next.
        full = known is not None and known.full and last.full and not last.deleted
        same = last.version == expected.version and (full or last.etag == expected.etag)
        assert closed or same, "a write on another state"

    def _checked(self, before: Table, tables: MemoryTables, actor: Actor) -> Table:
        """The table after a write, if all of it is true."""
        pages = tuple(
            sorted(
                (read_page(item, TABLE) for item in tables.items(TABLE) if is_page(item)),
                key=lambda page: page.index,
            )
        )
        appends, follows, latest = list(before.appends), pages[0].index if pages else 0, -1
        for page in pages:
            assert page.index == follows, (
                f"a page at {page.index}, and one that ends at {follows}: a fork, or a hole"
            )
            at, follows = page.base, page.version
            for frame in page.frames:
                for index in range(at, at + frame.count):
                    if index == len(appends):
                        appends.append(frame.stamp[8:])
                    assert appends[index] == frame.stamp[8:], (
                        f"index {index} was given to another append: a fork"
                    )
                at += frame.count
            times = [int.from_bytes(frame.stamp[:8], "big") for frame in page.frames]
            for time in times:
                assert time > latest, f"stamps that go back, on page {page.index}"
                latest = time
        grown = len(appends) - len(before.appends)
        assert follows == len(appends), f"a version of {follows} after {len(appends)} events"
        assert not (grown and before.pages and before.pages[-1].deleted), "an event after a tombstone"
        unfolds = _unfolds(pages)
        if unfolds != before.unfolds:
            own = {call.unfolds for call in actor.calls} | {
                "" for each in actor.does if isinstance(each, Delete)
            }
            assert _letter(unfolds) in own, "unfolds were lost, or came back"
        marks = before.marks | {page.stamp[8:] for page in pages if page.stamp is not None}
        calls = [call for each in self.actors for call in each.calls if call.key and not call.events]
        made = [call.key for call in calls if self.batches[call.name].mark in marks]
        assert len(made) == len(set(made)), "unfolds under one key were written twice"
        # Only who loads a state, or is in conflict with one, is held to what there has been.
        states = before.states | {(pages[-1], unfolds)} if self.loads else before.states
        return Table(
            tables=tables, appends=tuple(appends), unfolds=unfolds, marks=marks, pages=pages, states=states
        )

    def _outcome(self, number: int) -> str:
        return type(self.replies[number]).__name__

    def _same(self, past: Past) -> Past:
        if past not in self.same:
            actor = self.actors[past.who]
            inner = act(actor, self.batches)
            outer = apart(inner)
            with ruled_by(actor.rule):
                op, answers = replay(outer, [self.replies[number] for number in past.replies])
            key = f"{past.who} {op} {answers} {list(frames(outer))} {list(frames(inner))}"
            first = self.firsts.setdefault(hashlib.sha256(key.encode()).digest(), past)
            self.same[past] = first
            expected = ANY if inner.gi_frame is None else inner.gi_frame.f_locals["expected"]
            number = None if op is None else self._number(repr(op), self.ops, op)
            self.standing[first] = number, answers, expected
        return self.same[past]

    def _table_number(self, table: Table) -> int:
        content = f"{list(table.tables.items(TABLE))} {table.appends} {table.unfolds!r} {sorted(table.marks)}"
        content += f" {sorted(map(repr, table.states))}"
        return self._number(content, self.tables, table)


@contextmanager
def ruled_by(rule: Rule) -> Iterator[None]:
    """Meanwhile pages are full when an actor's rule says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "is_full", lambda token, *_, **__: token.version in rule.full)
        patch.setattr(writes, "REFER_FROM", 0 if rule.refers else ITEM_BYTES)
        patch.setattr(writes, "fits", lambda before, _growth: before.version not in rule.tight)
        yield


def _check_read(read: Read, seen: Seen, table: Table) -> None:
    """What was read is true; what is missing of it is gone."""
    indices = [index for index, _ in seen.events]
    assert indices == sorted(set(indices), reverse=not read.forward)
    wanted = range(read.start or 0, seen.version) if read.forward else range(seen.version)
    missing = set(wanted) - set(indices)
    assert all(index < table.gone for index in missing), f"read past {sorted(missing)}"
    for index, identity in seen.events:
        assert table.appends[index] == identity, f"read at {index} what is not there"


def _check_state(head: Page, table: Table) -> None:
    """The last page, and the unfolds with it, as they once were together."""
    assert (head, head.found or head.unfolds) in table.states, "a state that there has never been"
    head.read_unfolds()


def _check_told(call: Call, batch: Packed, own: frozenset[bytes], told: object, table: Table) -> None:
    rests = [each.rest for each in (*batch.before, batch) for _ in each.events]
    places = [index for index, each in enumerate(table.appends) if each in rests]
    if batch.before:
        assert [table.appends[index] for index in places] in ([], rests), "what goes out together is apart"
    match told:
        case Written(first=first, version=version, token=token):
            assert places == list(range(first, version)), f"told {first} to {version}, and it is at {places}"
            _check_token(token, own, table)
        case Rejected(head=head):
            if table.states and head is not None:
                _check_state(head, table)
            assert call.key or not places, f"told of a conflict, and it is at {places}"
        case Unknown(first=first):
            assert not call.events or first not in table.held, "undetermined, though the evidence is there"


def _check_token(token: Token, own: frozenset[bytes], table: Table) -> None:
    """It is of what the append left, and of nothing that another has written since."""
    state = state_of(token.etag or "")
    assert state is not None
    page = next((page for page in table.pages if page.index == state.index), None)
    if page is None:
        return
    if (page.version, page.time) == (token.version, state.time):
        assert page.latest[8:] in own, "the token is of what another has left"
        assert state.full == page.full or not token.of, "the token does not say whether the page is full"
    if state.full:
        assert (page.version, page.full) == (token.version, True), "the token begins where no page ends"


def _unfolds(pages: tuple[Page, ...]) -> bytes:
    """Those of the stream, wherever they are."""
    at = pages[-1].unfolds_at if pages else None
    if at is None:
        return pages[-1].unfolds if pages else b""
    holder = next(page for page in pages if page.index == at)
    assert holder.unfolds, "unfolds were lost: the page that has them was emptied"
    assert holder.full, "a page that may change has the unfolds of a later one"
    return holder.unfolds


def _letter(unfolds: bytes) -> str:
    return read_unfolds(unfolds).unfolds()[0].data.data.decode() if unfolds else ""


def _shown(op: Op) -> str:
    if isinstance(op, Put):
        return f"begins {op.item['i']['N']}"
    if isinstance(op, Update):
        changes = ", ".join(f"{change.name}={change.value.get('N', '…')}" for change in op.sets)
        return f"writes {op.key['i']['N']}: {changes}"
    return f"reads {getattr(op, 'sort', None) or getattr(op, 'key', None)}"
