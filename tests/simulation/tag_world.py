"""A table of tagged pages in memory with several writers, and an auditor who saw every append commit.

Reads are taken apart, as of Sekiban's tables: a query brings a page, a batch an item, with others' requests in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Recorded
from epochal.model.stream_names import TAG_STREAMS
from epochal.pages.items import STREAMS, is_page, read_page
from epochal.pages.layout import Pages
from epochal.pages.tags.entries import EventOfTag, entries_of, recorded_all, reserved_tags
from epochal.plan.ops import Execute, TransactionWrite
from epochal.plan.values import Item
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from tests.simulation.dcb_history import History
from tests.simulation.gradual import Gradual
from tests.simulation.world import NOON, bytes_of, driver_on

TABLE = STREAMS.kind


class Tables(Gradual):
    """Knows in which order events were committed, whether they show yet or not.

    Attributes:
        committed: the ids of each append, in the order of its events.
        places: of each tag's stream, the ids of its events by their index.
        entries: of each event one that has its body.
    """

    def __init__(self) -> None:
        super().__init__({TABLE: STREAMS})
        self.committed: list[tuple[str, ...]] = []
        self.places: dict[str, list[str]] = {}
        self.entries: dict[str, EventOfTag] = {}

    def _store(self, writes: Sequence[TransactionWrite], results: Sequence[Item | None]) -> None:
        super()._store(writes, results)
        new: dict[str, EventOfTag] = {}
        for item in results:
            for entry in () if item is None else _entries(item):
                known = self.places.setdefault(entry.tag, [])
                if entry.index >= len(known):
                    known.append(entry.id)
                    new[entry.id] = entry
                    if entry.body is None:
                        self.entries[entry.id] = entry
        if new:
            self.committed.append(tuple(sorted(new, key=lambda event_id: new[event_id].label.number)))

    def forget_tokens(self) -> None:
        """Let ten minutes pass, after which tokens of transactions are forgotten."""
        self._tokens.clear()


@dataclass(slots=True)
class World:
    """One table, and stores over it that differ in who writes and in what their clocks say."""

    type_heads: frozenset[str] = frozenset()
    tables: Tables = field(default_factory=Tables)

    @property
    def site(self) -> TagStreams:
        return TagStreams(table=TABLE, type_heads=self.type_heads)

    def with_types(self, types: Sequence[str]) -> None:
        """Give types, and all events, streams of their own."""
        self.type_heads = reserved_tags(types, everything=True)

    def store(self, writer: str, execute: Execute | None = None, skew: int = 0) -> TaggedEvents:
        """Return a store with its own seeded random bytes; `skew` is that of its clock, in nanoseconds."""
        driver = driver_on(execute or self.tables.execute)
        named = Streams(driver=driver, table=TABLE, layout=Pages())
        return TaggedEvents(
            driver=driver, site=self.site, named=named, now=lambda: NOON + skew, fresh=bytes_of(writer)
        )

    def events(self) -> list[Recorded]:
        """Return every event, in the order of committing."""
        stored = self.decided()
        return [stored[event_id] for ids in self.tables.committed for event_id in ids]

    def decided(self) -> Mapping[str, Recorded]:
        """Return every event by its id, including hidden ones."""
        steps = recorded_all(self.site, list(self.tables.entries.values()))
        return {event.id: event for event in driver_on(self.tables.execute).run(steps)}

    def chains(self) -> dict[str, list[EventOfTag]]:
        """Return the events of each tag, in the order of its pages."""
        found: dict[str, list[EventOfTag]] = {}
        for item in sorted(self.tables.items(TABLE), key=lambda item: int(item["i"]["N"])):
            for entry in _entries(item):
                found.setdefault(entry.tag, []).append(entry)
        return found

    def everything(self) -> list[Item]:
        return list(self.tables.items(TABLE))


class TagHistory(History):
    """Checks the answers to calls on tags in the layout of pages."""

    __slots__ = ()
    world: World  # type: ignore[assignment]

    def check_tables(self) -> None:
        """Each tag has its events in the order of committing, indices from 0, each under all of its tags, once."""
        expected: dict[str, list[str]] = {}
        events = {event.id: event for event in self.world.events()}
        for event in events.values():
            for tag in self.world.site.tags_of(event.type, event.tags):
                expected.setdefault(tag, []).append(event.id)
        chains = self.world.chains()
        assert {tag: sorted(ids) for tag, ids in expected.items()} == {
            tag: sorted(entry.id for entry in chain) for tag, chain in chains.items()
        }, "a tag lacks an event, or has one twice"
        for tag, chain in chains.items():
            assert [entry.id for entry in chain] == expected[tag], f"tag {tag}: order"
            assert [entry.index for entry in chain] == list(range(len(chain))), f"tag {tag}: a gap"
            ids = [entry.place for entry in chain]
            assert ids == sorted(set(ids)), f"tag {tag}: sortable ids do not increase"
            assert ids == [events[entry.id].place for entry in chain], f"tag {tag}: another place"

    def decided(self) -> tuple[Mapping[str, Recorded], Mapping[str, Sequence[str]]]:
        """As of any history."""
        return self.world.decided(), self.world.tables.places


def _entries(item: Item) -> list[EventOfTag]:
    """Return the events of a page of a tag; none of other items."""
    if not is_page(item) or not item["p"]["S"].startswith(TAG_STREAMS):
        return []
    return list(entries_of(read_page(item, TABLE).span))
