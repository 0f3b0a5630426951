"""Visiting every state that a small world can get into, each once; with the way that led to one that must not be.

`Explorer` does so for processes that are generators of requests. A generator cannot be copied, but it is a function of
the replies it was sent. So a process is its replies, and a state is the table with the replies of every process; two
pasts that have led a generator to the same place with the same values are one. While the budget lasts an answer may be
lost, a request arrive late, be its sender's last, or be refused with only some of its reasons, or a transaction show in
parts: to plain reads one of its items shows last; until then nobody is told of it, and whatever else it meets waits.

An explorer of one kind of table says what its processes do, what must hold of the table after each write, and what must
hold of what anybody is told.
"""

from __future__ import annotations

import gc
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import GeneratorType
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import pytest

from epochal.errors import CorruptData, EpochalError
from epochal.plan.ops import (
    BatchGet,
    Delete,
    Done,
    Found,
    Get,
    Items,
    Op,
    Pause,
    Put,
    Query,
    Refusal,
    Reply,
    Several,
    Steps,
    Transact,
    Update,
)
from epochal.testing.memory import MemoryTables

S = TypeVar("S")
T = TypeVar("T")

WRITES: Final = (Put, Update, Delete, Transact)
_PLAIN: Final = (Get, BatchGet, Query)

_LOOPED: Final = (
    *(type(iter(each)) for each in ((), [], {}, {}.items(), {}.values(), range(0), set())),
    *(enumerate, filter, map, reversed, zip),
)
"""Iterators that loops are over; each can tell what it has still to give."""

Following = Callable[[S], Iterator[tuple[str, S]]]
"""What may happen in a state, each with the state that it leads to."""


def each_of(worlds: Collection[Any], *, dear: Collection[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by `world`; worlds of many thousand states only run in `make proof`."""
    assert set(dear) < set(worlds)
    return pytest.mark.parametrize(
        "world",
        [pytest.param(each, marks=[pytest.mark.proof] if each in dear else []) for each in worlds],
        ids=lambda world: world.__name__,
    )


def left_out(*cases: Any) -> pytest.MarkDecorator:
    """Parametrize a test by mutants: each with a world, and the message of the failure."""
    return pytest.mark.parametrize(
        ("mutant", "world", "found"), cases, ids=lambda value: getattr(value, "__name__", None)
    )


def is_found_out(
    mutant: Callable[[pytest.MonkeyPatch], None],
    world: Callable[[], Any],
    found: str | None,
    patch: pytest.MonkeyPatch,
) -> None:
    """Check that exploring a world fails without the rule."""
    mutant(patch)
    with pytest.raises((AssertionError, CorruptData), match=found):
        world().explore()


def explore(first: S, steps: Following[S], check: Callable[[S], None] = lambda _: None) -> int:
    """Visit every state and return their number; a failure shows the steps that led to it."""
    came_from: dict[S, tuple[S, str] | None] = {first: None}
    queue = [first]
    while queue:
        state = queue.pop()
        try:
            check(state)
            for what, following in steps(state):
                if following not in came_from:
                    came_from[following] = state, what
                    queue.append(following)
        except AssertionError as failure:
            told: list[str] = []
            before = came_from[state]
            while before is not None:
                state, what = before
                told.append(f"  {what}")
                before = came_from[state]
            raise AssertionError("\n".join([str(failure), *reversed(told)])) from failure
    return len(came_from)


def put(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """Return a tuple with another value at one position."""
    return (*values[:place], value, *values[place + 1 :])


# -------------------------------------------------------------------------------------------------------------- states


class Past(NamedTuple):
    """A process, and the replies it has been sent, by their numbers; `lost` if its request may have been applied."""

    who: int
    replies: tuple[int, ...] = ()
    lost: bool = False


class Budget(NamedTuple):
    """How often each thing may still go wrong.

    Attributes:
        forgotten: an answer is lost for longer than the store remembers a transaction's token.
        partly: a refusal tells only some of its reasons: the others were hidden by a conflict with a transaction.
        torn: a transaction shows in parts.
    """

    unheard: int = 0
    forgotten: int = 0
    late: int = 0
    crashes: int = 0
    partly: int = 0
    torn: int = 0

    def less(self, what: str) -> Budget:
        """Return the budget after one more fault."""
        return self._replace(**{what: getattr(self, what) - 1})


NOTHING: Final = Budget()


class State(NamedTuple):
    """A state of the world.

    Attributes:
        table: by its number.
        pasts: of each process; None at its end.
        on_the_way: late requests, by their numbers, with what their senders knew.
        denied: appends whose writers were told that they were not made.
        ended: somebody was told that there is nothing more to come.
        shown: the table as plain reads see it while a transaction shows in parts, and
        telling: whose it is, and what that is told then.
    """

    table: int
    pasts: tuple[Past | None, ...]
    budget: Budget
    on_the_way: tuple[tuple[int, Any], ...] = ()
    denied: frozenset[Any] = frozenset()
    ended: bool = False
    shown: int | None = None
    telling: tuple[int, int] = (0, 0)


class Standing(NamedTuple):
    """What a past has led to: the request that the process is at, what it knew, and what it has been told so far."""

    op: int | None
    knows: Any
    answers: tuple[Any, ...]


@dataclass(slots=True)
class Diary:
    """What a process writes down beside its generator.

    Attributes:
        knows: what the write that it is at rests on, to judge that write by.
        answers: what it has done, with what came of it.
    """

    knows: Any = None
    answers: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A state of the table; what is true of it is in fields of its heirs."""

    tables: MemoryTables


A = TypeVar("A")
W = TypeVar("W", bound=Table)


@dataclass(slots=True)
class Explorer(ABC, Generic[A, W]):
    """Explores all that may happen to `actors`, after others have acted alone, one after the other."""

    actors: tuple[A, ...]
    before: tuple[A, ...] = ()
    budget: Budget = NOTHING
    tables: list[W] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    performed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    same: dict[Past, Past] = field(default_factory=dict)
    firsts: dict[bytes, Past] = field(default_factory=dict)
    standing: dict[Past, Standing] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    writes: ClassVar[tuple[type, ...]] = WRITES
    """Requests of which an answer may be lost."""
    dies: ClassVar[bool] = True
    """Who is held up may be gone. One who goes on no more is like it, where nobody waits for anybody."""

    # -------------------------------------------------------------------------------- what an explorer says of its own

    @abstractmethod
    def first(self) -> W:
        """Return the table before anything happens."""

    @abstractmethod
    def process(self, actor: A, diary: Diary) -> Steps[Any]:
        """Return all steps of an actor, with its requests taken apart."""

    @abstractmethod
    def checked(self, before: W, tables: Any) -> W:
        """Return the table after a write, after checking what must be true of it."""

    @abstractmethod
    def content(self, table: W) -> str:
        """Return text that distinguishes a state of the table from all others."""

    def ruled(self, actor: A) -> AbstractContextManager[None]:  # noqa: ARG002  most have no rules
        """Return a context in which the library behaves as it does while an actor acts."""
        return nullcontext()

    def check_write(self, state: State, after: W, knows: Any) -> None:
        """Fail unless a write by a process with this knowledge may follow in a state."""

    def told(self, state: State, answers: tuple[Any, ...]) -> State:  # noqa: ARG002
        """Return the state after a process has ended; subclasses check its answers here."""
        return state

    def copied(self, table: W) -> Any:
        """Return a copy of what is stored, to be changed."""
        return table.tables.copy()

    def later(self, table: W) -> W:
        """Return the table after it has forgotten the tokens of transactions."""
        return table

    # ------------------------------------------------------------------------------------------------------- the steps

    @property
    def everyone(self) -> tuple[A, ...]:
        """The actors who act first, then the others."""
        return (*self.before, *self.actors)

    def explore(self) -> int:
        """Visit every state and return their number; a failure shows the steps that led to it."""
        state = State(self._table_number(self.first()), (), NOTHING)
        for who in range(len(self.before)):
            past = self._same(Past(who))
            while (at := self.standing[past]).op is not None:
                table, reply = self._sent(state, at.op, at.knows)
                state, past = state._replace(table=table), self._told(past, reply)
        others = range(len(self.before), len(self.everyone))
        return explore(
            State(state.table, tuple(self._same(Past(who)) for who in others), self.budget), self._steps
        )

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.shown is not None:
            yield from self._while_showing(state)
            return
        for place, (number, knows) in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            table, _ = self._sent(state, number, knows)
            yield f"late: {self._shown(number)}", state._replace(table=table, on_the_way=left)
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
            number = self._at(each).op
            if number is None or not isinstance(self.ops[number], _PLAIN):
                continue
            _, found = self._perform(state.shown or 0, number)
            yield (
                f"{each.who}: {self._shown(number)}, in parts",
                state._replace(pasts=put(state.pasts, other, self._told(each, found))),
            )

    def _go_on(self, state: State, place: int, past: Past) -> Iterator[tuple[str, State]]:
        number, knows, answers = self._at(past)
        if number is None:
            ended = state._replace(pasts=put(state.pasts, place, None))
            yield f"{past.who} is done", self.told(ended, answers)
            return
        what = f"{past.who}: {self._shown(number)}"
        table, reply = self._sent(state, number, knows)
        heard = put(state.pasts, place, self._told(past, reply))
        yield (
            f"{what} {type(self.replies[reply]).__name__}",
            state._replace(table=table, pasts=heard),
        )
        if state.budget == NOTHING or not isinstance(self.ops[number], self.writes):
            return
        for how, following in (
            *self._half_heard(state, place, table, reply),
            *self._unheard(state, place, table),
            *self._late(state, place),
        ):
            yield f"{what}, {how}", following

    # ---------------------------------------------------------------------------------------------- what may go wrong

    def _half_heard(self, state: State, place: int, table: int, reply: int) -> Iterator[tuple[str, State]]:
        past, budget = state.pasts[place], state.budget
        assert past is not None
        at = self._at(past).op or 0
        if budget.torn:
            for part in self._torn(state.table, self.ops[at], table, reply):
                showing = state._replace(table=table, shown=part, telling=(place, reply))
                yield "in parts", showing._replace(budget=budget.less("torn"))
        if budget.partly:
            for part in self._parts(reply):
                pasts = put(state.pasts, place, self._told(past, part))
                yield (
                    "told in part",
                    state._replace(table=table, pasts=pasts, budget=budget.less("partly")),
                )

    def _unheard(self, state: State, place: int, table: int) -> Iterator[tuple[str, State]]:
        budget, unsure, gone = state.budget, *self._either(state, place)
        if budget.unheard:
            left = budget.less("unheard")
            yield "unheard", state._replace(table=table, pasts=unsure, budget=left)
            if budget.forgotten:
                later, left = self._table_number(self.later(self.tables[table])), left.less("forgotten")
                yield "unheard for long", state._replace(table=later, pasts=unsure, budget=left)
        if budget.crashes:
            yield "and dies", state._replace(table=table, pasts=gone, budget=budget.less("crashes"))

    def _late(self, state: State, place: int) -> Iterator[tuple[str, State]]:
        past = state.pasts[place]
        if not state.budget.late or past is None:
            return
        number, knows, _ = self._at(past)
        sent = (*state.on_the_way, (number, knows))
        late = state._replace(on_the_way=sent, budget=state.budget.less("late"))
        unsure, gone = self._either(state, place)
        yield "held up", late._replace(pasts=unsure)
        if self.dies:
            yield "held up, and dies", late._replace(pasts=gone)

    def _either(self, state: State, place: int) -> tuple[tuple[Past | None, ...], tuple[Past | None, ...]]:
        """Processes, one of which does not know whether its request was applied; or is no more."""
        past = state.pasts[place]
        assert past is not None
        return put(state.pasts, place, past._replace(lost=True)), put(state.pasts, place, None)

    # ---------------------------------------------------------------------------------------- the generators, the table

    def _sent(self, state: State, number: int, knows: Any) -> tuple[int, int]:
        """Return the table after a request, and the reply."""
        table, reply = self._perform(state.table, number)
        if table != state.table:
            self.check_write(state, self.tables[table], knows)
        return table, reply

    def _perform(self, before: int, number: int) -> tuple[int, int]:
        if (before, number) not in self.performed:
            op, table, after = self.ops[number], self.tables[before], before
            tables = self.copied(table) if isinstance(op, WRITES) else table.tables
            reply = tables.execute(op)
            if isinstance(op, WRITES) and not isinstance(reply, Refusal):
                after = self._table_number(self.checked(table, tables))
            self.performed[before, number] = after, self._number(repr(reply), self.replies, reply)
        return self.performed[before, number]

    def _table_number(self, table: W) -> int:
        return self._number(self.content(table), self.tables, table)

    def _torn(self, before: int, op: Op, after: int, reply: int) -> Iterator[int]:
        """Yield the table after a transaction, without each of its writes in turn."""
        if not isinstance(op, Transact) or not isinstance(self.replies[reply], Done):
            return
        for write in op.writes:
            if not isinstance(write, Put | Update):
                continue
            item = write.item if isinstance(write, Put) else write.key
            key = {name: item[name] for name in ("p", "i")}
            found = self.tables[before].tables.execute(Get(table=write.table, key=key))
            assert isinstance(found, Found)
            tables = self.copied(self.tables[after])
            if found.item is None:
                tables.execute(Delete(table=write.table, key=key))
            else:
                tables.execute(Put(table=write.table, item=found.item))
            hidden = replace(self.tables[after], tables=tables)
            yield self._number(f"shown: {self.content(hidden)}", self.tables, hidden)

    def _parts(self, number: int) -> Iterator[int]:
        """Yield the possible parts of a refusal with several reasons: each reason alone."""
        reply = self.replies[number]
        if not isinstance(reply, Refusal) or sum(reply.failed) < 2:
            return
        for kept in (place for place, failed in enumerate(reply.failed) if failed):
            items = tuple(item if place == kept else None for place, item in enumerate(reply.items))
            failed = tuple(place == kept for place in range(len(reply.failed)))
            part = replace(reply, items=items, failed=failed)
            yield self._number(repr(part), self.replies, part)

    def _told(self, past: Past, number: int) -> Past:
        """Return a process that has received one more reply."""
        reply = self.replies[number]
        if past.lost and isinstance(reply, Refusal):
            marked = replace(reply, ambiguous=True)
            number = self._number(repr(marked), self.replies, marked)
        return self._same(Past(past.who, (*past.replies, number)))

    def _at(self, past: Past) -> Standing:
        return self.standing[past._replace(lost=False) if past.lost else past]

    def _shown(self, number: int) -> str:
        if number not in self.words:
            self.words[number] = shown(self.ops[number])
        return self.words[number]

    def _same(self, past: Past) -> Past:
        """Return the first past that led to the same state of the generator, whatever replies it received."""
        if past not in self.same:
            actor, diary = self.everyone[past.who], Diary()
            steps = self.process(actor, diary)
            with self.ruled(actor):
                op = replay(steps, [self.replies[number] for number in past.replies])
            key = f"{past.who} {op} {diary} {list(frames(steps))}"
            first = self.firsts.setdefault(_digest(key), past)
            self.same[past] = first
            number = None if op is None else self._number(repr(op), self.ops, op)
            self.standing[first] = Standing(number, diary.knows, diary.answers)
        return self.same[past]

    def _number(self, key: str, values: list[T], value: T) -> int:
        digest = _digest(f"{id(values)} {key}")
        if digest not in self.numbers:
            self.numbers[digest] = len(values)
            values.append(value)
        return self.numbers[digest]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


# ---------------------------------------------------------------------------------------------------------- generators


def frames(steps: Any) -> Iterator[str]:
    """Where a generator stands and with what, and so those that it waits for or drives.

    What a loop has still to go through is no variable: it is among what the generator holds besides.
    """
    while steps is not None and steps.gi_frame is not None:
        frame = steps.gi_frame
        held = {name: value for name, value in frame.f_locals.items() if name not in ("self", "diary")}
        loops = [_left(each) for each in gc.get_referents(steps) if isinstance(each, _LOOPED)]
        yield re.sub(" at 0x[0-9a-f]+", "", f"{frame.f_code.co_qualname} {frame.f_lasti} {held} {loops}")
        for value in held.values():
            if isinstance(value, GeneratorType):
                yield from frames(value)
        steps = steps.gi_yieldfrom


def _left(iterator: Any) -> list[Any]:
    """Return the remaining values of an iterator without consuming them, or those of the iterators that it is over."""
    kind, *about = iterator.__reduce__()
    parts = [each for part in about for each in (part if isinstance(part, tuple) else (part,))]
    return [kind.__name__, *(_left(each) if isinstance(each, _LOOPED) else each for each in parts)]


def replay(steps: Steps[Any], replies: Sequence[Reply]) -> Op | None:
    """Return the request that steps reach after some replies; None at their end."""
    try:
        op = next(steps)
        for reply in replies:
            op = steps.send(reply)
    except StopIteration:
        return None
    return op


def one_by_one(steps: Steps[T]) -> Steps[T]:
    """Perform the same steps, with requests of a batch sent one after another."""
    return driven(steps, lambda op: _each_alone(op) if isinstance(op, Several) else None)


def apart(steps: Steps[T]) -> Steps[T]:
    """Perform the same steps, with queries split into pages."""
    return driven(steps, lambda op: _by_pages(op) if isinstance(op, Query) else None)


def driven(steps: Steps[T], instead: Callable[[Op | Several], Steps[Any] | None]) -> Steps[T]:
    """The same steps; what is asked for instead of an operation, where there is anything, is asked for by steps."""
    try:
        op = next(steps)
        while True:
            if isinstance(op, Pause):  # in any order that there may be, others go first or not
                op = steps.send(None)
                continue
            other = instead(op)
            try:
                # A variable, so that it tells states apart: what it is read into may be between two of them.
                reply = (yield op) if other is None else (yield from other)
            except EpochalError as error:
                op = steps.throw(error)
            else:
                op = steps.send(reply)
    except StopIteration as end:
        outcome: T = end.value
        return outcome


def _each_alone(op: Several) -> Steps[list[Reply]]:
    replies: list[Reply] = []
    for each in op.ops:
        replies.append((yield each))  # noqa: PERF401  a generator cannot be listed
    return replies


def _by_pages(query: Query) -> Steps[Items]:
    items: list[Any] = []
    last = query.after
    while query.limit is None or len(items) < query.limit:
        reply: Items = yield replace(query, limit=1, after=last)
        items += reply.items
        last = reply.last
        if last is None:
            break
    return Items(items=tuple(items), last=last)


def shown(op: Op) -> str:
    """Return a request in a word or two."""
    if isinstance(op, Transact):
        return " and ".join(shown(write) for write in op.writes)
    if isinstance(op, Update):
        changes = ", ".join(f"{change.name}={change.value.get('N', '…')}" for change in op.sets)
        return f"writes {_place(op.key)}: {changes}"
    if isinstance(op, WRITES):
        return f"{type(op).__name__} {_place(getattr(op, 'item', None) or op.key)}"  # type: ignore[union-attr]
    about = (getattr(op, name, None) for name in ("sort", "keys", "key", "partition"))
    return f"{type(op).__name__} {next(filter(None, about), '')}"


def _place(item: Any) -> str:
    return " ".join(str(value) for name in ("p", "i", "pk", "sk") for value in item.get(name, {}).values())
