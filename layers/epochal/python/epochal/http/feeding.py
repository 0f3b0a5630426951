"""The operations of the `feed` function: partitions, pages, long polls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from epochal.feed.page_limits import Room
from epochal.feed.reader import FeedReader
from epochal.http import commands, problems, views
from epochal.http.answer_size import LARGEST
from epochal.http.bodies import Link
from epochal.http.message import Request, Response
from epochal.http.problems import Problem
from epochal.http.service import Operations, consumed, driver_for
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.settings import RESPONSE_BYTES
from epochal.store.driver import Meter

EVENTS: Final = 4.0
"""Seconds of a request kept for reading events after the waiting and the walking are over."""

ANSWER: Final = 2.0
"""Seconds of these after which no more events are read."""


def operations(reader: FeedReader, partitions: Sequence[int], link: Link, longest: int) -> Operations:
    """The operations on an index of these partitions, by name; who waits, waits at most so many seconds."""
    return {
        "listPartitions": partial(list_partitions, reader, partitions),
        "readFeed": partial(read_feed, reader, partitions, link, longest),
    }


def list_partitions(reader: FeedReader, partitions: Sequence[int], request: Request) -> Response:
    """Every partition and how far it has got; one that nothing was indexed in yet stands at the beginning."""
    commands.nothing(request)
    source, meter = _measured(reader, request)
    found = _tails(source)
    body = views.partitions((number, found.get(number, BEGINNING)) for number in partitions)
    return Response(status=200, body=body, figures=consumed(meter.units))


def read_feed(
    reader: FeedReader, partitions: Sequence[int], link: Link, longest: int, request: Request
) -> Response:
    """A page of a partition from a checkpoint on, waiting for one at the tail if asked to."""
    command = commands.read_feed(request)
    if command.partition not in partitions:
        raise _no_partition(command.partition)
    source, meter = _measured(reader, request)
    start = command.start
    if start is None:
        start = _tails(source).get(command.partition, BEGINNING)
    shown = views.FeedItems(link)
    reading = max(1.0, request.seconds - EVENTS)
    found = source.page_within(
        _room(source, shown, request.seconds),
        command.partition,
        start=start,
        limit=command.limit,
        categories=command.categories,
        data=command.data,
        seconds=reading,
        wait=min(float(command.wait), longest, reading),
    )
    body = views.feed(command.partition, found, shown)
    return Response(
        status=200, body=body, figures={"Items": float(len(found.items)), **consumed(meter.units)}
    )


def _room(reader: FeedReader, shown: views.FeedItems, seconds: float) -> Room:
    return Room(
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
