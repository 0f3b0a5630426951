"""A deployment: which store, reader or indexer is opened with which tables, bucket, driver and codec.

Functions, commands, reactions and tests open here whatever they need, on AWS as in memory. What is not opened is not
imported, so that a function starts with no more than its operations need: each property imports what it opens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from epochal.lazy_dataclasses import dataclass
from epochal.plugins import layouts
from epochal.settings import Settings
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from epochal.feed.indexer import Indexer
    from epochal.feed.reader import FeedReader
    from epochal.layout.source import Source
    from epochal.model.bodies import Claim
    from epochal.reactions.steering import Groups
    from epochal.read_models.documents import ReadModels
    from epochal.store.encoding import Bodies, BodyCodec, Objects
    from epochal.store.streams import Streams
    from epochal.store.tagged_pages import TaggedEvents


class Links(Protocol):
    """Signs URLs of objects in a bucket that are valid for so many seconds."""

    def download(self, claim: Claim, seconds: int) -> str:
        """Return a URL to download the content that `claim` names."""

    def object(self, key: str, seconds: int) -> str:
        """Return a URL to download an object.

        Raises:
            MissingBody: there is no such object.
        """

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Return a URL to upload the content of `claim`, and the headers that must be sent with it."""


class Bucket(Protocol):
    """The bucket of a deployment, for content that is too large for an item."""

    @property
    def bodies(self) -> Bodies | None:
        """The store of event bodies; None where there is no bucket, so that large bodies are refused."""

    @property
    def objects(self) -> Objects | None:
        """The store of plug-ins' objects; None where there is no bucket."""

    @property
    def links(self) -> Links:
        """The signer of URLs of bodies and objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The stores of a deployment, opened on the tables and the bucket that the settings name.

    Attributes:
        settings: settings that name the tables.
        driver: runs requests.
        bucket: the bucket of large content.
    """

    settings: Settings
    driver: Driver
    bucket: Bucket

    @property
    def codec(self) -> BodyCodec:
        """The codec that encodes and decodes bodies of streams."""
        from epochal.store.encoding import codec_of

        return codec_of(self.bucket.bodies)

    @property
    def streams(self) -> Streams:
        """The store of named streams."""
        from epochal.store.streams import streams_of

        return streams_of(self.settings, self.driver, self.codec)

    @property
    def tagged(self) -> TaggedEvents:
        """The store of tagged events, in the table of streams."""
        return self.streams.tagged

    @property
    def read_models(self) -> ReadModels:
        """The read models of reactions."""
        from epochal.read_models.documents import models_of

        return models_of(self.settings, self.driver)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The layouts' parts that the feed is indexed from."""
        from epochal.feed.indexer import sources_of

        return sources_of(self.settings)

    @property
    def feed(self) -> FeedReader:
        """The reader of the feed, with the events of every layout."""
        from epochal.feed.reader import reader_of

        return reader_of(self.settings, self.driver, self.codec)

    @property
    def indexer(self) -> Indexer:
        """The indexer of the feed."""
        from epochal.feed.indexer import indexer_of

        return indexer_of(self.settings, self.driver)

    @property
    def groups(self) -> Groups:
        """The groups of reactions, which can be paused, reset, or begun where another group is."""
        from epochal.reactions.steering import Groups

        return Groups(self.feed)

    def __getattr__(self, name: str) -> Any:
        """Open a store of a plug-in by its name there: `tips`, `aggregates`, `dcb`."""
        for layout in layouts():
            if (open_store := layout.plugin.stores.get(name)) is not None:
                return open_store(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
