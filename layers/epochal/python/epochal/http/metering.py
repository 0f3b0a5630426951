"""How operations run on a store: the cost of each request is measured, and its time is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from epochal.http.operation import Request
from epochal.lazy_dataclasses import replace
from epochal.store.driver import Driver, Meter

if TYPE_CHECKING:
    from epochal.store.streams import Streams


class MeteredStore(Protocol):
    """A dataclass that sends all its requests through its driver, as every store does."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def driver(self) -> Driver:
        """Driver that sends the store's requests."""


S = TypeVar("S", bound=MeteredStore)


def measured(store: S, request: Request) -> tuple[S, Meter]:
    """Return a store bound to one request's deadline, and the meter of the request's cost."""
    driver, meter = driver_for(request, store.driver)
    return replace(store, driver=driver), meter


def streams_for(streams: Streams, request: Request) -> tuple[Streams, Meter]:
    """Return a store of streams bound to one request's deadline, with its archive, and the meter."""
    driver, meter = driver_for(request, streams.driver)
    return streams.on(driver), meter


def driver_for(request: Request, driver: Driver) -> tuple[Driver, Meter]:
    """Return a driver bound to one request's deadline, and the meter that counts only its cost."""
    meter = Meter()
    return replace(driver, meter=meter, deadline=driver.clock() + request.seconds), meter
