"""The store through the library: the same tables, without gateway and functions in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from botocore.config import Config

from epochal.codec import json
from epochal.contrib.local.deploy import LocalDeployment
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.wire.http import KEPT
from epochal.feed.reader import FeedReader, reader_of
from epochal.feed.stream_history import StreamHistory
from epochal.index.checkpoints import parse_checkpoint
from epochal.model.events import Unfold
from epochal.model.expected_version import NO_STREAM
from epochal.model.outcomes import Appended, Undetermined
from epochal.model.outcomes import Conflict as StreamConflict
from epochal.model.tokens import parse_token
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams, streams_of
from examples.flights.aircraft import SNAPSHOT, read_snapshot
from examples.flights.happenings import Batch
from examples.flights.stores import Conflict, Item, Page, Standing, Written

PAGE: Final = 50_000
"""Items of a page, many at once: each stream among them is read once for all of its events in the page."""

SECONDS: Final = 60.0
"""That a page may take to walk."""


class LibraryStore:
    """Two tables, of streams and of the index. Safe under threads."""

    def __init__(self, streams: Streams, index_table: str, feed: FeedReader | None = None) -> None:
        self._streams = streams
        self._feed = feed or FeedReader(
            driver=streams.driver, table=index_table, histories=(StreamHistory(streams),)
        )

    @classmethod
    def of(cls, deployment: LocalDeployment) -> LibraryStore:
        """The tables of a deployment."""
        client = deployment.endpoint.client("dynamodb", config=Config(max_pool_connections=KEPT))
        driver = Driver(execute=interpreter(client), meter=Meter())
        streams = streams_of(deployment.settings, driver, BodyCodec())
        return cls(
            streams, deployment.settings.index_table, reader_of(deployment.settings, driver, BodyCodec())
        )

    def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
        """One request, mostly."""
        meter = Meter()
        streams = replace(self._streams, driver=replace(self._streams.driver, meter=meter))
        outcome = streams.try_append(
            batch.stream,
            batch.events,
            unfolds=None if snapshot is None else (snapshot,),
            expected=NO_STREAM if token is None else parse_token(token),
        )
        match outcome:
            case Appended():
                return Written(version=outcome.version, token=outcome.token.text(), units=meter.units.write)
            case StreamConflict():
                return Conflict()
            case Undetermined():
                raise AssertionError("nothing is pruned here, so every outcome can be told")

    def load(self, stream: str) -> Standing | None:
        """The stream's Tip."""
        found = self._streams.load(stream, events=False)
        if found is None:
            return None
        states = (
            read_snapshot(json.loads(_inline(each.data))) for each in found.unfolds if each.type == SNAPSHOT
        )
        return Standing(state=next(states, None), token=found.token.text())

    def tails(self) -> dict[int, str]:
        """The feed's partitions."""
        return {each.partition: str(each.tail) for each in self._feed.partitions()}

    def page(self, partition: int, start: str, *, data: bool, wait: int = 0) -> Page:
        """A page of the feed."""
        found = self._feed.page(
            partition, start=parse_checkpoint(start), limit=PAGE, data=data, wait=wait, seconds=SECONDS
        )
        items = (
            Item(
                stream=item.stream,
                index=item.index,
                type=item.type,
                body=None if item.event is None else _inline(item.event.data),
            )
            for item in found.items
        )
        return Page(items=tuple(items), next=str(found.next), at_tail=found.at_tail)


def _inline(body: object) -> bytes:
    if not isinstance(body, bytes):
        raise TypeError("the demo's bodies are small: none is a claim check")
    return body
