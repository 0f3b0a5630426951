"""Runs code as Python does on Windows, and with standard streams of other encodings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

UNIX_MODULES = (
    "fcntl",
    "resource",
    "pwd",
    "grp",
    "termios",
    "tty",
    "pty",
    "readline",
    "syslog",
    "_posixsubprocess",
)
"""Modules that Python lacks on Windows, without which a command must start all the same."""

WINDOWS = f"""
import os, signal, subprocess, sys
for name in {UNIX_MODULES}:
    sys.modules[name] = None
for name in ("fork", "forkpty", "killpg", "getuid", "geteuid", "getpgid", "setsid", "WNOHANG"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGCHLD", "SIGALRM", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
"""
"""Makes a process lack what Python lacks on Windows."""

STORE = """
from epochal import Event
from epochal.cli import main as command_line
from tests.support.terminal import Terminal

store = Terminal().store
command_line.open_store = lambda _choice: store
"""


def run(code: str, *, encoding: str = "utf-8", stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run code in a process of its own, whose standard streams have an encoding."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "layers/epochal/python"), str(ROOT)]),
            "PYTHONIOENCODING": encoding,
            "AWS_DEFAULT_REGION": "eu-central-1",
        },
        input=stdin,
        capture_output=True,
        check=False,
    )


def command(*arguments: str, before: str = "") -> str:
    """Code that runs a command on a store in memory."""
    return f"{STORE}\n{before}\ncommand_line.main({list(arguments)!r})"
