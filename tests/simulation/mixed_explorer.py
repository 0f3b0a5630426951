"""Every interleaving of processes that append to named streams and to tags in one commit.

An append is in all of its streams and under all of its tags, once and under one stamp, or nowhere; on streams as
they were expected, and while nothing matched a query that its writer had not seen; and whatever anyone is told agrees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.layout.queries import AppendCondition, fence
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.positions import Position
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import Page
from epochal.pages.tags.append import append as append_tagged
from epochal.pages.tags.entries import entries_of, stream_of
from epochal.plan.ops import Steps
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Diary, State
from tests.simulation.page_actors import PAGES, TABLE
from tests.simulation.several_explorer import Actor, Explorer, Move, Prune, Table, check_told, known_of

SITE = TagStreams(table=TABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed(Move):
    """An append to some streams, to some tags, or to both.

    Attributes:
        tags: that its events carry, in each stream; of an append to no stream, where they are.
        fail_if: tags of events that must not be there, but for those that the process has been told of.
    """

    tags: tuple[str, ...] = ()
    fail_if: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Streams, and those that tags are."""
        return (*self.streams, *map(stream_of, self.tags))

    def tagged(self) -> TaggedBatch:
        """What its tags get."""
        batch = self.batch("")
        fresh = hashlib.sha256(self.name.encode()).digest()
        event = Event(type="E", data=self.name.encode(), tags=self.tags)
        homes = tuple((stream, place) for stream in self.streams for place in range(self.events))
        count = len(homes) or self.events
        return TaggedBatch(
            events=(event,) * count,
            bodies=((Encoded(DIRECT, self.name.encode()), EMPTY),) * count,
            homes=homes,
            now=Ticks(self.clock),
            append_id=batch.append_id,
            etag=fresh[16:].hex(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Prune):
    """All of a stream goes, and its name with it, unless it is left open."""

    before: int = 0
    leave_open: bool = False


class Told(NamedTuple):
    """An append, what its writer knew, and what came of it: of each stream, and of the tags."""

    move: Mixed
    expected: dict[str, ExpectedVersion]
    after: dict[str, int]
    streams: dict[str, Any]
    tags: Appended | Conflict | None


def act(actor: Actor, diary: Diary) -> Steps[None]:
    """All that an actor does."""
    tokens: dict[str, ExpectedVersion] = {}
    position: Position | None = None
    for doing in actor.does:
        if isinstance(doing, Delete):
            yield from PAGES.delete(TABLE, doing.stream, ANY, "0" * 32, leave_open=doing.leave_open)
            continue
        if isinstance(doing, Prune):
            yield from PAGES.prune(TABLE, doing.stream, doing.before, "0" * 32)
            continue
        assert isinstance(doing, Mixed)
        fixed = {"any": ANY, "none": NO_STREAM}.get(doing.expects)
        expected = {stream: fixed or tokens.get(stream, NO_STREAM) for stream in doing.streams}
        after = {
            tag: 0 if position is None or tag not in position.seen else position.seen[tag].count
            for tag in doing.fail_if
        }
        streams, tags = yield from _appended(doing, expected, _condition(doing, position))
        diary.answers = (*diary.answers, Told(doing, expected, after, streams, tags))
        position = position if tags is None else tags.position
        tokens |= known_of(streams)


def _condition(move: Mixed, position: Position | None) -> AppendCondition | None:
    if not move.fail_if:
        return None
    items = tuple(QueryItem(tags=frozenset({tag})) for tag in move.fail_if)
    seen = None if position is None or not set(move.fail_if) <= position.seen.keys() else position
    return AppendCondition(fence=fence(Query(items=items), type_heads=False), after=seen)


def _appended(
    move: Mixed, expected: dict[str, ExpectedVersion], condition: AppendCondition | None
) -> Steps[tuple[dict[str, Any], Appended | Conflict | None]]:
    if not move.streams:
        return {}, (yield from append_tagged(SITE, move.tagged(), condition))
    (stream, *others) = move.streams
    if not move.tags and condition is None and not others:
        alone = PAGES.append(TABLE, move.given(stream), expected[stream], move.key or None)
        return {stream: (yield from alone)}, None
    appends = [(move.given(stream), expected[stream]) for stream in move.streams]
    came = yield from PAGES.append_tagged(SITE, appends, move.tagged(), condition, move.key or None)
    tags = came if isinstance(came, Appended) and came.position.seen else None
    return dict(came.streams), came if isinstance(came, Conflict) and not came.streams else tags


@dataclass(slots=True)
class MixedExplorer(Explorer):
    """Explores all that may happen to `actors`."""

    def told(self, state: State, answers: tuple[Any, ...]) -> State:
        table = self.tables[state.table]
        made: dict[str, list[tuple[int, int]]] = {}
        for told in answers:
            move: Mixed = told.move
            self.met |= {type(each).__name__ for each in (*told.streams.values(), told.tags)}
            there = move.batch("").rest in table.order
            unsure = any(isinstance(each, Undetermined) for each in told.streams.values())
            assert not unsure or not move.tags, "undetermined, though a tag's page tells"
            for stream, each in told.streams.items():
                expected = told.expected.get(stream, ANY)
                check_told(move, stream, expected, each, table)
            written = [
                (each.first, each.version) for each in told.streams.values() if isinstance(each, Appended)
            ]
            appended = bool(written) or isinstance(told.tags, Appended)
            assert appended <= there, "told that it was appended, and it is not"
            if not appended and not unsure and not move.key:
                assert not there, "told that it was not appended, and it is"
                state = state._replace(denied=state.denied | {move.name})
            if appended and not move.key:
                self._check_condition(told, table)
            if move.key and (written or move.key in made):
                assert made.setdefault(move.key, written) == written, "a repeat is told something else"
        return state

    def _check_condition(self, told: Told, table: Table) -> None:
        """What was there of a query before the append was committed is what its writer had seen."""
        before = table.order[: table.order.index(told.move.batch("").rest)]
        for tag, seen in told.after.items():
            chain = table.appends.get(stream_of(tag), ())
            there = sum(each in before for each in chain)
            assert there == seen, f"committed on {there} of {tag!r}, of which its writer had seen {seen}"

    def checked(self, before: Table, tables: MemoryTables) -> Table:
        """One stamp in all places, besides what holds of any append."""
        table = super(MixedExplorer, self).checked(before, tables)
        for move in (each for each in self._moves() if isinstance(each, Mixed) and each.tags):
            assert len(set(_stamps(table, move))) <= 1, f"{move.name} has several stamps"
        for tag in (each for each in table.pages if each.startswith(TAG_STREAMS)):
            for page in table.pages[tag]:
                _check_homes(page, table)
        return table


def _check_homes(page: Page, table: Table) -> None:
    """What a tag's page says of an event's home is so, as far as that is not pruned."""
    for entry in entries_of(page.span):
        stream, index = entry.label.home or ("", 0)
        for home in table.pages.get(stream, ()):
            at = home.base
            for frame in home.frames:
                if at <= index < at + frame.count:
                    assert frame.stamp == entry.stamp, f"{page.stream} says that {stream} has it at {index}"
                at += frame.count


def _stamps(table: Table, move: Mixed) -> Iterator[bytes]:
    rest = move.batch("").rest
    for stream in move.places:
        for page in table.pages.get(stream, ()):
            yield from (frame.stamp for frame in page.frames if frame.stamp[8:] == rest)
