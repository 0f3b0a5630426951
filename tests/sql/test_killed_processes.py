"""G18 with real processes: two that deliver the same, each killed with SIGKILL in the middle and started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import func, select

from tests.sql.histories import Folds, State, deliveries, folded
from tests.sql.worker import opened
from tests.support.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = 24
KILLS = 4


def start(url: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "layers/epochal/python")])
    command = [sys.executable, "-m", "tests.sql.worker", url, str(HISTORIES)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path})


def test_whichever_process_is_killed_no_event_is_lost_or_doubled(postgres: Postgres, database: str) -> None:
    url, luck = postgres.url(database), random.Random(1)
    model = opened(url)
    model.create()
    expected = [folded(deliveries(f"h{seed}", random.Random(seed))) for seed in range(HISTORIES)]
    events = model.tables["events"]
    every = sum(each.events.total() for each in expected) // (KILLS + 1)
    processes, killed = [start(url), start(url)], 0
    while any(each.poll() is None for each in processes):
        with model.database.engine.connect() as connection:
            there = connection.execute(select(func.count()).select_from(events)).scalar_one()
        if killed < KILLS and there >= every * (killed + 1):
            number = luck.randrange(2)
            processes[number].send_signal(signal.SIGKILL)
            processes[number].wait()
            processes[number], killed = start(url), killed + 1
        time.sleep(0.005)
    assert [each.returncode for each in processes] == [0, 0]
    assert killed == KILLS
    with model.database.engine.connect() as connection:
        found = [Folds(f"h{seed}", model).found(connection) for seed in range(HISTORIES)]
    model.database.engine.dispose()
    assert found == expected
    assert State() not in found
