"""Opening stores on the tables of an account: what an application does once, at its start.

Clients come from the usual AWS chain of credentials and region. A store is safe to share between threads. Before its
first request to a table it looks, once and with a request that no meter counts, whether the table is of its kind, and
raises `WrongTable` where it is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from epochal.deployment import Deployment
from epochal.dynamo.interpreter import execute_through, lazily, open_deployment
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
    from epochal.store.tagged import TaggedEvents

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where tables are: an endpoint other than AWS's own, and a region other than the chain's.

    Attributes:
        carrier: what carries requests there: `light`, which takes a third of the CPU of `boto3`, a client of that; and
            steps aside for it where there is a proxy, or something that traces or mocks boto3's clients.
    """

    endpoint: str | None = None
    region: str | None = None
    carrier: str = LIGHT

    def deployment(self, settings: Settings, **how: Any) -> Deployment:
        """The deployment that these settings tell of, as `epochal.dynamo.interpreter` makes it."""
        s3 = lazily(partial(_s3_client, self.endpoint, self.region))
        return open_deployment(settings, execute=self.execute(), s3=s3, **how)

    def opened(self, settings: Settings, patience: Patience = DEFAULT) -> Deployment:
        """The same, of tables that a caller named: each is checked before it is used."""
        return self.deployment(settings, patience=patience, kinds=settings.kinds)

    def driver(self) -> Driver:
        """A driver with a meter of its own."""
        return self.deployment(Settings()).driver

    def execute(self) -> Execute:
        """An interpreter there."""
        return execute_through(self.carrier, endpoint=self.endpoint, region=self.region)

    def blocking(self, service: T) -> T:
        """A service whose calls block, as a program there may call it."""
        return service


def _s3_client(endpoint: str | None, region: str | None) -> Any:
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
    """Named streams in a table of the `pages` layout. Their events may carry tags (`Streams.tagged`).

    Args:
        bucket: of bodies too large for an item; without one they are refused.
        types: those of events with tags that may be asked for by type alone. Each of them has a stream, which every
            such event is appended to; so they are the same for everyone who uses the table, from the first event on.
        everything: all events with tags may be asked for, likewise.
        patience: how long to wait out throttling and outages.
    """
    settings = Settings.of(
        streams_table=table, bucket=bucket, tagged_types=tuple(types), tagged_everything=everything
    )
    return place.opened(settings, patience).streams


def open_feed(index_table: str, *stores: object, place: Place = HERE) -> FeedReader:
    """The feed; with a layout's store also the events of that layout themselves.

    Raises:
        InvalidInput: two of the stores are of one layout, or one is of none; or a table is two things.
    """
    from epochal.feed.history import history_of  # noqa: PLC0415  a program that only appends does without
    from epochal.feed.reader import FeedReader  # noqa: PLC0415

    histories = tuple(map(history_of, stores))
    names = [history.name for history in histories]
    if len({*names}) < len(names):
        raise InvalidInput("stores", "must be of a layout each")
    tables = {name: store.table for name, store in zip(names, stores, strict=True) if hasattr(store, "table")}
    distinct(**tables, index_table=index_table)
    driver = place.opened(Settings.of(index_table=index_table)).driver
    return FeedReader(driver=driver, table=index_table, histories=histories)


def open_read_models(table: str, *, place: Place = HERE) -> ReadModels:
    """Read models in a table of their own (`layout.port.READ_MODELS`)."""
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
    """Tagged events in a table of the `pages` layout, beside its streams: `open_streams(…).tagged`, with its arguments.

    The format may change before version 1.0.
    """
    streams = open_streams(
        table, bucket=bucket, types=types, everything=everything, patience=patience, place=place
    )
    return streams.tagged
