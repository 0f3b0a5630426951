"""The pages of the console as a WSGI application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from flask import Flask, Response, render_template, request

from epochal.console import (
    activity,
    feed,
    health,
    overview,
    parked,
    projections,
    reactions,
    search,
    streams,
    tagged,
    trace,
)
from epochal.console.guard import HEADERS, Guard
from epochal.console.services import Services
from epochal.console.show import ago, body, instant, moment, size
from epochal.deployment import Deployment
from epochal.errors import EpochalError, InvalidInput, MissingTable, Refused

Arguments = Mapping[str, str]
Show = Callable[[Deployment, Arguments], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page: where it is, its template, and what it shows of a deployment; or what it does to it."""

    path: str
    name: str
    show: Show
    method: str = "GET"


def pages(services: Services) -> tuple[ConsolePage, ...]:
    """All there are."""
    return (
        ConsolePage(path="/", name="overview", show=partial(overview.show, services)),
        ConsolePage(path="/activity", name="activity", show=partial(activity.show, services)),
        ConsolePage(path="/streams", name="streams", show=streams.recent),
        ConsolePage(path="/streams/<int:partition>/<path:stream>", name="stream", show=streams.history),
        ConsolePage(path="/search", name="search", show=partial(search.show, services)),
        ConsolePage(path="/tagged", name="tagged", show=tagged.show),
        ConsolePage(path="/feed", name="feed", show=feed.show),
        ConsolePage(path="/trace", name="trace", show=trace.show),
        ConsolePage(path="/reactions", name="reactions", show=partial(reactions.show, services)),
        ConsolePage(path="/projections", name="projections", show=projections.show),
        ConsolePage(path="/health", name="health", show=health.show),
        ConsolePage(path="/parked", name="parked", show=partial(parked.ask, services)),
        ConsolePage(path="/parked", name="settled", show=partial(parked.settle, services), method="POST"),
    )


def application(
    deployment: Deployment, name: str, services: Services | None = None, guard: Guard | None = None
) -> Flask:
    """The console of a deployment, which pages call `name`; without a guard whoever can open its port is let in."""
    guard = guard or Guard()
    app = Flask(__name__)
    app.jinja_env.filters.update(ago=ago, body=body, instant=instant, moment=moment, size=size)
    app.jinja_env.globals.update(deployment=name, token=guard.token)
    app.before_request(guard.admit)
    app.after_request(_with_headers)
    for page in pages(services or Services()):
        shown = partial(_shown, deployment, page)
        app.add_url_rule(page.path, page.name, shown, methods=[page.method])
    return app


def _shown(deployment: Deployment, page: ConsolePage, **place: Any) -> tuple[str, int]:
    driver, meter = deployment.driver.metered()
    status, told = 200, None
    values: dict[str, Any] = {}
    with meter:
        try:
            arguments = {**(request.form if page.method == "POST" else request.args), **place}
            values = page.show(replace(deployment, driver=driver), arguments)
        except EpochalError as error:
            status, told = _status(error), str(error)
    template = f"{page.name}.html" if told is None else "error.html"
    return render_template(template, page=page.name, told=told, cost=meter.capacity, **values), status


def _status(error: EpochalError) -> int:
    match error:
        case InvalidInput():
            return 400
        case Refused():
            return 403
        case MissingTable():
            return 404
        case _:
            return 502


def _with_headers(response: Response) -> Response:
    response.headers.update(HEADERS)
    return response
