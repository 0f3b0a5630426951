"""Every interleaving of a few writers of tagged events on a table of tags (see `exploring`).

Reads are taken apart, key by key and entry by entry. While the budget lasts a transaction may also lose its answer for
longer than the store's ten minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from epochal.contrib.sekiban import append, reading
from epochal.contrib.sekiban.items import Keys, TaggedEvent, TagSite
from epochal.contrib.sekiban.transaction import Stamp, TaggedBatch
from epochal.layout import queries
from epochal.layout.queries import AppendCondition, fence
from epochal.model.events import Event
from epochal.model.moments import Ticks, format_ticks
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tags import Query, make_place
from epochal.plan.ops import BatchGet, Items, Op, Several, Steps, Transact
from epochal.plan.ops import Query as Pages
from tests.simulation.dcb_history import check_tables
from tests.simulation.dcb_world import Tables, World
from tests.simulation.exploring import Diary, State, driven
from tests.simulation.exploring import Explorer as Exploring
from tests.simulation.exploring import Table as Explored

Ids = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What one writer does.

    Attributes:
        query: its condition; None for none.
        reads: it reads first, and appends after the position of that.
        broader: what it reads, where that is not just its condition.
        clock: what it takes for the time.
    """

    event: Event
    query: Query | None = None
    reads: bool = False
    broader: Query | None = None
    clock: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Explored):
    """A state of the tables, which know what was committed."""

    tables: Tables

    @property
    def committed(self) -> list[str]:
        """Events in the order of committing."""
        return [event_id for ids in self.tables.committed for event_id in ids]


def write(writer: Writer, type_heads: bool, diary: Diary) -> Steps[None]:
    """Perform a writer's steps."""
    site = TagSite(events="events", tags="tags", keys=Keys(), type_heads=type_heads)
    moment = Ticks(writer.clock)
    stamp = Stamp(make_place(moment, 0), format_ticks(moment))
    batch = TaggedBatch(events=(TaggedEvent.of(writer.event),), stamps=(stamp,))
    condition = None
    diary.knows = writer, ()
    if writer.query is not None:
        fenced = fence(writer.query, type_heads=type_heads)
        after = None
        if writer.reads:
            asked = fenced if writer.broader is None else fence(writer.broader, type_heads=type_heads)
            found = yield from reading.DcbReads(site=site, fenced=asked).everything(None)
            diary.knows = writer, tuple(sorted(event.id for event in found.events))
            after = found.position
            fenced = queries.fence_after(writer.query, after, type_heads=type_heads)
        condition = AppendCondition(fence=fenced, after=after)
    answer = yield from append.append(site, batch, condition)
    diary.answers = ((*diary.knows, answer),)


def _apart(op: Op | Several) -> Steps[object] | None:
    """A read, key by key; of a query a page has one entry."""
    match op:
        case BatchGet():
            return _key_by_key(op)
        case Pages():
            return _once(replace(op, limit=1))
        case _:
            return None


def _key_by_key(op: BatchGet) -> Steps[Items]:
    items: list[object] = []
    for key in op.keys:
        items += (yield replace(op, keys=(key,))).items
    return Items(items=tuple(items))


def _once(op: Op) -> Steps[object]:
    return (yield op)


@dataclass(slots=True)
class Explorer(Exploring[Writer, Table]):
    """Explores all that may happen to `actors`."""

    writes: ClassVar = (Transact,)

    type_heads: bool = False
    conflicts: int = 0

    def first(self) -> Table:
        return Table(tables=Tables())

    def process(self, actor: Writer, diary: Diary) -> Steps[None]:
        return driven(write(actor, self.type_heads, diary), _apart)

    def content(self, table: Table) -> str:
        tables = table.tables
        tokens = sorted(tables._tokens)  # noqa: SLF001  what DynamoDB remembers of transactions
        return f"{tables.committed} {tokens} {list(tables.items('tags'))} {list(tables.items('events'))}"

    def copied(self, table: Table) -> Tables:
        twin = Tables()
        twin.__dict__.update(table.tables.copy().__dict__)
        twin.committed = list(table.tables.committed)
        return twin

    def checked(self, before: Table, tables: Tables) -> Table:  # noqa: ARG002
        check_tables(World(type_heads=self.type_heads, tables=tables))
        return Table(tables=tables)

    def later(self, table: Table) -> Table:
        tables = self.copied(table)
        tables.forget_tokens()
        return Table(tables=tables)

    def check_write(self, state: State, after: Table, knows: tuple[Writer, Ids]) -> None:
        before = self.tables[state.table]
        if len(after.committed) == len(before.committed):
            return
        writer, seen = knows
        own = writer.event.id
        assert own not in state.denied, f"told of a conflict, and {own} is committed"
        if writer.query is None:
            return
        for event in World(tables=before.tables).events():
            known = event.id in seen or not writer.query.matches(event.type, event.tags)
            assert known, f"{own} is committed although {event} matches and was not seen"

    def told(self, state: State, answers: tuple[tuple[Writer, Ids, object], ...]) -> State:
        committed = self.tables[state.table].committed
        for writer, seen, answer in answers:
            own = writer.event.id or ""
            if isinstance(answer, Appended):
                assert own in committed, f"told of {own}, which never was"
                continue
            assert isinstance(answer, Conflict)
            self.conflicts += 1
            assert own not in committed, f"told of a conflict, yet its event {own} is there"
            ids = {event.id for event in answer.events}
            assert ids, "told of a conflict with nothing"
            # A broader read may have shown what its position, under a narrower query, does not vouch for.
            seen_before = bool(ids.intersection(seen)) and writer.broader is None
            assert not seen_before, "told of a conflict with what it had seen"
            state = state._replace(denied=state.denied | {own})
        return state
