"""The warning that Lambda gives a process before it ends its environment.

Lambda sends SIGTERM, half a second before it kills, to environments that have an extension; to others nothing. So the
process registers one in its own name, which asks for no events: it holds up no invocation. It has to wait for its next
event, or the start of the function would never be over; none comes, so a thread waits for good.

Python's runtime takes the signal from 3.12 on: an older one waits for invocations in its main thread, where no handler
runs.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from epochal.metrics.lines import Metrics

RUNTIME: Final = "AWS_LAMBDA_RUNTIME_API"
"""The variable that says where Lambda's interface for a runtime and its extensions is; unset outside of Lambda."""

_FROM: Final = "/2020-01-01/extension"
_NAME: Final = "epochal"
_ANSWER_SECONDS: Final = 1.0
"""It is on the same machine, and a start waits for it."""


def metrics_of(service: str, environment: Mapping[str, str] = os.environ) -> Metrics:
    """The metrics of a function, kept over its invocations where Lambda will say when it is over.

    Call it while the function's module is loaded: later Lambda takes no extension.
    """
    metrics = Metrics(service)
    if at_end(metrics.write_all, environment):
        metrics.keep()
    return metrics


def at_end(act: Callable[[], object], environment: Mapping[str, str]) -> bool:
    """Have `act` called when Lambda ends this environment; False where nobody would say so."""
    place = environment.get(RUNTIME, "")
    if not place or threading.current_thread() is not threading.main_thread():
        return False
    try:
        identity = _register(place)
    except (OSError, http.client.HTTPException):
        return False
    if not identity:
        return False

    def end(*_: object) -> None:
        act()
        # An ordinary exit would wait for the threads that wait for Lambda.
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_wait, args=(place, identity), daemon=True).start()
    return True


def _register(place: str) -> str:
    """The identifier of the extension; empty where it was refused."""
    connection = http.client.HTTPConnection(place, timeout=_ANSWER_SECONDS)
    try:
        headers = {"Lambda-Extension-Name": _NAME, "Content-Type": "application/json"}
        connection.request("POST", f"{_FROM}/register", body='{"events": []}', headers=headers)
        response = connection.getresponse()
        response.read()
        return response.headers.get("Lambda-Extension-Identifier", "") if response.status == 200 else ""  # noqa: PLR2004
    finally:
        connection.close()


def _wait(place: str, identity: str) -> None:
    connection = http.client.HTTPConnection(place)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", f"{_FROM}/event/next", headers={"Lambda-Extension-Identifier": identity})
        connection.getresponse()
