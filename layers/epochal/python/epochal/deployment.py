"""A deployment: which store, reader, indexer or auditor is opened with which tables, bucket, driver and codec.

Functions, commands, reactions and tests open here whatever they need, on AWS as in memory. What is not opened is not
imported: a function starts with no more than its operations take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from epochal.plugins import layouts
from epochal.settings import Settings
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from epochal.care.auditor import Auditor
    from epochal.feed.reader import FeedReader
    from epochal.indexer.indexer import Indexer
    from epochal.layout.port import Source
    from epochal.model.events import Claim
    from epochal.reactions.read_models import ReadModels
    from epochal.store.bodies import Bodies, BodyCodec
    from epochal.store.dcb_events import DcbEvents
    from epochal.store.projections import Objects, ProjectionStates
    from epochal.store.streams import Streams
    from epochal.store.tagged import TaggedEvents


class Links(Protocol):
    """Signs URLs that objects of a bucket can be reached at for so many seconds."""

    def download(self, claim: Claim, seconds: int) -> str:
        """Where the content that `claim` names can be got from."""

    def object(self, key: str, seconds: int) -> str:
        """Where an object can be got from; raises `MissingBody` where there is none."""

    def upload(self, claim: Claim, seconds: int) -> tuple[str, dict[str, str]]:
        """Where `claim`'s content can be put, and the headers that must be sent with it."""


class Bucket(Protocol):
    """What is too large for an item."""

    @property
    def bodies(self) -> Bodies | None:
        """Bodies of events; None where there is no bucket, so that large ones are refused."""

    @property
    def objects(self) -> Objects:
        """States of projections."""

    @property
    def links(self) -> Links:
        """URLs of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Tables and a bucket, as the settings name them."""

    settings: Settings
    driver: Driver
    bucket: Bucket

    def __getattr__(self, name: str) -> Any:
        """A store of a plug-in's, by its name there: `aggregates`."""
        for layout in layouts():
            if (opener := layout.opener(name)) is not None:
                return opener(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def codec(self) -> BodyCodec:
        """How bodies of streams are read and written."""
        from epochal.store.bodies import BodyCodec

        return BodyCodec(bodies=self.bucket.bodies)

    @property
    def tips(self) -> Streams:
        """Streams that are stored as tips."""
        from epochal.store.streams import tips_of

        return tips_of(self.settings, self.driver, self.codec)

    @property
    def streams(self) -> Streams:
        """Streams that are stored as pages."""
        from epochal.store.streams import streams_of

        return streams_of(self.settings, self.driver, self.codec)

    @property
    def tagged(self) -> TaggedEvents:
        """Tagged events, in the table of streams."""
        from epochal.store.tagged import tagged_of

        return tagged_of(self.settings, self.driver, self.codec)

    @property
    def dcb(self) -> DcbEvents:
        """Tagged events in Sekiban's tables."""
        from epochal.store.dcb_events import dcb_of

        return dcb_of(self.settings, self.driver)

    @property
    def states(self) -> ProjectionStates:
        """States of projections."""
        from epochal.store.projections import states_of

        return states_of(self.settings, self.driver, self.bucket.objects)

    @property
    def read_models(self) -> ReadModels:
        """Read models of reactions."""
        from epochal.reactions.read_models import ReadModels

        return ReadModels(driver=self.driver, table=self.settings.read_models_table)

    @property
    def feed(self) -> FeedReader:
        """The feed, with the events of every layout."""
        from epochal.feed.reader import reader_of

        return reader_of(self.settings, self.driver, self.codec)

    @property
    def sources(self) -> tuple[Source, ...]:
        """What the feed is indexed from."""
        from epochal.indexer.indexer import sources_of

        return sources_of(self.settings)

    @property
    def indexer(self) -> Indexer:
        """What indexes it."""
        from epochal.indexer.indexer import Indexer

        return Indexer(driver=self.driver, index_table=self.settings.index_table, sources=self.sources)

    @property
    def auditor(self) -> Auditor:
        """What compares the index with its sources."""
        from epochal.care.auditor import Auditor
        from epochal.care.catch_up import Mender

        mender = Mender(driver=self.driver, index_table=self.settings.index_table)
        return Auditor(mender=mender, sources=self.sources)
