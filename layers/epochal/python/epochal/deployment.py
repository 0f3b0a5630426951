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


class Opener(Generic[S]):
    """An attribute of a deployment that opens a store when it is read.

    Attributes:
        of: `module:name`, below `epochal`, of the function that opens the store.
        attributes: names of the deployment's attributes that the function takes.
    """

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
    """The stores of a deployment, opened on the tables and the bucket that the settings name.

    Attributes:
        settings: settings that name the tables.
        driver: runs requests.
        bucket: the bucket of large content.
        codec: encodes and decodes bodies of streams.
        streams: store of named streams.
        tagged: store of tagged events, in the table of streams.
        read_models: read models of reactions.
        sources: layouts' parts that the feed is indexed from.
        feed: reader of the feed, with the events of every layout.
        indexer: indexer of the feed.
        groups: groups of reactions, which can be paused, reset, or begun where another group is.
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
        """Open a store of a plug-in by its name there: `tips`, `aggregates`, `dcb`."""
        for layout in layouts():
            if (opener := layout.opener(name)) is not None:
                return opener(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
