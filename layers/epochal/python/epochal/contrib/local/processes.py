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
"""Linux gives outgoing connections those from 32,768 on, other systems from 49,152."""

POLL_SECONDS = 0.05
DYING_SECONDS = 5.0
LOG_END_BYTES = 4_000

DEAD = ("Z", "X")
"""States of a process that has ended (proc(5), ps(1)): zombie, dead."""

Tell = Callable[[str], object]
"""Where progress goes, a line at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A process that listens on a port of this machine.

    Attributes:
        name: what people call it.
        pid: its process id, which is its process group's too.
        born: when that process started, in the system's own words; compared, never read.
        port: where it listens.
        directory: where it works, and what goes with it.
    """

    name: str
    pid: int
    born: str
    port: int
    directory: Path

    @property
    def log(self) -> Path:
        """The file that takes its output."""
        return self.directory / "log"

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.port}"


def free_port() -> int:
    """A port that nothing listens on, and that no other call is given as long as this process runs.

    It lies below those that a system gives to outgoing connections: one of these could take it before the server does.
    A UDP socket on the same number, which nobody sends to, keeps it from all other processes that ask here.
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
    """Start `command`, which is to listen on `port`, in `directory`, which is emptied first.

    Raises `PortTaken` when another program listens there already. Without `environment` it inherits this one's.
    """
    _refuse_taken(port)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    # Unlike subprocess.Popen this leaves no object that complains when the server outlives it; it can't change the
    # directory, so a shell does, which the server then takes the place of.
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", 'cd "$0" && exec "$@"', os.fspath(directory), *command],
        os.environ if environment is None else environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.fspath(directory / "log"), os.O_WRONLY | os.O_CREAT, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, each) for each in _handed_down()),
        ],
        setpgroup=0,
    )
    return Server(name=name, pid=pid, born=_birth(pid) or "", port=port, directory=directory)


def _handed_down() -> list[int]:
    """Descriptors that whoever called this program left open for it, and that a server would hold as long as it runs.

    A lock of `flock` is one, or a pipe. Those that Python opens itself are closed in what it starts.
    """
    found = []
    for each in (int(path.name) for path in Path("/dev/fd").iterdir()):
        with suppress(OSError):  # the one that listed them is closed by now
            if each not in (0, 1, 2) and os.get_inheritable(each):
                found.append(each)
    return found


def wait_until_ready(server: Server, ready: Callable[[], bool], *, seconds: float, tell: Tell = str) -> None:
    """Return once `ready()`; stop the server and raise `ServerFailed` if it ends first or takes over `seconds`."""
    started = time.monotonic()
    told = 0
    while not ready():
        waited = time.monotonic() - started
        if not alive(server):
            raise _given_up(server, "ended while it was starting")
        if waited > seconds:
            raise _given_up(server, f"was not ready after {seconds:.0f} s")
        if waited >= told + 1:
            told = int(waited)
            tell(f"{server.name} is starting, {told} s")
        time.sleep(POLL_SECONDS)
    if not alive(server):
        # What answered is someone else's: it took the port between the check and the start.
        raise _given_up(server, "ended, and another program answers on its port")


def answers(url: str, *, seconds: float = 1.0) -> bool:
    """Whether anything speaks HTTP at `url`, be it to refuse."""
    try:
        with urllib.request.urlopen(url, timeout=seconds):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except (OSError, http.client.HTTPException):
        return False


def alive(server: Server) -> bool:
    """Whether that very process still runs."""
    with suppress(ChildProcessError):  # not our child: another command started it
        os.waitpid(server.pid, os.WNOHANG)
    return _birth(server.pid) == server.born


def stop(server: Server, *, seconds: float = 5.0) -> None:
    """End the server and all it started: asked first, and after `seconds` made to. Does nothing if it is gone.

    With 0 seconds it is not asked at all, and has no time to leave anything behind.
    """
    if alive(server):
        if seconds:
            _signal_group(server, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while alive(server) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        # The group outlives its leader while a member runs, so this reaches what the leader left behind.
        _signal_group(server, signal.SIGKILL)
        while alive(server):
            time.sleep(POLL_SECONDS)
        # A member that is just dying holds the port which it inherited, and whoever starts again would be refused.
        deadline = time.monotonic() + DYING_SECONDS
        while _group_lives(server) and not is_free(server.port) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    shutil.rmtree(server.directory, ignore_errors=True)


def stop_at_exit(server: Server) -> None:
    """Tie the server to this process: it ends when this process does, on SIGTERM too."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        # By default SIGTERM ends Python without running what is registered for its exit.
        signal.signal(signal.SIGTERM, _leave)
    atexit.register(_stop_in_owner, server, os.getpid())


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _stop_in_owner(server: Server, owner: int) -> None:
    if os.getpid() == owner:  # a forked child inherits the registration, not the server
        stop(server)


def _signal_group(server: Server, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all gone; macOS says the latter of zombies
        os.killpg(server.pid, number)


def _group_lives(server: Server) -> bool:
    try:
        os.killpg(server.pid, 0)
    except PermissionError:  # macOS says so of zombies
        return True
    except ProcessLookupError:
        return False
    return True


def is_free(port: int) -> bool:
    """Whether nothing listens on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) != 0


def _refuse_taken(port: int) -> None:
    if not is_free(port):
        raise PortTaken(port)


def _birth(pid: int) -> str | None:
    """When the process with this id started; None where it does not run.

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
    """What to raise, with the log read before it goes."""
    error = ServerFailed(server.name, reason, _log_end(server))
    stop(server, seconds=0)  # asked to end, one that has loaded half of its state would save that half
    return error


def _log_end(server: Server) -> str:
    try:
        content = server.log.read_bytes()
    except FileNotFoundError:
        return ""
    return content[-LOG_END_BYTES:].decode(errors="replace").strip()
