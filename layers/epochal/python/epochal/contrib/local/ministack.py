"""The embedded AWS: ministack on this machine, as the real CDK command line deploys to it.

`up` leaves it running for later commands and remembers it in a state file; `start` ties it to this process, for tests.
Either is empty when it starts, and keeps nothing when it stops, unless `down` is told to keep it for the next `up`.

It enforces IAM unless told otherwise: each function may do what its role grants, and no more, so a missing grant shows
here and not in AWS. Callers use the key `test`, which may do everything.

Its functions see their code, their layers and the SDK, as on AWS, and none of this interpreter's packages (`serve`).

What it does not do, and tests here cannot show: throttling; partial batch responses, bisecting, retry limits and
failure destinations of stream mappings; payload limits.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from epochal.contrib.local import processes, remembered_deployment
from epochal.contrib.local.assembly import HERE, Environment
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.errors import (
    KeptLost,
    KeptUnreadable,
    NotRunning,
    PortKept,
    ProgramMissing,
    SystemUnsupported,
)
from epochal.contrib.local.processes import Server, Tell
from epochal.contrib.local.programs import Places, note, noted
from epochal.contrib.local.remembered_deployment import RememberedDeployment, environments_of
from epochal.lazy_dataclasses import asdict, dataclass
from epochal.named_objects import is_installed

NAME = "the embedded AWS"
DEFAULT_PORT = 4566
"""Port where tools look for an embedded AWS by custom; where it is taken, `up` finds another."""

READY_SECONDS = 60.0
"""Seconds until it must be ready: it takes one, and longer where every core is busy."""

RESET_SECONDS = 60.0

SERVE = Path(__file__).with_name("serve.py")


def up(places: Places, *, port: int | None = None, authorise: bool = True, tell: Tell = str) -> Server:
    """Start the embedded AWS of a project and leave it running, or return the one that runs.

    It starts with the state that `down` kept, if there is one.

    Raises:
        PortTaken: another program has the port.
        PortKept: the kept state has another port.
        ServerFailed: the embedded AWS does not start.
        KeptUnreadable: the embedded AWS started without the kept state.
        SystemUnsupported: this system cannot run it.
    """
    if not hasattr(os, "killpg"):
        raise SystemUnsupported(sys.platform)
    running = status(places)
    if running is not None:
        return running
    earlier = load_kept(places)
    if earlier is None:
        discard(places)
    else:
        earlier.refuse_port(port)
        port = earlier.port
    free = DEFAULT_PORT if processes.is_free(DEFAULT_PORT) else processes.free_port()
    server = _launch(
        places, port=port or free, authorise=authorise, saving=build_persistence_environment(places)
    )
    try:
        _wait(server, tell)
        if earlier is not None:
            take_up(places, earlier, server)
        note(_state(places), asdict(server))
    except BaseException:  # Ctrl-C, too: a server left behind would overwrite the kept state at its end
        processes.stop(server, seconds=0)
        raise
    return server


def down(places: Places, *, keep: bool = False) -> bool:
    """Stop the embedded AWS, deleting its data unless `keep` is true; return whether it was running.

    Everything deployed to it is deleted, unless `keep` saves its state for the next `up`. Then nobody should write to
    it, and its index should be repaired before: changes that are still in streams are not kept.

    Raises:
        KeptLost: the state could not be saved.
    """
    server = status(places)
    if server is not None:
        if keep:
            stop(places, server)
        else:
            processes.stop(server, seconds=0)
            discard(places)
    _state(places).unlink(missing_ok=True)
    return server is not None


def status(places: Places) -> Server | None:
    """Return the server that `up` started, or None if it does not run."""
    state = noted(_state(places))
    if state is None:
        return None
    server = Server(**state | {"directory": Path(state["directory"])})
    return server if processes.alive(server) else None


def require(places: Places) -> Server:
    """Return the server that `up` started; raise `NotRunning` if it does not run.

    Raises:
        NotRunning: the server does not run.
    """
    server = status(places)
    if server is None:
        raise NotRunning("the embedded AWS is not running: start it with `epochal local up`")
    return server


def start(places: Places, *, port: int | None = None, authorise: bool = True, tell: Tell = str) -> Server:
    """Start an embedded AWS beside any other, ending with this process; return it once it is ready.

    It listens on a free port unless one is given.
    """
    server = _launch(places, port=port or processes.free_port(), authorise=authorise)
    processes.stop_at_exit(server)
    _wait(server, tell)
    return server


def reset(server: Server) -> None:
    """Delete every table, function and stack of a server, which keeps running."""
    request = urllib.request.Request(f"{server.url}/_ministack/reset", method="POST")
    with urllib.request.urlopen(request, timeout=RESET_SECONDS):
        pass


def endpoint(server: Server, environment: Environment = HERE) -> Endpoint:
    """Return the address of a server for clients, in an environment or in its default one."""
    return Endpoint(url=server.url, account=environment.account, region=environment.region)


def _launch(places: Places, *, port: int, authorise: bool, saving: Mapping[str, str] | None = None) -> Server:
    """Start ministack as a server on `port`, and return it without waiting until it is ready.

    Args:
        saving: variables that make the server save its state; None if it is not to be saved.

    Raises:
        ProgramMissing: ministack is not installed.
    """
    if not is_installed("ministack"):
        raise ProgramMissing(
            "ministack", "not installed (it is the embedded AWS)", "pip install 'epochal[local]'"
        )
    places.prepare()
    directory = places.running / f"ministack-{port}"
    return processes.start(
        NAME,
        [sys.executable, "-P", str(SERVE)],  # -P: its own folder is no place to import from
        port=port,
        directory=directory,
        environment=_build_server_environment(directory, port=port, authorise=authorise) | dict(saving or {}),
    )


def _build_server_environment(directory: Path, *, port: int, authorise: bool) -> dict[str, str]:
    """Return the environment variables of the server, which its functions inherit.

    Of the user's shell only the paths of programs, the home and the language are in them.
    """
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return inherited | {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": processes.HOST,
        "IOT_MTLS_ENABLED": "0",  # it would open one more port, and this costs most of its start
        "AUTH": "true" if authorise else "false",
        "LOG_LEVEL": "WARNING",  # a line per request, else: the demo makes thousands
        "TMPDIR": str(directory),  # where the code of functions is unpacked
        "STATE_DIR": str(directory / "state"),
        "S3_DATA_DIR": str(directory / "s3"),
    }


def _wait(server: Server, tell: Tell) -> None:
    """Wait until a server is ready; stop it and raise if it ends or takes over `READY_SECONDS`.

    Raises:
        ServerFailed: the server ends, or takes longer than `READY_SECONDS`.
    """
    ready = functools.partial(processes.answers, f"{server.url}/_ministack/ready")
    processes.wait_until_ready(server, ready, seconds=READY_SECONDS, tell=tell)


def _state(places: Places) -> Path:
    return places.running / "ministack.json"


# The state that is kept from `down --keep` to the next `up`: ministack's own persistence, with two corrections.
#
# It saves everything as it ends, stacks, functions and tables alike. Only its log says what it could not save or
# load: so the saved files are checked, and the loaded resources are counted.
#
# And it saves how far each mapping had read its table's stream, but not the streams, which begin again at 0: a mapping
# would skip as many changes as it had ever read. So mappings begin again at 0, too. Changes that no mapping had read
# when the embedded AWS stopped are lost from the streams; the next start repairs the index.

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
"""Services that a deployment needs, by the names of their files, with the operation that lists their resources."""

SAVE_SECONDS: Final = 120.0
"""Seconds until the state must be saved: it takes three, most of them for the functions' code, and longer where every
core is busy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of resources in one account and region, by the names of `SAVED`."""

    environment: Environment
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Kept state of an embedded AWS.

    Attributes:
        port: port of the server, which is part of addresses that functions know.
        counts: numbers of resources, in each account and region.
    """

    port: int
    counts: Sequence[Counts]

    def refuse_port(self, port: int | None) -> None:
        """Raise `PortKept` if a port is requested that is not the kept one."""
        if port not in (None, self.port):
            raise PortKept(self.port)


def build_persistence_environment(places: Places) -> dict[str, str]:
    """Return the variables that make ministack save its state, and name the folders for it.

    One folder is for bodies, which are in files as long as the server runs.
    """
    directory = _directory(places)
    return {
        "PERSIST_STATE": "1",
        "STATE_DIR": str(directory / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(directory / "s3"),
    }


def load_kept(places: Places) -> Kept | None:
    """Read the note of the state that `down --keep` kept; None if none is kept, or `up` has loaded it."""
    note = noted(_note(places))
    if note is None:
        return None
    counts = (counted | {"environment": Environment(**counted["environment"])} for counted in note["counts"])
    return Kept(port=note["port"], counts=tuple(Counts(**count) for count in counts))


def discard(places: Places) -> None:
    """Delete the kept state."""
    shutil.rmtree(_directory(places), ignore_errors=True)


def stop(places: Places, server: Server) -> None:
    """Stop a server and keep its state for the next `up`; raise `KeptLost` if it did not save all.

    Raises:
        KeptLost: the server did not save all of its state.
    """
    deployed = remembered_deployment.remembered(server) or RememberedDeployment()
    counted = Kept(
        port=server.port,
        counts=tuple(_counts(server, environment) for environment in environments_of(deployed)),
    )
    began = time.time_ns()
    processes.stop(server, seconds=SAVE_SECONDS)
    states = {name: _directory(places) / "state" / f"{name}.json" for name in SAVED}
    lost = [name for name, state in states.items() if not state.exists() or state.stat().st_mtime_ns < began]
    if lost:
        raise KeptLost(lost)
    _begin_anew(states["lambda"])
    note(_note(places), asdict(counted))


def take_up(places: Places, state: Kept, server: Server) -> None:
    """Note that a server has loaded the kept state and a repair is due; raise if it has not loaded all.

    From now on only the next `stop` of the server keeps the state, and a repair of the index is due.

    Raises:
        KeptUnreadable: the server has not. The kept state stays as it was, if the server is killed.
    """
    if any(_counts(server, count.environment) != count for count in state.counts):
        raise KeptUnreadable(str(_directory(places)))
    # If the server ends otherwise later, an old state with today's bodies must not be loaded again.
    _note(places).replace(_due(places))


def repair_is_due(places: Places) -> bool:
    """Whether the kept state has been loaded and the index has not been repaired since."""
    return _due(places).exists()


def repaired(places: Places) -> None:
    """Note that the index has been repaired."""
    _due(places).unlink(missing_ok=True)


def _begin_anew(state: Path) -> None:
    """Set the stream positions of all mappings in a saved state to 0."""
    document: dict[str, Any] = json.loads(state.read_text("utf-8"))
    positions = document["payload"]["dynamodb_stream_positions"]["data"]
    positions.update(dict.fromkeys(positions, 0))
    state.write_text(json.dumps(document), "utf-8")


def _counts(server: Server, environment: Environment) -> Counts:
    """Count the resources of each service of `SAVED`, in an account and region of a server."""
    counts = {}
    clients = endpoint(server, environment).clients(*(service for service, _, _ in SAVED.values()))
    for client, (name, (_, operation, key)) in zip(clients, SAVED.items(), strict=True):
        pages = client.get_paginator(operation).paginate()
        counts[name] = sum(len(page.get(key, ())) for page in pages)
    return Counts(environment=environment, counts=counts)


def _note(places: Places) -> Path:
    return _directory(places) / "kept.json"


def _due(places: Places) -> Path:
    return _directory(places) / "repair-due.json"


def _directory(places: Places) -> Path:
    return places.running / "kept"
