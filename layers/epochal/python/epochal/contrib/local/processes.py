"""Runs servers beside a command or a test, and never leaves one behind.

Rules:
- A server leads a process group of its own: a Ctrl-C at the terminal does not reach it, and stopping it takes the
  processes it started along.
- It is known by process id and birth time together, so that a recycled id is never signalled.
- Nothing but that is needed to stop it, so another command can: `Server` is plain data that fits into a state file.
- It holds nothing open of whoever started it, so that their locks are free and their pipes end.
- It works in a directory of its own, which takes its log and its files, and goes when it is stopped.
- It is either tied to this process by `stop_at_exit`, which also covers SIGINT and SIGTERM, or left to outlive it.

Only a SIGKILL of this process leaves a tied server running. POSIX only.
"""

from __future__ import annotations

import atexit
import http.client
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from epochal.contrib.local.errors import PortTaken, ServerFailed
from epochal.lazy_dataclasses import dataclass

HOST = "127.0.0.1"
"""Servers listen here only, so that no other machine reaches what is deployed for a test."""

_PORTS = range(20_000, 32_768)
"""Ports to choose from: Linux gives those from 32,768 on to outgoing connections, other systems from 49,152."""

POLL_SECONDS = 0.05
DYING_SECONDS = 5.0
LOG_END_BYTES = 4_000

DEAD = ("Z", "X")
"""States of a process that has ended (proc(5), ps(1)): zombie, dead."""

Tell = Callable[[str], object]
"""Function that takes progress messages, a line at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A process that listens on a port of this machine.

    Attributes:
        name: name for people.
        pid: id of the process, and of its process group.
        born: start time of the process in the system's own format, which is compared and never parsed.
        port: port on which the process listens.
        directory: working directory of the process, which is deleted when the server stops.
    """

    name: str
    pid: int
    born: str
    port: int
    directory: Path

    @property
    def log(self) -> Path:
        """Path of the file that takes the output of the process."""
        return self.directory / "log"

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://{HOST}:{self.port}"


def free_port() -> int:
    """Return a port that nothing listens on, and reserve it until this process ends.

    No other call returns the port while this process runs.

    The port is below those that a system gives to outgoing connections: such a connection could take the port before
    the server does. A UDP socket on the same number, which nobody sends to, reserves it against other calls in all
    processes.
    """
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket(type=socket.SOCK_DGRAM) as keeper, socket.socket() as probe:
            try:
                keeper.bind((HOST, port))
                probe.bind((HOST, port))
            except OSError:
                continue
            keeper.detach()  # open until this process ends
            return port


def start(
    name: str,
    command: Sequence[str],
    *,
    port: int,
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> Server:
    """Start a server in an emptied directory, and return it without waiting until it listens on `port`.

    The command runs in `directory`, which is emptied first, with the variables of `environment`, or else those of this
    process.

    Raises:
        PortTaken: another program listens on the port.
    """
    _refuse_taken(port)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # Unlike subprocess.Popen, posix_spawn leaves no object that complains when the server outlives it. It cannot change
    # the directory, so a shell does, which then executes the server in its place.
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", 'cd "$0" && exec "$@"', os.fspath(directory), *command],
        os.environ if environment is None else environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.fspath(directory / "log"), os.O_WRONLY | os.O_CREAT, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _handed_down()),
        ],
        setpgroup=0,
    )
    return Server(name=name, pid=pid, born=_birth(pid) or "", port=port, directory=directory)


def _handed_down() -> list[int]:
    """Return the file descriptors that a server would inherit and hold as long as it runs.

    The caller of this program left them open, for example a pipe, or a file with a lock of `flock`. Descriptors that
    Python opens itself are closed in child processes.
    """
    inherited = []
    for descriptor in (int(path.name) for path in Path("/dev/fd").iterdir()):
        with suppress(OSError):  # the one that listed them is closed by now
            if descriptor not in (0, 1, 2) and os.get_inheritable(descriptor):
                inherited.append(descriptor)
    return inherited


def wait_until_ready(server: Server, ready: Callable[[], bool], *, seconds: float, tell: Tell = str) -> None:
    """Wait until `ready()` is true; stop the server and raise if it ends or takes over `seconds`.

    Raises:
        ServerFailed: the server was not ready in time, or ended; carries the end of its log.
    """
    started = time.monotonic()
    seconds_told = 0
    while not ready():
        waited = time.monotonic() - started
        if not alive(server):
            raise _given_up(server, "exited while it was starting")
        if waited > seconds:
            raise _given_up(server, f"was not ready after {seconds:.0f} s")
        if waited >= seconds_told + 1:
            seconds_told = int(waited)
            tell(f"{server.name} is starting, {seconds_told} s")
        time.sleep(POLL_SECONDS)
    if not alive(server):
        # Another program answered: it took the port between the check and the start.
        raise _given_up(server, "exited, and another program listens on its port")


def answers(url: str, *, seconds: float = 1.0) -> bool:
    """Return whether anything responds over HTTP at `url` within `seconds`, whatever its status."""
    try:
        with urllib.request.urlopen(url, timeout=seconds):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except (OSError, http.client.HTTPException):
        return False


def alive(server: Server) -> bool:
    """Whether the process of the server still runs, and not another process with its id."""
    with suppress(ChildProcessError):  # not our child: another command started it
        os.waitpid(server.pid, os.WNOHANG)
    return _birth(server.pid) == server.born


def stop(server: Server, *, seconds: float = 5.0) -> None:
    """Stop a server and all processes that it started, and delete its directory.

    The processes get SIGTERM, and SIGKILL after `seconds`. With 0 seconds they get SIGKILL at once, and have no time to
    leave anything behind.
    """
    if alive(server):
        if seconds:
            _signal_group(server, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while alive(server) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        # The group outlives its leader while a member runs, so this signal reaches processes that the leader left.
        _signal_group(server, signal.SIGKILL)
        while alive(server):
            time.sleep(POLL_SECONDS)
        # A member that is just dying holds the port that it inherited, so that the next start would be refused.
        deadline = time.monotonic() + DYING_SECONDS
        while _group_lives(server) and not is_free(server.port) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    shutil.rmtree(server.directory, ignore_errors=True)


def stop_at_exit(server: Server) -> None:
    """Register the server to be stopped when this process ends, also by SIGTERM."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        # By default SIGTERM ends Python without running what is registered for its exit.
        signal.signal(signal.SIGTERM, _leave)
    atexit.register(_stop_in_owner, server, os.getpid())


def _leave(number: int, _frame: FrameType | None) -> None:
    """Exit with the status of a signal, so that functions registered for the exit run."""
    sys.exit(128 + number)


def _stop_in_owner(server: Server, owner: int) -> None:
    """Stop the server if this process has the id `owner`."""
    if os.getpid() == owner:  # a forked child inherits the registration, not the server
        stop(server)


def _signal_group(server: Server, number: signal.Signals) -> None:
    """Send a signal to the process group of the server, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):  # all gone; macOS says the latter of zombies
        os.killpg(server.pid, number)


def _group_lives(server: Server) -> bool:
    """Return whether any process of the server's process group still exists."""
    try:
        os.killpg(server.pid, 0)
    except PermissionError:  # macOS says so of zombies
        return True
    except ProcessLookupError:
        return False
    return True


def is_free(port: int) -> bool:
    """Whether nothing listens on a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) != 0


def _refuse_taken(port: int) -> None:
    """Raise `PortTaken` if something listens on the port."""
    if not is_free(port):
        raise PortTaken(port)


def _birth(pid: int) -> str | None:
    """Return the start time of the process with an id, as text; None where no such process runs.

    A process that has ended and whose parent has not yet read its exit status (a zombie) counts as not running:
    otherwise a command that stops another process's server would wait for that parent, maybe for ever.
    """
    proc = Path("/proc")
    if (proc / "self").exists():
        try:
            # The program's name, in parentheses, may hold anything; the fields after it are plain words (proc(5)).
            fields = (proc / str(pid) / "stat").read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in DEAD else fields[19]
    listed = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, born = listed.stdout.strip().partition(" ")
    return None if state[:1] in DEAD else born.strip() or None


def _given_up(server: Server, reason: str) -> ServerFailed:
    """Stop a server that did not become ready, and return the error with the end of its log."""
    error = ServerFailed(server.name, reason, _log_end(server))
    stop(server, seconds=0)  # with time to end, a server with half of its state loaded would save that half
    return error


def _log_end(server: Server) -> str:
    """Return the end of a server's log; empty where there is no log."""
    try:
        content = server.log.read_bytes()
    except FileNotFoundError:
        return ""
    return content[-LOG_END_BYTES:].decode(errors="replace").strip()
