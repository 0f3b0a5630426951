"""Events of the streams that a deployment stores as tips, for the feed."""

from __future__ import annotations

from epochal.feed.history import DeployedHistory
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec


def open_history(settings: Settings, driver: Driver, codec: BodyCodec) -> DeployedHistory:
    """The streams of a deployment."""
    return DeployedHistory("tips", "epochal.contrib.equinox.streams:tips_of", settings, driver, codec)
