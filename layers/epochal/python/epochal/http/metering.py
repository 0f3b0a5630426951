"""How operations run on a store: the cost of each request is measured, and its time is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from epochal.http.operation import Request
from epochal.lazy_dataclasses import replace
from epochal.store.driver import Driver, Meter

if TYPE_CHECKING:
    from epochal.store.streams import Streams


class MeteredStore(Protocol):
    """A dataclass whose requests all go through its driver, as every store is."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def driver(self) -> Driver:
        """What runs its requests."""


S = TypeVar("S", bound=MeteredStore)


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
    return replace(driver, meter=meter, deadline=driver.clock() + request.seconds), meter
