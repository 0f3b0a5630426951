"""Every interleaving of a few processes that append to two streams of pages at once (see `exploring`).

What is true is which append each index of each stream was given. In every state of the table an append is in all of its
streams or in none, and in each of them once; and whatever anyone is told agrees with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from epochal.layout.outcomes import refusing_head
from epochal.layout.streams import Batch, accepts
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token
from epochal.pages.batch import Packed, packed
from epochal.pages.frames import time_of
from epochal.pages.items import STREAMS, Page, is_page, read_page, state_of
from epochal.plan.ops import Steps
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Diary, State, apart, one_by_one
from tests.simulation.exploring import Explorer as Exploring
from tests.simulation.exploring import Table as Explored
from tests.simulation.page_actors import PAGES, TABLE, Rule, batch_of, ruled_by

A: Final = "Account-a"
B: Final = "Account-b"
BOTH: Final = (A, B)


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

    def given(self, stream: str) -> Batch:
        """What the layout is given for a stream."""
        return batch_of(
            self.name, stream, events=self.events, unfolds=self.unfolds, clock=self.clock, key=self.key
        )

    def batch(self, stream: str) -> Packed:
        """What a stream gets."""
        return _packed(self, stream)

    @property
    def places(self) -> tuple[str, ...]:
        """All streams that it is in."""
        return self.streams

    @property
    def marks(self) -> frozenset[bytes]:
        """What tells its writes from all others."""
        batch = self.batch(A)
        return frozenset({batch.rest, batch.mark})


@cache
def _packed(move: Move, stream: str) -> Packed:
    """Moves are few, and asked for in every state."""
    return packed(move.given(stream))


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
    told: tuple[Outcome | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Explored):
    """A state of the table, and what is true of it: which append each index of each stream was given."""

    appends: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    pages: dict[str, tuple[Page, ...]] = field(default_factory=dict)
    order: tuple[bytes, ...] = ()  # of the appends


def act(actor: Actor, diary: Diary) -> Steps[None]:
    """All that an actor does."""
    tokens: dict[str, ExpectedVersion] = {}
    for doing in actor.does:
        if isinstance(doing, Prune):
            yield from PAGES.prune(TABLE, doing.stream, doing.before, "0" * 32)
            continue
        fixed = {"any": ANY, "none": NO_STREAM, "first": AtVersion(version=0)}.get(doing.expects)
        expected = tuple(fixed or tokens.get(stream, NO_STREAM) for stream in doing.streams)
        told = yield from _append(doing, expected)
        diary.answers = (*diary.answers, Answer(doing, expected, told))
        tokens |= known_of(dict(zip(doing.streams, told, strict=True)))


def _append(move: Move, expected: tuple[ExpectedVersion, ...]) -> Steps[tuple[Outcome | None, ...]]:
    appends = [(move.given(stream), each) for stream, each in zip(move.streams, expected, strict=True)]
    if len(appends) == 1:
        return ((yield from PAGES.append(TABLE, *appends[0])),)
    return told_of((yield from PAGES.append_all(TABLE, appends, move.key or None)), move.streams)


def told_of(outcome: Outcome, streams: Sequence[str]) -> tuple[Outcome | None, ...]:
    """What is told of each stream; None of one that is not in anybody's way."""
    assert outcome.streams.keys() <= set(streams)
    return tuple(outcome.streams.get(stream) for stream in streams)


def known_of(told: Mapping[str, Any]) -> dict[str, ExpectedVersion]:
    """What a process knows of each stream that it was told of."""
    known: dict[str, ExpectedVersion] = {}
    for stream, each in told.items():
        if isinstance(each, Appended | Conflict):
            known[stream] = each.token or NO_STREAM
    return known


@dataclass(slots=True)
class Explorer(Exploring[Actor, Table]):
    """Explores all that may happen to `actors`, after others have acted alone, one after the other."""

    dies = False
    acts: Callable[[Actor, Diary], Steps[None]] = act

    def first(self) -> Table:
        return Table(tables=MemoryTables({TABLE: STREAMS}))

    def process(self, actor: Actor, diary: Diary) -> Steps[None]:
        return apart(one_by_one(self.acts(actor, diary)))

    def ruled(self, actor: Actor) -> AbstractContextManager[None]:
        return ruled_by(actor.rule)

    def content(self, table: Table) -> str:
        return f"{sorted(map(repr, table.tables.items(TABLE)))} {table.appends} {table.order}"

    def check_write(self, state: State, after: Table, knows: None) -> None:  # noqa: ARG002
        for move in self._moves():
            if move.name in state.denied:
                assert move.batch(A).rest not in after.order, "told that it was not appended, and then it is"

    def told(self, state: State, answers: tuple[Answer, ...]) -> State:
        table = self.tables[state.table]
        for move, expected, told in answers:
            self.met |= {type(each).__name__ for each in told}
            kinds = {type(each) for each in told if each is not None}
            assert len(kinds) == 1, "told one thing of one stream, and another of the other"
            assert Conflict in kinds or None not in told
            for stream, wanted, each in zip(move.streams, expected, told, strict=True):
                check_told(move, stream, wanted, each, table)
            if Undetermined in kinds and move.events:
                held = [index for stream in move.streams for index in _held(move, stream, table)]
                assert not held, "undetermined, though the evidence is there"
            if Conflict in kinds and not move.key:
                state = state._replace(denied=state.denied | {move.name})
        _check_keys(answers)
        return state

    def checked(self, before: Table, tables: MemoryTables) -> Table:
        items = (item for item in tables.items(TABLE) if is_page(item))
        found = sorted(map(read_page, items), key=lambda page: page.index)
        streams = sorted({*before.appends, *(page.stream for page in found)})
        pages = {stream: tuple(page for page in found if page.stream == stream) for stream in streams}
        appends = {stream: _chain(pages[stream], before.appends.get(stream, ())) for stream in streams}
        new = {each for chain in appends.values() for each in chain}.difference(before.order)
        for move in (each for each in self._moves() if each.events):
            times = [appends.get(stream, ()).count(move.batch(A).rest) for stream in move.places]
            assert set(times) <= {0, move.events}, f"{move.name} is in its streams {times} times"
            assert len(set(times)) == 1, f"{move.name} is in one stream, and not in the other"
        return Table(tables=tables, appends=appends, pages=pages, order=(*before.order, *sorted(new)))

    def _moves(self) -> Iterator[Move]:
        for actor in self.everyone:
            yield from (each for each in actor.does if isinstance(each, Move))


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


def check_told(move: Move, stream: str, expected: ExpectedVersion, told: object, table: Table) -> None:
    rest = move.batch(stream).rest
    places = [index for index, each in enumerate(table.appends.get(stream, ())) if each == rest]
    match told:
        case Appended(first=first, version=version, token=token):
            assert places == list(range(first, version)), f"told {first} to {version}, and it is at {places}"
            if isinstance(expected, Token) and not move.key:
                assert first == expected.version, "appended elsewhere than expected"
            if expected is NO_STREAM and not move.key:
                assert first == 0, "appended to a stream that was there"
            _check_token(move, token, table.pages[stream])
        case Conflict():
            assert move.key or not places, f"told of a conflict, and it is at {places}"
            assert not accepts(expected, refusing_head(told)), "in conflict with what was expected"
        case None:
            assert move.key or not places


def _check_keys(answers: Sequence[Answer]) -> None:
    """Whoever was told that it was made is told so again, and of nothing else."""
    made: dict[str, list[tuple[int, int]]] = {}
    for move, _, told in answers:
        written = [(each.first, each.version) for each in told if isinstance(each, Appended)]
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
