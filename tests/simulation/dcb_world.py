"""Tables of tagged events in memory with several writers, and an auditor who saw every transaction commit.

Reads are taken apart: a batch of keys is read key by key, a query entry by entry, with others' requests in between.
That is what DynamoDB promises of them, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from epochal.contrib.sekiban.items import EVENTS, TAGS, Keys, TagHead, TagSite, is_head, read_event, read_head
from epochal.contrib.sekiban.store import DcbEvents
from epochal.model.events import Event, Recorded
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import BatchGet, Done, Execute, Items, Op, Put, Reply, Transact
from epochal.plan.ops import Query as Pages
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item
from tests.simulation.gradual import Gradual
from tests.simulation.world import NOON, bytes_of, driver_on

DIGITS_BYTES = 5
"""Random bytes that the digits of a sortable id are made of."""


class Tables(Gradual):
    """Knows when each event was committed, and forgets its idempotency tokens when told.

    Attributes:
        decided: all that was ever put, in order, whether it shows yet or not.
    """

    def __init__(self, specs: Iterable[TableSpec] = (EVENTS, TAGS)) -> None:
        super().__init__({spec.kind: spec for spec in specs})
        self.committed: list[tuple[str, ...]] = []
        self.decided: list[Item] = []

    def execute(self, op: Op) -> Reply:
        with self._lock:
            known = isinstance(op, Transact) and op.token in self._tokens
            reply = super().execute(op)
            if isinstance(op, Transact) and isinstance(reply, Done) and not known:
                ids = tuple(write.item["eventId"]["S"] for write in op.writes if write.table == "events")
                self.committed += [ids] if ids else []
                self.decided += [write.item for write in op.writes if isinstance(write, Put)]
            return reply

    def forget_tokens(self) -> None:
        """Let ten minutes pass, after which tokens of transactions are forgotten."""
        self._tokens.clear()


@dataclass(slots=True)
class World:
    """Two tables, and stores over them that differ in who writes and in what their clocks say.

    Attributes:
        ties: all digits of sortable ids that luck should choose are the same.
    """

    type_heads: bool = False
    ties: bool = False
    tables: Tables = field(default_factory=Tables)

    def store(self, writer: str, execute: Execute | None = None, skew: int = 0) -> DcbEvents:
        """Return a store with its own seeded random bytes; `skew` is that of its clock, in nanoseconds."""
        site = TagSite(events="events", tags="tags", keys=Keys(), type_heads=self.type_heads)
        driver = driver_on(execute or self.tables.execute)
        fresh = bytes_of(writer)
        return DcbEvents(
            driver=driver,
            site=site,
            now=lambda: NOON + skew,
            fresh=lambda size: fresh(size) if size != DIGITS_BYTES or not self.ties else bytes(size),
        )

    def events(self) -> list[Recorded]:
        """Return every event, in the order of committing."""
        stored = {event.id: event for event in map(read_event, self.tables.items("events"))}
        return [stored[event_id] for ids in self.tables.committed for event_id in ids]

    def heads(self) -> Mapping[str, TagHead]:
        return {tag_of(item): read_head(item) for item in filter(is_head, self.tables.items("tags"))}

    def entries(self) -> list[Item]:
        return [item for item in self.tables.items("tags") if not is_head(item)]

    def places(self) -> dict[str, list[str]]:
        """Return the ids of each tag's events, by index."""
        found: dict[str, list[str]] = {}
        for item in self.entries():
            found.setdefault(item["pk"]["S"].removeprefix("TAG#"), []).append(item["eventId"]["S"])
        return found

    def spans(self) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
        """Return for each tag what the images of its head add to the feed: how many events, and their ids."""
        found: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for item in filter(is_head, self.tables.changes("tags")):
            head = read_head(item)
            found.setdefault(tag_of(item), []).append((int(item["a"]["N"]), head.ids))
        return found

    def everything(self) -> list[Item]:
        return [*self.tables.items("events"), *self.tables.items("tags")]


def tag_of(item: Item) -> str:
    return str(item["pk"]["S"]).removeprefix("TAG#")


def piecemeal(execute: Execute) -> Execute:
    """Return an executor whose reads are no snapshots: every item is read at another moment."""

    def perform(op: Op) -> Reply:
        if isinstance(op, BatchGet):
            parts = [execute(replace(op, keys=(key,))) for key in op.keys]
            return Items(items=tuple(item for part in parts for item in part.items))
        if isinstance(op, Pages):
            return execute(replace(op, limit=1))
        return execute(op)

    return perform


def event(kind: str, *tags: str, id_: str | None = None, data: str = "{}") -> Event:
    return Event(type=kind, data=data.encode(), tags=tags, id=id_)


def query(*items: tuple[str, str]) -> Query:
    """Items as (types, tags), each separated by spaces."""
    return Query(
        items=tuple(
            QueryItem(types=frozenset(types.split()), tags=frozenset(tags.split())) for types, tags in items
        )
    )
