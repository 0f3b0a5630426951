"""The feed of a deployment: a reader with the store of each layout whose tables the settings name.

Nothing here needs what indexes: the function that serves the feed starts up without it.
"""

from __future__ import annotations

from epochal.feed.reader import FeedReader
from epochal.model.aggregates import AggregateTypes
from epochal.settings import Settings
from epochal.store.aggregates import aggregates_of
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver
from epochal.store.streams import streams_of
from epochal.store.tagged import tagged_of


def reader_of(settings: Settings, driver: Driver, codec: BodyCodec) -> FeedReader:
    """The reader; `codec` decodes the bodies of streams."""
    tips, snapshots, tags = settings.tips_table, settings.snapshot_table, settings.tags_table
    return FeedReader(
        driver=driver,
        table=settings.index_table,
        streams=streams_of(settings, driver, codec) if tips else None,
        aggregates=aggregates_of(settings, driver) if snapshots else None,
        tagged=tagged_of(settings, driver) if tags else None,
        types=AggregateTypes(settings.aggregate_types),
    )
