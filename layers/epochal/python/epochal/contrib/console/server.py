"""The console as a WSGI application: who may call it, its pages, and a server for this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Final

from flask import Flask, Response, abort, render_template, request
from werkzeug.serving import BaseWSGIServer, make_server

from epochal.contrib.console import overview, reactions, streams
from epochal.contrib.console.page import Services, ago, body, instant, moment, size
from epochal.deployment import Deployment
from epochal.errors import EpochalError, GroupMissing, InvalidInput, MissingTable, Refused
from epochal.lazy_dataclasses import dataclass, field, replace

# Who may call the console: whoever has the address that the command printed.
#
# its name    127.0.0.1 or localhost: any other is the name of a foreign page that resolves to this machine
# the key     in the address, as the password of HTTP's basic authentication: other users of the machine do not have it
# its pages   requests of foreign pages are refused: they come from the console's pages, or from an opened address
# a write     comes from a page of the console: by its origin, and by a token that only those pages have
#
# No cookie: browsers send those of one port to all ports of a machine, so that whatever program serves another would
# get the key. The credentials of basic authentication go to the same scheme, name and port alone (RFC 7617, 2.2).

LOCAL: Final = {"127.0.0.1", "localhost", "[::1]"}
"""Host names by which a browser may call the console."""

USER: Final = "epochal"
"""User name of the basic authentication; the key is the password."""

TOKEN: Final = "token"  # noqa: S105  the name of a field

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    # With no referrer at all a browser would not tell the origin of our own forms either.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every page. Bodies are other people's text: no page runs or loads anything but the console's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Access check of the console: host name, key, origin and form token of a request.

    Attributes:
        key: password that a browser must send; with an empty key everybody who can open the port is let in.
        token: secret in each form that writes.
    """

    key: str = ""
    token: str = field(default_factory=lambda: token_urlsafe(32))

    def admit(self) -> Response | None:
        """Return None to admit a request, or a response that asks for the key; raise 403 for a foreign one.

        Raises:
            Forbidden: the request comes by a foreign name or from a foreign page, or is a write without the token.
        """
        name = request.host if request.host in LOCAL else request.host.rpartition(":")[0]
        if name not in LOCAL:
            abort(403, "The console answers only requests to 127.0.0.1 or localhost.")
        if self.key and not self._has_key():
            return _asked_for_key()
        # Browsers that do not send this header are checked by the origin of their writes alone.
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            abort(403, "This request comes from another site. Open the address that the command printed.")
        if request.method not in ("GET", "HEAD"):
            self._check_write()
        return None

    def _has_key(self) -> bool:
        """Whether the request's basic authentication has the user name and the key."""
        authorization = request.authorization
        if authorization is None or authorization.type != "basic":
            return False
        return _same(authorization.username or "", USER) and _same(authorization.password or "", self.key)

    def _check_write(self) -> None:
        """Raise 403 unless a write comes from a page of this console, with its token."""
        if request.headers.get("Origin") != request.host_url.rstrip("/"):
            abort(403, "Writes are accepted only from pages of the console.")
        if not _same(request.form.get(TOKEN, ""), self.token):
            abort(403, "This page is from a console that has ended. Open the console again.")


def address(port: int, key: str) -> str:
    """Return the URL of a console on this machine, with the key in it."""
    return f"http://{USER}:{key}@127.0.0.1:{port}/"


def _asked_for_key() -> Response:
    """Make a response of status 401 that asks the browser for the key."""
    explanation = (
        f"Open the address that the command printed, or log in as {USER} with the key from that address.\n"
    )
    realm = f'Basic realm="Epochal console, port {request.host.rpartition(":")[2]}", charset="UTF-8"'
    return Response(
        explanation, 401, {"WWW-Authenticate": realm, "Content-Type": "text/plain; charset=utf-8"}
    )


def _same(actual: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return compare_digest(actual.encode(), expected.encode())


# The pages of the console as a WSGI application.

Arguments = Mapping[str, str]
Show = Callable[[Deployment, Arguments], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page of the console: its path, name, HTTP method, and the function for its content.

    Attributes:
        path: path of the page, as a rule of Flask.
        name: name of the page and of its template.
        show: function that returns the template's values for a deployment, or writes to the deployment.
        method: HTTP method; pages that write have `POST`.
    """

    path: str
    name: str
    show: Show
    method: str = "GET"


def pages(services: Services) -> tuple[ConsolePage, ...]:
    """Return all pages of the console, with the services that they use."""
    return (
        ConsolePage(path="/", name="overview", show=partial(overview.show, services)),
        ConsolePage(path="/activity", name="activity", show=partial(overview.show_activity, services)),
        ConsolePage(path="/streams", name="streams", show=streams.recent),
        ConsolePage(path="/streams/<int:partition>/<path:stream>", name="stream", show=streams.history),
        ConsolePage(path="/search", name="search", show=partial(streams.show_found, services)),
        ConsolePage(path="/tagged", name="tagged", show=streams.show_query),
        ConsolePage(path="/feed", name="feed", show=overview.show_feed),
        ConsolePage(path="/trace", name="trace", show=streams.show_conversation),
        ConsolePage(path="/reactions", name="reactions", show=partial(reactions.show, services)),
        ConsolePage(path="/timers", name="timers", show=partial(reactions.show_timers, services)),
        ConsolePage(path="/projections", name="projections", show=streams.show_projections),
        ConsolePage(path="/health", name="health", show=overview.health),
        ConsolePage(path="/parked", name="parked", show=partial(reactions.show_confirmation, services)),
        ConsolePage(path="/groups", name="group", show=reactions.show_group_confirmation),
        ConsolePage(path="/groups", name="steered", show=partial(reactions.steer, services), method="POST"),
        ConsolePage(
            path="/parked",
            name="settled",
            show=partial(reactions.apply_parked_action, services),
            method="POST",
        ),
    )


def application(
    deployment: Deployment, name: str, services: Services | None = None, guard: Guard | None = None
) -> Flask:
    """Make the Flask application of a deployment's console; pages show `name` as its name.

    Without a guard everybody who can open its port is let in.
    """
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
    """Render a page with its cost, or the page of an error; return the HTML and the status."""
    driver, meter = deployment.driver.metered()
    status, message = 200, None
    values: dict[str, Any] = {}
    with meter:
        try:
            arguments = {**(request.form if page.method == "POST" else request.args), **place}
            values = page.show(replace(deployment, driver=driver), arguments)
        except EpochalError as error:
            status, message = _status(error), str(error)
    template = f"{page.name}.html" if message is None else "error.html"
    return render_template(template, page=page.name, told=message, cost=meter.capacity, **values), status


def _status(error: EpochalError) -> int:
    """Return the HTTP status for an error: 400, 403, 404 or 502."""
    match error:
        case InvalidInput():
            return 400
        case Refused():
            return 403
        case MissingTable() | GroupMissing():
            return 404
        case _:
            return 502


def _with_headers(response: Response) -> Response:
    """Add the security headers to a response."""
    response.headers.update(HEADERS)
    return response


def server(
    deployment: Deployment,
    name: str,
    port: int = 0,
    *,
    services: Services | None = None,
    guard: Guard | None = None,
) -> BaseWSGIServer:
    """Make a server of the console on 127.0.0.1, at a free port if `port` is 0.

    Its `serve_forever` runs the console.
    """
    return make_server("127.0.0.1", port, application(deployment, name, services, guard), threaded=True)
