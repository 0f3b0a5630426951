"""Every interleaving of a few processes that append tagged events to pages (see `exploring`).

What is true is which append each index of each tag was given, and in which order appends were committed. An append is
under all of its tags, once and under one stamp, or under none; whoever commits under a condition has seen all that
matches it; and whatever anyone is told agrees with that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.layout.queries import AppendCondition, fence, fence_after
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.model.events import Event
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import Query
from epochal.pages.frames import time_of
from epochal.pages.items import STREAMS, Page, is_page, read_page
from epochal.pages.tags import batch as tagged_batch
from epochal.pages.tags.append import append
from epochal.pages.tags.reading import PageReads
from epochal.plan.ops import Steps
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Diary, State, apart, one_by_one
from tests.simulation.exploring import Explorer as Exploring
from tests.simulation.exploring import Table as Explored
from tests.simulation.page_actors import TABLE, Rule, ruled_by

Names = tuple[str, ...]


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

    events: tuple[Event, ...]
    query: Query | None = None
    reads: bool = False
    broader: Query | None = None
    outside: bool = False
    clock: int = 5
    rule: Rule = field(default_factory=Rule)
    reserved: frozenset[str] = frozenset()


class Answer(NamedTuple):
    """An append, what its writer had seen before, and its result."""

    name: str
    seen: Names
    told: Appended | Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Explored):
    """A state of the table, and what is true of it.

    Attributes:
        chains: which append each index of each tag was given.
        order: of the commits.
    """

    chains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def act(writer: Writer, diary: Diary) -> Steps[None]:
    """Perform all that a process does."""
    site = site_of(writer)
    position: Position | None = None
    diary.knows = writer, ()
    if writer.reads and writer.query is not None:
        asked = fence(writer.broader or writer.query, type_heads=site.type_heads)
        found = yield from PageReads(site=site, fenced=asked).everything()
        keys = [event.key for event in found.events]
        assert keys == sorted(set(keys)), "read out of order, or twice"
        _sees(diary, (name_of(event) for event in found.events))
        position = found.position
    for event in writer.events:
        condition = None
        if writer.query is not None:
            if position is not None and writer.outside:
                position = read_position(write_position(position))
            fenced = (
                fence(writer.query, type_heads=site.type_heads)
                if position is None
                else fence_after(writer.query, position, type_heads=site.type_heads)
            )
            condition = AppendCondition(fence=fenced, after=position)
        told = yield from append(site, batch_of(event, writer.clock), condition)
        diary.answers = (*diary.answers, Answer(name_of(event), diary.knows[1], told))
        position = told.position if writer.query is not None else None
        if isinstance(told, Conflict):
            _sees(diary, (name_of(each) for each in told.events))
        elif not told.replayed:
            _sees(diary, [name_of(event)])


def _sees(diary: Diary, names: Iterable[str]) -> None:
    writer, seen = diary.knows
    diary.knows = writer, tuple(sorted({*seen, *names}))


def site_of(writer: Writer) -> TagStreams:
    return TagStreams(table=TABLE, type_heads=writer.reserved)


def name_of(event: Any) -> str:
    """Return the name of an event, which is its data, before it is stored or after."""
    return event.data.decode() if isinstance(event.data, bytes) else str(event.data)


def batch_of(event: Event, clock: int) -> TaggedBatch:
    fresh = hashlib.sha256(name_of(event).encode()).digest()
    bodies = ((Encoded(DIRECT, name_of(event).encode()), EMPTY),)
    return TaggedBatch(
        events=(event,), bodies=bodies, now=Ticks(clock), append_id=fresh[:16], etag=fresh[16:].hex()
    )


@dataclass(slots=True)
class Explorer(Exploring[Writer, Table]):
    """Explores all that may happen to `actors`, after others have come first, one after the other.

    Attributes:
        refers: bodies are on the page of an event's first tag alone.
    """

    refers: bool = False
    conflicts: int = 0

    def first(self) -> Table:
        return Table(tables=MemoryTables({TABLE: STREAMS}))

    def process(self, actor: Writer, diary: Diary) -> Steps[None]:
        return apart(one_by_one(act(actor, diary)))

    @contextmanager
    def ruled(self, actor: Writer) -> Iterator[None]:
        with ruled_by(actor.rule), pytest.MonkeyPatch.context() as patch:
            if self.refers:
                patch.setattr(tagged_batch, "REFERRED_FROM", 0)
            yield

    def content(self, table: Table) -> str:
        return f"{sorted(map(repr, table.tables.items(TABLE)))} {table.order}"

    def told(self, state: State, answers: tuple[Answer, ...]) -> State:
        order, denied = self.tables[state.table].order, set(state.denied)
        for answer in answers:
            if isinstance(answer.told, Appended):
                assert answer.name in order, f"told of {answer.name}, which never was"
                continue
            self.conflicts += 1
            assert answer.name not in order, f"told of a conflict, yet {answer.name} is there"
            found = {name_of(event) for event in answer.told.events}
            assert found, "told of a conflict with nothing"
            broader = any(writer.broader for writer in self.everyone)
            assert broader or not found.intersection(answer.seen), "told of a conflict with what it had seen"
            denied.add(answer.name)
        return state._replace(denied=frozenset(denied))

    def check_write(self, state: State, after: Table, knows: tuple[Writer, Names]) -> None:
        before, (writer, seen) = self.tables[state.table].order, knows
        if len(after.order) == len(before):
            return
        made = after.order[-1]
        assert made not in state.denied, f"told that {made} was not made, and it is"
        if writer.query is None:
            return
        events = {name_of(event): event for each in self.everyone for event in each.events}
        for name in before:
            known = name in seen or not writer.query.matches(events[name].type, events[name].tags)
            assert known, f"{made} is committed although {name} matches and was not seen"

    def checked(self, before: Table, tables: MemoryTables) -> Table:
        pages = [read_page(item) for item in tables.items(TABLE) if is_page(item)]
        names = {batch_of(event, 0).append_id: event for writer in self.everyone for event in writer.events}
        of_rest = {identity[:5] + identity[8:11]: name_of(event) for identity, event in names.items()}
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
                name = name_of(event)
                tags = site_of(writer).tags_of(event.type, event.tags)
                times = {chains.get(tag, ()).count(name) for tag in tags}
                assert times in ({0}, {1}), f"{name} is under its tags {sorted(times)} times"
                assert len(stamps.get(name, ())) <= 1, f"{name} has several stamps"
        new = sorted(set(stamps) - set(before.order))
        assert len(new) <= 1
        return Table(tables=tables, chains=chains, order=(*before.order, *new))


def _chain(pages: Sequence[Page]) -> list[bytes]:
    """Return the stamp of each index of a tag, after checking that its pages follow each other."""
    found: list[bytes] = []
    for page in pages:
        assert page.index == len(found), f"{page.stream}: a page at {page.index} after {len(found)} events"
        for frame in page.frames:
            assert not found or time_of(frame.stamp) > time_of(found[-1]), "stamps do not increase"
            found += [frame.stamp] * frame.count
        assert page.version == len(found)
    return found
