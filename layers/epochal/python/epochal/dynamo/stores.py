"""Opening stores on the tables of an account: what an application does once, at its start.

Clients come from the usual AWS chain of credentials and region. A store is safe to share between threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from epochal.dynamo.bodies import S3Bodies
from epochal.dynamo.clients import dynamodb_client, s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy import lazily
from epochal.feed.reader import FeedReader
from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.reading import Site as TagSite
from epochal.layout.journal.keys import KeyResolver
from epochal.layout.journal.writes import Site as JournalSite
from epochal.store.aggregates import AggregateStore
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where tables are: an endpoint other than AWS's own, and a region other than the chain's."""

    endpoint: str | None = None
    region: str | None = None

    def driver(self) -> Driver:
        """A driver with a meter of its own."""
        client = dynamodb_client(endpoint=self.endpoint, region=self.region)
        return Driver(execute=interpreter(client), meter=Meter())

    def codec(self, bucket: str) -> BodyCodec:
        """Bodies too large for an item go to the bucket; without one they are refused."""
        if not bucket:
            return BodyCodec()
        client = lazily(partial(s3_client, endpoint=self.endpoint, region=self.region))
        return BodyCodec(bodies=S3Bodies(client, bucket))


HERE = Place()


def open_streams(table: str, *, bucket: str = "", place: Place = HERE) -> Streams:
    """Named streams in a table of the `tips` layout."""
    return Streams(driver=place.driver(), table=table, codec=place.codec(bucket))


def open_feed(index_table: str, *, streams: Streams | None = None, place: Place = HERE) -> FeedReader:
    """The feed; with `streams` also the events themselves."""
    return FeedReader(driver=place.driver(), table=index_table, streams=streams)


def open_aggregates(journal: str, snapshot: str, *, shards: int = 64, place: Place = HERE) -> AggregateStore:
    """Aggregates in a journal and a snapshot table, which event-store-adapter's libraries may share.

    Args:
        shards: of the tables' partition keys; the same for everyone who uses them, for ever.
    """
    site = JournalSite(journal=journal, snapshot=snapshot, keys=KeyResolver(shards=shards))
    return AggregateStore(driver=place.driver(), site=site)


def open_tagged_events(
    events: str, tags: str, *, service: str = "", type_heads: bool = False, place: Place = HERE
) -> TaggedEvents:
    """Tagged events in their two tables.

    Args:
        service: tenant whose events these are; empty for tables of one tenant.
        type_heads: also allow conditions by type alone; every append then moves heads that all others move too.
    """
    site = TagSite(events=events, tags=tags, keys=Keys(service=service), type_heads=type_heads)
    return TaggedEvents(driver=place.driver(), site=site)
