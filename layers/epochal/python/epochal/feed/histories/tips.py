"""Events of the streams that a deployment stores as tips."""

from __future__ import annotations

from epochal.feed.histories.streams import StreamHistory
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams, tips_of


def open_history(settings: Settings, driver: Driver, codec: BodyCodec) -> StreamHistory:
    """The streams of a deployment."""
    return StreamHistory(tips_of(settings, driver, codec))


def history_of(store: object) -> StreamHistory | None:
    """The history of a store of streams, however they are stored; None of any other store."""
    return StreamHistory(store) if isinstance(store, Streams) else None
