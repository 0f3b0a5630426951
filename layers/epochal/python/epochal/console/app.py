"""The pages of the console as a WSGI application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from flask import Flask, Response, abort, render_template, request

from epochal.console import feed, overview, reactions, streams, tagged, trace
from epochal.console.show import body, instant
from epochal.deployment import Deployment
from epochal.errors import EpochalError, InvalidInput, MissingTable

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Bodies are other people's text: no page runs or loads anything but what comes with the console."""

LOCAL: Final = {"127.0.0.1", "localhost", "[::1]"}
"""Names that a browser may call the console by; another one is a foreign page that had its name resolved to us."""

Arguments = Mapping[str, str]
Show = Callable[[Deployment, Arguments], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: where it is, its template, and what it shows of a deployment."""

    path: str
    name: str
    show: Show


PAGES: Final = (
    Page(path="/", name="overview", show=overview.show),
    Page(path="/streams", name="streams", show=streams.recent),
    Page(path="/streams/<int:partition>/<path:stream>", name="stream", show=streams.history),
    Page(path="/tagged", name="tagged", show=tagged.show),
    Page(path="/feed", name="feed", show=feed.show),
    Page(path="/trace", name="trace", show=trace.show),
    Page(path="/reactions", name="reactions", show=reactions.show),
)


def application(deployment: Deployment, name: str) -> Flask:
    """The console of a deployment, which pages call `name`."""
    app = Flask(__name__)
    app.jinja_env.filters.update(body=body, instant=instant)
    app.jinja_env.globals.update(deployment=name)
    app.before_request(_refuse_strangers)
    app.after_request(_with_headers)
    for page in PAGES:
        app.add_url_rule(page.path, page.name, partial(_shown, deployment, page))
    return app


def _shown(deployment: Deployment, page: Page, **place: Any) -> tuple[str, int]:
    driver, meter = deployment.driver.metered()
    status, told = 200, None
    values: dict[str, Any] = {}
    with meter:
        try:
            values = page.show(replace(deployment, driver=driver), {**request.args, **place})
        except EpochalError as error:
            status, told = _status(error), str(error)
    template = f"{page.name}.html" if told is None else "error.html"
    return render_template(template, page=page.name, told=told, cost=meter.capacity, **values), status


def _status(error: EpochalError) -> int:
    if isinstance(error, InvalidInput):
        return 400
    return 404 if isinstance(error, MissingTable) else 502


def _refuse_strangers() -> None:
    if request.host.rpartition(":")[0] not in LOCAL and request.host not in LOCAL:
        abort(403, "The console answers to 127.0.0.1 and localhost alone.")


def _with_headers(response: Response) -> Response:
    response.headers.update(HEADERS)
    return response
