"""One seed of tagged events: processes that append, with and without conditions, repeat appends, and read, while
requests are throttled, lost, unanswered or late, clocks disagree, and processes die.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar

from epochal.errors import InvalidInput, Unavailable
from epochal.model.events import Event, Recorded
from epochal.model.positions import Position
from epochal.model.tag_answers import Down, Rest, Seen, parse_down
from epochal.model.tags import Query, QueryItem, type_tag
from epochal.plan.ops import Execute, Op, Refusal, Reply
from epochal.store.driver import Patience
from epochal.store.tagged import TaggedStore
from tests.simulation.dcb_history import Attempt, History, Known, Read
from tests.simulation.dcb_world import World, piecemeal
from tests.simulation.gradual import awaiting
from tests.simulation.histories import Simulation, played

TAGS = ("a:1", "a:2", "b:1")
TYPES = ("T", "U")
SKEW = 10**12
"""Nanoseconds that a clock may be wrong by, either way."""

HURRIED = Patience(seconds=0.0)


@dataclass(slots=True)
class Tagged(Simulation):
    """Processes at work on a few tags.

    Attributes:
        data: of an append's next event.
    """

    world: World = field(default_factory=World)
    data: Callable[[random.Random], str] = lambda _: "{}"
    history: History = field(init=False)
    known: list[Known] = field(default_factory=list)

    requests: ClassVar[int] = 80

    def __post_init__(self) -> None:
        self.prepare()
        if self.seed % 2:
            self.world.tables.gradually(random.Random(self.seed))

    def prepare(self) -> None:
        """Choose what else differs from seed to seed."""
        self.world.type_heads = self.seed % 4 == 0
        self.world.ties = self.seed % 5 == 2
        self.history = History(self.world)

    def calm(self) -> None:
        """Complete all transactions under way."""
        self.world.tables.settle()

    def check(self) -> None:
        """Check every promise, on what is stored and on what was answered."""
        self.history.check()
        self.check_listing(random.Random(self.seed))

    def check_listing(self, luck: random.Random) -> None:
        """Check that a reader who lists all events, and continues wherever a listing stopped, gets each once."""
        listings = self.world.store("lister").listings
        found, since = list[str](), None
        while part := list(listings.all_events(since=since, max_count=luck.randint(1, 3))):
            found += [event.id for event in part]
            since = part[-1].place
        assert sorted(found) == sorted(event.id for event in self.world.events()), "lost by a listing"

    def execute(self, luck: random.Random, rate: float) -> Execute:
        """Return an executor that at times lets ten minutes pass, or shortens a refusal that meets a transaction."""

        luck = random.Random(luck.random())

        def perform(op: Op) -> Reply:
            if luck.random() < rate / 4:
                self.world.tables.forget_tokens()
            reply = self.world.tables.execute(op)
            if isinstance(reply, Refusal) and luck.random() < rate:
                return _partly(reply, luck)
            return reply

        return perform

    def store(self, luck: random.Random, name: str, execute: Execute) -> TaggedStore:
        skew, hurried = luck.choice((0, SKEW, -SKEW)), luck.random() < 0.3
        network = awaiting(piecemeal(execute), self.world.tables)
        store = self.world.store(name, network, skew)
        return replace(store, driver=replace(store.driver, patience=HURRIED)) if hurried else store

    def act(self, luck: random.Random, store: TaggedStore) -> None:
        match luck.choice(
            ("append", "decide", "decide", "decide", "early", "again", "foreign", "narrow", "read", "read")
        ):
            case "append":
                self._append(luck, store, Attempt(events=self._events(luck)))
            case "decide":
                self._decide(luck, store, None)
            case "early":
                attempt = Attempt(events=self._events(luck), query=self._query(luck))
                self._decide(luck, store, self._append(luck, store, attempt))
            case "again" if self.history.attempts:
                attempt = replace(luck.choice(self.history.attempts), outcome=None)
                self._decide(luck, store, self._append(luck, store, attempt))
            case "narrow" if self.known:
                self._decide(luck, store, self._narrowed(luck, luck.choice(self.known)))
            case "foreign" if self.known:
                self._mistake(luck, store, luck.choice(self.known))
            case _:
                after = luck.choice([None, *self.known])
                self._read(luck, store, self._query(luck) if after is None else after.query, after)

    def _decide(self, luck: random.Random, store: TaggedStore, known: Known | None) -> None:
        """Append on a known position or on one that is read, and once more on the answer."""
        if known is None and self.known and luck.random() < 0.5:
            known = luck.choice(self.known)
        known = known or self._read(luck, store, self._query(luck), None)
        for _ in range(luck.randint(1, 2)):
            if known is not None:
                attempt = Attempt(events=self._events(luck), query=known.query, known=known)
                known = self._append(luck, store, attempt)

    def _append(self, luck: random.Random, store: TaggedStore, attempt: Attempt) -> Known | None:
        self.history.attempts.append(attempt)
        after = None if attempt.known is None else attempt.known.position
        takes = None if luck.random() < 0.7 else at_most(luck.randint(1, 2))
        try:
            attempt.outcome = store.try_append(
                attempt.events, fail_if=attempt.query, after=after, takes=takes
            )
        except Unavailable:
            return None
        if attempt.query is None:
            return None
        return self._keep(attempt.learned())

    def _mistake(self, luck: random.Random, store: TaggedStore, known: Known) -> None:
        """Append on a position of a read that did not include what the condition fences."""
        query = self._query(luck)
        if all(_is_covered(item, known.position) for item in query.items):
            return
        try:
            with suppress(Unavailable):
                store.try_append(self._events(luck), fail_if=query, after=known.position)
        except InvalidInput:
            return
        raise AssertionError("a position of another query was accepted")

    def _read(
        self, luck: random.Random, store: TaggedStore, query: Query, after: Known | None
    ) -> Known | None:
        acknowledged = self.history.acknowledged()
        position = None if after is None else after.position
        way = luck.choice(("whole", "whole", "pages", "first", "last", "back"))
        try:
            match way:
                case "whole":
                    seen = store.read(query, after=position)
                case "pages":
                    seen = in_pages(store, query, position, luck.randint(1, 3))
                case "first":
                    seen = store.read(query, after=position, limit=luck.randint(1, 3))
                case "last":
                    seen = store.read(query, after=position, limit=luck.randint(1, 3), direction="backward")
                case _:
                    seen = in_pages_back(store, query, position, luck.randint(1, 3))
        except Unavailable:
            return None
        below = self.history.below(query, seen.position) if way in ("last", "back") else None
        read = Read(
            query=query,
            after=after,
            acknowledged=frozenset() if seen.more else acknowledged,
            events=seen.events,
            position=seen.position,
            last=below,
        )
        self.history.reads.append(read)
        if below is None and read.events and luck.random() < 0.4:
            return self._keep(read.learned_of(luck.randrange(len(read.events))))
        return self._keep(read.learned())

    def _narrowed(self, luck: random.Random, known: Known) -> Known:
        """Return the same position with a narrower query: fewer items, further tags, or fewer types."""
        items = []
        for item in luck.sample(known.query.items, luck.randint(1, len(known.query.items))):
            tags = item.tags | frozenset(luck.sample(TAGS, luck.choice((0, 1, 1))))
            types = frozenset(luck.sample(sorted(item.types), 1)) if item.types else item.types
            items.append(
                replace(item, tags=tags, types=types or frozenset(luck.sample(TYPES, luck.choice((0, 1)))))
            )
        return replace(known, query=Query(items=tuple(items)), broader=True)

    def _keep(self, known: Known) -> Known:
        self.known = [*self.known[-5:], known]
        return known

    def _events(self, luck: random.Random) -> tuple[Event, ...]:
        return tuple(
            Event(
                type=luck.choice(TYPES),
                data=self.data(luck).encode(),
                tags=tuple(luck.sample(TAGS, luck.choice((0, 1, 1, 2, 2, 3)))),
                id=str(uuid.UUID(int=luck.getrandbits(128), version=4)),
            )
            for _ in range(luck.choice((1, 1, 2, 3)))
        )

    def _query(self, luck: random.Random) -> Query:
        return Query(items=tuple(self._item(luck) for _ in range(luck.choice((1, 1, 2, 2, 3)))))

    def _item(self, luck: random.Random) -> QueryItem:
        tags = luck.sample(TAGS, luck.choice((0, 1, 2) if self.world.type_heads else (1, 1, 2)))
        return QueryItem(types=frozenset(luck.sample(TYPES, luck.choice((0, 1, 1, 2)))), tags=frozenset(tags))


def at_most(wanted: int) -> Callable[[Recorded], bool]:
    """Return a predicate that accepts the first `wanted` events."""
    places = iter(range(wanted))
    return lambda _: next(places, None) is not None


def in_pages(store: TaggedStore, query: Query, after: Position | None, limit: int) -> Seen:
    """Read a page at a time."""
    events: list[Recorded] = []
    rest: Rest | None = None
    while True:
        page = store.page(query, after=after, rest=rest, takes=at_most(limit))
        events += page.events
        rest = page.rest
        if page.position is not None:
            return Seen(events=tuple(events), position=page.position)


def in_pages_back(store: TaggedStore, query: Query, after: Position | None, limit: int) -> Seen:
    """Read newest first, a page at a time."""
    events: list[Recorded] = []
    rest: Down | None = None
    while True:
        page = store.page_back(query, after=after, rest=rest, takes=at_most(limit))
        events += page.events
        rest = None if page.rest is None else parse_down(page.rest.text())
        if rest is None:
            return Seen(events=tuple(events), position=page.position)


def _is_covered(item: QueryItem, position: Position) -> bool:
    """Return whether a position has seen a head that every event of an item moves."""
    types = {type_tag(kind) for kind in item.types}
    return bool(
        item.tags & position.seen.keys()
        or "$all" in position.seen
        or (types and types <= position.seen.keys())
    )


def _partly(reply: Refusal, luck: random.Random) -> Refusal:
    """Return a refusal without some of its reasons, but with at least one."""
    certain = luck.choice([number for number, failed in enumerate(reply.failed) if failed])
    told = [number == certain or (bad and luck.random() < 0.5) for number, bad in enumerate(reply.failed)]
    items = tuple(item if keep else None for item, keep in zip(reply.items, told, strict=True))
    return replace(reply, items=items, failed=tuple(told))


def replay(seed: int) -> Tagged:
    """Play a seed and check the result; a failure names the seed."""
    return played(Tagged(seed))
