"""What `page_explorer` explores: processes on one stream of pages, each as one generator of requests.

They go through the layout as the store does. Only appends that go out together, each on what it expects, have no name
there: the store sends them on whatever the stream is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

import pytest

from epochal.codec.bodies import DIRECT, Encoded
from epochal.layout.outcomes import refusing_head
from epochal.layout.queries import IdTaken
from epochal.layout.streams import (
    IDENTIFIED,
    Batch,
    EncodedEvent,
    EncodedUnfold,
    PruneProgress,
)
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.moments import Ticks, format_ticks
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.tokens import Token, parse_token
from epochal.pages import writes
from epochal.pages.appending import append
from epochal.pages.batch import Packed, joined, packed
from epochal.pages.items import Page, state_of
from epochal.pages.joined import append_whole
from epochal.pages.layout import Pages
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Steps
from tests.simulation.exploring import Diary

TABLE, STREAM = "streams", "Flight-1"
PAGES: Final = Pages()

Expects = Literal["any", "none", "known", "version", "outside", "forged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a page is full, by the version that a write leaves, when a batch does not fit, and whether unfolds that stay
    are left behind: any choice is safe.
    """

    full: frozenset[int] = frozenset()
    tight: frozenset[int] = frozenset()
    refers: bool = False


@contextmanager
def ruled_by(rule: Rule) -> Iterator[None]:
    """Meanwhile pages are full when an actor's rule says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "is_full", lambda token, *_, **__: token.version in rule.full)
        patch.setattr(writes, "REFER_FROM", 0 if rule.refers else ITEM_BYTES)
        patch.setattr(writes, "fits", lambda before, _growth: before.version not in rule.tight)
        yield


def batch_of(
    name: str,
    stream: str,
    *,
    events: int = 1,
    unfolds: str | None = None,
    clock: int = 5,
    key: str = "",
    ids: Sequence[int] = (),
    above: int = 0,
) -> Batch:
    """An append, whose identity is its name, or its key; with `ids` its events are these."""
    fresh, moment = hashlib.sha256(name.encode()).digest(), format_ticks(Ticks(clock))
    identity = hashlib.sha256(key.encode()).digest() if key else fresh
    states = None
    if unfolds is not None:
        body = Encoded(DIRECT, unfolds.encode())
        states = (EncodedUnfold(version=0, type="U", data=body, timestamp=moment),) if unfolds else ()
    event = EncodedEvent(type="E", data=Encoded(DIRECT, b""), timestamp=moment)
    named = tuple(event._replace(label=IDENTIFIED + each.to_bytes(16, "big")) for each in ids)
    return Batch(
        stream=stream,
        events=named or (event,) * events,
        unfolds=states,
        etag=fresh[16:].hex(),
        append_id=identity[:16],
        now=Ticks(clock),
        keyed=bool(key),
        above=Ticks(above),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An append.

    Attributes:
        expects: `known` is the token of what the process was told last; `outside` the same from its text; `forged` one
            that says that the page is full.
        unfolds: what the state is replaced by; empty for none, None to keep it.
        key: an idempotency key, which others may use too.
        ahead: appends of others that go out in the same write, ahead of it.
        exactly: they go out on exactly what is known, and not again on what comes back.
        ids: of its events.
        above: the moment that the key tells.
    """

    name: str
    expects: Expects = "any"
    events: int = 1
    unfolds: str | None = None
    clock: int = 5
    key: str = ""
    ahead: int = 0
    exactly: bool = False
    ids: tuple[int, ...] = ()
    above: int = 0

    @property
    def given(self) -> Batch:
        """What the layout is given."""
        return batch_of(
            self.name,
            STREAM,
            events=self.events,
            unfolds=self.unfolds,
            clock=self.clock,
            key=self.key,
            ids=self.ids,
            above=self.above,
        )

    @property
    def batch(self) -> Packed:
        """What is appended."""
        if not self.ahead:
            return packed(self.given)
        others = [replace(self, name=f"{self.name}, {k} ahead", ahead=0).batch for k in range(self.ahead)]
        return joined([*others, packed(self.given)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """Everything below an index goes."""

    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """The stream ends, or begins anew."""

    leave_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Every event from one on."""

    start: int | None = None
    forward: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The last page, with the unfolds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a read has shown: each event's index and append, and where the stream ended."""

    events: tuple[tuple[int, bytes], ...]
    version: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Some of an append's ids are there, and not all in a row."""


Doing = Call | Prune | Delete | Read | Load
Told = Outcome | PruneProgress | Seen | Page | Taken | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A process that does one thing after the other."""

    does: tuple[Doing, ...]
    rule: Rule = field(default_factory=Rule)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its appends."""
        return tuple(each for each in self.does if isinstance(each, Call))


class Answer(NamedTuple):
    """What was done, and what came of it; a conflict with its `head`, which tells it from others."""

    doing: Doing
    expected: ExpectedVersion
    told: Told
    head: Page | None = None


def act(actor: Actor, diary: Diary) -> Steps[None]:
    """All that an actor does."""
    for doing in actor.does:
        expected = _expected(doing, diary.answers) if isinstance(doing, Call) else ANY
        diary.knows = actor, expected
        told = yield from _do(doing, expected)
        head = refusing_head(told) if isinstance(told, Conflict) else None
        diary.answers = (*diary.answers, Answer(doing, expected, told, head))


def _do(doing: Doing, expected: ExpectedVersion) -> Steps[Told]:
    match doing:
        case Call(exactly=True):
            known = expected if isinstance(expected, Token) else None
            return (yield from append_whole(TABLE, doing.batch, known))
        case Call(ahead=ahead) if ahead:
            return (yield from append(TABLE, doing.batch, expected))
        case Call(key=key):
            try:
                return (yield from PAGES.append(TABLE, doing.given, expected, key or None))
            except IdTaken:
                return Taken()
        case Prune(before=before):
            return (yield from PAGES.prune(TABLE, STREAM, before, "0" * 32))
        case Delete(leave_open=leave_open):
            return (yield from PAGES.delete(TABLE, STREAM, ANY, "1" * 32, leave_open=leave_open))
        case Load():
            return (yield from PAGES.load(TABLE, STREAM))
        case Read(start=start, forward=forward):
            return (yield from _read(start, forward=forward))


def _read(start: int | None, *, forward: bool) -> Steps[Seen | None]:
    cursor = yield from PAGES.begin(TABLE, STREAM, start, forward=forward)
    if cursor is None:
        return None
    seen: list[tuple[int, bytes]] = []
    while not cursor.at_end:
        part = yield from PAGES.advance(TABLE, cursor, 1)
        for span in part.spans:
            found = [
                (span.base + k, (span.read(k).append_id or b"")[8:]) for k in range(span.next - span.base)
            ]
            seen += found if forward else reversed(found)
        cursor = part.cursor
    return Seen(tuple(seen), cursor.head.version)


def _expected(call: Call, answers: Sequence[Answer]) -> ExpectedVersion:
    if call.expects in ("any", "none"):
        return ANY if call.expects == "any" else NO_STREAM
    told = answers[-1].told if answers else None
    token = told.token if isinstance(told, Appended | Conflict) else None
    if token is None:
        return NO_STREAM
    if call.expects == "version":
        return AtVersion(version=token.version)
    if call.expects == "forged":
        token = _forged(token)
    return token if call.expects == "known" else parse_token(token.text())


def _forged(token: Token) -> Token:
    state = state_of(token.etag or "")
    return token if state is None else replace(token, etag=replace(state, full=True).etag())
