"""How operations run on a deployment: each opens what it needs once, and is measured for each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from epochal.deployment import Deployment
from epochal.http.bodies import text_of
from epochal.http.operation import Operation, Request, Response
from epochal.http.problems import ROUTE_NOT_FOUND, Problem
from epochal.plan.values import Units
from epochal.store.driver import Driver, Meter

if TYPE_CHECKING:
    from epochal.store.streams import Streams

Perform = Callable[[Request], Response]


class Performers:
    """The functions that perform operations on one deployment, each imported and opened when first asked for."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._opened: dict[tuple[str, str], Any] = {}

    def of(self, operation: Operation) -> Perform:
        """What answers the operation's requests."""
        if operation.table and not self._deployment.settings.table(operation.table):
            return partial(_left_out, operation.table)
        module, opened = import_module(operation.module), (operation.module, operation.store)
        if opened not in self._opened:
            which = (operation.store,) if operation.store else ()
            self._opened[opened] = module.opened(self._deployment, *which)
        return partial(getattr(module, operation.perform), self._opened[opened])


def _left_out(kind: str, _: Request) -> Response:
    detail = f"this deployment has no table of {kind}: its stage leaves that layout out"
    raise Problem(ROUTE_NOT_FOUND, detail)


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
    return replace(driver, meter=meter).within(request.seconds), meter


def answer(
    meter: Meter,
    view: Any,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    figures: Mapping[str, float] | None = None,
) -> Response:
    """A JSON value as an answer; what it cost joins its figures."""
    figures = {**(figures or {}), **consumed(meter.units)}
    return Response(status=status, body=text_of(view), headers=headers or {}, figures=figures)


def appends(events: Sequence[object], *, replayed: bool) -> dict[str, float]:
    """Figures of an append of these events; none where an earlier request has made it."""
    return {} if replayed else {"Appends": 1.0, "Events": float(len(events))}


def consumed(units: Units) -> dict[str, float]:
    """What a request cost, as figures for its metrics."""
    return {"ReadUnits": units.read, "WriteUnits": units.write}
