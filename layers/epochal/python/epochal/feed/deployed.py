"""The feed of a deployment: a reader with the history of each layout whose tables the settings name.

Nothing here needs what indexes: the function that serves the feed starts up without it.
"""

from __future__ import annotations

from epochal.feed.history import histories_of
from epochal.feed.reader import FeedReader
from epochal.settings import Settings
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver


def reader_of(settings: Settings, driver: Driver, codec: BodyCodec) -> FeedReader:
    """The reader; `codec` decodes the bodies of streams."""
    return FeedReader(
        driver=driver,
        table=settings.index_table,
        histories=histories_of(settings, driver, codec),
    )
