"""The operations that read the feed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.page_limits import PageBounds
from epochal.feed.reader import FeedReader
from epochal.http import problems
from epochal.http.answer_size import LARGEST
from epochal.http.bodies import Link
from epochal.http.document import no_document
from epochal.http.feed import representation
from epochal.http.feed.representation import FeedItems
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, driver_for
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, Query, nothing
from epochal.index.checkpoints import BEGINNING, Checkpoint, parse_checkpoint
from epochal.layout.registry import partitions_of
from epochal.settings import MAX_WAIT_SECONDS, RESPONSE_BYTES
from epochal.store.driver import Meter

TAIL: Final = "tail"
_CATEGORY: Final = re.compile(r"[A-Za-z0-9_.:~@+=]{1,512}", re.ASCII)
_PARTITION: Final = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
EVENTS: Final = 4.0
"""Seconds of a request kept for reading events after the waiting and the walking are over."""

ANSWER: Final = 2.0
"""Seconds of these after which no more events are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the operations run on: an index of these partitions; who waits, waits at most `longest` seconds."""

    feed: FeedReader
    partitions: Sequence[int]
    link: Link
    longest: int


def opened(deployment: Deployment) -> Reading:
    """The feed of a deployment."""
    settings = deployment.settings
    return Reading(
        feed=deployment.feed,
        partitions=partitions_of(settings),
        link=deployment.bucket.links.download,
        longest=settings.feed_wait_seconds,
    )


def list_partitions(reading: Reading, request: Request) -> Response:
    """Every partition and how far it has got; one that nothing was indexed in yet stands at the beginning."""
    nothing(request)
    source, meter = _measured(reading.feed, request)
    found = _tails(source)
    body = representation.partitions((number, found.get(number, BEGINNING)) for number in reading.partitions)
    return Response(status=200, body=body, figures=consumed(meter.units))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFeed:
    """`GET /feed/{partition}`.

    Attributes:
        start: a checkpoint; None for the tail as it is now.
        wait: seconds to wait at the tail for something to come; the deployment may wait fewer.
    """

    partition: int
    start: Checkpoint | None
    limit: int
    data: bool
    categories: frozenset[str] | None
    wait: int


def _parse_read_feed(request: Request) -> ReadFeed:
    """Parse a read of a page of the feed."""
    no_document(request)
    query = Query(request, ("from", "limit", "data", "wait"), lists=("category",))
    start, categories = query.text("from"), query.texts("category")
    for category in categories:
        if not _CATEGORY.fullmatch(category):
            raise InvalidInput("category", "must be what precedes the first - of stream names")
    return ReadFeed(
        partition=_partition(request.path["partition"]),
        start=None if start == TAIL else parse_checkpoint("0" if start is None else start),
        limit=query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
        data=query.flag("data"),
        categories=frozenset(categories) or None,
        wait=query.whole("wait", 0, MAX_WAIT_SECONDS) or 0,
    )


def read_feed(reading: Reading, request: Request) -> Response:
    """A page of a partition from a checkpoint on, waiting for one at the tail if asked to."""
    command = _parse_read_feed(request)
    if command.partition not in reading.partitions:
        raise _no_partition(command.partition)
    source, meter = _measured(reading.feed, request)
    start = command.start
    if start is None:
        start = _tails(source).get(command.partition, BEGINNING)
    shown = FeedItems(reading.link)
    seconds = max(1.0, request.seconds - EVENTS)
    found = source.page_within(
        _bounds(source, shown, request.seconds),
        command.partition,
        start=start,
        limit=command.limit,
        categories=command.categories,
        data=command.data,
        seconds=seconds,
        wait=min(float(command.wait), reading.longest, seconds),
    )
    body = representation.feed(command.partition, found, shown)
    return Response(
        status=200, body=body, figures={"Items": float(len(found.items)), **consumed(meter.units)}
    )


def _bounds(reader: FeedReader, shown: FeedItems, seconds: float) -> PageBounds:
    return PageBounds(
        max_bytes=RESPONSE_BYTES,
        largest=LARGEST,
        size_of=shown.size_of,
        until=reader.driver.clock() + seconds - ANSWER,
    )


def _measured(reader: FeedReader, request: Request) -> tuple[FeedReader, Meter]:
    """The reader for one request, and all its stores."""
    driver, meter = driver_for(request, reader.driver)
    return reader.on(driver), meter


def _tails(reader: FeedReader) -> dict[int, Checkpoint]:
    return {each.partition: each.tail for each in reader.partitions()}


def _no_partition(partition: int) -> Problem:
    return Problem(problems.PARTITION_NOT_FOUND, "this feed has no such partition", partition=partition)


def _partition(text: str) -> int:
    if not _PARTITION.fullmatch(text):
        raise InvalidInput("partition", "must be a partition's number, as GET /feed lists them")
    return int(text)
