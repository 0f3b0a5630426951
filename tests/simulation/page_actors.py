"""What `page_explorer` explores: processes on one stream of pages, each as one generator of requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from epochal.codec.bodies import DIRECT, Encoded
from epochal.layout.key_records import KeyRecord
from epochal.layout.pages import pruning, reading
from epochal.layout.pages.append import append
from epochal.layout.pages.batch import Packed, joined, packed
from epochal.layout.pages.items import Page, state_of
from epochal.layout.pages.keyed import append_once
from epochal.layout.stored import EncodedEvent, EncodedUnfold
from epochal.layout.streams import Batch, PruneProgress, Rejected, Unknown, Written
from epochal.model.times import Ticks, format_ticks
from epochal.model.versions import ANY, NO_STREAM, AtVersion, ExpectedVersion, Token, parse_token
from epochal.plan.ops import Items, Op, Query, Reply, Steps

T = TypeVar("T")

TABLE, STREAM = "streams", "Flight-1"

Expects = Literal["any", "none", "known", "version", "outside", "forged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a page is full, by the version that a write leaves, when a batch does not fit, and whether unfolds that stay
    are left behind: any choice is safe.
    """

    full: frozenset[int] = frozenset()
    tight: frozenset[int] = frozenset()
    refers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An append.

    Attributes:
        expects: `known` is the token of what the process was told last; `outside` the same from its text; `forged` one
            that says that the page is full.
        unfolds: what the state is replaced by; empty for none, None to keep it.
        key: an idempotency key, which others may use too.
        ahead: appends of others that go out in the same write, ahead of it.
    """

    name: str
    expects: Expects = "any"
    events: int = 1
    unfolds: str | None = None
    clock: int = 5
    key: str = ""
    ahead: int = 0

    @property
    def batch(self) -> Packed:
        """What is appended."""
        others = [replace(self, name=f"{self.name}, {k} ahead", ahead=0).batch for k in range(self.ahead)]
        return joined([*others, self._own]) if others else self._own

    @property
    def _own(self) -> Packed:
        fresh = hashlib.sha256(self.name.encode()).digest()
        identity = hashlib.sha256(self.key.encode()).digest() if self.key else fresh
        now, moment = Ticks(self.clock), format_ticks(Ticks(self.clock))
        unfolds = None
        if self.unfolds is not None:
            body = Encoded(DIRECT, self.unfolds.encode())
            unfolds = (
                (EncodedUnfold(version=0, type="U", data=body, timestamp=moment),) if self.unfolds else ()
            )
        return packed(
            Batch(
                stream=STREAM,
                events=(EncodedEvent(type="E", data=Encoded(DIRECT, b""), timestamp=moment),) * self.events,
                unfolds=unfolds,
                etag=fresh[16:].hex(),
                append_id=identity[:16],
                now=now,
                keyed=bool(self.key),
            )
        )


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


Doing = Call | Prune | Delete | Read | Load
Told = Written | Rejected[Page] | Unknown | PruneProgress | Seen | Page | None


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
    """What was done, and what came of it."""

    doing: Doing
    expected: ExpectedVersion
    told: Told


def act(actor: Actor, batches: dict[str, Packed]) -> Steps[tuple[Answer, ...]]:
    """All that an actor does."""
    answers: list[Answer] = []
    for doing in actor.does:
        expected = _expected(doing, answers) if isinstance(doing, Call) else ANY
        told = yield from _do(doing, expected, batches)
        answers.append(Answer(doing, expected, told))
    return tuple(answers)


def _do(doing: Doing, expected: ExpectedVersion, batches: dict[str, Packed]) -> Steps[Told]:
    match doing:
        case Call(name=name, key=key) if key:
            return (yield from append_once(TABLE, batches[name], expected, KeyRecord.of(STREAM, key, 0)))
        case Call(name=name):
            return (yield from append(TABLE, batches[name], expected))
        case Prune(before=before):
            return (yield from pruning.prune(TABLE, STREAM, before, "0" * 32))
        case Delete(leave_open=leave_open):
            return (yield from pruning.delete(TABLE, STREAM, ANY, "1" * 32, leave_open=leave_open))
        case Load():
            return (yield from reading.load_head(TABLE, STREAM))
        case Read(start=start, forward=forward):
            return (yield from _read(start, forward=forward))


def _read(start: int | None, *, forward: bool) -> Steps[Seen | None]:
    cursor = yield from reading.begin(TABLE, STREAM, start, forward=forward)
    if cursor is None:
        return None
    seen: list[tuple[int, bytes]] = []
    while not cursor.at_end:
        part = yield from reading.advance(TABLE, cursor, 1)
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
    if isinstance(told, Rejected):
        token = None if told.head is None else told.head.token()
    else:
        token = told.token if isinstance(told, Written) else None
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


def apart(steps: Steps[T]) -> Steps[T]:
    """The same steps, with their queries taken apart, page by page."""
    try:
        op = next(steps)
        while True:
            reply: Reply = yield from _apart(op) if isinstance(op, Query) else _whole(op)
            op = steps.send(reply)
    except StopIteration as end:
        outcome: T = end.value
        return outcome


def _whole(op: Op) -> Steps[Reply]:
    reply: Reply = yield op
    return reply


def _apart(query: Query) -> Steps[Items]:
    items: list[object] = []
    last = query.after
    while query.limit is None or len(items) < query.limit:
        reply: Items = yield replace(query, limit=1, after=last)
        items += reply.items
        last = reply.last
        if last is None:
            break
    return Items(items=tuple(items), last=last)


def replay(steps: Steps[T], replies: Sequence[Reply]) -> tuple[Op | None, T | None]:
    """The request that steps come to after some replies, or their outcome."""
    try:
        op = next(steps)
        for reply in replies:
            op = steps.send(reply)
    except StopIteration as end:
        return None, end.value
    return op, None
