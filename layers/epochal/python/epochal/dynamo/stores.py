"""Opens stores on the tables of an account: what an application does once, when it starts.

Clients come from the usual AWS chain of credentials and region. A store is safe to share between threads. Before its
first request to a table it checks once, with a request that no meter counts, that the table is of the right kind, and
raises `WrongTable` otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from epochal.deployment import Deployment
from epochal.dynamo.interpreter import execute_through, open_deployment
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.table_kinds import distinct
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Execute
from epochal.settings import LIGHT, Settings
from epochal.store.driver import DEFAULT, Driver, Patience

if TYPE_CHECKING:
    from epochal.feed.reader import FeedReader
    from epochal.read_models.documents import ReadModels
    from epochal.store.streams import Streams
    from epochal.store.tagged_pages import TaggedEvents

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The AWS endpoint and region of the tables, and how requests are sent to them.

    Attributes:
        endpoint: URL of the service that is called instead of AWS's own, such as a local one; None for AWS's own.
        region: region of the tables; None for that of the usual AWS chain.
        carrier: what sends requests: `light`, which takes a third of the CPU of `boto3`, or `boto3`. `light` falls back
            to boto3 if there is a proxy, or something that traces or mocks boto3's clients.
    """

    endpoint: str | None = None
    region: str | None = None
    carrier: str = LIGHT

    def deployment(self, settings: Settings, **how: Any) -> Deployment:
        """Open the deployment that settings describe at this place, as `open_deployment` does.

        Args:
            settings: settings of the deployment.
            how: keyword arguments of `open_deployment`, apart from `execute` and `s3`.
        """
        s3 = lazily(partial(_s3_client, self.endpoint, self.region))
        return open_deployment(settings, execute=self.execute(), s3=s3, **how)

    def opened(self, settings: Settings, patience: Patience = DEFAULT) -> Deployment:
        """Open a deployment of tables that the caller named; each is checked before it is used.

        Args:
            settings: settings that name the tables.
            patience: how long to retry during throttling and outages.
        """
        return self.deployment(settings, patience=patience, kinds=settings.kinds)

    def driver(self) -> Driver:
        """Return a driver, which sends requests to this place and has its own meter of the capacity they consume."""
        return self.deployment(Settings()).driver

    def execute(self) -> Execute:
        """Build the function that executes requests by sending them to this place."""
        return execute_through(self.carrier, endpoint=self.endpoint, region=self.region)

    def blocking(self, service: T) -> T:
        """Return a service with blocking methods in this place's form: unchanged here, in threads at an `AsyncPlace`.

        Args:
            service: service with blocking methods.
        """
        return service


def _s3_client(endpoint: str | None, region: str | None) -> Any:
    """Create an S3 client, importing botocore only now."""
    from epochal.dynamo.clients import s3_client  # noqa: PLC0415  most programs never have a body that large

    return s3_client(endpoint=endpoint, region=region)


HERE = Place()


def open_streams(
    table: str,
    *,
    bucket: str = "",
    types: Iterable[str] = (),
    everything: bool = False,
    patience: Patience = DEFAULT,
    place: Place = HERE,
) -> Streams:
    """Open the named streams in a table of Epochal's own layout (`pages`).

    Their events may carry tags (`Streams.tagged`).

    Args:
        table: name of the table.
        bucket: bucket for bodies that are too large for an item; without one they are refused.
        types: event types that queries may ask for without tags. Each of them has a stream to which every such event
            with tags is also appended, so all users of the table must name the same types, from the first event on.
        everything: queries may ask for all events with tags. The same restriction applies.
        patience: how long to retry during throttling and outages.
        place: where the table is.

    Raises:
        InvalidInput: `table` is an address. The streams behind an HTTP API are of another class, which has the methods
            that the API has: `open_http_streams` opens them. One function for both would return one of two classes, and
            every program would have to ask which.
    """
    if "://" in table:
        rule = (
            f"must be the name of a table, got {table}: "
            "open an HTTP API with epochal.contrib.http_client.open_http_streams"
        )
        raise InvalidInput("table", rule)
    settings = Settings.of(
        streams_table=table, bucket=bucket, tagged_types=tuple(types), tagged_everything=everything
    )
    return place.opened(settings, patience).streams


def open_feed(index_table: str, *stores: object, place: Place = HERE) -> FeedReader:
    """Open a reader of the feed in an index table; with stores, it also returns the events' bodies.

    Args:
        index_table: name of the table of the index.
        stores: stores of the events, at most one of each layout. Without the store of a layout, its events are listed
            without their bodies.
        place: where the index is.

    Raises:
        InvalidInput: two of the stores are of one layout, or one is of none; or a table is two things.
    """
    from epochal.feed.histories import history_of  # noqa: PLC0415  a program that only appends does without
    from epochal.feed.reader import FeedReader  # noqa: PLC0415

    histories = tuple(map(history_of, stores))
    names = [history.name for history in histories]
    if len({*names}) < len(names):
        raise InvalidInput("stores", "must be of different layouts")
    tables = {name: store.table for name, store in zip(names, stores, strict=True) if hasattr(store, "table")}
    distinct(**tables, index_table=index_table)
    driver = place.opened(Settings.of(index_table=index_table)).driver
    return FeedReader(driver=driver, table=index_table, histories=histories)


def open_read_models(table: str, *, place: Place = HERE) -> ReadModels:
    """Open the read models in a table of their own (`layout.tables.READ_MODELS`).

    Args:
        table: name of the table.
        place: where the table is.
    """
    from epochal.read_models.documents import ReadModels  # noqa: PLC0415  likewise

    return ReadModels(driver=place.opened(Settings.of(read_models_table=table)).driver, table=table)


def open_tagged_events(
    table: str,
    *,
    bucket: str = "",
    types: Iterable[str] = (),
    everything: bool = False,
    patience: Patience = DEFAULT,
    place: Place = HERE,
) -> TaggedEvents:
    """Open the tagged events in a table of Epochal's own layout (`pages`): `open_streams(…).tagged`.

    The arguments are those of `open_streams`. The format may change before version 1.0.

    Args:
        table, bucket, types, everything, patience, place: as for `open_streams`.
    """
    streams = open_streams(
        table, bucket=bucket, types=types, everything=everything, patience=patience, place=place
    )
    return streams.tagged
