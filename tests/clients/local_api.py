"""The API over tables in memory, on a port of this machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from tests.doors.gateway import Gateway, StartResponse
from tests.support.api import Api

STOPPING: Final = 0.02
"""Seconds after which the server notices that it is to stop."""


Beside = Callable[[dict[str, Any], StartResponse], Iterable[bytes] | None]
"""Answers what is no request of the API, such as a page; returns None for what is one."""


def _nothing(environ: dict[str, Any], start_response: StartResponse) -> None:
    """Leave every request to the API."""


class _Indexed:
    """Serves one request at a time, and lets the indexer run before each that reads the feed."""

    def __init__(self, api: Api, beside: Beside) -> None:
        self._api = api
        self._beside = beside
        self._gateway = Gateway(api)
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        with self._lock:
            if (page := self._beside(environ, start_response)) is not None:
                return page
            if environ["PATH_INFO"].startswith("/feed"):
                self._api.index()
            return self._gateway({**environ, "REQUEST_URI": environ["RAW_URI"]}, start_response)


class _Server(ThreadingMixIn, WSGIServer):
    """Accepts connections side by side."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that clients cut."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(WSGIRequestHandler):
    """Keeps the address of a request as it was sent."""

    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), "RAW_URI": self.path}

    def log_message(self, format: str, *values: Any) -> None:  # noqa: A002  the name is the standard library's
        """Say nothing of requests."""


@contextmanager
def local_api(api: Api, beside: Beside = _nothing) -> Iterator[str]:
    """Serve an API, and yield its address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.set_app(_Indexed(api, beside))
    thread = threading.Thread(target=server.serve_forever, args=(STOPPING,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
