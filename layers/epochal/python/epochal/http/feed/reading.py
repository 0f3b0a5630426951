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
from epochal.http.performers import answer, driver_for
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, QueryParameters, nothing
from epochal.index.checkpoints import BEGINNING, Checkpoint, parse_checkpoint
from epochal.layout.registry import partitions_of
from epochal.model.aggregates import UNDECLARED
from epochal.model.names import TAG_STREAMS
from epochal.settings import MAX_WAIT_SECONDS, RESPONSE_BYTES
from epochal.store.driver import Meter

TAIL: Final = "tail"
_CATEGORY: Final = re.compile(rf"({re.escape(TAG_STREAMS)})?[A-Za-z0-9_.:~@+=]{{1,512}}", re.ASCII)
"""Of streams, and of tags that are streams. A type of aggregates that holds `-` is known by being declared."""

_PARTITION: Final = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
EVENTS: Final = 4.0
"""Seconds of a request kept for reading events after the waiting and the walking are over."""

ANSWER: Final = 2.0
"""Seconds of these after which no more events are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the operations run on: an index of these partitions; a reader waits at most `longest` seconds."""

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
    """Every partition and how far it has got; an empty one is at the beginning."""
    nothing(request)
    source, meter = _measured(reading.feed, request)
    found = _tails(source)
    tails = ((number, found.get(number, BEGINNING)) for number in reading.partitions)
    return answer(meter, representation.partitions(tails))


def read_feed(reading: Reading, request: Request) -> Response:
    """A page of a partition from a checkpoint on, waiting for one at the tail if asked to."""
    no_document(request)
    query = QueryParameters(request, ("from", "limit", "data", "wait"), lists=("category",))
    start, categories = query.text("from"), query.texts("category")
    types = reading.feed.types or UNDECLARED
    if not all(_CATEGORY.fullmatch(each) or each in types for each in categories):
        rule = "must be what precedes the first - of stream names, a declared type of aggregates, or $tag- and a group"
        raise InvalidInput("category", rule)
    partition = _partition(request.path["partition"])
    given = None if start == TAIL else parse_checkpoint("0" if start is None else start)
    limit, data = query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT, query.flag("data")
    wait = query.whole("wait", 0, MAX_WAIT_SECONDS) or 0
    if partition not in reading.partitions:
        raise Problem(problems.PARTITION_NOT_FOUND, "this feed has no such partition", partition=partition)
    source, meter = _measured(reading.feed, request)
    begin = _tails(source).get(partition, BEGINNING) if given is None else given
    shown = FeedItems(reading.link)
    seconds = max(1.0, request.seconds - EVENTS)
    found = source.page_within(
        _bounds(source, shown, request.seconds),
        partition,
        start=begin,
        limit=limit,
        categories=frozenset(categories) or None,
        data=data,
        seconds=seconds,
        # The deployment may let a reader wait for less than is asked for.
        wait=min(float(wait), reading.longest, seconds),
    )
    return answer(
        meter, representation.feed(partition, found, shown), figures={"Items": float(len(found.items))}
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


def _partition(text: str) -> int:
    if not _PARTITION.fullmatch(text):
        raise InvalidInput("partition", "must be a partition's number, as GET /feed lists them")
    return int(text)
