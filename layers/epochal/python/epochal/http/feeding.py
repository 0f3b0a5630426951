"""The operations of the `feed` function: partitions, pages, long polls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from epochal.feed.reader import FeedReader
from epochal.http import commands, problems, views
from epochal.http.bodies import Link
from epochal.http.message import Request, Response
from epochal.http.problems import Problem
from epochal.http.service import Operations, consumed
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.settings import RESPONSE_BYTES
from epochal.store.driver import Meter

HYDRATION: Final = 4.0
"""Seconds of a request kept for reading events after the waiting and the walking are over."""


def operations(reader: FeedReader, partitions: Sequence[int], link: Link) -> Operations:
    """The operations on an index of these partitions, by name."""
    return {
        "listPartitions": partial(list_partitions, reader, partitions),
        "readFeed": partial(read_feed, reader, partitions, link),
    }


def list_partitions(reader: FeedReader, partitions: Sequence[int], request: Request) -> Response:
    """Every partition and how far it has got; one that nothing was indexed in yet stands at the beginning."""
    commands.nothing(request)
    source, meter = _measured(reader, request)
    found = _tails(source)
    body = views.partitions((number, found.get(number, BEGINNING)) for number in partitions)
    return Response(status=200, body=body, figures=consumed(meter.units))


def read_feed(reader: FeedReader, partitions: Sequence[int], link: Link, request: Request) -> Response:
    """A page of a partition from a checkpoint on, waiting for one at the tail if asked to."""
    command = commands.read_feed(request)
    if command.partition not in partitions:
        raise _no_partition(command.partition)
    source, meter = _measured(reader, request)
    start = command.start
    if start is None:
        start = _tails(source).get(command.partition, BEGINNING)
    reading = max(1.0, request.seconds - HYDRATION)
    found = source.page(
        command.partition,
        start=start,
        limit=command.limit,
        categories=command.categories,
        data=command.data,
        max_bytes=RESPONSE_BYTES,
        seconds=reading,
        wait=min(float(command.wait), reading),
    )
    body = views.feed(command.partition, found, link, data=command.data)
    return Response(
        status=200, body=body, figures={"Items": float(len(found.items)), **consumed(meter.units)}
    )


def _measured(reader: FeedReader, request: Request) -> tuple[FeedReader, Meter]:
    """The reader for one request, as `service.measured` makes a store."""
    meter = Meter()
    return reader.on(replace(reader.driver, meter=meter).within(request.seconds)), meter


def _tails(reader: FeedReader) -> dict[int, Checkpoint]:
    return {each.partition: each.tail for each in reader.partitions()}


def _no_partition(partition: int) -> Problem:
    return Problem(problems.PARTITION_NOT_FOUND, "this feed has no such partition", partition=partition)
