"""What was deployed to the embedded AWS: its stacks with their outputs, kept beside the server that they belong to.

When the server stops, both are gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from epochal.local.assembly import HERE, Assembly, Environment
from epochal.local.processes import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Of one stack: what it is called, and where it is."""

    stack: str
    environment: Environment = HERE
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedDeployment:
    """What was deployed; `home` is where commands are, if no store says otherwise."""

    home: Environment = HERE
    stacks: tuple[Outputs, ...] = ()


def environments_of(deployed: Assembly | RememberedDeployment) -> tuple[Environment, ...]:
    """Where stacks are or go, each once, and home."""
    return tuple(sorted({deployed.home, *(each.environment for each in deployed.stacks)}))


def remember(server: Server, deployed: RememberedDeployment) -> None:
    """Written beside and moved into place, so that no command reads half of it."""
    new = _note(server).with_suffix(".new")
    new.write_text(json.dumps(asdict(deployed)))
    new.replace(_note(server))


def remembered(server: Server) -> RememberedDeployment | None:
    """What was deployed to `server`; None where nothing was."""
    try:
        told = json.loads(_note(server).read_text())
    except FileNotFoundError:
        return None
    stacks = (
        Outputs(**each | {"environment": Environment(**each["environment"])}) for each in told["stacks"]
    )
    return RememberedDeployment(home=Environment(**told["home"]), stacks=tuple(stacks))


def _note(server: Server) -> Path:
    return server.directory / "deployed.json"
