"""The PostgreSQL of tests: it goes with the process that it was started for, and npm's is as good as the machine's."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from epochal.contrib.local.programs import Places
from tests.support import postgres as postgres_server
from tests.support.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]

HOLDER = """
import time
from pathlib import Path
from epochal.contrib.local.programs import Places
from tests.support import postgres

print(postgres.start(Places(Path.cwd())).folder, flush=True)
time.sleep(600)
"""


def test_it_goes_with_a_process_that_is_killed(postgres: Postgres) -> None:
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{HOLDER}"]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    folder = Path(holder.stdout.readline().strip())
    assert folder.is_dir()
    assert folder != postgres.folder
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    while folder.exists():  # the time-out of tests ends it
        time.sleep(0.05)


@pytest.mark.proof
def test_one_that_is_fetched_serves_as_the_machines_own(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "installed", lambda: None)
    server = postgres_server.start(places)
    try:
        with psycopg.connect(server.conninfo()) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
            assert connection.info.server_version // 10_000 == 18
    finally:
        server.stop()
    assert not server.folder.exists()
