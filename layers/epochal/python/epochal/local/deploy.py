"""Putting this checkout on the embedded AWS, and finding what was put there.

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
from epochal.settings import LIBRARY, Settings, names_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is deployed, by the names that clients need.

    Attributes:
        endpoint: the embedded AWS, for clients of its tables and bucket.
        api_id: the HTTP API.
        tips_table: table of streams.
        index_table: table of the feed.
        bucket: bucket of large bodies.
        journal_table: table of aggregates' events.
        snapshot_table: table of their heads.
        journal_shards: shards of both tables' keys.
        settings: all that the outputs tell of tables, of what their keys are made with, and of the bucket.
    """

    endpoint: Endpoint
    api_id: str
    tips_table: str
    index_table: str
    bucket: str
    journal_table: str
    snapshot_table: str
    journal_shards: int
    settings: Settings

    @property
    def api_url(self) -> str:
        """Where the HTTP API answers, without a slash at its end and without a name to resolve."""
        return f"{self.endpoint.url}/_aws/execute-api/{self.api_id}/$default"


def deploy(
    places: Places, server: Server, *, context: Mapping[str, str] | None = None, tell: Tell | None = None
) -> Deployment:
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


def current(places: Places) -> Deployment:
    """What is deployed to the embedded AWS that `ministack.up` started; raises `NotRunning` if nothing is."""
    server = ministack.require(places)
    outputs = server.directory / "outputs.json"
    if not outputs.is_file():
        raise NotRunning("nothing is deployed to the embedded AWS: `epochal local up` deploys")
    return _read(ministack.endpoint(server), outputs)


def _read(endpoint: Endpoint, outputs: Path) -> Deployment:
    """The outputs of all stacks, whose names do not matter: no two stacks have an output of one name."""
    stacks: dict[str, dict[str, Any]] = json.loads(outputs.read_text())
    values = {name: value for stack in stacks.values() for name, value in stack.items()}
    try:
        settings = _settings(values)
        return Deployment(
            endpoint=endpoint,
            api_id=values["ApiId"],
            tips_table=settings.tips_table,
            index_table=settings.index_table,
            bucket=settings.bucket,
            journal_table=settings.journal_table,
            snapshot_table=settings.snapshot_table,
            journal_shards=settings.journal_shards,
            settings=settings,
        )
    except KeyError as error:
        raise OutputMissing(error.args[0]) from None


def _settings(outputs: Mapping[str, str]) -> Settings:
    return Settings(
        tips_table=outputs["TipsTable"],
        index_table=outputs["IndexTable"],
        bucket=outputs["BucketName"],
        journal_table=outputs["JournalTable"],
        snapshot_table=outputs["SnapshotTable"],
        journal_shards=int(outputs["JournalShards"]),
        journal_keys=outputs.get("JournalKeys", LIBRARY),
        journal_serializer=outputs.get("JournalSerializer", LIBRARY),
        aggregate_types=names_in("AggregateTypes", outputs.get("AggregateTypes", "")),
        events_table=outputs["EventsTable"],
        tags_table=outputs["TagsTable"],
        write_shards=int(outputs["WriteShards"]),
        equinox=outputs.get("Equinox") == "true",
        type_heads=outputs["TypeHeads"] == "true",
        projection_states_table=outputs["ProjectionStatesTable"],
        states_prefix=outputs["StatesPrefix"],
        service=outputs.get("Service", ""),
        read_models_table=outputs.get("ReadModelsTable", ""),
        archive_table=outputs.get("ArchiveTable", ""),
    )
