"""What the embedded AWS keeps from `down --keep` to the next `up`: its own persistence, with two things put right.

It saves everything as it ends, stacks, functions and tables alike. Of what it could not save it says nothing but a line
in its log: so what was saved is looked at, and what was taken up again is.

And it saves how far each mapping had read its table's stream, but not the streams, which begin anew at 0: a mapping
would pass over as many changes as it had ever read. So mappings begin anew with them. What no mapping had read yet is
in no stream any more; whoever starts it again repairs the index.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from epochal.local import processes
from epochal.local.endpoint import Endpoint
from epochal.local.errors import KeptLost, KeptUnreadable, PortKept
from epochal.local.places import Places
from epochal.local.processes import Server

SAVED: Final = ("apigateway", "cloudformation", "dynamodb", "iam", "lambda", "s3", "sns", "sqs")
"""The services without which a deployment is none."""

SAVE_SECONDS: Final = 120.0
"""It takes three, most of them for the functions' code; a machine with every core busy takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept.

    Attributes:
        port: where it listened: functions know addresses that have it in them.
        tables: all there were.
    """

    port: int
    tables: Sequence[str]

    def refuse_port(self, port: int | None) -> None:
        """Raise `PortKept` where another port is asked for."""
        if port not in (None, self.port):
            raise PortKept(self.port)


def environment(places: Places) -> dict[str, str]:
    """What tells it to save, and where: also bodies, which lie in files as long as it runs."""
    directory = _directory(places)
    return {
        "PERSIST_STATE": "1",
        "STATE_DIR": str(directory / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(directory / "s3"),
    }


def found(places: Places) -> Kept | None:
    """What the last `down --keep` kept."""
    try:
        return Kept(**json.loads(_note(places).read_text()))
    except FileNotFoundError:
        return None


def discard(places: Places) -> None:
    """Keep nothing."""
    shutil.rmtree(_directory(places), ignore_errors=True)


def stop(places: Places, server: Server, endpoint: Endpoint) -> None:
    """Stop `server`, and keep what is in it; raises `KeptLost` where it did not save all of it."""
    kept = Kept(port=server.port, tables=_tables(endpoint))
    asked = time.time_ns()
    processes.stop(server, seconds=SAVE_SECONDS)
    lost = [name for name in SAVED if _saved_at(_state(places, name)) < asked]
    if lost:
        raise KeptLost(lost)
    _begin_anew(_state(places, "lambda"))
    new = _note(places).with_suffix(".new")
    new.write_text(json.dumps(asdict(kept)))
    new.replace(_note(places))


def take_up(places: Places, kept: Kept, server: Server, endpoint: Endpoint) -> None:
    """See that `server`, just started, has what was kept; from now on only its next `stop` keeps it.

    Raises:
        KeptUnreadable: it has not. It is stopped, and what was kept is as it was.
    """
    if _tables(endpoint) != list(kept.tables):
        processes.stop(server, seconds=0)
        raise KeptUnreadable(str(_directory(places)))
    # A later end of another kind must not bring back what was long ago, with today's bodies.
    _note(places).unlink()


def _begin_anew(state: Path) -> None:
    document: dict[str, Any] = json.loads(state.read_text())
    positions = document["payload"]["dynamodb_stream_positions"]["data"]
    positions.update(dict.fromkeys(positions, 0))
    state.write_text(json.dumps(document))


def _tables(endpoint: Endpoint) -> list[str]:
    pages = endpoint.client("dynamodb").get_paginator("list_tables").paginate()
    return sorted(name for page in pages for name in page["TableNames"])


def _saved_at(state: Path) -> int:
    return state.stat().st_mtime_ns if state.exists() else 0


def _state(places: Places, service: str) -> Path:
    return _directory(places) / "state" / f"{service}.json"


def _note(places: Places) -> Path:
    return _directory(places) / "kept.json"


def _directory(places: Places) -> Path:
    return places.running / "kept"
