"""What the embedded AWS keeps from `down --keep` to the next `up`: its own persistence, with two things put right.

It saves everything as it ends, stacks, functions and tables alike. Only its log says what it could not save or load: so
what was saved is checked, and what was loaded is counted.

And it saves how far each mapping had read its table's stream, but not the streams, which begin anew at 0: a mapping
would pass over as many changes as it had ever read. So mappings begin anew with them. What no mapping had read yet is
in no stream any more; the next start repairs the index.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from epochal.local import outputs, processes
from epochal.local.assembly import Environment
from epochal.local.endpoint import Endpoint
from epochal.local.errors import KeptLost, KeptUnreadable, PortKept
from epochal.local.outputs import RememberedDeployment, environments_of
from epochal.local.places import Places
from epochal.local.processes import Server

SAVED: Final = {
    "apigateway": ("apigatewayv2", "get_apis", "Items"),
    "cloudformation": ("cloudformation", "list_stacks", "StackSummaries"),
    "dynamodb": ("dynamodb", "list_tables", "TableNames"),
    "iam": ("iam", "list_roles", "Roles"),
    "lambda": ("lambda", "list_event_source_mappings", "EventSourceMappings"),
    "s3": ("s3", "list_buckets", "Buckets"),
    "sns": ("sns", "list_topics", "Topics"),
    "sqs": ("sqs", "list_queues", "QueueUrls"),
}
"""The services that a deployment needs, by the names of their files, and what is counted of each."""

SAVE_SECONDS: Final = 120.0
"""It takes three, most of them for the functions' code; a machine with every core busy takes longer."""


Reach = Callable[[Environment], Endpoint]
"""How the embedded AWS is reached in an account and region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many there are of what `SAVED` names, in one account and region."""

    environment: Environment
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept.

    Attributes:
        port: where it listened: functions know addresses that have it in them.
        counts: how many there were of what `SAVED` names, in each account and region.
    """

    port: int
    counts: Sequence[Counts]

    def refuse_port(self, port: int | None) -> None:
        """Raise `PortKept` where another port is asked for."""
        if port not in (None, self.port):
            raise PortKept(self.port)


def environment(places: Places) -> dict[str, str]:
    """What tells it to save, and where: also bodies, which are in files as long as it runs."""
    directory = _directory(places)
    return {
        "PERSIST_STATE": "1",
        "STATE_DIR": str(directory / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(directory / "s3"),
    }


def found(places: Places) -> Kept | None:
    """What the last `down --keep` kept, and nothing has taken up."""
    try:
        told = json.loads(_note(places).read_text())
    except FileNotFoundError:
        return None
    counts = (
        Counts(environment=Environment(**each["environment"]), counts=each["counts"])
        for each in told["counts"]
    )
    return Kept(port=told["port"], counts=tuple(counts))


def discard(places: Places) -> None:
    """Keep nothing."""
    shutil.rmtree(_directory(places), ignore_errors=True)


def stop(places: Places, server: Server, reach: Reach) -> None:
    """Stop `server`, and keep what is in it; raises `KeptLost` where it did not save all of it."""
    deployed = outputs.remembered(server) or RememberedDeployment()
    kept = Kept(port=server.port, counts=tuple(_counts(each, reach) for each in environments_of(deployed)))
    asked = time.time_ns()
    processes.stop(server, seconds=SAVE_SECONDS)
    lost = [name for name in SAVED if _saved_at(_state(places, name)) < asked]
    if lost:
        raise KeptLost(lost)
    _begin_anew(_state(places, "lambda"))
    new = _note(places).with_suffix(".new")
    new.write_text(json.dumps(asdict(kept)))
    new.replace(_note(places))


def take_up(places: Places, kept: Kept, reach: Reach) -> None:
    """Check that what was just started has what was kept; from now on only its next `stop` keeps it.

    Raises:
        KeptUnreadable: it has not. What was kept is as it was, if it is killed.
    """
    if any(_counts(each.environment, reach) != each for each in kept.counts):
        raise KeptUnreadable(str(_directory(places)))
    # A later end of another kind must not bring back what was long ago, with today's bodies.
    _note(places).replace(_due(places))


def repair_is_due(places: Places) -> bool:
    """Whether the index has not been repaired since what was kept was taken up."""
    return _due(places).exists()


def repaired(places: Places) -> None:
    """The index has been repaired."""
    _due(places).unlink(missing_ok=True)


def _begin_anew(state: Path) -> None:
    document: dict[str, Any] = json.loads(state.read_text())
    positions = document["payload"]["dynamodb_stream_positions"]["data"]
    positions.update(dict.fromkeys(positions, 0))
    state.write_text(json.dumps(document))


def _counts(environment: Environment, reach: Reach) -> Counts:
    counts = {}
    clients = reach(environment).clients(*(service for service, _, _ in SAVED.values()))
    for client, (name, (_, operation, key)) in zip(clients, SAVED.items(), strict=True):
        pages = client.get_paginator(operation).paginate()
        counts[name] = sum(len(page.get(key, ())) for page in pages)
    return Counts(environment=environment, counts=counts)


def _saved_at(state: Path) -> int:
    return state.stat().st_mtime_ns if state.exists() else 0


def _state(places: Places, service: str) -> Path:
    return _directory(places) / "state" / f"{service}.json"


def _note(places: Places) -> Path:
    return _directory(places) / "kept.json"


def _due(places: Places) -> Path:
    return _directory(places) / "repair-due.json"


def _directory(places: Places) -> Path:
    return places.running / "kept"
