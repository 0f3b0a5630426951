"""The command line on a store in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from click.testing import CliRunner, Result

from epochal.cli.main import epochal
from epochal.cli.target import Store, TableSize
from epochal.codec import json
from epochal.feed.histories.streams import StreamHistory
from epochal.feed.reader import FeedReader
from epochal.indexer.indexer import Indexer, Record
from epochal.indexer.sources import sources_of
from epochal.layout.dcb.site import tag_site_of
from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.journal.tables import JOURNAL, SNAPSHOT
from epochal.layout.tables import INDEX, PROJECTION_STATES
from epochal.layout.tips.port import tips_source
from epochal.layout.tips.tables import TIPS
from epochal.settings import Settings
from epochal.store.projections import states_of
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents
from epochal.testing.memory import MemoryTables
from epochal.testing.objects import MemoryObjects
from epochal.testing.stores import memory_aggregates, memory_streams, memory_tables

TYPES = ("user-account",)
SETTINGS = Settings.of(
    tips_table=TIPS.kind,
    journal_table=JOURNAL.kind,
    snapshot_table=SNAPSHOT.kind,
    aggregate_types=TYPES,
    events_table=EVENTS.kind,
    tags_table=TAGS.kind,
    projection_states_table=PROJECTION_STATES.kind,
)


@dataclass
class Terminal:
    """Runs commands; `index` lets the indexer see what was appended since."""

    tables: MemoryTables = field(default_factory=memory_tables)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    partitions: int = 1
    indexed: int = 0

    @property
    def streams(self) -> Streams:
        return memory_streams(self.tables)

    @property
    def store(self) -> Store:
        return Store(
            streams=self.streams,
            aggregates=memory_aggregates(self.tables, types=TYPES),
            tagged=TaggedEvents(driver=self.streams.driver, site=tag_site_of(SETTINGS)),
            states=states_of(SETTINGS, self.streams.driver, self.objects),
            feed=FeedReader(
                driver=self.streams.driver, table=INDEX.kind, histories=(StreamHistory(self.streams),)
            ),
            sources=sources_of(SETTINGS),
            sizes=lambda: [TableSize(name="tips", items=3, bytes=4_096)],
        )

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run a command; what it raises is in the result."""
        return CliRunner().invoke(epochal, arguments, input=stdin, obj=lambda: self.store)

    def lines(self, *arguments: str, stdin: str | None = None) -> list[str]:
        """What a command that succeeds prints."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout.splitlines()

    def documents(self, *arguments: str, stdin: str | None = None) -> list[Any]:
        """What a command that succeeds prints with `--json`."""
        return [json.loads(line) for line in self.lines(*arguments, "--json", stdin=stdin)]

    def index(self) -> None:
        """Index what was appended since the last time."""
        changes = self.tables.changes(TIPS.kind)
        indexer = Indexer(
            driver=self.streams.driver,
            index_table=INDEX.kind,
            sources=(tips_source(TIPS.kind, self.partitions),),
        )
        indexer.register()
        fresh = enumerate(changes[self.indexed :], self.indexed)
        assert not indexer.index(
            [Record(table=TIPS.kind, sequence_number=f"{n:021}", image=image) for n, image in fresh]
        ).failed
        self.indexed = len(changes)
