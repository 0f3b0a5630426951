"""The warning that Lambda gives a process before it ends the process's environment.

Lambda sends SIGTERM, half a second before it kills, only to environments that have an extension. So the process
registers one in its own name, which subscribes to no events: it delays no invocation. An extension has to wait for its
next event, or the function's start would never be over; none comes, so a thread waits for good.

Python's runtime handles the signal from 3.12 on: an older one waits for invocations in its main thread, where no
handler runs.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from http.client import HTTPConnection


RUNTIME: Final = "AWS_LAMBDA_RUNTIME_API"
"""Environment variable with the address of Lambda's API for runtimes and extensions; unset outside of Lambda."""

_FROM: Final = "/2020-01-01/extension"
_NAME: Final = "epochal"
_ANSWER_SECONDS: Final = 1.0
"""Timeout of the registration, in seconds. The API is on the same machine, and a cold start waits for it."""


def at_end(act: Callable[[], object], environment: Mapping[str, str]) -> bool:
    """Have `act` called when Lambda ends this process; return False if Lambda would not announce the end."""
    place = environment.get(RUNTIME, "")
    if not place or threading.current_thread() is not threading.main_thread():
        return False
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415  Lambda's runtime has it, nobody else needs it

    try:
        identity = _register(HTTPConnection(place, timeout=_ANSWER_SECONDS))
    except (OSError, HTTPException):
        return False
    if not identity:
        return False

    def end(*_: object) -> None:
        act()
        # An ordinary exit would wait for the threads that wait for Lambda.
        os._exit(0)

    def wait() -> None:
        connection = HTTPConnection(place)
        with suppress(OSError, HTTPException):
            connection.request(
                "GET", f"{_FROM}/event/next", headers={"Lambda-Extension-Identifier": identity}
            )
            connection.getresponse()

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=wait, daemon=True).start()
    return True


def _register(connection: HTTPConnection) -> str:
    """Register this process as an extension, and return its identifier; empty where that is refused."""
    try:
        headers = {"Lambda-Extension-Name": _NAME, "Content-Type": "application/json"}
        connection.request("POST", f"{_FROM}/register", body='{"events": []}', headers=headers)
        response = connection.getresponse()
        response.read()
        return response.headers.get("Lambda-Extension-Identifier", "") if response.status == 200 else ""  # noqa: PLR2004
    finally:
        connection.close()
