"""A server that does what a case says: it answers, cuts connections at a byte, or is silent.

A case is played under a prefix of its own, so that one server plays many cases at once:

    with ScriptedServer() as server:
        script = server.play(case)       # script.url is what the client is opened with
        ...                              # the call
        script.finish()                  # raises AssertionError for requests that differ or are missing
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

from tests.clients.cases import Case, Matcher

SILENCE: Final = 5.0
"""Seconds that a silent server keeps a connection open."""

STOPPING: Final = 0.02
"""Seconds after which the server notices that it is to stop."""

RESET: Final = struct.pack("ii", 1, 0)
"""`SO_LINGER` of 0 seconds: the connection is reset when it is closed."""

UNEXPECTED: Final = 400
"""Status of the answer to a request that differs from its case; no client repeats such a request."""


class Script:
    """One case that is played once.

    Attributes:
        url: address to open the client with.
    """

    def __init__(self, case: Case, url: str) -> None:
        self.url = url
        self._case = case
        self._lock = threading.Lock()
        self._matcher = Matcher()
        self._differences: list[str] = []
        self._played = 0
        self._last = time.monotonic()

    def finish(self) -> None:
        """Raise `AssertionError` unless all requests of the case were made, and no others."""
        with self._lock:
            assert not self._differences, f"{self._case.name}: {self._differences}"
            count = len(self._case.exchanges)
            assert self._played == count, f"{self._case.name}: {self._played} requests of {count} were made"

    def next_exchange(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Compare a request with the next one of the case, and return what to do with it."""
        with self._lock:
            now, number = time.monotonic(), self._played
            self._played += 1
            if number >= len(self._case.exchanges):
                return self._refuse(f"a request too many: {request['method']} {request['path']}")
            exchange = self._case.exchanges[number]
            waited, self._last = now - self._last, now
            if waited < exchange.get("after", 0):
                return self._refuse(f"request {number} came after {waited:.3f} s")
            difference = self._difference(exchange["request"], request)
            return exchange if difference is None else self._refuse(f"request {number}: {difference}")

    def end_of_request(self, size: int) -> int:
        """Return how many bytes of the next request's body are read, of as many as it has."""
        with self._lock:
            upcoming = self._case.exchanges[self._played : self._played + 1]
        place: int = upcoming[0].get("cut", {}).get("request", size) if upcoming else size
        return min(place if place >= 0 else size + 1 + place, size)

    def _refuse(self, difference: str) -> Mapping[str, Any]:
        """Note a difference, and return an exchange that refuses the request."""
        self._differences.append(difference)
        problem = {
            "type": "urn:epochal:problem:invalid-input",
            "title": "The request is not what the case expects",
            "status": UNEXPECTED,
            "detail": difference,
            "instance": "scripted",
        }
        return {"answer": {"status": UNEXPECTED, "headers": PROBLEM_HEADERS, "body": problem}}

    def _difference(self, expected: Mapping[str, Any], request: Mapping[str, Any]) -> str | None:
        """Return where a request differs from the one that the case expects."""
        for name, value in expected.get("headers", {}).items():
            sent = request["headers"].get(name.lower())
            if (value is None or sent is None) and value != sent:
                return f"the header {name} is {sent!r}, not {value!r}"
            found = value and self._matcher.difference(value, sent, exact=True, place=f"the header {name}")
            if found:
                return str(found)
        parts = {"method": expected["method"], "path": expected["path"], "query": expected.get("query", {})}
        if request["whole"] and (request["body"] is not None or "body" in expected):
            parts["body"] = expected.get("body")
        return self._matcher.difference(parts, {name: request[name] for name in parts}, exact=True)


PROBLEM_HEADERS: Final = {"Content-Type": "application/problem+json"}


class ScriptedServer:
    """Plays cases on a port of this machine.

    Attributes:
        url: its address.
    """

    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}
        scripts = self._scripts

        class Handler(_Handler):
            def script(self, number: str) -> Script | None:
                return scripts.get(number)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(STOPPING,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def play(self, case: Case) -> Script:
        """Begin a case, which has the texts of its run (`Case.of_run`)."""
        number = str(len(self._scripts) + 1)
        script = self._scripts[number] = Script(case, f"{self.url}/{number}")
        return script


class _Handler(BaseHTTPRequestHandler):
    """Serves one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def script(self, number: str) -> Script | None:
        """Return the script that is played under a number."""
        raise NotImplementedError

    def log_message(self, format: str, *values: Any) -> None:  # noqa: A002  the name is the standard library's
        """Say nothing of requests."""

    def handle_request(self) -> None:
        """Serve one request as its case says."""
        address = urlsplit(self.path)
        _, number, path = address.path.split("/", 2)
        script = self.script(number)
        if script is None:
            self._send({"status": 404, "body": {"message": "Not Found"}}, None, "")
            return
        size = int(self.headers.get("Content-Length") or 0)
        end = script.end_of_request(size)
        body = self.rfile.read(end)
        request = {
            "method": self.command,
            "path": "/" + unquote(path),
            "query": {name: ",".join(values) for name, values in parse_qs(address.query).items()},
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": json.loads(body) if body and end == size else None,
            "whole": end == size,
        }
        exchange = script.next_exchange(request)
        cut = exchange.get("cut", {})
        if "request" in cut:
            self._reset()
        elif exchange.get("silence"):
            time.sleep(SILENCE)
            self._reset()
        else:
            self._send(exchange["answer"], cut.get("answer"), script.url)

    do_GET = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815  the names are the standard library's

    def _send(self, answer: Mapping[str, Any], count: int | None, url: str) -> None:
        """Send an answer, or only its first bytes.

        Args:
            count: how many bytes are sent before the connection is reset; None for all.
            url: address of the server, which answers may name.
        """
        content = b""
        headers = {**answer.get("headers", {})}
        if "text" in answer:
            content = answer["text"].encode()
        elif "body" in answer:
            content = json.dumps(answer["body"]).replace("$url", url).encode()
            headers.setdefault("Content-Type", "application/json")
        lines = [f"HTTP/1.1 {answer['status']} -", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
        data = head.encode() + content
        if count is None:
            self.wfile.write(data)
            return
        self.wfile.write(data[: count if count >= 0 else len(data) + 1 + count])
        self.wfile.flush()
        self._reset()

    def _reset(self) -> None:
        """Reset the connection."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.connection.close()
