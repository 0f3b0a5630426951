"""What the operations share: a store that measures one request, and how an operation is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from epochal.http import problems
from epochal.http.message import Request, Response
from epochal.http.preconditions import etag
from epochal.http.problems import Problem
from epochal.model.outcomes import Conflict
from epochal.plan.units import Units
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams

Operation = Callable[[Request], Response]
Operations = Mapping[str, Operation]
"""By the names in `routes`."""


class Store(Protocol):
    """A dataclass whose requests all go through its driver, as every store is."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def driver(self) -> Driver:
        """What runs its requests."""


S = TypeVar("S", bound=Store)


def measured(store: S, request: Request) -> tuple[S, Meter]:
    """The store for one request."""
    driver, meter = driver_for(request, store.driver)
    return replace(store, driver=driver), meter


def streams_for(streams: Streams, request: Request) -> tuple[Streams, Meter]:
    """`measured`, of streams, whose archive is asked within the same request."""
    driver, meter = driver_for(request, streams.driver)
    return streams.on(driver), meter


def driver_for(request: Request, driver: Driver) -> tuple[Driver, Meter]:
    """The driver for one request: bounded by its time, its cost counted apart from others'."""
    meter = Meter()
    return replace(driver, meter=meter).within(request.seconds), meter


def consumed(units: Units) -> dict[str, float]:
    """What a request cost, as figures for its metrics."""
    return {"ReadUnits": units.read, "WriteUnits": units.write}


def refused(stream: str, conflict: Conflict, units: Units, *, in_header: bool) -> Problem:
    """A write that did not find the stream as expected: 412 for a header's expectation, 409 for the body's."""
    figures = {"Conflicts": 1.0, **consumed(units)}
    if conflict.deleted:
        return deleted(stream, conflict.version, figures)
    members: dict[str, Any] = {"stream": stream, "version": conflict.version}
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{stream} is at version {conflict.version}",
        headers={} if conflict.token is None else {"ETag": etag(conflict.token)},
        figures=figures,
        **members,
    )


def deleted(stream: str, version: int, figures: Mapping[str, float]) -> Problem:
    """The stream carries a tombstone, at the version that it was deleted at."""
    return Problem(
        problems.STREAM_DELETED,
        f"{stream} was deleted at version {version} and takes no more events",
        figures=figures,
        stream=stream,
        version=version,
    )


def not_found(stream: str) -> Problem:
    """There is no such stream."""
    return Problem(problems.STREAM_NOT_FOUND, f"{stream} has no events", stream=stream)
