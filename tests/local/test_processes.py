"""A server is never left behind, and never mistaken for another process."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from epochal.contrib.local import processes
from epochal.contrib.local.errors import PortTaken, ServerFailed
from epochal.contrib.local.processes import Server

HTTP = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]
OWNER = """
import json, sys, time
from dataclasses import asdict
from pathlib import Path
from epochal.contrib.local import processes
server = processes.start("a server", sys.argv[3:], port=processes.free_port(), directory=Path(sys.argv[1]))
if sys.argv[2] == "tied":
    processes.stop_at_exit(server)
print(json.dumps(asdict(server) | {"directory": str(server.directory)}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "server"


@pytest.fixture
def server(directory: Path) -> Iterator[Server]:
    port = processes.free_port()
    server = processes.start("a web server", [*HTTP, str(port)], port=port, directory=directory)
    yield server
    processes.stop(server)


def owned(directory: Path, tie: str, command: Sequence[str]) -> tuple[subprocess.Popen[str], Server]:
    """Another process that started `command`, and what it started."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory), tie, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    server = json.loads(owner.stdout.readline())
    return owner, Server(**server | {"directory": Path(server["directory"])})


def ended(pid: int, seconds: float = 120.0) -> bool:
    """Whether a process that is not our child is gone, or goes soon."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def ready(server: Server) -> bool:
    return processes.answers(server.url)


def test_a_started_server_is_waited_for_until_it_answers(server: Server) -> None:
    processes.wait_until_ready(server, functools.partial(ready, server), seconds=30)
    assert processes.answers(server.url)
    assert processes.alive(server)


def test_a_stopped_server_answers_no_more_and_its_directory_is_gone(server: Server) -> None:
    processes.wait_until_ready(server, functools.partial(ready, server), seconds=30)
    processes.stop(server)
    assert not processes.alive(server)
    assert not processes.answers(server.url)
    assert not server.directory.exists()


def test_a_server_holds_no_lock_and_no_pipe_of_whoever_called_the_program_that_started_it(
    directory: Path,
) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    port = processes.free_port()
    server = processes.start("a web server", [*HTTP, str(port)], port=port, directory=directory)
    try:
        os.close(writing)
        os.set_blocking(reading, False)
        assert os.read(reading, 1) == b"", "nobody has the other end any more"
    finally:
        processes.stop(server)
        os.close(reading)


def test_a_port_is_given_once_however_many_processes_ask() -> None:
    """Of a range so small that they would meet, were each not kept by whoever was given it."""
    first = processes.free_port()
    ask = (
        "from epochal.contrib.local import processes; import sys; "
        f"processes._PORTS = range({first}, {first + 60}); "
        "print(*(processes.free_port() for _ in range(8)), flush=True); sys.stdin.read()"
    )
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    given = [port for each in asking if each.stdout for port in each.stdout.readline().split()]
    for each in asking:
        each.communicate(timeout=120)
    assert len(given) == len(set(given)) == 24


def test_stopping_twice_does_nothing(server: Server) -> None:
    processes.stop(server)
    processes.stop(server)


def test_stopping_ends_what_the_server_started_too(directory: Path) -> None:
    script = "sleep 1000 & echo $! > child; wait"
    server = processes.start("a shell", ["sh", "-c", script], port=processes.free_port(), directory=directory)
    child = directory / "child"
    processes.wait_until_ready(server, lambda: child.exists() and child.read_text() != "", seconds=10)
    pid = int(child.read_text())
    processes.stop(server)
    assert ended(pid)


def test_a_server_that_ignores_being_asked_is_made_to_end(directory: Path) -> None:
    script = "trap '' TERM; touch deaf; while true; do sleep 0.1; done"
    server = processes.start(
        "a deaf shell", ["sh", "-c", script], port=processes.free_port(), directory=directory
    )
    processes.wait_until_ready(server, (directory / "deaf").exists, seconds=10)
    processes.stop(server, seconds=0.2)
    assert not processes.alive(server)


def test_a_server_that_ends_while_starting_is_reported_with_the_end_of_its_log(directory: Path) -> None:
    command = ["sh", "-c", "echo 'no such table' >&2; exit 3"]
    server = processes.start("a broken server", command, port=processes.free_port(), directory=directory)
    with pytest.raises(ServerFailed, match="a broken server exited while it was starting.*\nno such table"):
        processes.wait_until_ready(server, functools.partial(ready, server), seconds=10)


def test_a_server_that_stays_silent_is_stopped_and_reported(directory: Path) -> None:
    server = processes.start("a mute", ["sleep", "1000"], port=processes.free_port(), directory=directory)
    with pytest.raises(ServerFailed, match="a mute was not ready after 0 s"):
        processes.wait_until_ready(server, functools.partial(ready, server), seconds=0.1)
    assert not processes.alive(server)


def test_waiting_says_how_long_it_has_been(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of its own: on a busy machine a second may pass between two looks."""
    server = processes.start("a mute", ["sleep", "1000"], port=processes.free_port(), directory=directory)
    told: list[str] = []
    passed = count(0.0, 0.25)
    monkeypatch.setattr(time, "monotonic", lambda: next(passed))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(ServerFailed):
        processes.wait_until_ready(server, lambda: False, seconds=2.2, tell=told.append)
    assert told == ["a mute is starting, 1 s", "a mute is starting, 2 s"]


def test_a_taken_port_is_named_and_nothing_is_started(server: Server, tmp_path: Path) -> None:
    processes.wait_until_ready(server, functools.partial(ready, server), seconds=30)
    with pytest.raises(PortTaken, match=f"port {server.port} is in use"):
        processes.start("another", ["touch", "started"], port=server.port, directory=tmp_path / "another")
    assert not (tmp_path / "another").exists()


def test_an_answer_from_another_program_is_not_taken_for_the_servers(server: Server, tmp_path: Path) -> None:
    processes.wait_until_ready(server, functools.partial(ready, server), seconds=30)
    late = processes.start("late", ["true"], port=processes.free_port(), directory=tmp_path / "late")
    while processes.alive(late):
        time.sleep(0.01)
    with pytest.raises(ServerFailed, match="another program listens on its port"):
        processes.wait_until_ready(late, functools.partial(ready, server), seconds=10)


def test_what_speaks_another_protocol_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def greet() -> None:
            caller, _ = listening.accept()
            with caller:
                caller.recv(1024)
                caller.sendall(b"220 mail.example ESMTP\r\n")

        greeter = threading.Thread(target=greet)
        greeter.start()
        assert not processes.answers(f"http://127.0.0.1:{listening.getsockname()[1]}")
        greeter.join()


def test_a_recycled_process_id_is_neither_alive_nor_signalled(server: Server) -> None:
    recycled = replace(server, born="another time")
    assert not processes.alive(recycled)
    processes.stop(recycled)
    assert processes.alive(server)


def test_a_server_can_be_stopped_by_another_process_than_the_one_that_started_it(directory: Path) -> None:
    owner, server = owned(directory, "loose", ["sleep", "1000"])
    owner.communicate()
    assert processes.alive(server)
    processes.stop(server)
    assert ended(server.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_tied_server_ends_when_its_owner_is_told_to(directory: Path, number: signal.Signals) -> None:
    owner, server = owned(directory, "tied", ["sleep", "1000"])
    owner.send_signal(number)
    owner.communicate(timeout=120)
    assert owner.returncode != 0
    assert ended(server.pid)


def test_a_tied_server_ends_when_its_owner_does(directory: Path) -> None:
    owner, server = owned(directory, "tied", ["sleep", "1000"])
    owner.communicate(timeout=120)
    assert owner.returncode == 0
    assert ended(server.pid)


def test_a_server_stops_though_the_process_that_started_it_never_asks_how_it_ended(directory: Path) -> None:
    owner, server = owned(directory, "left", HTTP)
    try:
        stopping = threading.Thread(target=processes.stop, args=(server,), daemon=True)
        stopping.start()
        stopping.join(timeout=120)
        assert not stopping.is_alive(), "it waits for the end of a zombie"
    finally:
        owner.communicate()
