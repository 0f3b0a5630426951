"""Opening stores on the tables of an account: what an application does once, at its start.

Clients come from the usual AWS chain of credentials and region. A store is safe to share between threads. Before its
first request to a table it looks, once and with a request that no meter counts, whether the table is of its kind, and
raises `WrongTable` where it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from epochal.codec.payloads import Serializer, serializer_of
from epochal.deployment import Deployment
from epochal.dynamo.bodies import S3Bodies
from epochal.dynamo.clients import dynamodb_client, s3_client
from epochal.dynamo.deployed import deployed
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.objects import S3Objects
from epochal.errors import InvalidInput
from epochal.feed.histories.dcb import TagHistory
from epochal.feed.histories.journal import AggregateHistory
from epochal.feed.histories.streams import StreamHistory
from epochal.feed.history import History
from epochal.feed.reader import FeedReader
from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.site import TagSite
from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.journal.keys import Hash, KeyResolver, hash_of
from epochal.layout.journal.tables import JOURNAL, SNAPSHOT
from epochal.layout.journal.writes import JournalSite
from epochal.layout.tables import INDEX, PROJECTION_STATES, READ_MODELS
from epochal.layout.tips.calving import Calving
from epochal.layout.tips.streams import Tips
from epochal.layout.tips.tables import TIPS
from epochal.model.aggregates import AggregateTypes
from epochal.reactions.read_models import ReadModels
from epochal.settings import INLINE_BYTES, LIBRARY, PROJECTIONS, SHARDS, Settings
from epochal.store.aggregates import AggregateStore
from epochal.store.bodies import BodyCodec
from epochal.store.checking import checked, distinct
from epochal.store.driver import DEFAULT, Driver, Meter, Patience
from epochal.store.object_cache import CachedObjects
from epochal.store.projections import NoObjects, Objects, ProjectionStates
from epochal.store.streams import Streams, streams_of
from epochal.store.tagged import READS_AT_ONCE, TaggedEvents

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where tables are: an endpoint other than AWS's own, and a region other than the chain's."""

    endpoint: str | None = None
    region: str | None = None

    def deployment(self, settings: Settings) -> Deployment:
        """The deployment that these settings tell of."""
        client = dynamodb_client(endpoint=self.endpoint, region=self.region)
        return deployed(settings, dynamodb=client, s3=self._s3())

    def driver(self, patience: Patience = DEFAULT, kinds: Mapping[str, str] | None = None) -> Driver:
        """A driver with a meter of its own, which looks at tables whose `kinds` are told before it uses them."""
        client = dynamodb_client(endpoint=self.endpoint, region=self.region)
        execute = interpreter(client)
        return Driver(execute=checked(execute, kinds) if kinds else execute, meter=Meter(), patience=patience)

    def codec(self, bucket: str) -> BodyCodec:
        """Bodies too large for an item go to the bucket; without one they are refused."""
        if not bucket:
            return BodyCodec()
        return BodyCodec(bodies=S3Bodies(self._s3(), bucket))

    def objects(self, bucket: str) -> Objects:
        """States too large for an item go to the bucket; without one they are refused."""
        return S3Objects(self._s3(), bucket) if bucket else NoObjects()

    def _s3(self) -> S3Client:
        return lazily(partial(s3_client, endpoint=self.endpoint, region=self.region))


HERE = Place()


def open_streams(
    table: str,
    *,
    bucket: str = "",
    calving: Calving | None = None,
    equinox: bool = False,
    place: Place = HERE,
) -> Streams:
    """Named streams in a table of the `tips` layout.

    Args:
        bucket: of bodies too large for an item; without one they are refused.
        calving: when events leave the Tip; None for the cheapest, or with `equinox` for Equinox's own rule.
        equinox: Equinox applications use the table too. Calves are then written in one transaction with the Tip, at
            32 KiB of events, and no stream keeps a tombstone.

    Raises:
        InvalidInput: `calving` in two steps, which Equinox cannot live with.
    """
    if equinox and calving is not None and calving.mode != "transactional":
        raise InvalidInput("calving", "must be transactional where Equinox applications use the table too")
    driver = place.driver(kinds={table: TIPS.kind})
    settings = Settings.of(tips_table=table, equinox=equinox)
    streams = streams_of(settings, driver, place.codec(bucket))
    return streams if calving is None else replace(streams, layout=Tips(calving=calving))


def open_feed(
    index_table: str,
    *,
    streams: Streams | None = None,
    aggregates: AggregateStore | None = None,
    tagged: TaggedEvents | None = None,
    place: Place = HERE,
) -> FeedReader:
    """The feed; with a layout's store also the events of that layout themselves."""
    distinct(streams="" if streams is None else streams.table, index_table=index_table)
    histories: list[History] = []
    if streams is not None:
        histories.append(StreamHistory(streams))
    if aggregates is not None:
        histories.append(AggregateHistory(aggregates))
    if tagged is not None:
        histories.append(TagHistory(tagged))
    return FeedReader(
        driver=place.driver(kinds={index_table: INDEX.kind}),
        table=index_table,
        histories=tuple(histories),
        types=aggregates.site.types if aggregates else None,
    )


def open_aggregates(
    journal: str,
    snapshot: str,
    *,
    types: Iterable[str] = (),
    shards: int = SHARDS,
    keys: str | Hash = LIBRARY,
    serializer: str | Serializer = LIBRARY,
    place: Place = HERE,
) -> AggregateStore:
    """Aggregates in a journal and a snapshot table, which event-store-adapter's libraries may share.

    Args:
        types: of aggregates, which must be declared where they hold `-`; the same for everyone who uses the tables.
        shards: of the tables' partition keys; the same for everyone who uses them, for ever.
        keys: what the keys are hashed with, likewise: the library whose default it is, `javascript`, `rust`, `go`,
            `java` or `php`, or a function from an aggregate to a number.
        serializer: how payloads hold types and data: as `javascript`, `rust`, `go`, `java` or `php` write them, `plain`
            where they name no type, or a `Serializer`.
    """
    distinct(journal=journal, snapshot=snapshot)
    site = JournalSite(
        journal=journal,
        snapshot=snapshot,
        keys=KeyResolver(shards=shards, hash=hash_of(keys)),
        types=AggregateTypes(types),
        serializer=serializer_of(serializer),
    )
    driver = place.driver(kinds={journal: JOURNAL.kind, snapshot: SNAPSHOT.kind})
    return AggregateStore(driver=driver, site=site)


def open_read_models(table: str, *, place: Place = HERE) -> ReadModels:
    """Read models in a table of their own (`layout.tables.READ_MODELS`)."""
    return ReadModels(driver=place.driver(kinds={table: READ_MODELS.kind}), table=table)


def open_tagged_events(
    events: str,
    tags: str,
    *,
    service: str = "",
    type_heads: bool = False,
    write_shards: int = 1,
    consistent: bool = True,
    reads_at_once: int = READS_AT_ONCE,
    patience: Patience = DEFAULT,
    place: Place = HERE,
) -> TaggedEvents:
    """Tagged events in their two tables.

    Args:
        service: tenant whose events these are; empty for tables of one tenant.
        type_heads: also allow conditions by type alone; every append then moves heads that all others move too.
        write_shards: over which the index of all events is spread; may be raised later, never lowered.
        consistent: False halves what single events and listings by tag cost, which may then miss the latest events.
        reads_at_once: requests that a listing by tag, or one of all events over several shards, has under way.
        patience: how long to wait out throttling and outages; `store.driver.PERSISTENT` retries 10 times, up to 30
            seconds apart, as the original library does.
    """
    distinct(events=events, tags=tags)
    keys = Keys(service=service, shards=write_shards)
    return TaggedEvents(
        driver=place.driver(patience, {events: EVENTS.kind, tags: TAGS.kind}),
        site=TagSite(events=events, tags=tags, keys=keys, type_heads=type_heads),
        consistent=consistent,
        reads_at_once=reads_at_once,
    )


def open_projection_states(
    table: str,
    *,
    bucket: str = "",
    prefix: str = PROJECTIONS,
    service: str = "",
    inline_bytes: int = INLINE_BYTES,
    cache_bytes: int = 0,
    patience: Patience = DEFAULT,
    place: Place = HERE,
) -> ProjectionStates:
    """States of projections in their table, large ones in a bucket.

    Args:
        bucket: of large states; without one they are refused.
        prefix: of keys in the bucket.
        service: tenant whose states these are; empty for a table of one tenant.
        inline_bytes: states that are larger when compressed are large; at most 300,000.
        cache_bytes: of large states, as compressed, kept in this process; 0 keeps none.
    """
    objects = place.objects(bucket)
    return ProjectionStates(
        driver=place.driver(patience, {table: PROJECTION_STATES.kind}),
        table=table,
        objects=CachedObjects(objects, cache_bytes) if cache_bytes else objects,
        keys=Keys(service=service),
        prefix=prefix,
        inline_bytes=inline_bytes,
    )
