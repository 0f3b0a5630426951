"""What a process that runs a reaction needs of a deployment: its feed, and the stores that events are read from."""

from __future__ import annotations

from functools import partial

from epochal.dynamo.bodies import S3Bodies
from epochal.dynamo.clients import dynamodb_client, s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy import lazily
from epochal.dynamo.stores import HERE, Place
from epochal.feed.membership import Member
from epochal.feed.reactions import Reaction
from epochal.feed.reactor import Reactor
from epochal.feed.reader import FeedReader
from epochal.settings import Settings
from epochal.store.aggregates import AggregateStore, site_of
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents, tag_site_of


def open_reactor(reaction: Reaction, settings: Settings, place: Place = HERE) -> Reactor:
    """A reactor on the tables of a deployment."""
    client = dynamodb_client(endpoint=place.endpoint, region=place.region)
    driver = Driver(execute=interpreter(client), meter=Meter())
    reader = open_reader(settings, driver, place)
    return Reactor(member=Member(reaction=reaction, reader=reader))


def open_reader(settings: Settings, driver: Driver, place: Place = HERE) -> FeedReader:
    """A reader of the feed, with the stores of all layouts that the deployment has."""
    s3 = lazily(partial(s3_client, endpoint=place.endpoint, region=place.region))
    codec = BodyCodec(bodies=S3Bodies(s3, settings.bucket)) if settings.bucket else BodyCodec()
    return FeedReader(
        driver=driver,
        table=settings.index_table,
        streams=Streams(driver=driver, table=settings.tips_table, codec=codec)
        if settings.tips_table
        else None,
        aggregates=AggregateStore(driver=driver, site=site_of(settings)) if settings.snapshot_table else None,
        tagged=TaggedEvents(driver=driver, site=tag_site_of(settings)) if settings.tags_table else None,
        types=settings.aggregate_types,
    )
