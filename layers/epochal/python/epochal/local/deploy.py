"""Deploys this checkout to the embedded AWS, and finds what is deployed there.

The same stacks go to AWS by `cdk deploy`; here one context value differs, `target=embedded`. What a deployment made is
known by the stacks' outputs, kept beside the server they belong to: when it stops, both are gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochal.local import cdk, ministack, topics
from epochal.local.endpoint import Endpoint
from epochal.local.errors import NotRunning, OutputMissing
from epochal.local.places import Places
from epochal.local.processes import Server, Tell
from epochal.settings import FOUND_BY, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDeployment:
    """What is deployed, by the names that clients need.

    Attributes:
        endpoint: the embedded AWS, for clients of its tables and bucket.
        api_id: the HTTP API.
        settings: all that the outputs tell of tables, of what their keys are made with, and of the bucket.
    """

    endpoint: Endpoint
    api_id: str
    settings: Settings

    @property
    def api_url(self) -> str:
        """Where the HTTP API answers, without a slash at its end and without a name to resolve."""
        return f"{self.endpoint.url}/_aws/execute-api/{self.api_id}/$default"


def deploy(
    places: Places, server: Server, *, context: Mapping[str, str] | None = None, tell: Tell | None = None
) -> LocalDeployment:
    """Deploy every stack to `server`, or bring what is there up to date. Takes ten seconds or more.

    Args:
        places: the checkout to deploy.
        server: a running embedded AWS.
        context: context values of the CDK application beside the target, `{"stage": "dev"}`.
        tell: told of every resource that is made.

    Raises:
        ProgramMissing: Node or the CDK command line is not there.
        CommandFailed: the deployment failed; carries the end of its output.
    """
    endpoint = ministack.endpoint(server)
    cdk.prepare_account(endpoint)
    if tell is not None:
        tell("synthesising the stacks")
    outputs = cdk.deploy(
        places,
        endpoint,
        work=server.directory,
        context={"target": "embedded"} | dict(context or {}),
        tell=tell,
    )
    topics.make_fifo(endpoint)
    return _read(endpoint, outputs)


def current(places: Places) -> LocalDeployment:
    """What is deployed to the embedded AWS that `ministack.up` started; raises `NotRunning` if nothing is."""
    server = ministack.require(places)
    outputs = server.directory / "outputs.json"
    if not outputs.is_file():
        raise NotRunning("nothing is deployed to the embedded AWS: `epochal local up` deploys")
    return _read(ministack.endpoint(server), outputs)


def _read(endpoint: Endpoint, outputs: Path) -> LocalDeployment:
    """The outputs of all stacks, whose names do not matter: no two stacks have an output of one name."""
    stacks: dict[str, dict[str, Any]] = json.loads(outputs.read_text())
    values = {name: value for stack in stacks.values() for name, value in stack.items()}
    for name in ("ApiId", *FOUND_BY):
        if name not in values:
            raise OutputMissing(name)
    return LocalDeployment(endpoint=endpoint, api_id=values["ApiId"], settings=Settings.from_outputs(values))
