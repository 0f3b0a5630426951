"""Every interleaving of a few processes that append to two streams of pages at once: the real generators.

As in `page_explorer` an actor is the replies that it was sent, and a state is the table with every actor's replies.
While the budget lasts an answer may be lost, or a request arrive late.

What is true is which append each index of each stream was given. In every state of the table an append is in all of its
streams or in none, and in each of them once; and whatever anyone is told agrees with that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from epochal.codec.bodies import DIRECT, Encoded
from epochal.layout.expectations import accepts
from epochal.layout.key_records import KeyRecord
from epochal.layout.pages import pruning
from epochal.layout.pages.append import append
from epochal.layout.pages.batch import Packed, packed
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.items import STREAMS, Page, is_page, read_page, state_of
from epochal.layout.pages.several import append_all
from epochal.layout.stored import EncodedEvent, EncodedUnfold
from epochal.layout.streams import Batch, Rejected, Results, Unknown, Written
from epochal.model.times import Ticks, format_ticks
from epochal.model.versions import ANY, NO_STREAM, AtVersion, ExpectedVersion, Token
from epochal.plan.ops import Op, Put, Refusal, Reply, Several, Steps, Transact, Update
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Numbering, Past, explore, put
from tests.simulation.index_explorer import frames
from tests.simulation.page_actors import TABLE, Rule, apart, replay
from tests.simulation.page_explorer import NOTHING, Budget, ruled_by

A: Final = "Account-a"
B: Final = "Account-b"
BOTH: Final = (A, B)

_WRITES = (Put, Update, Transact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An append to some streams; to one alone it is an ordinary one.

    Attributes:
        expects: `known` is what the process was told of each stream last.
        unfolds: these alone, where there are no events.
        key: an idempotency key, which others may use too.
    """

    name: str
    expects: Literal["any", "none", "known", "first"] = "any"
    streams: tuple[str, ...] = BOTH
    events: int = 1
    unfolds: str | None = None
    clock: int = 5
    key: str = ""

    def batch(self, stream: str) -> Packed:
        """What a stream gets."""
        fresh, now = hashlib.sha256(self.name.encode()).digest(), Ticks(self.clock)
        identity = hashlib.sha256(self.key.encode()).digest() if self.key else fresh
        moment, unfolds = format_ticks(now), None
        if self.unfolds is not None:
            data = Encoded(DIRECT, self.unfolds.encode())
            unfolds = (EncodedUnfold(version=0, type="U", data=data, timestamp=moment),)
        event = EncodedEvent(type="E", data=Encoded(DIRECT, b""), timestamp=moment)
        return packed(
            Batch(
                stream=stream,
                events=(event,) * self.events,
                unfolds=unfolds,
                etag=fresh[16:].hex(),
                append_id=identity[:16],
                now=now,
                keyed=bool(self.key),
            )
        )

    @property
    def places(self) -> tuple[str, ...]:
        """All streams that it is in."""
        return self.streams

    @property
    def marks(self) -> frozenset[bytes]:
        """What tells its writes from all others."""
        batch = self.batch(A)
        return frozenset({batch.rest, batch.mark})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """Everything of a stream below an index goes."""

    stream: str
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A process that does one thing after the other."""

    does: tuple[Move | Prune, ...]
    rule: Rule = field(default_factory=Rule)


class Answer(NamedTuple):
    """What was done, and what came of it."""

    move: Move
    expected: tuple[ExpectedVersion, ...]
    told: Results[Page]


class State(NamedTuple):
    """A state of the world. `denied` are the appends whose writers were told that they were not made."""

    table: int
    actors: tuple[Past | None, ...]
    budget: Budget
    on_the_way: tuple[int, ...] = ()
    denied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A state of the table, and what is true of it: which append each index of each stream was given."""

    tables: MemoryTables
    appends: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    pages: dict[str, tuple[Page, ...]] = field(default_factory=dict)
    order: tuple[bytes, ...] = ()  # of the appends


def act(actor: Actor) -> Steps[tuple[Answer, ...]]:
    """All that an actor does."""
    answers: list[Answer] = []
    tokens: dict[str, ExpectedVersion] = {}
    for doing in actor.does:
        if isinstance(doing, Prune):
            yield from pruning.prune(TABLE, doing.stream, doing.before, "0" * 32)
            continue
        fixed = {"any": ANY, "none": NO_STREAM, "first": AtVersion(version=0)}.get(doing.expects)
        expected = tuple(fixed or tokens.get(stream, NO_STREAM) for stream in doing.streams)
        told = yield from _append(doing, expected)
        answers.append(Answer(doing, expected, told))
        tokens |= _tokens(doing, told)
    return tuple(answers)


def _append(move: Move, expected: tuple[ExpectedVersion, ...]) -> Steps[Results[Page]]:
    appends = [(move.batch(stream), each) for stream, each in zip(move.streams, expected, strict=True)]
    if len(appends) == 1:
        return ((yield from append(TABLE, *appends[0])),)
    if move.key:
        record = KeyRecord.of_all(move.streams, move.key, 0)
        return (yield from append_all(TABLE, appends, record))
    return (yield from append_all(TABLE, appends))


def _tokens(move: Move, told: Results[Page]) -> dict[str, ExpectedVersion]:
    """What the process knows of each stream that it was told of."""
    known: dict[str, ExpectedVersion] = {}
    for stream, each in zip(move.streams, told, strict=True):
        if isinstance(each, Written):
            known[stream] = each.token
        elif isinstance(each, Rejected):
            known[stream] = NO_STREAM if each.head is None else each.head.token()
    return known


def one_by_one(steps: Steps[tuple[Answer, ...]]) -> Steps[tuple[Answer, ...]]:
    """The same steps; what they ask for together is asked for one after the other."""
    try:
        op = next(steps)
        while True:
            replies: list[Reply] = []
            for each in op.ops if isinstance(op, Several) else (op,):
                replies.append((yield each))  # noqa: PERF401  a generator cannot be listed
            op = steps.send(replies if isinstance(op, Several) else replies[0])
    except StopIteration as end:
        outcome: tuple[Answer, ...] = end.value
        return outcome


@dataclass(slots=True)
class Explorer(Numbering):
    """Explores all that may happen to `actors`, after another has acted alone."""

    actors: tuple[Actor, ...]
    before: Actor = field(default_factory=lambda: Actor(does=()))
    budget: Budget = NOTHING
    acts: Callable[[Actor], Steps[tuple[Answer, ...]]] = act
    tables: list[Table] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    performed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    same: dict[Past, Past] = field(default_factory=dict)
    standing: dict[Past, tuple[int | None, tuple[Answer, ...] | None]] = field(default_factory=dict)
    firsts: dict[str, Past] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def explore(self) -> int:
        """Visit every state; how many there are. Fails with the way that led to one that must not be."""
        first = self._number("", self.tables, Table(tables=MemoryTables({TABLE: STREAMS})))
        actors, self.actors = self.actors, (self.before,)
        past = self._same(Past(0))
        while (number := self.standing[past][0]) is not None:
            first, reply = self._perform(first, number)
            past = self._told(past, reply)
        self.actors = actors
        self.same.clear()
        self.firsts.clear()
        pasts = tuple(self._same(Past(who)) for who in range(len(actors)))
        return explore(State(first, pasts, self.budget), self._steps)

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        for place, number in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            table, _ = self._perform(state.table, number)
            yield f"late: {_shown(self.ops[number])}", self._moved(state, table)._replace(on_the_way=left)
        for who, past in enumerate(state.actors):
            if past is not None:
                yield from self._go_on(state, who, past)

    def _go_on(self, state: State, who: int, past: Past) -> Iterator[tuple[str, State]]:
        number, answers = self.standing[past._replace(lost=False)]
        if number is None:
            yield f"{who} is done", self._finish(state, who, answers or ())
            return
        what, budget = f"{who}: {_shown(self.ops[number])}", state.budget
        table, reply = self._perform(state.table, number)
        moved = self._moved(state, table)
        heard = put(state.actors, who, self._told(past, reply))
        yield f"{what} {type(self.replies[reply]).__name__}", moved._replace(actors=heard)
        if not isinstance(self.ops[number], _WRITES):
            return
        unsure = put(state.actors, who, past._replace(lost=True))
        if budget.unheard:
            yield f"{what}, unheard", moved._replace(actors=unsure, budget=budget.less("unheard"))
        if budget.late:
            late = state._replace(on_the_way=(*state.on_the_way, number), budget=budget.less("late"))
            yield f"{what}, held up", late._replace(actors=unsure)

    def _moved(self, state: State, table: int) -> State:
        """The state with another table, if that may follow."""
        made = self.tables[table].order
        for actor in self.actors:
            for move in actor.does:
                if isinstance(move, Move) and move.name in state.denied:
                    assert move.batch(A).rest not in made, "told that it was not appended, and then it is"
        return state._replace(table=table)

    # ------------------------------------------------------------------------------------------- what anybody was told

    def _finish(self, state: State, who: int, answers: tuple[Answer, ...]) -> State:
        table, state = self.tables[state.table], state._replace(actors=put(state.actors, who, None))
        for move, expected, told in answers:
            self.met |= {type(each).__name__ for each in told}
            kinds = {type(each) for each in told if each is not None}
            assert len(kinds) == 1, "told one thing of one stream, and another of the other"
            assert Rejected in kinds or None not in told
            for stream, wanted, each in zip(move.streams, expected, told, strict=True):
                _check_told(move, stream, wanted, each, table)
            if Unknown in kinds and move.events:
                held = [index for stream in move.streams for index in _held(move, stream, table)]
                assert not held, "undetermined, though the evidence is there"
            if Rejected in kinds and not move.key:
                state = state._replace(denied=state.denied | {move.name})
        _check_keys(answers)
        return state

    # ---------------------------------------------------------------------------------------- the generators, and table

    def _perform(self, before: int, number: int) -> tuple[int, int]:
        """What a request makes of the table, and the reply to it."""
        if (before, number) not in self.performed:
            op, table, after = self.ops[number], self.tables[before], before
            tables = table.tables.copy() if isinstance(op, _WRITES) else table.tables
            reply = tables.execute(op)
            if isinstance(op, _WRITES) and not isinstance(reply, Refusal):
                made = self._checked(table, tables)
                content = f"{sorted(map(repr, tables.items(TABLE)))} {made.appends} {made.order}"
                after = self._number(content, self.tables, made)
            self.performed[before, number] = after, self._number(repr(reply), self.replies, reply)
        return self.performed[before, number]

    def _checked(self, before: Table, tables: MemoryTables) -> Table:
        """The table after a write, if all of it is true."""
        items = (item for item in tables.items(TABLE) if is_page(item))
        found = sorted(map(read_page, items), key=lambda page: page.index)
        streams = sorted({*before.appends, *(page.stream for page in found)})
        pages = {stream: tuple(page for page in found if page.stream == stream) for stream in streams}
        appends = {stream: _chain(pages[stream], before.appends.get(stream, ())) for stream in streams}
        new = {each for chain in appends.values() for each in chain}.difference(before.order)
        for actor in (*self.actors, self.before):
            for move in (each for each in actor.does if isinstance(each, Move) and each.events):
                times = [appends.get(stream, ()).count(move.batch(A).rest) for stream in move.places]
                assert set(times) <= {0, move.events}, f"{move.name} is in its streams {times} times"
                assert len(set(times)) == 1, f"{move.name} is in one stream, and not in the other"
        return Table(tables=tables, appends=appends, pages=pages, order=(*before.order, *sorted(new)))

    def _same(self, past: Past) -> Past:
        if past not in self.same:
            actor = self.actors[past.who]
            inner = self.acts(actor)
            middle = one_by_one(inner)
            outer = apart(middle)
            with ruled_by(actor.rule):
                op, answers = replay(outer, [self.replies[number] for number in past.replies])
            left = [list(frames(each)) for each in (outer, middle, inner)]
            first = self.firsts.setdefault(_digest(f"{past.who} {op} {answers} {left}"), past)
            self.same[past] = first
            self.standing[first] = None if op is None else self._number(repr(op), self.ops, op), answers
        return self.same[past]


def _chain(pages: Sequence[Page], before: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """What each index of a stream was given, if its pages follow each other and agree with what was."""
    appends, follows, latest = list(before), 0, -1
    for page in pages:
        assert page.index == follows, (
            f"a page at {page.index}, and one that ends at {follows}: a fork, or a hole"
        )
        at, follows = page.base, page.version
        for frame in page.frames:
            assert time_of(frame.stamp) > latest, "stamps do not increase"
            latest = time_of(frame.stamp)
            for index in range(at, at + frame.count):
                if index == len(appends):
                    appends.append(frame.stamp[8:])
                assert appends[index] == frame.stamp[8:], f"index {index} was given to another append: a fork"
            at += frame.count
    assert follows == len(appends), f"a version of {follows} after {len(appends)} events"
    return tuple(appends)


def _check_told(move: Move, stream: str, expected: ExpectedVersion, told: object, table: Table) -> None:
    rest = move.batch(stream).rest
    places = [index for index, each in enumerate(table.appends.get(stream, ())) if each == rest]
    match told:
        case Written(first=first, version=version, token=token):
            assert places == list(range(first, version)), f"told {first} to {version}, and it is at {places}"
            if isinstance(expected, Token) and not move.key:
                assert first == expected.version, "appended elsewhere than expected"
            if expected is NO_STREAM and not move.key:
                assert first == 0, "appended to a stream that was there"
            _check_token(move, token, table.pages[stream])
        case Rejected(head=head):
            assert move.key or not places, f"told of a conflict, and it is at {places}"
            assert not accepts(expected, head), "in conflict with what was expected"
        case None:
            assert move.key or not places


def _check_keys(answers: Sequence[Answer]) -> None:
    """Whoever was told that it was made is told so again, and of nothing else."""
    made: dict[str, list[tuple[int, int]]] = {}
    for move, _, told in answers:
        written = [(each.first, each.version) for each in told if isinstance(each, Written)]
        if move.key in made:
            assert written == made[move.key], "a repeat is told something else than the first"
        if move.key and written:
            made[move.key] = written


def _check_token(move: Move, token: Token, pages: Sequence[Page]) -> None:
    """It is of what the append left, and of nothing that another has written since."""
    state = state_of(token.etag or "")
    assert state is not None
    page = next(page for page in pages if page.index == state.index)
    if (page.version, page.time) == (token.version, state.time):
        assert page.latest[8:] in move.marks, "the token is of what another has left"
        assert state.full == page.full, "the token does not say whether the page is full"


def _held(move: Move, stream: str, table: Table) -> list[int]:
    rest = move.batch(stream).rest
    return [
        page.index
        for page in table.pages.get(stream, ())
        if any(each.stamp[8:] == rest for each in page.frames)
    ]


def _shown(op: Op) -> str:
    if isinstance(op, Transact):
        return " and ".join(map(_shown, op.writes))
    if isinstance(op, Put):
        return f"begins {op.item['p']['S']} {op.item['i']['N']}"
    if isinstance(op, Update):
        changes = ", ".join(f"{change.name}={change.value.get('N', '…')}" for change in op.sets)
        return f"writes {op.key['p']['S']} {op.key['i']['N']}: {changes}"
    return f"reads {getattr(op, 'partition', None) or getattr(op, 'keys', None) or getattr(op, 'key', None)}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
