"""Deploys a project's CDK application to the embedded AWS, and finds the stores that are deployed there.

The same stacks go to AWS by `cdk deploy`; here one context value differs, `target=embedded`. What a deployment made is
known by the stacks' outputs, kept beside the server they belong to: when it stops, both are gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epochal.deployment import Deployment
from epochal.dynamo.deployed import deployed
from epochal.dynamo.interpreter import interpreter
from epochal.local import cdk, ministack, topics
from epochal.local.endpoint import Endpoint
from epochal.local.errors import NotRunning, OutputMissing, StoreUnclear
from epochal.local.places import Places
from epochal.local.processes import Server, Tell
from epochal.settings import FOUND_BY, Settings, setting_of_output

INDEX, BUCKET = FOUND_BY

API = "ApiId"
"""The output that names the HTTP API of a store, where it has one."""

Outputs = Mapping[str, Mapping[str, str]]
"""The outputs of stacks, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStore:
    """A store that is deployed.

    Attributes:
        name: what its outputs begin with, or else that of its stack.
        endpoint: the embedded AWS, for clients of its tables and bucket.
        settings: all that the outputs tell of tables, of what their keys are made with, and of the bucket.
        api_id: the HTTP API; empty where it has none.
    """

    name: str
    endpoint: Endpoint
    settings: Settings
    api_id: str = ""

    @property
    def api_url(self) -> str:
        """Where the HTTP API answers, without a slash at its end and without a name to resolve."""
        return f"{self.endpoint.url}/_aws/execute-api/{self.api_id}/$default" if self.api_id else ""

    @property
    def variables(self) -> dict[str, str]:
        """What points AWS tools, commands and programs at it: addresses, made-up credentials, names of tables.

        Settings that are as they are anyway are left out.
        """
        told = [(setting_of_output(name), text) for name, text in self.settings.outputs().items()]
        settings = {
            each.variable: text
            for each, text in told
            if each is not None and each.parse(text, each.output) != each.default
        }
        api = {"EPOCHAL_API_URL": self.api_url} if self.api_id else {}
        return self.endpoint.environment({}) | settings | api

    def open(self) -> Deployment:
        """Its streams, tagged events, feed and so on."""
        return deployed(
            self.settings,
            execute=interpreter(self.endpoint.client("dynamodb")),
            s3=self.endpoint.client("s3"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDeployment:
    """What is deployed: one store, as a rule, whose attributes are these; else `store` tells which."""

    endpoint: Endpoint
    stores: tuple[LocalStore, ...]

    def store(self, name: str | None = None) -> LocalStore:
        """The store of this name, or the only one.

        Raises:
            OutputMissing: there is no store at all.
            StoreUnclear: there are others, or several.
        """
        if not self.stores:
            raise OutputMissing(INDEX)
        found = [each for each in self.stores if name in (None, each.name)]
        if len(found) != 1:
            raise StoreUnclear([each.name for each in self.stores], name)
        return found[0]

    @property
    def settings(self) -> Settings:
        """Of the only store."""
        return self.store().settings

    @property
    def api_id(self) -> str:
        """Of the only store."""
        return self.store().api_id

    @property
    def api_url(self) -> str:
        """Of the only store."""
        return self.store().api_url

    @property
    def variables(self) -> dict[str, str]:
        """Of the only store."""
        return self.store().variables

    def open(self) -> Deployment:
        """The only store."""
        return self.store().open()


def deploy(
    places: Places,
    server: Server,
    *,
    app: str | None = None,
    context: Mapping[str, str] | None = None,
    tell: Tell | None = None,
) -> LocalDeployment:
    """Deploy every stack to `server`, or bring what is there up to date. Takes ten seconds or more.

    Args:
        places: the project to deploy.
        server: a running embedded AWS.
        app: the command of its CDK application, where it is not that of its cdk.json: `python app.py`.
        context: context values of the CDK application beside the target, `{"stage": "dev"}`.
        tell: told of every resource that is made.

    Raises:
        ProgramMissing: Node is not there, or npm, where the CDK command line has to be fetched.
        CommandFailed: the deployment failed; carries the end of its output.
    """
    endpoint = ministack.endpoint(server)
    cdk.prepare_account(places, endpoint)
    if tell is not None:
        tell("synthesising the stacks")
    outputs = cdk.deploy(
        places,
        endpoint,
        work=server.directory,
        app=app,
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


def _read(endpoint: Endpoint, file: Path) -> LocalDeployment:
    return LocalDeployment(endpoint=endpoint, stores=stores_in(json.loads(file.read_text()), endpoint))


def stores_in(outputs: Outputs, endpoint: Endpoint) -> tuple[LocalStore, ...]:
    """The stores that outputs tell of.

    The outputs of a store may begin with a name, and are then in one stack; where they do not, and there is one store,
    they may be in several.

    Raises:
        OutputMissing: one lacks a bucket.
    """
    found = [
        (stack, name.removesuffix(INDEX))
        for stack, values in outputs.items()
        for name in values
        if name.endswith(INDEX)
    ]
    if len(found) == 1 and not found[0][1]:
        ((stack, _),) = found
        values = {name: value for each in outputs.values() for name, value in each.items()}
        return (_store(stack, values, endpoint),)
    return tuple(
        _store(
            prefix or stack,
            {
                name.removeprefix(prefix): value
                for name, value in outputs[stack].items()
                if name.startswith(prefix)
            },
            endpoint,
        )
        for stack, prefix in found
    )


def _store(name: str, outputs: Mapping[str, str], endpoint: Endpoint) -> LocalStore:
    if BUCKET not in outputs:
        raise OutputMissing(BUCKET)
    return LocalStore(
        name=name,
        endpoint=endpoint,
        settings=Settings.from_outputs(outputs),
        api_id=outputs.get(API, ""),
    )
