"""What stays up after the demo with KEEP=1: the embedded AWS, as `epochal local up` would leave it, and the console."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from epochal.contrib.local import ministack, processes
from epochal.contrib.local.errors import PortTaken
from epochal.contrib.local.processes import Server
from epochal.contrib.local.programs import Places

CONSOLE_SECONDS: Final = 30.0
"""Until it says where it is; it takes two."""

_ADDRESS: Final = re.compile(r"http://\S+@127\.0\.0\.1:\d+/")


class AlreadyRuns(Exception):
    """An embedded AWS runs here, or one was kept: what the feed holds would not be what the demo has sent."""


def up(places: Places) -> Server:
    """An embedded AWS that outlives this process, and that `epochal` commands of this checkout are about."""
    if ministack.status(places) is not None or ministack.load_kept(places) is not None:
        raise AlreadyRuns(
            "an embedded AWS runs here or was kept, and KEEP=1 needs an empty one: `epochal local up && epochal local "
            "down` ends it with all that it holds"
        )
    try:
        return ministack.up(places)
    except PortTaken:
        return ministack.up(places, port=processes.free_port())


def console(server: Server, root: Path) -> str:
    """Start the console beside the embedded AWS, with which it ends; where it is."""
    log = server.directory / "console"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "epochal.cli.main", "console"],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=server.pid,
        )
    ends = time.monotonic() + CONSOLE_SECONDS
    while process.poll() is None and time.monotonic() < ends:
        if found := _ADDRESS.search(log.read_text(errors="replace")):
            return found[0]
        time.sleep(0.1)
    return f"not there: {log.read_text(errors='replace').strip()}"
