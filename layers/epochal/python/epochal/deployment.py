"""A deployment: which store, reader or indexer is opened with which tables, bucket, driver and codec.

Functions, commands, reactions and tests open here whatever they need, on AWS as in memory. What is not opened is not
imported: a function starts with no more than its operations take.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from epochal.lazy_dataclasses import dataclass
from epochal.plugins import at, layouts
from epochal.settings import Settings
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from epochal.feed.indexer import Indexer
    from epochal.feed.reader import FeedReader
    from epochal.layout.port import Source
    from epochal.model.events import Claim
    from epochal.reactions.steering import Groups
    from epochal.read_models.documents import ReadModels
    from epochal.store.encoding import Bodies, BodyCodec, Objects
    from epochal.store.streams import Streams
    from epochal.store.tagged import TaggedEvents

S = TypeVar("S")


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
    def objects(self) -> Objects | None:
        """What plug-ins keep there; None where there is no bucket."""

    @property
    def links(self) -> Links:
        """URLs of both."""


class Opener(Generic[S]):
    """A store of a deployment: what opens it, with which of the deployment's attributes."""

    def __init__(self, of: str, *attributes: str) -> None:
        self._of, self._attributes = of, attributes

    def __get__(self, deployment: Deployment | None, _: object) -> S:
        if deployment is None:
            raise AttributeError("a store is of a deployment")
        store: S = at(f"epochal.{self._of}")(*(attrgetter(name)(deployment) for name in self._attributes))
        return store


_TABLES = ("settings", "driver")
_STREAMS = (*_TABLES, "codec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Tables and a bucket, as the settings name them.

    Attributes:
        codec: how bodies of streams are read and written.
        streams: named streams.
        tagged: tagged events, in the table of streams.
        read_models: those of reactions.
        sources: what the feed is indexed from.
        feed: with the events of every layout.
        indexer: what indexes it.
        groups: those of reactions: paused, reset, begun where another is.
    """

    settings: Settings
    driver: Driver
    bucket: Bucket

    codec: ClassVar[Opener[BodyCodec]] = Opener("store.encoding:codec_of", "bucket.bodies")
    streams: ClassVar[Opener[Streams]] = Opener("store.streams:streams_of", *_STREAMS)
    tagged: ClassVar[Opener[TaggedEvents]] = Opener("store.tagged:tagged_of", *_STREAMS)
    read_models: ClassVar[Opener[ReadModels]] = Opener("read_models.documents:models_of", *_TABLES)
    sources: ClassVar[Opener[tuple[Source, ...]]] = Opener("feed.indexer:sources_of", "settings")
    feed: ClassVar[Opener[FeedReader]] = Opener("feed.reader:reader_of", *_STREAMS)
    indexer: ClassVar[Opener[Indexer]] = Opener("feed.indexer:indexer_of", *_TABLES)
    groups: ClassVar[Opener[Groups]] = Opener("reactions.steering:Groups", "feed")

    def __getattr__(self, name: str) -> Any:
        """A store of a plug-in's, by its name there: `tips`, `aggregates`, `dcb`."""
        for layout in layouts():
            if (opener := layout.opener(name)) is not None:
                return opener(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
