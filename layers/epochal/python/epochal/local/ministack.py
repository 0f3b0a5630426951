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
import importlib.util
import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from epochal.local import keeping, processes
from epochal.local.assembly import HERE, Environment
from epochal.local.endpoint import Endpoint
from epochal.local.errors import NotRunning, ProgramMissing
from epochal.local.places import Places
from epochal.local.processes import Server, Tell

NAME = "the embedded AWS"
DEFAULT_PORT = 4566
"""Where tools look for an embedded AWS by custom; where it is taken, `up` finds another."""

READY_SECONDS = 60.0
"""It takes one; a machine with every core busy takes longer."""

RESET_SECONDS = 60.0

SERVE = Path(__file__).with_name("serve.py")


def up(
    places: Places, *, port: int | None = None, authorise: bool = True, tell: Tell | None = None
) -> Server:
    """The embedded AWS of this checkout, started if it does not run, and left running; with what `down` kept.

    Raises:
        PortTaken: another program has the port.
        PortKept: what was kept had another port.
        ServerFailed: it does not start.
        KeptUnreadable: it started without what was kept.
    """
    running = status(places)
    if running is not None:
        return running
    kept = keeping.found(places)
    if kept is None:
        keeping.discard(places)
    else:
        kept.refuse_port(port)
        port = kept.port
    saving = keeping.environment(places)
    server = _launch(places, port=port or _usual_port(), authorise=authorise, saving=saving)
    try:
        _wait(server, tell)
        if kept is not None:
            keeping.take_up(places, kept, functools.partial(endpoint, server))
        _remember(places, server)
    except BaseException:  # Ctrl-C, too: it would run on unknown, and as it ends overwrite what was kept
        processes.stop(server, seconds=0)
        raise
    return server


def down(places: Places, *, keep: bool = False) -> bool:
    """Stop what `up` started. Returns whether it ran.

    Everything deployed to it is forgotten, unless the next `up` is to go on with it: `keep`. Nobody should write to it
    then, and its index should be right: changes that are still in streams are not kept. Raises `KeptLost` where it
    could not be kept.
    """
    server = status(places)
    if server is not None:
        if keep:
            keeping.stop(places, server, functools.partial(endpoint, server))
        else:
            processes.stop(server, seconds=0)
            keeping.discard(places)
    _state(places).unlink(missing_ok=True)
    return server is not None


def status(places: Places) -> Server | None:
    """What `up` started, if it still runs."""
    try:
        state = json.loads(_state(places).read_text())
    except FileNotFoundError:
        return None
    server = Server(**state | {"directory": Path(state["directory"])})
    return server if processes.alive(server) else None


def require(places: Places) -> Server:
    """What `up` started; raises `NotRunning` if it does not run."""
    server = status(places)
    if server is None:
        raise NotRunning("the embedded AWS is not running: start it with `epochal local up`")
    return server


def start(
    places: Places, *, port: int | None = None, authorise: bool = True, tell: Tell | None = None
) -> Server:
    """An embedded AWS that ends with this process, beside any other; on a free port unless one is given."""
    server = _launch(places, port=port or processes.free_port(), authorise=authorise)
    processes.stop_at_exit(server)
    _wait(server, tell)
    return server


def reset(server: Server) -> None:
    """Empty it: every table, function and stack is gone, the server runs on."""
    request = urllib.request.Request(f"{server.url}/_ministack/reset", method="POST")
    with urllib.request.urlopen(request, timeout=RESET_SECONDS):
        pass


def endpoint(server: Server, environment: Environment = HERE) -> Endpoint:
    """How to reach it, in the account and region that a stack names, or in its own."""
    return Endpoint(url=server.url, account=environment.account, region=environment.region)


def _launch(places: Places, *, port: int, authorise: bool, saving: Mapping[str, str] | None = None) -> Server:
    if importlib.util.find_spec("ministack") is None:
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
        environment=_environment(directory, port=port, authorise=authorise) | dict(saving or {}),
    )


def _usual_port() -> int:
    return DEFAULT_PORT if processes.is_free(DEFAULT_PORT) else processes.free_port()


def _environment(directory: Path, *, port: int, authorise: bool) -> dict[str, str]:
    """All that it sees, and so all that its functions inherit: nothing of the user's shell but where programs are."""
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


def _wait(server: Server, tell: Tell | None) -> None:
    ready = functools.partial(processes.answers, f"{server.url}/_ministack/ready")
    processes.wait_until_ready(server, ready, seconds=READY_SECONDS, tell=tell)


def _remember(places: Places, server: Server) -> None:
    """Written beside and moved into place, so that no command reads half of it."""
    state = _state(places)
    new = state.with_suffix(".new")
    new.write_text(json.dumps(asdict(server) | {"directory": str(server.directory)}))
    new.replace(state)


def _state(places: Places) -> Path:
    return places.running / "ministack.json"
