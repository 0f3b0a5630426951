"""Events of the streams that a deployment stores as pages."""

from __future__ import annotations

from epochal.feed.histories.streams import StreamHistory
from epochal.settings import Settings
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver
from epochal.store.streams import pages_of


def open_history(settings: Settings, driver: Driver, codec: BodyCodec) -> StreamHistory:
    """The streams of a deployment."""
    return StreamHistory(pages_of(settings, driver, codec))


def history_of(_: object) -> None:
    """None: a store of streams has one history, however they are stored (see `tips`)."""
