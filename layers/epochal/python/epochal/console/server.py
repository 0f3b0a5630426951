"""Serving the console on this machine."""

from __future__ import annotations

from werkzeug.serving import BaseWSGIServer, make_server

from epochal.console.app import application
from epochal.console.guard import Guard
from epochal.console.services import Services
from epochal.deployment import Deployment


def server(
    deployment: Deployment,
    name: str,
    port: int = 0,
    *,
    services: Services | None = None,
    guard: Guard | None = None,
) -> BaseWSGIServer:
    """A server of the console on 127.0.0.1, at a free port where none is named; `serve_forever` runs it."""
    return make_server("127.0.0.1", port, application(deployment, name, services, guard), threaded=True)
