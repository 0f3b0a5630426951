"""A function's process as Lambda starts and ends it, with a stand-in for Lambda's interface of extensions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from epochal.hosting.process_end import RUNTIME

FUNCTION = """
import time
from epochal.hosting.metrics import metrics_of
metrics = metrics_of("append")
for events in (1, 2):
    metrics.add(operation="appendEvents", times={"Latency": 1.0}, counts={"Events": events})
print("served", flush=True)
time.sleep(60)
"""


class Extensions(BaseHTTPRequestHandler):
    """Takes an extension, and has no event for it."""

    status = 200
    asked: list[str]
    over: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(f"{self.path} {self.headers['Lambda-Extension-Name']} {json.loads(body)}")
        self.send_response(self.status)
        self.send_header("Lambda-Extension-Identifier", "e-1")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_GET(self) -> None:
        self.asked.append(f"{self.path} {self.headers['Lambda-Extension-Identifier']}")
        self.over.wait(60)

    def log_message(self, *_: object) -> None:
        """Not on the test's output."""


@pytest.fixture(params=[200, 403])
def extensions(request: pytest.FixtureRequest) -> Iterator[tuple[str, type[Extensions]]]:
    class Here(Extensions):
        status = request.param
        asked: list[str] = []  # noqa: RUF012  one for each test, as the class is
        over = threading.Event()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", Here
    Here.over.set()
    server.shutdown()
    server.server_close()


def _until(met: Callable[[], bool]) -> None:
    """Wait for what another process does; what it does not do is for the test to say."""
    ends = time.monotonic() + 120
    while not met() and time.monotonic() < ends:
        time.sleep(0.01)


def test_values_that_are_kept_are_written_when_lambda_ends_the_process_or_none_is_kept(
    extensions: tuple[str, type[Extensions]],
) -> None:
    place, here = extensions
    function = subprocess.Popen(
        [sys.executable, "-c", FUNCTION],
        env={**os.environ, RUNTIME: place},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert function.stdout is not None
    served = []
    for line in function.stdout:
        if line == "served\n":
            break
        served.append(json.loads(line)["Events"])
    _until(lambda: len(here.asked) > (here.status == 200))
    function.send_signal(signal.SIGTERM)
    ended = [json.loads(line)["Events"] for line in function.stdout]
    function.wait(120)
    function.stdout.close()
    register = "/2020-01-01/extension/register epochal {'events': []}"
    if here.status == 200:
        assert (served, ended, function.returncode) == ([], [3], 0)
        assert here.asked == [register, "/2020-01-01/extension/event/next e-1"]
    else:
        assert (served, ended) == ([1, 2], [])
        assert here.asked == [register]


def test_a_function_that_finds_nobody_to_ask_keeps_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FUNCTION.replace("time.sleep(60)", "")],
        env={**os.environ, RUNTIME: "127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line)["Events"] for line in done.stdout.splitlines()[:-1]] == [1, 2]
