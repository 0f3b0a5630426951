"""The deployed stacks with their outputs, in a file beside the server: when the server stops, both are gone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from epochal.contrib.local.assembly import HERE, Assembly, Environment
from epochal.contrib.local.processes import Server
from epochal.contrib.local.programs import note, noted
from epochal.lazy_dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of one stack, with the stack's name and environment.

    Attributes:
        stack: name of the stack.
        environment: account and region of the stack.
        values: values of the outputs by their names.
    """

    stack: str
    environment: Environment = HERE
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedDeployment:
    """A deployment: the outputs of its stacks, and the home environment of commands.

    Commands use the home where no store names another environment.
    """

    home: Environment = HERE
    stacks: tuple[Outputs, ...] = ()


def environments_of(deployed: Assembly | RememberedDeployment) -> tuple[Environment, ...]:
    """Return the environments of the stacks and the home environment, sorted, each once."""
    return tuple(sorted({deployed.home, *(stack.environment for stack in deployed.stacks)}))


def remember(server: Server, deployed: RememberedDeployment) -> None:
    """Write a deployment to a file beside the server."""
    note(_note(server), asdict(deployed))


def remembered(server: Server) -> RememberedDeployment | None:
    """Read the deployment that was written beside a server; None where nothing was deployed."""
    note = noted(_note(server))
    if note is None:
        return None
    stacks = (
        Outputs(**stack | {"environment": Environment(**stack["environment"])}) for stack in note["stacks"]
    )
    return RememberedDeployment(home=Environment(**note["home"]), stacks=tuple(stacks))


def _note(server: Server) -> Path:
    return server.directory / "deployed.json"
